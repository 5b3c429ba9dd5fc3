--- The entities of hmac-auth: secrets of consumers.
-- @module plugins.hmac-auth.daos

local digest = require("openssl.digest")
local packed = require("sluice.ffi.packed")
local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
consumers:
  - username: alice
    hmacauth_credentials:
      - username: alice
        secret: alices-secret
]]

-- Hashes with the bytes of their blocks, in the order in which the C reads keys. HMAC hashes a key
-- that is longer, the longer the slower (RFC 2104): that is done once here, not at each request.
local HASHES = { { "sha1", 64 }, { "sha256", 64 }, { "sha384", 128 }, { "sha512", 128 } }

local function key_of(secret, hash)
    local name, block = hash[1], hash[2]
    return #secret > block and digest.new(name):final(secret) or secret
end

return {
    {
        name = "hmacauth_credentials",
        description = "A name and a secret of a consumer, for the plugin hmac-auth.",
        example = EXAMPLE,
        primary_key = { "id" },
        cache_key = { "username" },
        endpoint_key = "username",
        admin_api_name = "hmac-auths",
        admin_api_nested_name = "hmac-auth",

        --- What the C reads of a credential: the secret as a key of each hash, once where all of
        -- them take it as it is.
        pack = function(entity)
            local out = packed.new()
            local secret = type(entity.secret) == "string" and entity.secret
            local is_long = secret and #secret > HASHES[1][2]
            for i, hash in ipairs(HASHES) do
                out:text(secret and (i == 1 or is_long) and key_of(secret, hash))
            end
            return out:bytes()
        end,
        fields = {
            { id = typedefs.uuid },
            { created_at = typedefs.created_at },
            {
                consumer = typedefs.consumer({
                    description = "Consumer that owns the secret.",
                }),
            },
            {
                username = {
                    type = "string",
                    required = true,
                    unique = true,
                    description = "Name that clients send.",
                },
            },
            {
                secret = {
                    type = "string",
                    auto = true,
                    encrypted = true,
                    description = "Secret that requests are signed with. The Admin API generates "
                        .. "a random one if none is given.",
                },
            },
            { tags = typedefs.tags },
        },
    },
}
