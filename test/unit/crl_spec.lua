-- Lists of revocation as text: what is refused. Those with dates, of CAs, are in
-- test/nginx/tls/test_tls_crl.py, where OpenSSL's command makes them.

local crl = require("sluice.ffi.crl")
local extension = require("openssl.x509.extension")
local new = require("openssl.x509.crl").new
local names = require("openssl.x509.name")
local pkey = require("openssl.pkey")

local NOW, DAY = 1700000000, 86400

-- A list of a CA that is good for some days from now on.
local function list(issuer, from, to)
    local made, name = new(), names.new()
    name:add("CN", issuer)
    made:setVersion(2)
    made:setIssuer(name)
    made:setLastUpdate(NOW + from * DAY)
    if to then
        made:setNextUpdate(NOW + to * DAY)
    end
    made:sign(pkey.new({ type = "EC", curve = "prime256v1" }), "sha256")
    return made:toPEM()
end

local BEGIN = "-----BEGIN X509 CRL-----\n"
local END = "-----END X509 CRL-----\n"

describe("sluice.ffi.crl", function()
    it("takes lists with anything between them", function()
        local one = list("a", -1, 1)
        for _, text in ipairs({ one, one .. one, "# of a\n" .. one .. "\n\n" .. one .. "end" }) do
            assert.is_true((crl.check(text)))
        end
    end)

    it("refuses what is none, or has no end", function()
        local one = list("a", -1, 1)
        for text, expected in pairs({
            [""] = "expected PEM",
            ["x"] = "expected PEM",
            [" " .. one] = "expected PEM",
            [BEGIN .. "AAAA\n" .. END] = "list 1 is damaged",
            [one .. BEGIN .. END .. one] = "list 2 is damaged",
            [one .. BEGIN] = "list 2: missing end line",
            [one .. one:sub(1, -20)] = "list 2: missing end line",
            [one .. BEGIN:rep(200000)] = "list 2: missing end line",
        }) do
            local ok, why = crl.check(text)
            assert.is_nil(ok)
            assert.is_truthy(why:find(expected, 1, true), why)
        end
    end)

    it("refuses a delta, which would be taken for all that is revoked", function()
        local delta = new(list("a", -1, 1))
        delta:addExtension(extension.new("deltaCRL", "critical,DER", "\2\1\5"))
        delta:sign(pkey.new({ type = "EC", curve = "prime256v1" }), "sha256")
        local ok, why = crl.check(list("a", -1, 1) .. delta:toPEM())
        assert.is_nil(ok)
        assert.is_truthy(why:find("list 2 is a delta of another one", 1, true), why)
    end)

    it("names CAs of which no list is in date", function()
        local function warned(...)
            return table.concat(crl.warnings(table.concat({ ... }), NOW), "\n")
        end
        assert.equal("", warned(list("a", -1, 1), list("b", -1)))
        local over = warned(list("a", -3, -2))
        assert.is_truthy(over:find("number 1, of CN=a, expired on 2023-11-12", 1, true), over)
        local early = warned(list("b", -1, 1), list("a", 1, 2))
        assert.is_truthy(early:find("number 2, of CN=a, is not valid before 2023-11-15", 1, true))
        local odd = warned(list("a\nb\27[2J\255" .. ("x"):rep(40), -3, -2))
        assert.is_truthy(odd:find("of CN=a\\x0Ab\\x1B[2J", 1, true), odd)
        assert.is_nil(odd:find("[^ -~]"))
        assert.equal("", warned(list("a", -3, -2), list("a", -1, 1)))
        assert.equal("", warned(list("a", -1, 1), list("a", -3, -2)))
        assert.is_truthy(warned(list("a", -3, -2), list("b", -1, 1)):find("CN=a", 1, true))
    end)
end)
