-- The router's precedence and matching, one rule a test. The rules and their
-- reasons are in docs/router.md.

local router = require("test.unit.support.core_router")

--- Route a request; what is not given is that of a plain request.
local function ask(routes, request)
    local names = {}
    for i, route in ipairs(routes) do
        names[i] = route.name
    end
    return assert(router.new(routes, names)):match(
        request.method or "GET",
        request.host,
        request.port or 8000,
        request.path or "/",
        function(name)
            local sent = (request.headers or {})[name]
            return sent and router.header(type(sent) == "table" and sent or { sent })
        end
    )
end

describe("router: what matches", function()
    it("answers nil without routes and without a match", function()
        assert.is_nil(ask({}, {}))
        assert.is_nil(ask({ { name = "a", paths = { "/a" } } }, { path = "/b" }))
    end)

    it("takes a plain path as a prefix of bytes, not of segments", function()
        local routes = { { name = "a", paths = { "/ab" } } }
        assert.equal("a", ask(routes, { path = "/ab" }))
        assert.equal("a", ask(routes, { path = "/abc/d" }))
        assert.is_nil(ask(routes, { path = "/a" }))
        assert.is_nil(ask(routes, { path = "/x/ab" }))
        assert.is_nil(ask(routes, { path = "/AB" }))
    end)

    it("returns the prefix that matched, nil for a route without paths", function()
        local routes =
            { { name = "a", paths = { "/", "/a/b" } }, { name = "m", methods = { "PUT" } } }
        assert.equal("/a/b", select(2, ask(routes, { path = "/a/b/c" })))
        assert.equal("/", select(2, ask(routes, { path = "/a" })))
        assert.is_nil(select(2, ask({ routes[2] }, { method = "PUT" })))
    end)

    it("ignores the case of a route's hosts", function()
        assert.equal("a", ask({ { name = "a", hosts = { "Ex.COM" } } }, { host = "ex.com" }))
    end)

    it("lets a host's star stand for one label or more, never for nothing", function()
        local routes = { { name = "a", hosts = { "*.ex.com", "ex.*" } } }
        assert.equal("a", ask(routes, { host = "a.ex.com" }))
        assert.equal("a", ask(routes, { host = "a.b.ex.com" }))
        assert.equal("a", ask(routes, { host = "ex.org" }))
        assert.is_nil(ask(routes, { host = ".ex.com" }))
        assert.is_nil(ask(routes, { host = "ex." }))
        assert.is_nil(ask(routes, { host = "aex.com" }))
    end)

    it("compares a host's port only when the route gives one", function()
        local routes =
            { { name = "any", hosts = { "a.x" } }, { name = "81", hosts = { "b.x:81" } } }
        assert.equal("any", ask(routes, { host = "a.x", port = 81 }))
        assert.equal("81", ask(routes, { host = "b.x", port = 81 }))
        assert.is_nil(ask(routes, { host = "b.x", port = 80 }))
    end)

    it("takes IPv6 hosts with and without brackets", function()
        local routes =
            { { name = "bare", hosts = { "::1" } }, { name = "81", hosts = { "[::2]:81" } } }
        assert.equal("bare", ask(routes, { host = "[::1]" }))
        assert.equal("81", ask(routes, { host = "[::2]", port = 81 }))
        assert.is_nil(ask(routes, { host = "[::2]", port = 80 }))
    end)

    it("matches no route with hosts when the request names none", function()
        assert.is_nil(ask({ { name = "a", hosts = { "a.x", "*.x" } } }, {}))
    end)

    it("compares methods exactly", function()
        local routes = { { name = "a", methods = { "GET", "PURGE" } } }
        assert.equal("a", ask(routes, { method = "PURGE" }))
        assert.is_nil(ask(routes, { method = "get" }))
    end)

    it("wants every header of a route, with any of its values, in any case", function()
        local routes =
            { { name = "a", headers = { ["X-Team"] = { "red", "Blue" }, ["x-b"] = { "1" } } } }
        assert.equal("a", ask(routes, { headers = { ["x-team"] = "BLUE", ["x-b"] = "1" } }))
        assert.is_nil(ask(routes, { headers = { ["x-team"] = "blue" } }))
        assert.is_nil(ask(routes, { headers = { ["x-team"] = "green", ["x-b"] = "1" } }))
        assert.is_nil(ask(routes, { headers = { ["x-team"] = "red, blue", ["x-b"] = "1" } }))
    end)

    it("looks at each value of a header that was sent twice", function()
        local routes = { { name = "a", headers = { ["x-b"] = { "1" } } } }
        assert.equal("a", ask(routes, { headers = { ["x-b"] = { "1", "2" } } }))
        assert.equal("a", ask(routes, { headers = { ["x-b"] = { "2", "1" } } }))
        assert.is_nil(ask(routes, { headers = { ["x-b"] = { "2" } } }))
    end)

    it("takes a header's value after ~* as a regular expression without case", function()
        local routes = { { name = "a", headers = { ["x-b"] = { "~*^v\\d+-\\D$", "old" } } } }
        assert.equal("a", ask(routes, { headers = { ["x-b"] = "V12-Q" } }))
        assert.equal("a", ask(routes, { headers = { ["x-b"] = "old" } }))
        assert.is_nil(ask(routes, { headers = { ["x-b"] = "v12-3" } }))
    end)

    it("treats empty lists as not given", function()
        local empty = { name = "a", hosts = {}, methods = {}, headers = {}, paths = { "/" } }
        assert.equal("a", ask({ empty }, {}))
    end)
end)

