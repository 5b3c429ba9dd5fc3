--- Reads the method and a header and sets a header of the upstream's request, for the scenario
-- "proxy-lua-plugin": about the least that a plugin in Lua does.

local trees = require("trees")

local header = require("sluice.header")
local pdk = trees.load("gateway.pdk")

local SEEN = header.new("X-Seen")

local _M = {
    VERSION = "0.1.0",
    PRIORITY = 100,
}

function _M.access()
    SEEN:set_request(ngx.req.get_method() .. " " .. (pdk.header("X-Client") or ""))
end

return _M
