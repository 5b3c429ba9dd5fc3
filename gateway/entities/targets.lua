--- Schema of a target: one address of an upstream.
-- @module gateway.entities.targets

local address = require("sluice.address")
local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
upstreams:
  - name: orders-pool
    targets:
      - target: orders-1.internal:8080
        weight: 100
      - target: "[2001:db8::2]:8080"
        weight: 0 # takes no requests
]]

-- Kong's port of a target that names none.
local DEFAULT_PORT = 8000
-- Bytes of an address that is shown.
local MAX_SHOWN = 60

local function check_target(target)
    local parsed, err = address.parse(target)
    if not parsed then
        local reason = err == "invalid port number" and err or "not a valid hostname or ip address"
        return nil, "Invalid target ('" .. target .. "'); " .. reason
    end
    return true
end

-- Of a URL its address.
local function target_hint(value)
    local scheme, place = value:match("^(https?)://([%w._-]+:?%d*)/?$")
    if not scheme or #value > MAX_SHOWN then
        return nil
    end
    place = place:find(":", 1, true) and place or place .. (scheme == "https" and ":443" or ":80")
    return check_target(place) and "; write " .. place or nil
end

return {
    name = "targets",
    description = "An address of an upstream, with its weight.",
    example = EXAMPLE,
    primary_key = { "id" },
    endpoint_key = "target",
    cache_key = { "upstream", "target" },
    fields = {
        { id = typedefs.uuid },
        {
            created_at = typedefs.auto_timestamp_ms({
                description = typedefs.created_at.description,
            }),
        },
        {
            updated_at = typedefs.auto_timestamp_ms({
                description = typedefs.updated_at.description,
            }),
        },
        {
            upstream = {
                type = "foreign",
                reference = "upstreams",
                required = true,
                on_delete = "cascade",
                description = "Upstream that the target belongs to.",
            },
        },
        {
            target = {
                type = "string",
                description = "Host name or IP address, with an optional port (default 8000). IPv6 "
                    .. "addresses in brackets.",
                required = true,
                custom_validator = check_target,
                hint = target_hint,
                normalize = function(target)
                    return address.format(address.parse(target), DEFAULT_PORT)
                end,
            },
        },
        {
            weight = {
                type = "integer",
                default = 100,
                between = { 0, 65535 },
                description = "Share of requests relative to the weights of the other targets. 0 "
                    .. "disables the target.",
            },
        },
        { tags = typedefs.tags },
    },
}
