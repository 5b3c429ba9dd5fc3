--- Schema of a target: one address of an upstream.
-- @module gateway.entities.targets

local address = require("sluice.address")
local typedefs = require("gateway.schema.typedefs")

-- Kong's port of a target that names none.
local DEFAULT_PORT = 8000

local function check_target(target)
    local parsed, err = address.parse(target)
    if not parsed then
        local reason = err == "invalid port number" and err or "not a valid hostname or ip address"
        return nil, "Invalid target ('" .. target .. "'); " .. reason
    end
    return true
end

return {
    name = "targets",
    primary_key = { "id" },
    endpoint_key = "target",
    cache_key = { "upstream", "target" },
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.auto_timestamp_ms },
        { updated_at = typedefs.auto_timestamp_ms },
        {
            upstream = {
                type = "foreign",
                reference = "upstreams",
                required = true,
                on_delete = "cascade",
            },
        },
        {
            target = {
                type = "string",
                required = true,
                custom_validator = check_target,
                normalize = function(target)
                    return address.format(address.parse(target), DEFAULT_PORT)
                end,
            },
        },
        { weight = { type = "integer", default = 100, between = { 0, 65535 } } },
        { tags = typedefs.tags },
    },
}
