--- Names of servers in TLS, spelled as module/gateway/tls/ngx_http_sluice_tls.c spells those of
-- handshakes.
-- @module gateway.image.server_name

local _M = {}

--- Spells a name in the way that compares: lower case, no dot at its end.
-- @tparam string name
-- @treturn string
function _M.normal(name)
    return (name:lower():gsub("%.$", ""))
end

return _M
