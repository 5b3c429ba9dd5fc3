-- The C router: the cases of router_spec.lua, and what only it can get wrong.

local core_router = require("test.unit.support.core_router")

-- Looks at how the Lua router keeps a header's lines.
local NOT_IN_C = "cost the same however many lines a client sends"

describe("in C:", function()
    local lua_router = require("gateway.router")
    local cases = assert(loadfile("test/unit/router_spec.lua"))
    local env = setmetatable({
        it = function(name, case)
            if name ~= NOT_IN_C then
                it(name, case)
            end
        end,
    }, { __index = getfenv(1) })
    package.loaded["gateway.router"] = core_router
    setfenv(cases, env)()
    package.loaded["gateway.router"] = lua_router
end)

describe("the C router", function()
    local function no_header()
        return nil
    end

    local function ask(routes, path, method)
        local names = {}
        for i, route in ipairs(routes) do
            names[i] = route.name
        end
        local r = assert(core_router.new(routes, names))
        return r:match(method or "GET", "a.x", 80, path, no_header)
    end

    it("goes on to equals among more keys than are asked for at a time", function()
        local routes = {}
        for length = 1, 40 do
            local path = "~/" .. ("a"):rep(length)
            routes[length] = { name = length, paths = { path }, created_at = length }
        end
        assert.equal(1, ask(routes, "/" .. ("a"):rep(60)))
    end)

    it("tells paths apart that differ behind what a key holds", function()
        local head = "/" .. ("a"):rep(300)
        local routes = {
            { name = "short", paths = { head } },
            { name = "b", paths = { head .. "b" } },
            { name = "c", paths = { head .. "c" } },
        }
        assert.equal("b", ask(routes, head .. "b"))
        assert.equal("c", ask(routes, head .. "cc"))
        assert.equal("short", ask(routes, head))
        assert.is_nil(ask(routes, head:sub(1, -2)))
    end)

    it("compares methods that have no bit of their own", function()
        local routes = { { name = "a", methods = { "X-Y", "GET" } } }
        assert.equal("a", ask(routes, "/", "X-Y"))
        assert.equal("a", ask(routes, "/", "GET"))
        assert.is_nil(ask(routes, "/", "X-Z"))
        assert.is_nil(ask(routes, "/", "POST"))
    end)

    it("finds hosts by rooms, once they use many lengths of paths", function()
        local routes = {}
        for length = 1, 12 do
            local path = "/" .. ("a"):rep(length)
            local host = length % 2 == 0 and "a.x" or "b.x"
            routes[length] = { name = length, hosts = { host }, paths = { path } }
        end
        assert.equal(6, ask(routes, "/aaaaaaa"))
        assert.equal(12, ask(routes, "/" .. ("a"):rep(12)))
        assert.is_nil(ask(routes, "/a"))
    end)
end)
