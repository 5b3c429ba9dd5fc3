--- Base64, beside the vectors of RFC 4648 and OpenSSL's own encoder.

local base64 = require("sluice.base64")
local files = require("test.house.files")

describe("sluice.base64", function()
    it("decodes what the RFC has, with and without padding", function()
        for text, want in pairs({
            [""] = "",
            ["Zg=="] = "f",
            ["Zg"] = "f",
            ["Zm8="] = "fo",
            ["Zm8"] = "fo",
            ["Zm9v"] = "foo",
            ["Zm9vYg=="] = "foob",
            ["Zm9vYmE="] = "fooba",
            ["Zm9vYmFy"] = "foobar",
            ["-_-_"] = "\251\255\191",
            ["+/+/"] = "\251\255\191",
            ["AAAA"] = "\0\0\0",
        }) do
            assert.equal(want, base64.decode(text), text)
        end
    end)

    it("decodes the alphabet for URLs alone, where that is asked for", function()
        for text, want in pairs({
            [""] = "",
            ["Zg=="] = "f",
            ["Zg"] = "f",
            ["Zm8="] = "fo",
            ["-_-_"] = "\251\255\191",
        }) do
            assert.equal(want, base64.decode_url(text), text)
        end
        local wrong = { "+/+/", "Zg=", "Zg===", "Zm8==", "=", "====", "Z", "Zg==Zg", "Z g" }
        for _, text in ipairs(wrong) do
            assert.is_nil(base64.decode_url(text), text)
        end
    end)

    it("decodes what another encoder writes", function()
        for length = 20, 100, 20 do
            local bytes = {}
            for i = 1, length do
                bytes[i] = string.char((i * 37 + length * 91) % 256)
            end
            local text = table.concat(bytes)
            local hex = text:gsub(".", function(byte)
                return ("\\%03o"):format(byte:byte())
            end)
            local encoded = files.run(("printf '%s' | openssl base64 -A"):format(hex))
            assert.equal(text, base64.decode(encoded))
        end
    end)

    it("says nil of what is none", function()
        local none = { "A", "AAAAA", "Zg===", "Z=g=", "=", "====", "Z g", "Zg\n", "\0AAA" }
        for _, text in ipairs(none) do
            assert.is_nil(base64.decode(text), text)
        end
    end)
end)
