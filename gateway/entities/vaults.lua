--- Schema of a vault: where values are that entities refer to. The one kind is the environment.
-- @module gateway.entities.vaults

local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
# started with: --vault-env SHOP_LOG_TOKEN
vaults:
  - prefix: shop
    name: env
    config: { prefix: SHOP_ }
plugins:
  - name: http-log
    config:
      http_endpoint: https://logs.example.com/in
      headers: { X-Token: "{vault://shop/log-token}" }
]]

return {
    name = "vaults",
    description = "A prefix for references to environment variables. For a vault `shop` with the "
        .. "variable prefix SHOP_, `{vault://shop/log-token}` refers to SHOP_LOG_TOKEN. The "
        .. "setting `vault_env` lists the variables that may be used.",
    example = EXAMPLE,
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
                description = "Prefix of references to this vault. At least two lowercase letters, "
                    .. "digits and `-`; must start with a letter and not end with `-`.",
            },
        },
        {
            name = {
                type = "string",
                required = true,
                description = "Kind of the vault: `env`, the environment of the gateway.",
                custom_validator = function(name)
                    return name == "env" or nil, "vault '" .. name .. "' is not installed"
                end,
            },
        },
        {
            description = { type = "string", description = "Description of the vault. No effect." },
        },
        {
            config = {
                type = "record",
                description = "Configuration specific to the kind of vault.",
                fields = {
                    {
                        prefix = {
                            type = "string",
                            match = "^[%a_-][%a%d_-]*$",
                            description = "Prefix of variable names. Letters, digits, `_` and `-` "
                                .. "(which stands for `_`); must not start with a digit.",
                        },
                    },
                },
            },
        },
        { created_at = typedefs.created_at },
        { updated_at = typedefs.updated_at },
        { tags = typedefs.tags },
    },
}
