--- Tells browsers which origins may use a service, and answers their preflights. It runs in C:
-- plugins/cors/sluice_cors.c.
-- @module plugins.cors.handler

local challenge = require("sluice.challenge")
local packed = require("sluice.ffi.packed")
local pattern = require("plugins.cors.origin").pattern

-- sluice_cors.h
local CREDENTIALS, PRIVATE_NETWORK, CONTINUE, ALL, ANY, ONE = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20

local PORTS = { http = "80", https = "443" }

--- An origin as browsers send it: without a path, and without the port that its scheme has anyway.
local function normal(origin)
    local scheme, authority = origin:match("^(%a[%w.-]*)://([^/]+)")
    if not scheme then
        return origin
    end
    local host, port = authority:match("^(.+):(%d+)$")
    return scheme .. "://" .. (port and port == PORTS[scheme] and host or authority)
end

--- What is compared: "=" and a text; "~" and a pattern of whole origins, "@" of their hosts.
local function packed_origin(origin)
    local regex = pattern(origin)
    if not regex then
        return "=" .. normal(origin)
    end
    return (origin:find(":", 1, true) and "~" or "@") .. regex
end

local function joined(list)
    return type(list) == "table" and #list > 0 and challenge.value(table.concat(list, ",")) or nil
end

local function flags_of(config, origins)
    local flags = (config.credentials and CREDENTIALS or 0)
        + (config.private_network and PRIVATE_NETWORK or 0)
        + (config.preflight_continue and CONTINUE or 0)
    if #origins == 0 or #origins == 1 and origins[1] == "*" then
        return flags + ALL
    elseif #origins == 1 and not pattern(origins[1]) then
        return flags + ONE
    end
    for _, origin in ipairs(origins) do
        if origin == "*" then
            return flags + ANY
        end
    end
    return flags
end

-- Origins that one is compared with, none where all are allowed; the flags; all that are given.
local function compared_origins(config)
    local origins = type(config.origins) == "table" and config.origins or {}
    local flags = flags_of(config, origins)
    return flags % (2 * ANY) < ALL and origins or {}, flags, origins
end

return {
    VERSION = "0.1.0",
    PRIORITY = 2000,
    native = true,

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local listed, flags, origins = compared_origins(config)
        local compared = {}
        for i, origin in ipairs(listed) do
            compared[i] = packed_origin(origin)
        end
        local out = packed.new()
        out:number(flags)
        out:list(compared)
        out:text(origins[1])
        out:text(joined(config.headers))
        out:text(joined(config.exposed_headers))
        out:text(type(config.methods) == "table" and table.concat(config.methods, ",") or nil)
        out:text(type(config.max_age) == "number" and tostring(config.max_age) or nil)
        return out:bytes()
    end,

    --- The regular expressions that it runs (gateway.entities.patterns).
    -- @tparam table config checked by the schema
    -- @treturn {table,...}
    patterns = function(config)
        local out = {}
        for _, origin in ipairs((compared_origins(config))) do
            local regex = pattern(origin)
            if regex then
                out[#out + 1] = { text = regex, is_anchored = true, field = "origins" }
            end
        end
        return out
    end,
}
