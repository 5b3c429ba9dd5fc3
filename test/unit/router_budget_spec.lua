-- What a request may cost the router: while something is left the answer is the oracle's, then it
-- is a refusal, and never "no route".

local core_router = require("test.unit.support.core_router")
local oracle = require("test.unit.support.oracle")
local random_routes = require("test.unit.support.routes")
local soak = require("test.unit.support.soak")

local ROUNDS = soak(60, 600)

local seed = require("test.unit.support.seed")("router_budget")

-- Slow by the square or the cube of the path's length, which the oracle gets to the end of.
local SLOW = { "/(?:a*)(?:a*)%sb$", "/.*a.*a%s$", "/a*a*a*%s", "/[^b]*(?:a{0,9})a*%s$", "/%s.*" }

local function slow_route(number)
    local paths = {}
    for i = 1, math.random(2) do
        paths[i] = "~" .. SLOW[math.random(#SLOW)]:format("x" .. number)
    end
    return { paths = paths, regex_priority = math.random(0, 2), created_at = 1 }
end

local function slow_routes()
    local routes = random_routes.routes(4)
    for i = 1, math.random(30) do
        table.insert(routes, math.random(#routes + 1), slow_route(i))
    end
    return routes
end

local function slow_request()
    local request = random_routes.request()
    if math.random(4) > 1 then
        request.path = "/" .. ("a"):rep(math.random(0, 250))
    end
    if math.random(3) == 1 then
        request.path = request.path .. "x" .. math.random(30) .. "b"
    end
    return request
end

local function ask(compiled, request)
    return compiled:match(request.method, request.host, request.port, request.path, function(name)
        local sent = request.headers and request.headers[name]
        return sent and core_router.header(type(sent) == "table" and sent or { sent })
    end, request.is_tls and { sni = request.sni } or nil)
end

--- Time decides: what is said where the machine has it.
local function answer(compiled, request)
    for _ = 1, 20 do
        local value = ask(compiled, request)
        if value ~= false then
            return value
        end
    end
    return false
end

local function numbers(count)
    local list = {}
    for i = 1, count do
        list[i] = i
    end
    return list
end

describe("router: the budget of a request", function()
    it("is used up by a refusal, never by another answer, seed " .. seed, function()
        math.randomseed(seed)
        local answered, refused = 0, 0
        for round = 1, ROUNDS do
            local routes = slow_routes()
            local compiled = assert(core_router.new(routes, numbers(#routes)))
            for _ = 1, 10 do
                local request = slow_request()
                local value, prefix, reason = ask(compiled, request)
                if value == false then
                    refused = refused + 1
                    assert.matches("limit exceeded$", reason)
                else
                    local best = oracle.match(routes, request)
                    answered = answered + 1
                    local where = ("seed %d, round %d: %s"):format(
                        seed,
                        round,
                        random_routes.show(request)
                    )
                    assert.equal(best and best.route, value, where)
                    assert.equal(best and best.prefix, prefix, where)
                end
            end
        end
        assert.is_true(refused > 0 and answered > ROUNDS, ("%d, %d"):format(refused, answered))
    end)

    it("is one for all patterns", function()
        -- Each alone is far from it.
        local routes = {}
        for i = 1, 300 do
            routes[i] = { paths = { "~/api/(.+)/(.+)/x" .. i .. "$" } }
        end
        local path = "/api/" .. ("a/"):rep(60) .. "x0123456789!"
        local one = assert(core_router.new({ routes[300] }, { "one" }))
        assert.is_nil(answer(one, { path = path }))
        local all = assert(core_router.new(routes, numbers(#routes)))
        for _ = 1, 12 do
            local value, _, reason = ask(all, { path = path })
            assert.is_false(value)
            assert.matches("limit exceeded$", reason)
            assert.equal(300, answer(all, { path = "/api/a/b/x300" }))
        end
    end)

    it("has something left behind patterns that give up", function()
        local routes = { { paths = { "/" }, hosts = { "a" } } }
        for i = 1, 5 do
            local headers = { ["x-a"] = { "~*^(?:a|aa)+$" } }
            routes[#routes + 1] = { paths = { "~/" .. i }, headers = headers, hosts = { "a" } }
        end
        routes[#routes + 1] = { paths = { "~/b(?:c|cc)$" }, hosts = { "a" }, methods = { "GET" } }
        local compiled = assert(core_router.new(routes, numbers(#routes)))
        local long = ("a"):rep(60) .. "!"
        for i = 1, 5 do
            local request = { path = "/" .. i, host = "a", headers = { ["x-a"] = long } }
            assert.is_false((ask(compiled, request)))
        end
        local request = { path = "/bcc", host = "a", method = "GET", headers = { ["x-a"] = long } }
        assert.equal(#routes, answer(compiled, request))
    end)

    it("counts candidates without patterns", function()
        -- Each value is compared to its last byte: some 10 ms on any machine.
        local value = ("a"):rep(30000)
        local routes = {}
        for i = 1, 600 do
            routes[i] = { paths = { "/p" }, headers = { ["x-t"] = { value } } }
        end
        local compiled = assert(core_router.new(routes, numbers(#routes)))
        local function with(text)
            return { path = "/p", headers = { ["x-t"] = text } }
        end
        assert.equal(1, answer(compiled, with(value)))
        assert.is_nil(answer(compiled, with("a")))
        local found, _, reason = ask(compiled, with(value:sub(2) .. "b"))
        assert.is_false(found)
        assert.equal("time limit exceeded", reason)
        assert.equal(1, answer(compiled, with(value)))
    end)

    it("is not held against patterns that are to be compiled first", function()
        -- 0.6 ms each, so that not all of them can be in one turn.
        local slow = "(?J)" .. ("(?<a>)"):rep(99) .. ("\\k<a>"):rep(600)
        local routes = {}
        for i = 1, 15 do
            -- Told apart before what is slow: only compiling is to be dear.
            routes[i] = { paths = { "~/x/(?:" .. i .. ")" .. slow .. "$" } }
        end
        local compiled = assert(core_router.new(routes, numbers(#routes)))
        local words = {}
        local word, match
        repeat
            word, match = core_router.ask(compiled.view, nil, nil, nil, "/x/15")
            words[#words + 1] = word
        until word ~= "again" or #words > 100
        assert.equal("ok", words[#words], #words)
        assert.equal(14, match.slot)
        assert.is_true(#words > 1)
        assert.is_true(#words <= 16)
        assert.equal("ok", (core_router.ask(compiled.view, nil, nil, nil, "/x/1")))
    end)

    it("has room for any pattern to be compiled", function()
        -- 7 ms where PCRE2 compares what is repeated with each of the alternatives.
        local head = ("abcdefghijklmnopqrstuvwxyz0123456789"):gsub(".", "%0*")
        local tail = head .. "(?:" .. ("|"):rep(4000) .. "b)"
        local words = {}
        repeat
            -- Others each time: these are compiled.
            local try, routes = "/x" .. #words, {}
            for i = 1, 3 do
                routes[i] = { paths = { "~/[x]" .. #words .. i .. tail } }
            end
            local compiled = assert(core_router.new(routes, numbers(3)))
            words[#words + 1] = core_router.ask(compiled.view, nil, nil, nil, try .. 3)
        until words[#words] == "ok" or #words == 5
        assert.equal("ok", words[#words], table.concat(words, " "))
    end)

    it("is refused what takes longer than that between two looks at the clock", function()
        local function refused(pattern)
            local ok, err = core_router.check_regex(pattern)
            assert.is_nil(ok)
            return err
        end
        -- 3 ms to compile; the square of the path's length; 18 ms on 8 KB.
        assert.matches("UTF is disabled", refused("(*UTF)[\\x{1}-\\x{10fffe}]"))
        assert.matches("UTF is disabled", refused("(*UTF)/\\X*b"))
        assert.matches("UCP is disabled", refused("(*UCP)/[\\w\\d]*b"))
        local many = "more than 16 Unicode properties"
        assert.equal(many, refused("/[^" .. ("\\pN"):rep(1300) .. "]*b"))
        assert.equal(many, refused("/" .. ("\\\\\\P{N}"):rep(17)))
        assert.is_true(core_router.check_regex("/[^" .. ("\\pN"):rep(16) .. "]*b"))
        assert.is_true(core_router.check_regex("/" .. ("\\\\p"):rep(17)))
    end)

    it("is refused a pattern that is too long to be compiled in it", function()
        local ok, err = core_router.check_regex("/" .. ("a"):rep(4096))
        assert.is_nil(ok)
        assert.equal("longer than 4096 bytes", err)
        assert.is_true(core_router.check_regex("/" .. ("a"):rep(4095)))
    end)
end)
