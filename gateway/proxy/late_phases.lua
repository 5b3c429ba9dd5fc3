--- The locations of the proxy server: one for each set of phases and buffering.
--
-- A location of nginx pays for every phase that it declares (an empty header
-- filter in Lua costs 6% of a proxied request, a log phase 8%), so a request
-- is served by the location that declares just what its plugin chain needs.
-- Both sides of that agreement read it here: the renderer of nginx.conf, and
-- the gateway when it compiles a route.
--
-- Phases come in levels, each with all of those before it, as a plugin that
-- filters almost always logs too: 0 nothing, 1 log, 2 header filter, 3 body
-- filter. The entry, `location /`, is level 0 with both bufferings on: most
-- requests never leave it.
-- @module gateway.proxy.late_phases

local _M = {}

-- Index is the level plus one. log comes with every level above 0: that is
-- where the request's context, kept for the error page, is let go.
local LEVELS = {
    {},
    { "log" },
    { "header_filter", "log" },
    { "header_filter", "body_filter", "log" },
}

local function location_name(level, request_buffering, response_buffering)
    if level == 0 and request_buffering and response_buffering then
        return "@sluice_lua"
    end
    return ("@sluice_%d%s%s"):format(
        level,
        request_buffering and "" or "_stream_request",
        response_buffering and "" or "_stream_response"
    )
end

local function error_name(level)
    return level == 0 and "@sluice_error" or ("@sluice_error_%d"):format(level)
end

--- All locations that proxy: `{location, entry, phases, request_buffering,
-- response_buffering, error_location}`.
_M.variants = {}

--- The locations that answer for nginx's own errors, one a level.
_M.error_variants = {}

for index, phases in ipairs(LEVELS) do
    local level = index - 1
    for _, request_buffering in ipairs({ true, false }) do
        for _, response_buffering in ipairs({ true, false }) do
            local location = location_name(level, request_buffering, response_buffering)
            _M.variants[#_M.variants + 1] = {
                location = location,
                entry = location == "@sluice_lua",
                kind = location == "@sluice_lua" and "lua" or nil,
                phases = phases,
                request_buffering = request_buffering,
                response_buffering = response_buffering,
                error_location = error_name(level),
            }
        end
    end
    _M.error_variants[index] = { error_location = error_name(level), phases = phases }
end

table.insert(_M.variants, 1, {
    location = "/",
    kind = "native",
    phases = {},
    request_buffering = true,
    response_buffering = true,
    error_location = error_name(0),
})

--- Levels go from 0 to this (ngx_http_sluice_chain_level).
_M.MAX_LEVEL = #LEVELS - 1

--- The location for a level and a route's buffering.
-- @treturn string|nil the named location, nil for the entry itself
function _M.location(level, request_buffering, response_buffering)
    local name = location_name(level, request_buffering, response_buffering)
    return name ~= "@sluice_lua" and name or nil
end

--- The location that answers errors for a level.
_M.error_location = error_name

return _M
