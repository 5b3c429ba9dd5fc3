--- The locations of the proxy server: one for each set of phases in Lua.
--
-- A location of nginx pays for every phase that it declares in Lua (an empty header filter costs 6%
-- of a proxied request, a log phase 8%), so a request is served by the location that declares just
-- what its plugins need. C puts it there (ngx_http_sluice_location.h), by the numbers
-- that the renderer of nginx.conf reads here.
--
-- Phases after the access phase come in levels, each with all of those before it, as a plugin that
-- filters almost always logs too. The access phase is C's or Lua's. `location /`, of level 0 and
-- with an access phase in C, enters no Lua: most requests are served there.
-- @module gateway.proxy.late_phases

local _M = {}

-- Index is the level plus one.
local LEVELS = {
    {},
    { "log" },
    { "header_filter", "log" },
    { "header_filter", "body_filter", "log" },
}

local function error_name(level)
    return ("@sluice_error_%d"):format(level)
end

local function location_name(kind, level)
    if kind == "native" and level == 0 then
        return "/"
    end
    return ("@sluice_%s_%d"):format(kind, level)
end

--- All locations that proxy: `{location, kind, level, phases, error_location}`; kind "native": the
-- access phase is C's; "lua": it is Lua's.
_M.variants = {}

--- The locations that answer for nginx's own errors, one a level: `{location, kind, level,
-- phases}`, kind "error".
_M.error_variants = {}

--- The locations that have a whole response in hand, one a level: `{location, kind, level, phases,
-- error_location}`, kind "response".
_M.response_variants = {}

for index, phases in ipairs(LEVELS) do
    local level = index - 1
    for _, kind in ipairs({ "native", "lua" }) do
        _M.variants[#_M.variants + 1] = {
            location = location_name(kind, level),
            kind = kind,
            level = level,
            phases = phases,
            error_location = error_name(level),
        }
    end
    _M.response_variants[index] = {
        location = location_name("response", level),
        kind = "response",
        level = level,
        phases = phases,
        error_location = error_name(level),
    }
    _M.error_variants[index] = {
        location = error_name(level),
        kind = "error",
        level = level,
        phases = phases,
    }
end

return _M
