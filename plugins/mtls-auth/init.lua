--- Asks for a client certificate of a CA: what is known of it before a request comes. The rest is C
-- (plugins/mtls-auth/ngx_http_sluice_mtls_auth.c).
-- @module plugins.mtls-auth

local packed = require("sluice.packed")
local schema = require("plugins.mtls-auth.schema")

-- The 16 bytes of a UUID.
local function bytes(uuid)
    return (
        uuid:gsub("-", ""):gsub("%x%x", function(digits)
            return string.char(tonumber(digits, 16))
        end)
    )
end

return {
    name = "mtls-auth",
    version = "0.1.0",
    -- Kong's: before all that asks for a key or a token.
    priority = 1600,
    schema = schema,
    native = true,

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local ids = {}
        for i, id in ipairs(config.ca_certificates) do
            ids[i] = bytes(id)
        end
        local out = packed.new()
        out:number(config.depth)
        out:text(table.concat(ids))
        out:text(config.crl)
        return out:bytes()
    end,
}