describe("router: regular expressions", function()
    it("anchors every alternative at the path's start, none at its end", function()
        local routes = { { name = "a", paths = { "~/a|/b" } } }
        assert.equal("a", ask(routes, { path = "/ax" }))
        assert.equal("a", ask(routes, { path = "/b" }))
        assert.is_nil(ask(routes, { path = "/x/b" }))
    end)

    it("returns the text that matched", function()
        local routes = { { name = "a", paths = { [[~/u/(?<id>\d+)(/x)?/(?P<rest>\w*)]] } } }
        assert.equal("/u/42/abc", select(2, ask(routes, { path = "/u/42/abc/d" })))
    end)

    it("tries a route's patterns in their order", function()
        local routes = { { name = "a", paths = { "~/a", "~/a/b" } } }
        assert.equal("/a", select(2, ask(routes, { path = "/a/b" })))
    end)

    it("finds alternatives that begin in different ways", function()
        for _, pattern in ipairs({
            "~/a|/b",
            "~/(x|y)|/b",
            "~/a[(]|/b[)]",
            "~/a\\(|/b(?:\\))?",
            "~/\\Q(\\E|/b",
            "~/a[]|]|/b",
            "~/a(?#()|/b",
            "~/x[[:alpha:](]|/b[)]?",
            "~/xa?b?|/b",
        }) do
            local routes = { { name = "a", paths = { pattern } } }
            assert.equal("a", ask(routes, { path = "/b)" }), pattern)
        end
    end)

    it("knows that a quantifier makes the letter before it optional", function()
        for _, pattern in ipairs({ "~/ab?", "~/ab*", "~/ab{0,2}", "~/a\\-?c?", "~/a(?i)B?" }) do
            assert.equal(
                "a",
                ask({ { name = "a", paths = { pattern } } }, { path = "/a" }),
                pattern
            )
        end
    end)

    it("names a pattern that does not compile", function()
        local r, err = router.new({ { paths = { "~/(a" } } }, { 1 })
        assert.is_nil(r)
        assert.equal("invalid regex '/(a': missing closing parenthesis at offset 3", err)
        assert.is_nil((router.check_regex("/(a")))
        assert.is_true(router.check_regex("/(a)"))
    end)

    it("refuses a header's pattern that does not compile", function()
        local r, err = router.new({ { headers = { a = { "~*[" } } } }, { 1 })
        assert.is_nil(r)
        assert.matches("invalid regex '~*[': missing terminating ]", err, 1, true)
    end)
end)

