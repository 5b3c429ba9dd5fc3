--- Schema of a set of keys.
-- @module gateway.entities.key_sets

local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
key_sets:
  - name: issuer
]]

return {
    name = "key_sets",
    description = "A set of keys, for plugins that ask for one. None of the bundled plugins does.",
    example = EXAMPLE,
    primary_key = { "id" },
    -- what an id is made of
    identity = { "name", "tags" },
    endpoint_key = "name",
    admin_api_name = "key-sets",
    fields = {
        { id = typedefs.uuid },
        {
            name = {
                type = "string",
                unique = true,
                description = "Name that can be used instead of the id in paths and references.",
            },
        },
        { tags = typedefs.tags },
        { created_at = typedefs.created_at },
        { updated_at = typedefs.updated_at },
    },
}
