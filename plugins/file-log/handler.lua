--- Writes an entry about each request into a file.
--
-- It runs in C: plugins/file-log/ngx_http_sluice_file_log.c.
-- @module plugins.file-log.handler

local log_fields = require("gateway.kit.functions.log_fields")
local packed = require("sluice.ffi.packed")

return {
    VERSION = "0.1.0",
    PRIORITY = 9,
    native = true,

    lua_phases = log_fields.lua_phases,
    log = log_fields.log,

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local out = packed.new()
        out:number(config.reopen == true and 1 or 0)
        out:text(config.path)
        return out:bytes()
    end,
}
