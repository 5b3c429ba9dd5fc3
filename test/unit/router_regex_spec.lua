-- Regular expressions of the core, beside PCRE2 alone.

local core = require("sluice.ffi.core")
local cpu = require("test.unit.support.cpu")
local regex = require("test.unit.support.regex")
local words = require("test.unit.support.words")

local function of_path(pattern, subject)
    return core.try_pattern(pattern, true, subject)
end

local function of_header(pattern, subject)
    return core.try_pattern(pattern, false, subject)
end

describe("router's regular expressions", function()
    it("of paths are anchored, in each alternative", function()
        assert.is_false(of_path("b|c", "ab"))
        assert.is_true(of_path("b|c", "cb"))
        assert.is_false(of_path("abc", "ABC"))
    end)

    it("of headers are found anywhere, and ignore case", function()
        assert.is_true(of_header("abc", "xABC"))
        assert.is_false(of_header("abd", "xABC"))
    end)

    it("work on bytes, NUL and those beyond ASCII included", function()
        assert.is_true(of_path("^...$", "a\0\255"))
    end)

    it("take $ for the very end, not for a newline there", function()
        assert.is_true(of_path("a$", "a"))
        assert.is_false(of_path("a$", "a\n"))
    end)

    it("give up on a pattern that would run for ever", function()
        local seconds = cpu.least(1, function()
            local matched, reason = of_path("(a|aa)+$", ("a"):rep(60) .. "!")
            assert.is_nil(matched)
            assert.matches("limit exceeded$", core.reason(reason))
        end)
        assert.is_true(seconds < 1, seconds)
    end)

    it("survive a long subject that the JIT's stack is too small for", function()
        -- Near to what a request may cost: on a loaded machine a try may go beyond.
        local matched, reason
        for _ = 1, 20 do
            matched, reason = of_path("(?:a|b)*c", ("ab"):rep(4000) .. "c")
            if matched ~= nil then
                break
            end
            assert.matches("limit exceeded$", core.reason(reason))
        end
        assert.is_true(matched)
    end)

    it("say what is wrong and where", function()
        local ok, err = core.check_pattern("a)b", true)
        assert.is_nil(ok)
        assert.equal("unmatched closing parenthesis at offset 1", err)
    end)

    it("refuse more groups than a match has room for", function()
        assert.is_true(core.check_pattern(("(a)"):rep(99), true))
        local ok, err = core.check_pattern(("(a)"):rep(100), true)
        assert.is_nil(ok)
        assert.equal("more than 99 groups", err)
    end)
end)

describe("router: the limit of a search", function()
    it("is one for all places at which a match could begin", function()
        -- Below the limit at each of them, far beyond it in all.
        local subject = (("a"):rep(14) .. "!"):rep(500)
        assert.is_nil(assert(regex.compile("(a+)+$", { caseless = true })):match(subject))
        local matched, reason = of_header("(a+)+$", subject)
        assert.is_nil(matched)
        assert.matches("limit exceeded$", core.reason(reason))
    end)

    it("changes nothing of what matches", function()
        local patterns = words([[
            b ^b b$ ^a|b$ (?i)B (?-i)B \Ab a\z .*b (a)\1
        ]])
        for _, pattern in ipairs(patterns) do
            local plain = assert(regex.compile(pattern, { caseless = true }))
            for _, subject in ipairs({ "", "a", "b", "B", "ab", "ba", "aa", "a\nb", "xaax" }) do
                assert.equal(
                    plain:match(subject) ~= nil,
                    of_header(pattern, subject),
                    pattern .. " on " .. subject
                )
            end
        end
    end)
end)
