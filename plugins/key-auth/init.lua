--- Asks for a key that belongs to a consumer: what is known of it before a request comes. The rest
-- is C (plugins/key-auth/ngx_http_sluice_key_auth.c).
-- @module plugins.key-auth

local credentials = require("plugins.key-auth.credentials")
local packed = require("sluice.packed")
local schema = require("plugins.key-auth.schema")

-- ngx_http_sluice_key_auth.h
local FLAGS = {
    hide_credentials = 0x01,
    key_in_header = 0x02,
    key_in_query = 0x04,
    key_in_body = 0x08,
    run_on_preflight = 0x10,
}

local function hex(char)
    return ("%%%02X"):format(char:byte())
end

--- What WWW-Authenticate says: the realm between quotes (RFC 9110, section 5.6.4), and no control
-- character, which would end the header.
local function challenge(realm)
    if type(realm) ~= "string" then
        return "Key"
    end
    return 'Key realm="' .. realm:gsub("[%z\1-\8\10-\31\127]", hex):gsub('["\\]', "\\%0") .. '"'
end

return {
    name = "key-auth",
    version = "0.1.0",
    priority = 1250,
    schema = schema,
    entities = { credentials },
    native = true,

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local flags = 0
        for name, flag in pairs(FLAGS) do
            flags = flags + (config[name] == true and flag or 0)
        end
        local out = packed.new()
        out:number(flags)
        out:text(config.anonymous)
        out:text(challenge(config.realm))
        out:list(config.key_names)
        return out:bytes()
    end,
}
