-- forward-auth without nginx: what is kept, and which configurations are refused.

local support = require("test.unit.support.config")

local function errors(lines)
    local config = "{url: 'http://a/'" .. (lines and ", " .. lines or "") .. "}"
    return support.errors("plugins:\n- name: forward-auth\n  config: " .. config .. "\n")
end

describe("plugins.forward-auth.decisions", function()
    local decisions, now

    before_each(function()
        now = 100
        rawset(_G, "ngx", {
            now = function()
                return now
            end,
        })
        package.loaded["plugins.forward-auth.decisions"] = nil
        decisions = require("plugins.forward-auth.decisions")
    end)

    after_each(function()
        rawset(_G, "ngx", nil)
        package.loaded["plugins.forward-auth.decisions"] = nil
    end)

    it("count as long as they are to", function()
        local kept = decisions.new()
        kept:keep("key", "answer", 10)
        assert.equal("answer", kept:find("key"))
        now = 110
        assert.is_nil(kept:find("key"))
        assert.is_nil(kept:find("other"))
    end)

    it("are of a bounded number, the last ones", function()
        local kept = decisions.new()
        for i = 1, 5000 do
            kept:keep("key" .. i, i, 1000)
        end
        assert.equal(5000, kept:find("key5000"))
        assert.equal(4000, kept:find("key4000"))
        assert.is_nil(kept:find("key1"))
        local count = 0
        for _, generation in ipairs({ kept.young, kept.old }) do
            for _ in pairs(generation) do
                count = count + 1
            end
        end
        assert.truthy(count <= 2048)
    end)

    it("have keys that do not show what was asked", function()
        local key = decisions.key("Cookie: secret")
        assert.equal(32, #key)
        assert.is_nil(key:find("secret", 1, true))
        assert.equal(key, decisions.key("Cookie: secret"))
        assert.are_not.equal(key, decisions.key("Cookie: other"))
    end)
end)

describe("plugins.forward-auth.schema", function()
    it("takes what works, and refuses the rest in words", function()
        assert.equal("", errors())
        assert.equal("", errors("upstream_headers: [X-User, x_group], cache_ttl: 0.5"))
        for lines, words in pairs({
            ["upstream_headers: [Host]"] = "cannot contain 'Host' header",
            ["request_headers: [x_forwarded_for]"] = "X-Forwarded-* headers are the gateway's",
            ["pass_headers: ['a b']"] = "bad header name",
            ["timeout: 0"] = "value should be between 1 and 600000",
            ["cache_ttl: -1"] = "value should be between 0 and 86400",
        }) do
            local found = errors(lines)
            assert.truthy(found:find(words, 1, true), lines .. ": " .. found)
        end
    end)
end)
