--- Asks for a client certificate of a CA: what is known of it before a request comes. The rest is C
-- (plugins/mtls-auth/ngx_http_sluice_mtls_auth.c).
-- @module plugins.mtls-auth.handler

local packed = require("sluice.ffi.packed")

-- The 16 bytes of a UUID.
local function bytes(uuid)
    return (
        uuid:gsub("-", ""):gsub("%x%x", function(digits)
            return string.char(tonumber(digits, 16))
        end)
    )
end

local NOBODY_IS_ASKED = "no client is asked for a certificate, so requests are answered 500; see "
    .. "the setting ask_client_certificate"

local NO_TLS = "no address of proxy_listen has ssl, so requests are answered 500"

-- Whether clients of some address are asked for a certificate, and whether some address has TLS.
local function asks(settings)
    local has_tls = false
    for _, address in ipairs(settings.proxy_listen) do
        if address:find(" ask_client_certificate", 1, true) then
            return true, true
        end
        has_tls = has_tls or address:find(" ssl", 1, true) ~= nil
    end
    return settings.ask_client_certificate, has_tls
end

return {
    VERSION = "0.1.0",
    -- Kong's: before all that asks for a key or a token.
    PRIORITY = 1600,
    native = true,

    --- What a gateway lacks for it.
    -- @tparam table settings resolved settings
    -- @treturn string|nil
    lacks = function(settings)
        local is_asking, has_tls = asks(settings)
        return not has_tls and NO_TLS or not is_asking and NOBODY_IS_ASKED or nil
    end,

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
