local header = require("sluice.header")

describe("header handles", function()
    it("are the same for the same name", function()
        assert.equal(header.new("X-Same"), header.new("X-Same"))
        assert.not_equal(header.new("X-Same"), header.new("x-same"))
    end)

    it("know nginx's hash of the name in lower case", function()
        -- ngx_hash_key of "ab": 97 * 31 + 98.
        assert.equal(3105ULL, header.new("Ab").data.hash)
    end)

    it("refuse what is no header's name", function()
        for _, name in ipairs({ "", "a b", "a:", "a\r\n", 7, false }) do
            assert.has_error(function()
                header.new(name)
            end, "bad argument #1 to 'new' (a header's name expected)")
        end
    end)
end)
