-- The router against its oracle on random routes and requests.
--
-- SLUICE_TEST_SEED repeats a run, SLUICE_TEST_ROUNDS makes it longer.

local oracle = require("test.unit.support.oracle")
local random_routes = require("test.unit.support.routes")
local router = require("gateway.router")

local ROUNDS = tonumber(os.getenv("SLUICE_TEST_ROUNDS")) or 2000
local REQUESTS = 12
local MAX_ROUTES = 12

local seed = tonumber(os.getenv("SLUICE_TEST_SEED")) or os.time()

--- @treturn string what the router answers
-- @treturn string what the oracle answers
local function answers(compiled, routes, request)
    local value, prefix = compiled:match(
        request.method,
        request.host,
        request.port,
        request.path,
        function(name)
            local sent = request.headers[name]
            return sent and router.header(type(sent) == "table" and sent or { sent })
        end
    )
    local best = oracle.match(routes, request)
    return ("route %s, prefix %s"):format(value, prefix),
        ("route %s, prefix %s"):format(best and best.route, best and best.prefix)
end

local function compile(routes)
    local indices = {}
    for i = 1, #routes do
        indices[i] = i
    end
    return assert(router.new(routes, indices))
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

describe("router against its oracle", function()
    it(("agrees on %d random sets of routes, seed %d"):format(ROUNDS, seed), function()
        math.randomseed(seed)
        local matched, total = 0, 0
        for round = 1, ROUNDS do
            local routes = random_routes.routes(MAX_ROUTES)
            local compiled = compile(routes)
            for _ = 1, REQUESTS do
                local request = random_routes.request()
                local got, want = answers(compiled, routes, request)
                if got ~= want then
                    error(report(round, routes, request), 0)
                end
                total = total + 1
                matched = matched + (want ~= "route nil, prefix nil" and 1 or 0)
            end
        end
        -- Random cases that match nothing would prove nothing.
        assert.is_true(matched > total / 2, ("only %d of %d matched"):format(matched, total))
    end)
end)
