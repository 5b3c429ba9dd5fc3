-- Which patterns are found to give up. That they do is what the trial itself has seen; here: that
-- the known kinds are found, and those that real files have are not blamed.

local core = require("sluice.core")
local trial = require("gateway.router.regex_trial")

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

describe("router: the trial of patterns", function()
    -- It has half a second of CPU time, in which the garbage of all other tests may be collected.
    before_each(function()
        collectgarbage()
    end)

    it("finds the kinds that give up", function()
        for _, pattern in ipairs(DEAR) do
            assert.matches("limit exceeded$", trial.gives_up(pattern, true), pattern)
            assert.matches("limit exceeded$", trial.gives_up(pattern, false), pattern)
        end
    end)

    it("blames none that it has not seen give up", function()
        for _, pattern in ipairs(CHEAP) do
            assert.is_nil(trial.gives_up(pattern, true), pattern)
        end
        assert.is_nil(trial.gives_up("^Bearer\\s+[\\w-]+\\.[\\w-]+$", false))
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
                trial.gives_up(pattern, math.random(2) == 1)
            end
        end
        assert.is_true(compiled > 300)
    end)

    it("names the route and the pattern, and stops in time", function()
        local routes = {
            { name = "a", paths = { "/x", "~/ok", "~/(a+)+$" } },
            { id = "1", headers = { ["x-a"] = { "b", "~*(b+)+$" } } },
        }
        local found = trial.warnings(routes)
        local warning = "^route '%s': a client can make the pattern '%s' give up %%(%%l+ limit "
            .. "exceeded%%), which is answered 500$"
        assert.equal(2, #found)
        assert.matches(warning:format("a", "/%(a%+%)%+%$"), found[1])
        assert.matches(warning:format("1", "%(b%+%)%+%$"), found[2])
        local many = {}
        for i = 1, 20000 do
            many[i] = { name = "r" .. i, paths = { "~/" .. i .. "/.*a.*b.*c.*d$" } }
        end
        local start = os.clock()
        local warnings = trial.warnings(many)
        assert.is_true(os.clock() - start < 3)
        local untried = warnings[#warnings]:match("^(%d+) patterns of routes were not tried")
        assert.is_true(tonumber(untried) > 1000)
    end)

    local function numbered(count, pattern)
        local routes = {}
        for i = 1, count do
            routes[i] = { name = "r" .. i, paths = { "~" .. pattern:gsub("@", i) } }
        end
        return routes
    end

    it("names patterns of one beginning that take too long together, and no others", function()
        -- Each alone is far from what a request has.
        assert.same({
            "400 patterns of routes begin with '/api/': a client can make them take more time than "
                .. "a request has, which is answered 500",
        }, trial.warnings(numbered(400, "/api/.+/x@$")))
        assert.same({}, trial.warnings(numbered(9, "/api/.+/x@$")))
        assert.same({}, trial.warnings(numbered(400, "/v@/.+/x$")))
        assert.same({}, trial.warnings(numbered(500, "/api/[^/]+/x@/(?<id>\\d+)$")))
    end)

    it("names a path that too many routes have", function()
        local routes = {}
        for i = 1, 20001 do
            routes[i] = { name = "r" .. i, paths = { "/p" }, headers = { a = { tostring(i) } } }
        end
        assert.same({
            "20000 routes or more have the path '/p' and host '' in common: a request that has to "
                .. "look at all of them may take more time than it has, which is answered 500",
        }, trial.warnings(routes))
        for i = 1, 20001 do
            routes[i].hosts = { "h" .. i % 3 }
        end
        assert.same({}, trial.warnings(routes))
    end)
end)
