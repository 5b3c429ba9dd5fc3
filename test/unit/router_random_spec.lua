-- The router against its oracle on random routes and requests.
--
-- SEED repeats a run, LONG=1 makes it longer.

local core_router = require("test.unit.support.core_router")
local oracle = require("test.unit.support.oracle")
local random_routes = require("test.unit.support.routes")
local soak = require("test.unit.support.soak")

local ROUNDS = soak(1500, 15000)

local seed = require("test.unit.support.seed")("router_random")

-- Many lengths of paths and of wildcards, and paths longer than a key: what lengths in use,
-- rooms and cut keys are about.
local function longer_path(path)
    return path .. ("/"):rep(path:sub(-1) == "/" and 0 or 1) .. ("a"):rep(math.random(0, 300))
end

local function widen_route(route)
    for i, path in ipairs(route.paths or {}) do
        if path:sub(1, 1) ~= "~" and math.random(2) == 1 then
            route.paths[i] = longer_path("/" .. ("a"):rep(math.random(0, 20)))
        elseif path:sub(1, 1) ~= "~" then
            route.paths[i] = "/" .. ("a"):rep(math.random(0, 20))
        end
    end
    for i, host in ipairs(route.hosts or {}) do
        local labels = ("b."):rep(math.random(0, 6))
        if host:sub(1, 2) == "*." then
            route.hosts[i] = "*." .. labels .. host:sub(3)
        elseif host:find("^%l[%l.]*$") then
            route.hosts[i] = labels .. host
        end
    end
    return route
end

local function widen_request(request)
    request.path = "/" .. ("a"):rep(math.random(0, 20))
    if math.random(4) == 1 then
        request.path = longer_path(request.path)
    end
    if request.host and request.host:sub(1, 1) ~= "[" then
        request.host = ("b."):rep(math.random(0, 7)) .. request.host
    end
    return request
end

local function as_is(value)
    return value
end

local KINDS = {
    { name = "random sets of routes", most = 12, requests = 12, route = as_is, request = as_is },
    {
        name = "wide sets of routes",
        most = 60,
        requests = 30,
        route = widen_route,
        request = widen_request,
    },
}

local function compile(routes)
    local indices = {}
    for i = 1, #routes do
        indices[i] = i
    end
    return assert(core_router.new(routes, indices))
end

--- @treturn string what the router answers
-- @treturn string what the oracle answers; "refused" for both where a pattern gave up
local function answers(compiled, routes, request)
    local value, prefix, reason = compiled:match(
        request.method,
        request.host,
        request.port,
        request.path,
        function(name)
            local sent = request.headers[name]
            return sent and core_router.header(type(sent) == "table" and sent or { sent })
        end,
        request.is_tls and { sni = request.sni } or nil
    )
    if value == false and reason:find("limit exceeded$") then
        return "refused", "refused"
    end
    local best = oracle.match(routes, request)
    return ("route %s, prefix %s"):format(value, prefix),
        ("route %s, prefix %s"):format(best and best.route, best and best.prefix)
end

local function differs(routes, request)
    local got, want = answers(compile(routes), routes, request)
    return got ~= want
end

local function report(round, routes, request)
    local case = random_routes.shrink(routes, function(smaller)
        return differs(smaller, request)
    end)
    local got, want = answers(compile(case), case, request)
    return ("seed %d, round %d\nroutes %s\nrequest %s\nrouter: %s\noracle: %s"):format(
        seed,
        round,
        random_routes.show(case),
        random_routes.show(request),
        got,
        want
    )
end

local function compare(kind, rounds)
    local matched, refused, total = 0, 0, 0
    for round = 1, rounds do
        local routes = random_routes.routes(kind.most)
        for i, route in ipairs(routes) do
            routes[i] = kind.route(route)
        end
        local compiled = compile(routes)
        for _ = 1, kind.requests do
            local request = kind.request(random_routes.request())
            local got, want = answers(compiled, routes, request)
            if got ~= want then
                error(report(round, routes, request), 0)
            end
            total = total + 1
            matched = matched + (want ~= "route nil, prefix nil" and 1 or 0)
            refused = refused + (want == "refused" and 1 or 0)
        end
    end
    -- Random cases that match nothing would prove nothing.
    assert.is_true(matched > total / 2, ("only %d of %d matched"):format(matched, total))
    assert.is_true(refused < total / 100, ("%d of %d are refused"):format(refused, total))
end

describe("router against its oracle", function()
    for number, kind in ipairs(KINDS) do
        local rounds = math.ceil(ROUNDS / number ^ 3)
        it(("agrees on %d %s, seed %d"):format(rounds, kind.name, seed), function()
            math.randomseed(seed)
            compare(kind, rounds)
        end)
    end
end)
