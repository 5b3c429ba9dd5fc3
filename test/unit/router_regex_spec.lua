-- The binding to PCRE2 that the router and its oracle share.

local ffi = require("ffi")

local regex = require("gateway.router.regex")

local function matched(pattern, subject, opts)
    return assert(regex.compile(pattern, opts)):match(subject)
end

describe("router's regular expressions", function()
    it("return the offset of the last byte that matched", function()
        assert.equal(3, matched("b+", "abb"))
        assert.equal(0, matched("x*", "abb"))
        assert.is_nil(matched("x", "abb"))
    end)

    it("are anchored on demand, in each alternative", function()
        assert.is_nil(matched("b|c", "ab", { anchored = true }))
        assert.equal(1, matched("b|c", "cb", { anchored = true }))
    end)

    it("ignore case on demand", function()
        assert.is_nil(matched("abc", "ABC"))
        assert.equal(3, matched("abc", "ABC", { caseless = true }))
    end)

    it("work on bytes, NUL and those beyond ASCII included", function()
        assert.equal(3, matched("^...$", "a\0\255"))
    end)

    it("take $ for the very end, not for a newline there", function()
        assert.equal(1, matched("a$", "a"))
        assert.is_nil(matched("a$", "a\n"))
    end)

    it("give up on a pattern that would run for ever", function()
        local start = os.clock()
        local code = matched("(a|aa)+$", ("a"):rep(60) .. "!")
        assert.is_true(code < 0)
        assert.equal("match limit exceeded", regex.reason(code))
        assert.is_true(os.clock() - start < 1)
    end)

    it("survive a long subject that the JIT's stack is too small for", function()
        assert.equal(8001, matched("(?:a|b)*c", ("ab"):rep(4000) .. "c"))
    end)

    it("say what is wrong and where", function()
        local re, err = regex.compile("a)b")
        assert.is_nil(re)
        assert.equal("unmatched closing parenthesis at offset 1", err)
    end)

    it("refuse more groups than a match has room for", function()
        assert.is_truthy(regex.compile(("(a)"):rep(99)))
        local re, err = regex.compile(("(a)"):rep(100))
        assert.is_nil(re)
        assert.equal("more than 99 groups", err)
    end)

    it("are translated by the JIT where that takes about as long as compiling them", function()
        local JIT_SIZE = 10
        local lib = ffi.load("libpcre2-8.so.0")
        local function jit_size(pattern)
            local value = ffi.new("size_t[1]")
            local re = assert(regex.compile(pattern, { anchored = true }))
            assert.equal(0, lib.pcre2_pattern_info_8(re.code, JIT_SIZE, value))
            return tonumber(value[0])
        end
        local uuid = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
        for _, pattern in ipairs({
            "/users/(?<id>\\d+)/posts/[^/]+",
            "/v\\d+/(?:a|b|c)\\.json$",
            "/" .. uuid .. "/" .. uuid,
            "/[^/]+/[^/]+/[^/]+/[^/]+",
            "(?:/[a-z0-9-]{1,20}){1,5}$",
        }) do
            assert.is_true(jit_size(pattern) > 0, pattern)
        end
        assert.equal(0, jit_size("/(a{1,999}){1,99}"))
        assert.equal(6, matched("/(a{1,999}){1,99}b", "/aaaab"))
    end)
end)
