--- Schema of a vault: where values are that entities refer to. The one kind is the environment.
-- @module gateway.entities.vaults

local typedefs = require("gateway.schema.typedefs")

return {
    name = "vaults",
    primary_key = { "id" },
    endpoint_key = "prefix",
    fields = {
        { id = typedefs.uuid },
        -- It stands in references: `{vault://<prefix>/...}`.
        {
            prefix = {
                type = "string",
                required = true,
                unique = true,
                match = "^[a-z][a-z%d-]-[a-z%d]+$",
                not_one_of = { "env" },
            },
        },
        {
            name = {
                type = "string",
                required = true,
                custom_validator = function(name)
                    return name == "env" or nil, "vault '" .. name .. "' is not installed"
                end,
            },
        },
        { description = { type = "string" } },
        {
            config = {
                type = "record",
                -- What the names of variables begin with.
                fields = { { prefix = { type = "string", match = "^[%a_-][%a%d_-]*$" } } },
            },
        },
        { created_at = typedefs.auto_timestamp_s },
        { updated_at = typedefs.auto_timestamp_s },
        { tags = typedefs.tags },
    },
}