describe("router: precedence, from the strongest rule to the weakest", function()
    --- `winner` must win wherever it stands among the routes.
    local function beats(winner, loser, request)
        winner.name, loser.name = "winner", "loser"
        winner.created_at = winner.created_at or 2
        loser.created_at = loser.created_at or 1
        assert.equal("loser", ask({ loser }, request), "the loser must match alone")
        assert.equal("winner", ask({ loser, winner }, request))
        assert.equal("winner", ask({ winner, loser }, request))
    end

    it("1: more kinds of conditions", function()
        beats(
            { paths = { "/" }, methods = { "GET" } },
            { paths = { "/long/path" } },
            { path = "/long/path" }
        )
        beats(
            { hosts = { "*.x" }, paths = { "/" } },
            { hosts = { "a.x" } },
            { host = "a.x", path = "/a" }
        )
        beats({ paths = { "/" }, methods = { "GET" } }, { paths = { "~/a" } }, { path = "/a" })
    end)

    it("2: only plain hosts, which one wildcard among the hosts spoils", function()
        beats({ hosts = { "a.x" } }, { hosts = { "*.x" } }, { host = "a.x" })
        beats({ hosts = { "a.x" } }, { hosts = { "a.x", "*.y" } }, { host = "a.x" })
        beats(
            { hosts = { "a.x" }, paths = { "/" } },
            { hosts = { "a.*" }, paths = { "/long" } },
            { host = "a.x", path = "/long" }
        )
        beats({ hosts = { "a.x" } }, { paths = { "/a" } }, { host = "a.x", path = "/a" })
    end)

    it("3: more headers", function()
        beats(
            { headers = { a = { "1" }, b = { "1" } }, paths = { "/" } },
            { headers = { a = { "1" } }, paths = { "/long" } },
            { headers = { a = "1", b = "1" }, path = "/long" }
        )
    end)

    it("4: a regular expression before a prefix", function()
        beats({ paths = { "~/l" } }, { paths = { "/long/path" } }, { path = "/long/path" })
    end)

    it("5: the higher regex_priority, which prefixes do not have", function()
        local request = { path = "/long/path" }
        beats({ paths = { "~/l" }, regex_priority = 1 }, { paths = { "~/long" } }, request)
        beats({ paths = { "~/l" } }, { paths = { "~/long" }, regex_priority = -1 }, request)
        beats({ paths = { "/long" } }, { paths = { "/l" }, regex_priority = 9 }, request)
        beats({ paths = { "~/l" }, regex_priority = -9 }, { paths = { "/long" } }, request)
    end)

    it("6: the longer prefix; the length of a pattern does not count", function()
        beats({ paths = { "/long" } }, { paths = { "/l" } }, { path = "/long" })
        beats(
            { paths = { "~/l" }, created_at = 1 },
            { paths = { "~/long" }, created_at = 2 },
            { path = "/long" }
        )
    end)

    it("7: a host with a port", function()
        beats({ hosts = { "a.x:81" } }, { hosts = { "a.x" } }, { host = "a.x", port = 81 })
        beats({ hosts = { "*.x:81" } }, { hosts = { "*.x" } }, { host = "a.x", port = 81 })
        beats(
            { hosts = { "a.x" }, paths = { "/long" } },
            { hosts = { "a.x:81" }, paths = { "/" } },
            { host = "a.x", port = 81, path = "/long" }
        )
    end)

    it("8: the older route", function()
        beats(
            { paths = { "/a" }, created_at = 1 },
            { paths = { "/a" }, created_at = 2 },
            { path = "/a" }
        )
    end)

    it("9: the first in the file", function()
        local twins = {
            { name = "first", paths = { "/a" }, created_at = 1 },
            { name = "second", paths = { "/a" }, created_at = 1 },
        }
        assert.equal("first", ask(twins, { path = "/a" }))
    end)

    it("gives each path of a route a place of its own", function()
        local routes = {
            { name = "mixed", paths = { "/l", "/long/path", "~/regex" } },
            { name = "middle", paths = { "/long", "/regex/x" } },
        }
        assert.equal("mixed", ask(routes, { path = "/long/path" }))
        assert.equal("middle", ask(routes, { path = "/long/x" }))
        assert.equal("mixed", ask(routes, { path = "/l" }))
        assert.equal("mixed", ask(routes, { path = "/regex/x" }))
    end)

    it("goes on to weaker routes when a stronger one does not match after all", function()
        local routes = {
            { name = "strong", hosts = { "a.x" }, paths = { "/a" }, methods = { "PUT" } },
            { name = "weak", paths = { "/" } },
        }
        assert.equal("weak", ask(routes, { host = "a.x", path = "/a" }))
    end)
end)

describe("router: needs", function()
    it("says what of a request the routes look at", function()
        local none = { host = false, method = false, headers = false, port = false }
        local function needs(route)
            return router.new({ route }, { 1 }).needs
        end
        assert.same(none, needs({ paths = { "/" }, protocols = { "https" } }))
        assert.is_true(needs({ hosts = { "a" } }).host)
        assert.is_false(needs({ hosts = { "a" } }).port)
        assert.is_true(needs({ hosts = { "a:1" } }).port)
        assert.is_true(needs({ methods = { "GET" } }).method)
        assert.is_true(needs({ headers = { a = { "1" } } }).headers)
    end)

    it("lets all else be nil", function()
        local r = router.new({ { paths = { "/a" } } }, { "value" })
        assert.equal("value", r:match(nil, nil, nil, "/a"))
    end)
end)

