--- JSON Web Keys: those of the RFCs and of Kong's clients are good, broken ones are refused with
-- nothing of the key in the message.

local cjson = require("cjson")
local jwk = require("gateway.schema.jwk")

local NOT_LOADED = "could not load JWK, likely not a valid key"
local NOT_JSON = "could not json decode jwk string"

-- RFC 7517, A.1 and A.2
local EC = {
    kty = "EC",
    crv = "P-256",
    x = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
    y = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
    d = "870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE",
    use = "enc",
    kid = "1",
}
local RSA = {
    kty = "RSA",
    n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_"
        .. "BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGj"
        .. "QR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt"
        .. "-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqD"
        .. "Kgw",
    e = "AQAB",
    alg = "RS256",
    kid = "1",
}
-- RFC 8037, A.1
local OKP = {
    kty = "OKP",
    crv = "Ed25519",
    d = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
    x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    kid = "1",
}

local function with(key, changes)
    local out = {}
    for _, fields in ipairs({ key, changes }) do
        for name, value in pairs(fields) do
            out[name] = value ~= "none" and value or nil
        end
    end
    return cjson.encode(out)
end

local function refused(want, text, kid)
    assert.same({ nil, want }, { jwk.check(text, kid or "1") }, text)
end

describe("a JSON Web Key", function()
    it("is of RSA, EC or OKP, with or without its private part", function()
        for _, key in ipairs({ EC, RSA, OKP }) do
            for _, changes in ipairs({
                {},
                { d = "none" },
                { key_ops = { "sign" }, x5c = { "MII" }, ["x5t#S256"] = "a", issuer = "b" },
                { key_ops = {}, use = "sig" },
                { n = key.n and key.n .. "==" },
                { x = key.x and key.x .. "=" },
            }) do
                assert.is_true((jwk.check(with(key, changes), "1")))
            end
        end
        assert.is_true((jwk.check(with(OKP, { x = "none" }), "1")))
        assert.is_true((jwk.check("\n " .. with(EC, { kid = "\195\164" }), "\195\164")))
    end)

    it("has the kid of its entity", function()
        local message = "kid in jwk.kid must be equal to keys.kid"
        refused(message, with(EC, {}), "2")
        refused(message, with(EC, { kid = "none" }))
        refused(message, with(EC, { kid = 1 }))
        refused(message, "{}")
    end)

    it("is an object in JSON", function()
        for _, text in ipairs({
            "",
            "x",
            "1",
            "null",
            '"a"',
            "[]",
            '[{"kid":"1"}]',
            "{",
            '{"kid":"1"}}',
            '{"kid":"1"',
            ("["):rep(30000),
            ('{"a":'):rep(10000),
        }) do
            refused(NOT_JSON, text)
        end
        refused("jwk is longer than 65536 bytes", with(EC, { alg = ("a"):rep(65536) }))
    end)

    it("can be loaded", function()
        for _, text in ipairs({
            '{"kid":"1"}',
            '{"kid":"1","kty":"oct","k":"AAAA"}',
            '{"kid":"1","kty":["EC"]}',
            '{"kid":"1","kty":"EC"}',
            '{"kid":"1","kty":"OKP","crv":"Ed25519"}',
            with(EC, { x = "none" }),
            with(EC, { x = EC.y, y = EC.x }),
            with(EC, { y = "AAAA" }),
            with(EC, { x = EC.x .. "AAAA" }),
            with(EC, { x = "A" }),
            with(EC, { x = "" }),
            with(EC, { x = "====" }),
            with(EC, { x = "\195\164" }),
            with(EC, { x = 5 }),
            with(EC, { x = { "a" } }),
            with(EC, { crv = "P-384" }),
            with(EC, { crv = "secp256k1" }),
            with(EC, { crv = { "P-256" } }),
            with(EC, { crv = "none" }),
            with(EC, { d = "" }),
            with(EC, { d = ("B"):rep(200) }),
            with(RSA, { n = "none" }),
            with(RSA, { n = "AAAA" }),
            with(RSA, { n = "a b" }),
            with(RSA, { e = "" }),
            with(RSA, { d = "?" }),
            with(RSA, { qi = 1 }),
            with(OKP, { x = OKP.x .. "AAAA" }),
            with(OKP, { d = "AAAA" }),
            with(OKP, { crv = "X448" }),
            with(OKP, { x = "none", d = "none" }),
        }) do
            refused(NOT_LOADED, text)
        end
    end)

    it("has members of the right types, and no others", function()
        refused("jwk.foo: unknown field", with(EC, { foo = "a" }))
        refused("jwk.?: unknown field", with(EC, { ["a\n"] = "a" }))
        refused("jwk.?: unknown field", with(EC, { [("a"):rep(33)] = "a" }))
        refused("jwk.alg: expected a string", with(EC, { alg = 5 }))
        refused("jwk.k: expected a string", with(RSA, { k = { "a" } }))
        refused("jwk.key_ops: expected an array", with(EC, { key_ops = "sign" }))
        refused("jwk.x5c: expected an array", with(EC, { x5c = { a = "sign" } }))
        refused("jwk.x5c: expected an array", with(EC, { x5c = cjson.null }))
        refused("jwk.key_ops[2]: expected a string", with(EC, { key_ops = { "sign", 5 } }))
    end)

    it("says nothing of itself in messages", function()
        for _, name in ipairs({ "d", "x", "y", "kid", "alg", "crv", "kty" }) do
            for _, value in ipairs({ "se/cret", { "se/cret" }, { secret = "se/cret" } }) do
                local _, message = jwk.check(with(EC, { [name] = value }), "1")
                assert.is_nil((message or ""):find("se/cret", 1, true))
            end
        end
    end)
end)
