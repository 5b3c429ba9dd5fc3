--- Schema of a host name and its addresses: a kind of the store's own, which no file holds and no
-- client is shown. gateway.config.items makes them, gateway.upstream.hosts keeps them fresh.
-- @module gateway.entities.names

local typedefs = require("gateway.schema.typedefs")

return {
    name = "names",
    internal = true,
    primary_key = { "id" },
    endpoint_key = "name",
    -- Who needs a name: gateway.upstream.hosts finds those that nobody needs any more.
    used_by = {
        -- Unless it is an upstream's name.
        { kind = "services", field = "host", unless = "upstreams" },
        { kind = "targets", field = "target", up_to = ":" },
    },
    fields = {
        -- Of the name, as identity.uuid makes it.
        { id = typedefs.uuid },
        { name = { type = "string", required = true, unique = true } },
        -- In the resolver's order, IPv6 in brackets; none where it could not be resolved.
        { addresses = { type = "array", elements = { type = "string" } } },
        -- Why there are none.
        { failure = { type = "string" } },
    },
}