describe("router: patterns that give up", function()
    -- More than PCRE's limit of steps, and few: "(a|aa)+" has as many ways as Fibonacci says.
    local HEAVY, LONG = "(?:a|aa)+$", ("a"):rep(60) .. "!"

    local function refused(routes, request)
        local value, route, reason = ask(routes, request)
        assert.is_false(value)
        assert.matches("limit exceeded$", reason)
        return route
    end

    it("refuse the request and name the route, whichever routes are there besides", function()
        local heavy = { name = "heavy", paths = { "~/" .. HEAVY } }
        local request = { path = "/" .. LONG, host = "a.com" }
        local less = { name = "less", paths = { "/" }, hosts = {} }
        local same = { name = "same", paths = { "~/.*" }, regex_priority = -1 }
        for _, routes in ipairs({ { heavy }, { heavy, less }, { less, heavy }, { same, heavy } }) do
            assert.equal("heavy", refused(routes, request))
            assert.equal("heavy", ask(routes, { path = "/aaa" }))
        end
        -- One that wins over it anyway may have the request.
        local more = { name = "more", paths = { "/" }, hosts = { "a.com" } }
        local first = { name = "first", paths = { "~/a" }, regex_priority = 1 }
        assert.equal("more", ask({ heavy, more }, request))
        assert.equal("first", ask({ heavy, first }, request))
    end)

    it("count only where the other conditions are met", function()
        local open = { name = "open", paths = { "/" } }
        local path = "/" .. LONG
        for _, condition in ipairs({
            { methods = { "PUT" } },
            { hosts = { "b.com" } },
            { hosts = { "a.com:81" } },
            { headers = { ["x-a"] = { "1" } } },
        }) do
            condition.name, condition.paths = "heavy", { "~/" .. HEAVY }
            assert.equal("open", ask({ condition, open }, { path = path, host = "a.com" }))
        end
    end)

    it("in conditions on headers do the same", function()
        local open = { name = "open", paths = { "/" } }
        local function route(headers, paths)
            return { name = "heavy", headers = headers, paths = paths }
        end
        local pattern = "~*^" .. HEAVY
        local heavy = route({ ["x-a"] = { pattern } })
        assert.equal("heavy", refused({ heavy }, { headers = { ["x-a"] = LONG } }))
        assert.equal("heavy", refused({ heavy }, { headers = { ["x-a"] = { "b", LONG } } }))
        assert.equal("heavy", ask({ heavy }, { headers = { ["x-a"] = { LONG, "aa" } } }))
        assert.equal(
            "heavy",
            ask(
                { route({ ["x-a"] = { pattern, "~*!$" } }) },
                { headers = { ["x-a"] = { "b", LONG } } }
            )
        )
        local two = route({ ["x-a"] = { pattern }, ["x-b"] = { "1" } }, { "/" })
        local with_paths = route({ ["x-a"] = { pattern } }, { "~/x$", "~/y$" })
        assert.equal("open", ask({ two, open }, { headers = { ["x-a"] = LONG } }))
        assert.equal("open", ask({ two, open }, { headers = { ["x-a"] = LONG, ["x-b"] = "2" } }))
        assert.equal("open", ask({ with_paths, open }, { headers = { ["x-a"] = LONG } }))
        local both = { headers = { ["x-a"] = LONG, ["x-b"] = "1" }, path = "/y" }
        assert.equal("heavy", refused({ two, open }, both))
        assert.equal("heavy", refused({ with_paths, open }, both))
    end)
end)

describe("router: keys of its table", function()
    local function ask_path(routes, path, method)
        return (ask(routes, { host = "a.x", path = path, method = method }))
    end

    it("goes on to equals among more keys than are asked for at a time", function()
        local routes = {}
        for length = 1, 40 do
            local path = "~/" .. ("a"):rep(length)
            routes[length] = { name = length, paths = { path }, created_at = length }
        end
        assert.equal(1, ask_path(routes, "/" .. ("a"):rep(60)))
    end)

    it("tells paths apart that differ behind what a key holds", function()
        local head = "/" .. ("a"):rep(300)
        local routes = {
            { name = "short", paths = { head } },
            { name = "b", paths = { head .. "b" } },
            { name = "c", paths = { head .. "c" } },
        }
        assert.equal("b", ask_path(routes, head .. "b"))
        assert.equal("c", ask_path(routes, head .. "cc"))
        assert.equal("short", ask_path(routes, head))
        assert.is_nil(ask_path(routes, head:sub(1, -2)))
    end)

    it("compares methods that have no bit of their own", function()
        local routes = { { name = "a", methods = { "X-Y", "GET" } } }
        assert.equal("a", ask_path(routes, "/", "X-Y"))
        assert.equal("a", ask_path(routes, "/", "GET"))
        assert.is_nil(ask_path(routes, "/", "X-Z"))
        assert.is_nil(ask_path(routes, "/", "POST"))
    end)

    it("finds hosts by rooms, once they use many lengths of paths", function()
        local routes = {}
        for length = 1, 12 do
            local path = "/" .. ("a"):rep(length)
            local host = length % 2 == 0 and "a.x" or "b.x"
            routes[length] = { name = length, hosts = { host }, paths = { path } }
        end
        assert.equal(6, ask_path(routes, "/aaaaaaa"))
        assert.equal(12, ask_path(routes, "/" .. ("a"):rep(12)))
        assert.is_nil(ask_path(routes, "/a"))
    end)
end)
