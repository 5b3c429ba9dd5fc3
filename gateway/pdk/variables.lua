--- The nginx variables that the gateway reads and sets: all of them, each with a
-- number (sluice.var).
--
-- This list is the one place that says which. The renderer of nginx.conf gives
-- it to `sluice_var_index`, and each name is a field here, a handle with `get`
-- and `set`.
-- @module gateway.pdk.variables
-- @usage
-- local variables = require("gateway.pdk.variables")
-- local uri = variables.request_uri:get() -- in the phases of a request

-- The command line has no nginx, and loads what it checks. nginx's master loads it for its workers,
-- whose user may not be allowed to read the checkout.
local var = ngx and ngx.get_phase and require("sluice.var")

local NAMES = {
    "args",
    "content_length",
    "host",
    "hostname",
    "http_accept",
    "http_content_type",
    "http_sluice_source",
    "http_sluice_user",
    "http_x_forwarded_proto",
    "realip_remote_addr",
    "realip_remote_port",
    "remote_addr",
    "remote_port",
    "request",
    "request_uri",
    "scheme",
    "server_addr",
    "server_port",
    "sluice_admin_by",
    "upstream_x_forwarded_prefix",
}

local declared = {}
for _, name in ipairs(NAMES) do
    declared[name] = true
end

local _M = {
    --- All names, for `sluice_var_index`.
    names = NAMES,
}

--- Reads a variable whose name only the request or a plugin's configuration knows.
-- @tparam string name
-- @treturn string|nil
-- @phases rewrite, access, content, header_filter, body_filter, log
function _M.get(name)
    return var.get(name)
end

local function check(name)
    if not declared[name] then
        error("'" .. tostring(name) .. "' is not among the gateway's variables", 3)
    end
end

--- Makes a reader of several: one call into nginx for all of them.
-- @tparam table names a list
-- @treturn sluice.var.bulk
-- @phases any within nginx; the reader's `get` wherever a request is
function _M.bulk(names)
    for _, name in ipairs(names) do
        check(name)
    end
    return require("sluice.var").bulk(names)
end

return setmetatable(_M, {
    __index = function(self, name)
        check(name)
        local handle = var.handle(name)
        rawset(self, name, handle)
        return handle
    end,
})
