--- Reads the method and a header and sets a header of the upstream's request, for the scenario
-- "proxy-lua-plugin": about the least that a plugin in Lua does.

local header = require("sluice.header")
local pdk = require("gateway.plugin.pdk")

local SEEN = header.new("X-Seen")

local _M = {
    name = "bench-header",
    version = "0.1.0",
    priority = 100,
    schema = { name = "bench-header", fields = { { config = { type = "record", fields = {} } } } },
}

function _M.access()
    SEEN:set_request(ngx.req.get_method() .. " " .. (pdk.header("X-Client") or ""))
end

return _M
