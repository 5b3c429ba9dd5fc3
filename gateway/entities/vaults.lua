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
    description = "A prefix for references to environment variables. Of a vault `shop` whose "
        .. "variables begin with SHOP_, `{vault://shop/log-token}` is SHOP_LOG_TOKEN. The setting "
        .. "`vault_env` names the variables that may be referred to.",
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
                description = "What references begin with. Two or more of small letters, digits "
                    .. "and `-`; a letter first, no `-` last.",
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
            description = { type = "string", description = "What it is for. Without effect." },
        },
        {
            config = {
                type = "record",
                description = "What is particular to the kind of vault.",
                fields = {
                    {
                        prefix = {
                            type = "string",
                            match = "^[%a_-][%a%d_-]*$",
                            description = "What the names of variables begin with. Letters, "
                                .. "digits, `_` and `-`, which stands for `_`; no digit first.",
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
