--- The router alone: matching a request, and compiling the routes.
--
-- The scenario `micro` runs it. Cases: `match_<shape>_<routes>`, a turn being a match, and
-- `compile_<shape>_<routes>`, a turn being a route.

local router = require("gateway.router")
local timed = require("bench.micro.timed")

local BLUE = router.header({ "blue" })

local function no_header()
    return nil
end

local shapes = {
    ["one-path"] = {
        route = function()
            return { paths = { "/api" } }
        end,
        request = function()
            return "api.example.com", "/api/users/42"
        end,
    },
    ["host-and-path"] = {
        route = function(i)
            return { hosts = { ("host-%d.example.com"):format(i) }, paths = { "/service-" .. i } }
        end,
        request = function(i)
            return ("host-%d.example.com"):format(i), ("/service-%d/users/42"):format(i)
        end,
    },
    path = {
        route = function(i)
            return { paths = { ("/team-%d/service-%d"):format(i % 100, i) } }
        end,
        request = function(i)
            return "api.example.com", ("/team-%d/service-%d/users/42"):format(i % 100, i)
        end,
    },
    ["wildcard-host"] = {
        route = function(i)
            return { hosts = { ("*.team-%d.example.com"):format(i) }, paths = { "/" } }
        end,
        request = function(i)
            return ("www.team-%d.example.com"):format(i), "/users/42"
        end,
    },
    regex = {
        route = function(i)
            return { paths = { ([[~/service-%d/users/(?<id>\d+)]]):format(i) } }
        end,
        request = function(i)
            return "api.example.com", ("/service-%d/users/42"):format(i)
        end,
    },
    ["all-conditions"] = {
        route = function(i)
            return {
                methods = { "GET", "POST" },
                headers = { ["x-team"] = { "red", "blue" } },
                hosts = { ("host-%d.example.com"):format(i % 10) },
                paths = { "/service-" .. i },
            }
        end,
        request = function(i)
            return ("host-%d.example.com"):format(i % 10), ("/service-%d/users/42"):format(i)
        end,
        header = function()
            return BLUE
        end,
    },
}

local function routes_of(shape, size)
    local routes, values = {}, {}
    for i = 1, size do
        routes[i], values[i] = shape.route(i), i
    end
    return routes, values
end

local function matching(shape, size)
    local hosts, paths = {}, {}
    for i = 1, size do
        hosts[i], paths[i] = shape.request(i)
    end
    local compiled = assert(router.new(routes_of(shape, size)))
    local header = shape.header or no_header
    return function(count)
        local n, wrong = 0, 0
        for _ = 1, count do
            -- A prime stride, so that neighbours in memory are not asked in turn.
            n = (n + 7919) % size
            if compiled:match("GET", hosts[n + 1], 80, paths[n + 1], header) ~= n + 1 then
                wrong = wrong + 1
            end
        end
        assert(wrong == 0, "a wrong route")
    end
end

local function compiling(shape, size)
    local routes, values = routes_of(shape, size)
    return function(count)
        for _ = 1, math.max(1, math.floor(count / size)) do
            assert(router.new(routes, values))
        end
    end
end

local cases = {}
for name, shape in pairs(shapes) do
    for _, size in ipairs({ 1, 1000, 10000 }) do
        cases[("match_%s_%d"):format(name, size)] = function()
            return matching(shape, size)
        end
        cases[("compile_%s_%d"):format(name, size)] = function()
            return compiling(shape, size)
        end
    end
end

timed(cases, arg)
