-- Names of kinds as people type them, and the words that were probably meant.

local entities = require("gateway.entities")
local kind_names = require("gateway.config.kind_names")
local kinds = require("cli.commands.kind")
local nearest = require("sluice.nearest")
local plain = require("cli.terminal.plain")
local registry = require("gateway.plugin.registry")
local timers = require("cli.commands.timers")

assert(registry.load({ "bundled" }))

describe("the name of a kind", function()
    it("is read in every spelling that is shown anywhere", function()
        for _, kind in ipairs(entities.kinds) do
            for _, name in ipairs({
                kind,
                entities.path_name(kind),
                entities.path_name(kind, true),
            }) do
                for _, spelling in ipairs({
                    name,
                    name:gsub("s$", ""),
                    name:gsub("s$", "") .. "s",
                    name:gsub("_", "-"),
                    name:gsub("-", "_"),
                    name:gsub("[_-]", ""),
                    name:upper(),
                }) do
                    assert.equal(kind, kind_names.read(spelling), spelling)
                end
            end
        end
        assert.equal("keyauth_credentials", kind_names.read("key_auth"))
    end)

    it("is suggested where it is near", function()
        for typed, meant in pairs({
            rout = "routes",
            serivce = "services",
            upsteams = "upstreams",
            ["key-aut"] = "keyauth_credentials",
            ["consumer-goups"] = "consumer_groups",
        }) do
            local kind, near = kind_names.read(typed)
            assert.is_nil(kind, typed)
            assert.equal(meant, near, typed)
        end
        for _, typed in ipairs({ "", "bogus", "x", ("routes"):rep(100) }) do
            assert.same(
                { n = 1 },
                { n = select("#", kind_names.read(typed)), (kind_names.read(typed)) }
            )
        end
    end)

    it("leads to a list, to one entity, or to those in one", function()
        for text, expected in pairs({
            route = { "routes", "/routes" },
            ["services/web"] = { "services", "/services", "web" },
            ["service/we b/route"] = { "routes", "/services/we%20b/routes" },
            ["upstream/pool/targets/10.0.0.1:80"] = {
                "targets",
                "/upstreams/pool/targets",
                "10.0.0.1:80",
            },
            ["consumer/bob/keyauth_credentials"] = {
                "keyauth_credentials",
                "/consumers/bob/key-auth",
            },
        }) do
            local found = assert(kinds.read(text))
            assert.same(expected, { found.kind, found.path, found.name })
        end
    end)

    it("that leads nowhere is refused with the way on", function()
        for text, expected in pairs({
            rout = "unknown kind 'rout'; did you mean routes?",
            targets = "targets have no list of their own; use upstreams/NAME/targets",
            ["services/x/bogus"] = "services have no bogus",
            ["services/x/rotues"] = "services have no rotues; did you mean routes?",
            ["consumers/x/consumer_group_consumers"] = "consumers have no consumer_group_consumers",
        }) do
            local found, message = kinds.read(text)
            assert.is_nil(found)
            assert.equal(expected, (message:gsub("%; did you mean consumer_group.*", "")))
        end
        for _, text in ipairs({
            "services/",
            "services//routes",
            "a/b/c/d/e",
            "services/a/routes/b/c",
        }) do
            assert.is_nil((kinds.read(text)))
        end
    end)
end)

describe("sluice.nearest", function()
    it("takes letters that are missing, wrong, swapped or too many", function()
        local words = { "reload", "restart", "start", "status" }
        for typed, meant in pairs({
            relod = "reload",
            reloads = "reload",
            realod = "reload",
            raload = "reload",
            strat = "start",
            restrat = "restart",
        }) do
            assert.equal(meant, nearest.find(typed, words), typed)
        end
        for _, typed in ipairs({ "", "s", "quit", "ld" }) do
            assert.is_nil(nearest.find(typed, words), typed)
        end
    end)

    it("guesses by the letters alone, and by a beginning that one word has", function()
        local words = { "key-auth", "rate-limiting", "request-size-limiting", "request-trailers" }
        for typed, meant in pairs({
            ratelimit = "rate-limiting",
            RATE_LIMITING = "rate-limiting",
            key_auht = "key-auth",
            keyauth = "key-auth",
            ["request-s"] = "request-size-limiting",
            ["request-trailer"] = "request-trailers",
        }) do
            assert.equal(meant, nearest.guess(typed, words), typed)
        end
        for _, typed in ipairs({ "", "key", "request", "limiting", ("a"):rep(1e6) }) do
            assert.is_nil(nearest.guess(typed, words), typed:sub(1, 20))
        end
    end)

    it("costs nothing for long words", function()
        assert.is_nil(nearest.find(("a"):rep(1e6), { "a" }))
        assert.equal("ab", nearest.find("a", { ("a"):rep(1e6), "ab" }))
    end)
end)

describe("what is printed", function()
    it("has no table of timers where there are none", function()
        local figures = setmetatable({ backlog_age = 0 }, {
            __index = function()
                return 0
            end,
        })
        local answer = { workers = { 1 }, silent = {}, stats = { sys = figures, timers = {} } }
        local lines = timers.lines(answer, "time")
        assert.equal(2, #lines)
        assert.is_truthy(lines[1]:find("1 worker: 0 timers", 1, true))
    end)

    it("is no command to a terminal", function()
        assert.equal("a?[31mb?c?d\te\nf", plain.text("a\27[31mb\0c\127d\te\nf"))
        assert.equal("x?31m é", plain.text("x\194\15531m é"))
    end)
end)
