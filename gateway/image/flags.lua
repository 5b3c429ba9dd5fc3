--- What the flags of an image's records say (SLUICE_CORE_ROUTE_FLAGS and the like): one list for
-- who writes them and who reads them (module/core/image/flags.h).
-- @module gateway.image.flags

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")

abi.declare("core/image")

local C = ffi.C

local _M = {}

--- Of a route. What is usual is 0.
_M.route = {
    STRIP_PATH = C.SLUICE_ROUTE_STRIP_PATH,
    PRESERVE_HOST = C.SLUICE_ROUTE_PRESERVE_HOST,
    -- request_buffering, response_buffering: false
    STREAM_REQUEST = C.SLUICE_ROUTE_STREAM_REQUEST,
    STREAM_RESPONSE = C.SLUICE_ROUTE_STREAM_RESPONSE,
    -- https is among the protocols, http is not
    HTTPS_ONLY = C.SLUICE_ROUTE_HTTPS_ONLY,
    -- path_handling: v1
    PATH_V1 = C.SLUICE_ROUTE_PATH_V1,
    -- https_redirect_status_code: the place in `redirect_codes`, in units of this
    REDIRECT = C.SLUICE_ROUTE_REDIRECT,
    -- the units that its patterns take (gateway.entities.patterns), in units of this; no more
    PATTERNS = C.SLUICE_ROUTE_PATTERNS,
    PATTERNS_MOST = 2 ^ 32 / C.SLUICE_ROUTE_PATTERNS - 1,
}

--- From 0.
_M.redirect_codes = { [0] = 426, 301, 302, 307, 308 }

--- Of a service.
_M.service = {
    HTTPS = C.SLUICE_SERVICE_HTTPS,
    -- tls_verify
    VERIFY = C.SLUICE_SERVICE_VERIFY,
    -- tls_verify_depth and 1, in units of this; 0: it has none
    DEPTH = C.SLUICE_SERVICE_DEPTH,
}

--- Of a plugin binding.
_M.plugin = {
    -- It has no configuration: it says that some consumer, or some group, has one of this plugin.
    OF_CONSUMERS = C.SLUICE_PLUGIN_OF_CONSUMERS,
    OF_GROUPS = C.SLUICE_PLUGIN_OF_GROUPS,
    -- And that some of these say which phases in Lua they need.
    OF_LUA = C.SLUICE_PLUGIN_OF_LUA,
    -- The phases in Lua that a configuration needs, in units of this; 0: all that its plugin has
    LUA = C.SLUICE_PLUGIN_LUA,
}

--- The bits of phases in Lua (module/gateway/plugin/ngx_http_sluice_chain.h).
_M.phases = {
    rewrite = 0x01,
    access = 0x02,
    header_filter = 0x04,
    body_filter = 0x08,
    log = 0x10,
    response = 0x800,
    certificate = 0x1000,
}

return _M
