--- Schema of an SNI: a server name of TLS, and the certificate for it.
-- @module gateway.entities.snis

local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
# started with: --vault-env SHOP_CERT,SHOP_KEY
certificates:
  - id: 6f2c1a30-0000-4000-8000-000000000010
    cert: "{vault://env/SHOP_CERT}"
    key: "{vault://env/SHOP_KEY}"
snis:
  - name: shop.example.com
    certificate: { id: 6f2c1a30-0000-4000-8000-000000000010 }
]]

return {
    name = "snis",
    description = "A TLS server name and the certificate that is served for it. In files it can "
        .. "also be listed in its certificate.",
    example = EXAMPLE,
    primary_key = { "id" },
    endpoint_key = "name",
    fields = {
        { id = typedefs.uuid },
        {
            name = typedefs.wildcard_host({
                required = true,
                unique = true,
                description = "The server name, without a port. `*.example.com` and `example.*` "
                    .. "match one more label; `*` matches names without an entry and clients that "
                    .. "send no name.",
            }),
        },
        { created_at = typedefs.created_at },
        { updated_at = typedefs.updated_at },
        { tags = typedefs.tags },
        {
            certificate = {
                type = "foreign",
                reference = "certificates",
                required = true,
                on_delete = "cascade",
                description = "Certificate served for this name.",
            },
        },
    },
}
