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
    description = "A server name of TLS, and the certificate that clients get who ask for it. In "
        .. "files it also stands in its certificate.",
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
                    .. "stand for one label more, `*` for all that have no other, and for clients "
                    .. "that say no name.",
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
                description = "Certificate that has this name.",
            },
        },
    },
}
