--- The global `ngx` outside of nginx: what schemas of plugins ask when the command line checks.
--
-- Values, times, texts, digests and regular expressions (gateway.kit.outside.re) are as in nginx.
-- The rest is there to be taken at `require`, and throws when it is called. `ngx.get_phase` is nil:
-- by that the gateway's files know that this is not nginx.
-- @module gateway.kit.outside

local base64 = require("sluice.base64")
local cjson = require("cjson")
local clock = require("sluice.clock")

local _M = {}

-- A table of functions, of tables of them, ..., each of which throws its name.
local function absent(name)
    return setmetatable({}, {
        __call = function()
            error(name .. ": there is none outside of nginx", 2)
        end,
        __index = function(self, key)
            local value = absent(("%s.%s"):format(name, tostring(key)))
            rawset(self, key, value)
            return value
        end,
    })
end

local function encode_base64(text, no_padding)
    local out = base64.encode_url(tostring(text)):gsub("[-_]", { ["-"] = "+", ["_"] = "/" })
    return no_padding and out or out .. ("="):rep(-#out % 4)
end

local function binary_digest(name)
    return function(text)
        local digest = require("resty.sha").of(name):new()
        digest:update(tostring(text))
        return digest:final()
    end
end

local function escape_uri(text)
    return (
        tostring(text):gsub("[^%w%-._~]", function(char)
            return ("%%%02X"):format(char:byte())
        end)
    )
end

local function unescape_uri(text)
    text = tostring(text):gsub("+", " ")
    return (
        text:gsub("%%(%x%x)", function(digits)
            return string.char(tonumber(digits, 16))
        end)
    )
end

local function nothing() end

-- nginx's numbers of the levels of its error log.
local LEVELS = {
    STDERR = 0,
    EMERG = 1,
    ALERT = 2,
    CRIT = 3,
    ERR = 4,
    WARN = 5,
    NOTICE = 6,
    INFO = 7,
    DEBUG = 8,
}

local ABSENT = {
    "location",
    "req",
    "resp",
    "shared",
    "socket",
    "thread",
    "timer",
    "var",
    "worker",
}

local function make()
    local md5_bin = binary_digest("md5")
    local ngx = {
        config = { debug = false, subsystem = "http" },
        ctx = {},
        decode_base64 = base64.decode,
        encode_base64 = encode_base64,
        escape_uri = escape_uri,
        header = {},
        log = nothing,
        md5 = function(text)
            return (
                md5_bin(text):gsub(".", function(char)
                    return ("%02x"):format(char:byte())
                end)
            )
        end,
        md5_bin = md5_bin,
        now = function()
            return math.floor(clock.wall_ns() / 1e6) / 1e3
        end,
        null = cjson.null,
        re = require("gateway.kit.outside.re"),
        sha1_bin = binary_digest("sha1"),
        time = os.time,
        unescape_uri = unescape_uri,
        update_time = nothing,
    }
    for name, level in pairs(LEVELS) do
        ngx[name] = level
    end
    for _, name in ipairs(ABSENT) do
        ngx[name] = absent("ngx." .. name)
    end
    return ngx
end

--- Sets the global where there is none. Does not yield.
-- @phases without nginx; in nginx it does nothing
function _M.install()
    if rawget(_G, "ngx") == nil then
        rawset(_G, "ngx", make())
    end
end

return _M
