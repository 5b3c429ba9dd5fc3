--- The entities of basic-auth: names and passwords of consumers.
-- @module plugins.basic-auth.daos

local digest = require("openssl.digest")
local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
consumers:
  - username: alice
    basicauth_credentials:
      - username: alice
        password: alices-secret
]]

local function hex(text)
    return (text:gsub(".", function(char)
        return ("%02x"):format(char:byte())
    end))
end

return {
    {
        name = "basicauth_credentials",
        description = "A name and a password of a consumer, for the plugin basic-auth.",
        example = EXAMPLE,
        primary_key = { "id" },
        cache_key = { "username" },
        endpoint_key = "username",
        admin_api_name = "basic-auths",
        admin_api_nested_name = "basic-auth",

        --- What the C reads of a credential: the stored hash.
        pack = function(entity)
            return entity.password
        end,

        -- What is kept of a password that a client or file gives is Kong's hash of it.
        stored_as = {
            password = function(password, entity)
                return hex(digest.new("sha1"):final(password .. entity.consumer.id))
            end,
        },
        fields = {
            { id = typedefs.uuid },
            { created_at = typedefs.created_at },
            {
                consumer = typedefs.consumer({
                    description = "Consumer that owns the credentials.",
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
                password = {
                    type = "string",
                    required = true,
                    encrypted = true,
                    description = "Password. Stored and shown is its salted SHA-1, as in Kong; a "
                        .. "file or entity with `_transform: false` has the hash itself.",
                },
            },
            { tags = typedefs.tags },
        },
    },
}
