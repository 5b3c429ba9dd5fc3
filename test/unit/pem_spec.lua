-- Blocks of PEM: which are found, and that no text takes long.

local pem = require("sluice.pem")

local function blocks(text, kind)
    local out = {}
    for block in pem.blocks(text, kind or "CERTIFICATE") do
        out[#out + 1] = block
    end
    return out
end

local function block(body, kind)
    kind = kind or "CERTIFICATE"
    return ("-----BEGIN %s-----\n%s\n-----END %s-----"):format(kind, body, kind)
end

describe("sluice.pem", function()
    it("finds blocks of a kind among others", function()
        local one, two, key = block("a"), block("b"), block("k", "PRIVATE KEY")
        assert.same({ one, two }, blocks(one .. "\nwords\n" .. key .. "\n" .. two .. "\n"))
        assert.same({ key }, blocks(one .. "\n" .. key, "PRIVATE KEY"))
        assert.same({ one }, blocks("words\r\n" .. one .. "\r\n-----BEGIN CERTIFICATE-----\n"))
        assert.same({}, blocks(""))
        assert.same({}, blocks("-----BEGIN CERTIFICATE-----"))
    end)

    it("begins where a line does, as OpenSSL reads it", function()
        assert.same({}, blocks(" " .. block("a")))
        assert.same({ block("b") }, blocks(" " .. block("a") .. "\n" .. block("b")))
    end)

    it("takes a moment for what never ends", function()
        local before = os.clock()
        assert.same({}, blocks(("-----BEGIN CERTIFICATE-----\n"):rep(200000)))
        -- A pattern takes hours for it.
        assert.is_true(os.clock() - before < 60)
    end)
end)
