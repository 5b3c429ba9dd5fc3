-- Which patterns are found to give up. That they do is what the check itself has seen; here: that
-- the known kinds are found, and those that real files have are not blamed.

local core = require("sluice.ffi.core")
local backtracking = require("gateway.schema.backtracking")
local cpu = require("test.unit.support.cpu")

local DEAR = {
    "/(a+)+$",
    "/(a|aa)+$",
    "/([a-z]+-?)*$",
    "/(\\w+\\s?)*$",
    "/(.*)*x",
    "/(x+x+)+y",
    "/([^/]+)+$",
    "/(a{1,30}){1,30}$",
    "/.*.*.*x",
    "/[a-z]*[a-z]*[a-z]*[a-z]*1",
    "/(.+)/(.+)/(.+)/(.+)/end$",
    "/.*a.*b.*c.*d.*e$",
    "/api/v1/(?<name>(?:[\\w-]+\\.?)+)$",
    "/a(?=(b|bb)*$)",
    "/[]a]*(?:[[:alpha:]]|a)*$",
}

local CHEAP = {
    "/",
    "/users/(?<id>\\d+)$",
    "/users/(?<id>\\d+)/posts/(?<pid>[^/]+)$",
    "/v\\d+/.*",
    "/(?:[^/]+/)*x$",
    "/(?i)files/.+\\.(?:png|jpe?g)$",
    "/api/(v1|v2)/(?:users|groups)/[0-9a-f-]{36}(/.*)?$",
    "/[^/]+/[^/]+/[^/]+/[^/]+/[^/]+$",
    "/(?<year>[0-9]{4})-(?<month>[0-9]{2})/?",
    "/a[]*+]b",
    "/\\*\\+\\(",
}

describe("router: the backtracking check of patterns", function()
    -- It has half a second of CPU time, in which the garbage of all other tests may be collected.
    before_each(function()
        collectgarbage()
    end)

    it("finds the kinds that give up", function()
        for _, pattern in ipairs(DEAR) do
            assert.matches("limit exceeded$", backtracking.gives_up(pattern, true), pattern)
            assert.matches("limit exceeded$", backtracking.gives_up(pattern, false), pattern)
        end
    end)

    it("blames none that it has not seen give up", function()
        for _, pattern in ipairs(CHEAP) do
            assert.is_nil(backtracking.gives_up(pattern, true), pattern)
        end
        assert.is_nil(backtracking.gives_up("^Bearer\\s+[\\w-]+\\.[\\w-]+$", false))
    end)

    it("takes any pattern that compiles", function()
        math.randomseed(7)
        local letters = { "a", "(", ")", "[", "]", "^", "*", "+", "?", "\\", "|", ".", "{1,}", "d" }
        local compiled = 0
        for _ = 1, 3000 do
            local pattern = {}
            for i = 1, math.random(8) do
                pattern[i] = letters[math.random(#letters)]
            end
            pattern = table.concat(pattern)
            if core.check_pattern(pattern, true) then
                compiled = compiled + 1
                backtracking.gives_up(pattern, math.random(2) == 1)
            end
        end
        assert.is_true(compiled > 300)
    end)

    it("names the route and the pattern, and stops in time", function()
        local routes = {
            { name = "a", paths = { "/x", "~/ok", "~/(a+)+$" } },
            { id = "1", headers = { ["x-a"] = { "b", "~*(b+)+$" } } },
        }
        local found = backtracking.warnings(routes)
        local warning = "^route '%s': a client can make the pattern '%s' exceed its limits "
            .. "%%(%%l+ limit exceeded%%); such requests are answered 500$"
        assert.equal(2, #found)
        assert.matches(warning:format("a", "/%(a%+%)%+%$"), found[1])
        assert.matches(warning:format("1", "%(b%+%)%+%$"), found[2])
        local others = { { owner = "plugin 'x'", text = "(c+)+$" }, { owner = "y", text = "c" } }
        found = backtracking.warnings({}, others)
        assert.equal(1, #found)
        assert.matches("^plugin 'x': a client can make the pattern '%(c%+%)%+%$' exceed", found[1])
        others = { { owner = "z", text = "d", run = "(d+)+$", outcome = "so it is" } }
        found = backtracking.warnings({}, others)
        assert.matches("^z: a client can make the pattern 'd' exceed .+; so it is$", found[1])
        local many = {}
        for i = 1, 20000 do
            many[i] = { name = "r" .. i, paths = { "~/" .. i .. "/.*a.*b.*c.*d$" } }
        end
        local warnings
        local seconds = cpu.least(3, function()
            warnings = backtracking.warnings(many)
        end)
        assert.is_true(seconds < 3, seconds)
        local untried = warnings[#warnings]:match("^(%d+) patterns were not tested")
        assert.is_true(tonumber(untried) > 1000)
    end)

    local function numbered(count, pattern)
        local routes = {}
        for i = 1, count do
            routes[i] = { name = "r" .. i, paths = { "~" .. pattern:gsub("@", i) } }
        end
        return routes
    end

    --- Time decides: what it says of some tries, each with more of the patterns in machine code.
    local function is_said(expected, routes)
        local found
        for _ = 1, 5 do
            found = backtracking.warnings(routes)
            if #found == #expected then
                break
            end
        end
        assert.same(expected, found)
    end

    it("names patterns of one beginning that take too long together, and no others", function()
        -- Each alone is far from what a request has.
        is_said({
            "400 patterns of routes begin with '/api/': a client can make them exceed the time "
                .. "limit of a request, which is then answered 500",
        }, numbered(400, "/api/.+/x@$"))
        is_said({}, numbered(9, "/api/.+/x@$"))
        is_said({}, numbered(400, "/v@/.+/x$"))
        is_said({}, numbered(500, "/api/[^/]+/x@/(?<id>\\d+)$"))
    end)

    it("names a path that too many routes have", function()
        local routes = {}
        for i = 1, 20001 do
            routes[i] = { name = "r" .. i, paths = { "/p" }, headers = { a = { tostring(i) } } }
        end
        assert.same({
            "20000 routes or more have the path '/p' and host '' in common: a request that has to "
                .. "test them all can exceed its time limit, which is then answered 500",
        }, backtracking.warnings(routes))
        for i = 1, 20001 do
            routes[i].hosts = { "h" .. i % 3 }
        end
        assert.same({}, backtracking.warnings(routes))
    end)
end)
