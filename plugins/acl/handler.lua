--- Lets consumers pass by their groups. It runs in C: plugins/acl/sluice_acl.c.
-- @module plugins.acl.handler

local packed = require("sluice.ffi.packed")

-- sluice_acl.h
local DENY, HIDE, AUTHENTICATED = 0x01, 0x02, 0x04

return {
    VERSION = "0.2.0",
    PRIORITY = 950,
    native = true,
    --- What happens where no plugin before it says who the consumer is.
    needs_consumer = "every request is answered 401",

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local deny = type(config.deny) == "table" and #config.deny > 0 and config.deny
        local out = packed.new()
        out:number(
            (deny and DENY or 0)
                + (config.hide_groups_header and HIDE or 0)
                + (config.always_use_authenticated_groups and AUTHENTICATED or 0)
        )
        out:list(deny or config.allow)
        return out:bytes()
    end,
}
