-- The router alone: nanoseconds a match and milliseconds a compilation.
--
--     LUA_PATH='./?.lua;./?/init.lua;;' luajit bench/micro/router.lua
--
-- A few seconds. CPU time of this process, best of five runs each.

local router = require("gateway.router")

local RUNS = 5
local MATCHES = 1000000

local function header()
    return nil
end

local function best_of(runs, fn)
    local best = math.huge
    for _ = 1, runs do
        collectgarbage()
        local start = os.clock()
        fn()
        best = math.min(best, os.clock() - start)
    end
    return best
end

local shapes = {
    {
        name = "one path",
        sizes = { 1 },
        route = function()
            return { paths = { "/api" } }
        end,
        request = function()
            return "api.example.com", "/api/users/42"
        end,
    },
    {
        name = "host and path each",
        sizes = { 1000, 10000 },
        route = function(i)
            return { hosts = { ("host-%d.example.com"):format(i) }, paths = { "/service-" .. i } }
        end,
        request = function(i)
            return ("host-%d.example.com"):format(i), ("/service-%d/users/42"):format(i)
        end,
    },
    {
        name = "path each",
        sizes = { 1000, 10000 },
        route = function(i)
            return { paths = { ("/team-%d/service-%d"):format(i % 100, i) } }
        end,
        request = function(i)
            return "api.example.com", ("/team-%d/service-%d/users/42"):format(i % 100, i)
        end,
    },
    {
        name = "wildcard host each",
        sizes = { 1000, 10000 },
        route = function(i)
            return { hosts = { ("*.team-%d.example.com"):format(i) }, paths = { "/" } }
        end,
        request = function(i)
            return ("www.team-%d.example.com"):format(i), "/users/42"
        end,
    },
    {
        name = "regex each",
        sizes = { 1, 1000, 10000 },
        route = function(i)
            return { paths = { ([[~/service-%d/users/(?<id>\d+)]]):format(i) } }
        end,
        request = function(i)
            return "api.example.com", ("/service-%d/users/42"):format(i)
        end,
    },
    {
        name = "method, header, host, path",
        sizes = { 1000 },
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
            return "blue"
        end,
    },
}

local function measure(shape, size)
    local routes, values, hosts, paths = {}, {}, {}, {}
    for i = 1, size do
        routes[i], values[i] = shape.route(i), i
        hosts[i], paths[i] = shape.request(i)
    end
    local r
    local compile = best_of(RUNS, function()
        r = assert(router.new(routes, values))
    end)
    local get_header = shape.header or header
    collectgarbage()
    local wrong = 0
    local matching = best_of(RUNS, function()
        local n = 0
        for _ = 1, MATCHES do
            -- A prime stride, so that neighbours in memory are not asked in turn.
            n = (n + 7919) % size
            if r:match("GET", hosts[n + 1], 80, paths[n + 1], get_header) ~= n + 1 then
                wrong = wrong + 1
            end
        end
    end)
    assert(wrong == 0, shape.name .. ": a wrong route")
    print(
        ("%-28s %6d %9.0f %11.1f"):format(shape.name, size, matching / MATCHES * 1e9, compile * 1e3)
    )
end

print(("%-28s %6s %9s %11s"):format("routes", "number", "ns/match", "compile ms"))
for _, shape in ipairs(shapes) do
    for _, size in ipairs(shape.sizes) do
        measure(shape, size)
    end
end
