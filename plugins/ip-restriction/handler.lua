--- Lets clients pass by their addresses. It runs in C:
-- plugins/ip-restriction/sluice_ip_restriction.c.
-- @module plugins.ip-restriction.handler

local packed = require("sluice.ffi.packed")
local tree = require("plugins.ip-restriction.tree")

local IPV4_DIGITS = 8
-- Of a text that is packed.
local TREE_MAX = 2 ^ 20

local function given(list)
    return type(list) == "table" and list or {}
end

--- The trees of a list: of IPv4, of IPv6.
local function add(out, name, list)
    local ipv4, ipv6 = {}, {}
    for _, text in ipairs(list) do
        local range = tree.range(text)
        local family = #range.digits == IPV4_DIGITS and ipv4 or ipv6
        family[#family + 1] = range
    end
    for _, ranges in ipairs({ ipv4, ipv6 }) do
        local bytes = tree.bytes(ranges)
        if #bytes > TREE_MAX then
            error(("config.%s: these are too many ranges (1 MiB of them at most)"):format(name), 0)
        end
        out:text(bytes)
    end
end

return {
    VERSION = "0.1.0",
    PRIORITY = 990,
    native = true,

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    -- @raise "config.allow: these are too many ranges (1 MiB of them at most)"
    pack = function(config)
        local allow, deny = given(config.allow), given(config.deny)
        local out = packed.new()
        out:number(type(config.status) == "number" and config.status or 403)
        out:number(#allow > 0 and 1 or 0)
        out:text(config.message)
        add(out, "allow", allow)
        add(out, "deny", deny)
        return out:bytes()
    end,
}
