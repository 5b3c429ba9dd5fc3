--- What the flags of an image's records say (SLUICE_CORE_ROUTE_FLAGS and the like): one list for
-- who writes them and who reads them.
-- @module gateway.image.flags

local _M = {}

--- Of a route. What is usual is 0.
_M.route = {
    STRIP_PATH = 0x01,
    PRESERVE_HOST = 0x02,
    -- request_buffering, response_buffering: false
    STREAM_REQUEST = 0x04,
    STREAM_RESPONSE = 0x08,
    -- https is among the protocols, http is not
    HTTPS_ONLY = 0x10,
    -- path_handling: v1
    PATH_V1 = 0x20,
    -- https_redirect_status_code: the place in `redirect_codes`, in units of this
    REDIRECT = 0x100,
}

--- From 0.
_M.redirect_codes = { [0] = 426, 301, 302, 307, 308 }

--- Of a service.
_M.service = {
    HTTPS = 0x01,
    -- tls_verify
    VERIFY = 0x02,
    -- tls_verify_depth and 1, in units of this; 0: it has none
    DEPTH = 0x100,
}

--- Of a plugin binding.
_M.plugin = {
    -- It has no configuration: it says that some consumer, or some group, has one of this plugin.
    OF_CONSUMERS = 0x01,
    OF_GROUPS = 0x02,
}

return _M
