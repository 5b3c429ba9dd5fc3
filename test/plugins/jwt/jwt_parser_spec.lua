-- kong.plugins.jwt.jwt_parser: tokens of each kind, and what is none.

package.path = "./compat/?.lua;./compat/?/init.lua;" .. package.path

describe("kong.plugins.jwt.jwt_parser", function()
    local parser = require("plugins.jwt.kong.jwt_parser")

    it("makes, takes apart and verifies tokens", function()
        local token = parser.encode({ sub = "bob", exp = 1 }, "secret")
        local found = parser:new(token)
        assert.same({ typ = "JWT", alg = "HS256" }, found.header)
        assert.equal("bob", found.claims.sub)
        assert.is_true(found:verify_signature("secret"))
        assert.is_false(found:verify_signature("other"))
        local header, claims = token:match("^(.-)%.(.-)%.")
        for _, broken in ipairs({ "", "a", "a.b", header .. ".!." }) do
            assert.same({ nil, "invalid JSON" }, { parser:new(broken) })
        end
        assert.same({ nil, "invalid signature" }, { parser:new(header .. "." .. claims .. ".!") })
        assert.has_error(function()
            parser:new(nil)
        end, "Token must be a string, got nil")
    end)

    it("verifies with keys of each kind", function()
        local pkey = require("resty.openssl.pkey")
        local keys = {
            RS256 = pkey.new({ type = "RSA", bits = 2048 }),
            ES256 = pkey.new({ type = "EC", curve = "prime256v1" }),
            EdDSA = pkey.new({ type = "Ed25519" }),
        }
        keys.PS256 = keys.RS256
        for alg, key in pairs(keys) do
            local header = { typ = "JWT", alg = alg }
            local token = parser.encode({ a = 1 }, key:to_PEM("private"), alg, header)
            local found = assert(parser:new(token))
            assert.is_true(found:verify_signature(key:to_PEM("public")), alg)
            found.claims_64 = found.claims_64 .. "A"
            assert.is_false(found:verify_signature(key:to_PEM("public")), alg)
        end
        local none = parser:new(parser.encode({}, "s", "HS256", { alg = "none" }))
        assert.is_nil(none)
    end)
end)
