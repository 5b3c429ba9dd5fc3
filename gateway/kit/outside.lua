--- The global `ngx` outside of nginx: what plugins ask where the command line loads and checks.
--
-- Values, times, texts, digests and regular expressions (gateway.kit.outside.re) are as in nginx.
-- The rest, and the modules of lua-resty-core (gateway.kit.outside.core), is there to be taken at
-- `require`, and throws when it is called. `ngx.get_phase` is nil: by that the gateway's files know
-- that this is not nginx.
-- @module gateway.kit.outside

local absent = require("gateway.kit.outside.absent")
local base64 = require("sluice.base64")
local cjson = require("cjson")
local clock = require("sluice.clock")
local core = require("gateway.kit.outside.core")
local unistd = require("posix.unistd")

local _M = {}

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

-- Of responses and requests; tables have them as keys when they are made.
local CONSTANTS = {
    OK = 0,
    ERROR = -1,
    AGAIN = -2,
    DONE = -4,
    DECLINED = -5,
    HTTP_GET = 0x2,
    HTTP_HEAD = 0x4,
    HTTP_POST = 0x8,
    HTTP_PUT = 0x10,
    HTTP_DELETE = 0x20,
    HTTP_MKCOL = 0x40,
    HTTP_COPY = 0x80,
    HTTP_MOVE = 0x100,
    HTTP_OPTIONS = 0x200,
    HTTP_PROPFIND = 0x400,
    HTTP_PROPPATCH = 0x800,
    HTTP_LOCK = 0x1000,
    HTTP_UNLOCK = 0x2000,
    HTTP_PATCH = 0x4000,
    HTTP_TRACE = 0x8000,
    HTTP_CONTINUE = 100,
    HTTP_SWITCHING_PROTOCOLS = 101,
    HTTP_OK = 200,
    HTTP_CREATED = 201,
    HTTP_ACCEPTED = 202,
    HTTP_NO_CONTENT = 204,
    HTTP_PARTIAL_CONTENT = 206,
    HTTP_SPECIAL_RESPONSE = 300,
    HTTP_MOVED_PERMANENTLY = 301,
    HTTP_MOVED_TEMPORARILY = 302,
    HTTP_SEE_OTHER = 303,
    HTTP_NOT_MODIFIED = 304,
    HTTP_TEMPORARY_REDIRECT = 307,
    HTTP_PERMANENT_REDIRECT = 308,
    HTTP_BAD_REQUEST = 400,
    HTTP_UNAUTHORIZED = 401,
    HTTP_PAYMENT_REQUIRED = 402,
    HTTP_FORBIDDEN = 403,
    HTTP_NOT_FOUND = 404,
    HTTP_NOT_ALLOWED = 405,
    HTTP_NOT_ACCEPTABLE = 406,
    HTTP_REQUEST_TIMEOUT = 408,
    HTTP_CONFLICT = 409,
    HTTP_GONE = 410,
    HTTP_UPGRADE_REQUIRED = 426,
    HTTP_TOO_MANY_REQUESTS = 429,
    HTTP_CLOSE = 444,
    HTTP_ILLEGAL = 451,
    HTTP_INTERNAL_SERVER_ERROR = 500,
    HTTP_METHOD_NOT_IMPLEMENTED = 501,
    HTTP_NOT_IMPLEMENTED = 501,
    HTTP_BAD_GATEWAY = 502,
    HTTP_SERVICE_UNAVAILABLE = 503,
    HTTP_GATEWAY_TIMEOUT = 504,
    HTTP_VERSION_NOT_SUPPORTED = 505,
    HTTP_INSUFFICIENT_STORAGE = 507,
}

local ABSENT = {
    "cookie_time",
    "crc32_long",
    "crc32_short",
    "decode_args",
    "encode_args",
    "eof",
    "exec",
    "exit",
    "flush",
    "hmac_sha1",
    "http_time",
    "localtime",
    "location",
    "on_abort",
    "parse_http_time",
    "print",
    "quote_sql_str",
    "redirect",
    "req",
    "resp",
    "run_worker_thread",
    "say",
    "send_headers",
    "shared",
    "sleep",
    "socket",
    "thread",
    "timer",
    "today",
    "utctime",
    "var",
}

-- The versions of Debian 12, the oldest that Sluice runs on: plugins refuse older ones than theirs.
local CONFIG = {
    debug = false,
    nginx_configure = absent.new("ngx.config.nginx_configure"),
    nginx_version = 1022001,
    ngx_lua_version = 10023,
    prefix = absent.new("ngx.config.prefix"),
    subsystem = "http",
}

-- As in nginx's master, which loads plugins there.
local WORKER = {
    count = function()
        return 1
    end,
    exiting = function()
        return false
    end,
    id = nothing,
    pid = unistd.getpid,
}

local function make()
    local md5_bin = binary_digest("md5")
    local ngx = {
        config = CONFIG,
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
        worker = absent.new("ngx.worker", WORKER),
    }
    for _, numbers in ipairs({ CONSTANTS, LEVELS }) do
        for name, number in pairs(numbers) do
            ngx[name] = number
        end
    end
    for _, name in ipairs(ABSENT) do
        ngx[name] = absent.new("ngx." .. name)
    end
    return ngx
end

--- Sets the global where there is none, with lua-resty-core's modules. Does not yield.
-- @phases without nginx; in nginx it does nothing
function _M.install()
    if rawget(_G, "ngx") == nil then
        rawset(_G, "ngx", make())
        core.install()
    end
end

return _M
