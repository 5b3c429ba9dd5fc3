--- Redirects clients. It runs in C: plugins/redirect/sluice_redirect.c.
-- @module plugins.redirect.handler

local address = require("sluice.address")
local packed = require("sluice.ffi.packed")

-- Of these the host is in small letters, and the port is left out where it is this one.
local PORTS = { http = 80, https = 443, ws = 80, wss = 443, ftp = 21 }

local function escape(char)
    return ("%%%02X"):format(char:byte())
end

--- What stands before the path, and behind the query.
local function around(location)
    local url = address.parse_url(location)
    local host, port = address.bracket(url.host), PORTS[url.scheme]
    local before = url.scheme
        .. "://"
        .. (url.userinfo and url.userinfo .. "@" or "")
        .. (port and host:lower() or host)
        .. (url.port and url.port ~= port and ":" .. url.port or "")
    local fragment = url.target:match("#.*$") or ""
    return before, (fragment:gsub('[%c "<>`\127-\255]', escape))
end

return {
    VERSION = "0.1.0",
    PRIORITY = 779,
    native = true,

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local keeps = config.keep_incoming_path == true
        local before, behind = config.location, nil
        if keeps then
            before, behind = around(config.location)
        end
        local out = packed.new()
        out:number(config.status_code)
        out:number(keeps and 1 or 0)
        out:text(before)
        out:text(behind)
        return out:bytes()
    end,
}
