--- The certificates of a service, as ngx_http_sluice_upstream_tls.c reads them: 16
-- bytes of the client certificate's id, zeros where it has none, then those of CA certificates.
-- @module gateway.image.service_tls

local cjson = require("cjson")

local NULL = cjson.null

local _M = {}

local function bytes_of(id)
    return (
        id:gsub("-", ""):gsub("%x%x", function(byte)
            return string.char(tonumber(byte, 16))
        end)
    )
end

local function given(value)
    return value ~= NULL and value or nil
end

--- Packs the certificates of a service.
-- @tparam table service checked by its schema
-- @treturn string|nil nil: it has none
function _M.pack(service)
    local client = given(service.client_certificate)
    local trusted = given(service.ca_certificates) or {}
    if not client and #trusted == 0 then
        return nil
    end
    local out = { client and bytes_of(client.id) or ("\0"):rep(16) }
    for i, id in ipairs(trusted) do
        out[i + 1] = bytes_of(id)
    end
    return table.concat(out)
end

return _M
