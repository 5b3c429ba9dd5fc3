--- Kong's clocks, and times as nginx.conf has them.
-- @module kong.tools.time

local ffi = require("ffi")

local error = error
local ipairs = ipairs
local ngx = ngx
local tonumber = tonumber
local type = type

ffi.cdef([[
    struct compat_timespec { long seconds; long nanoseconds; };
    int compat_clock_gettime(int clock, struct compat_timespec *time) __asm__("clock_gettime");
]])

-- Linux's numbers.
local REALTIME, MONOTONIC = 0, 1

-- nginx's units from the longest, of which each comes once and in this order; in seconds.
local UNITS = {
    { "y", 365 * 86400 },
    { "M", 30 * 86400 },
    { "w", 7 * 86400 },
    { "d", 86400 },
    { "h", 3600 },
    { "m", 60 },
    { "s", 1 },
}

local _M = {}

local time = ffi.new("struct compat_timespec")

local function read(clock)
    ffi.C.compat_clock_gettime(clock, time)
    return tonumber(time.seconds), tonumber(time.nanoseconds)
end

--- The seconds of a time as nginx.conf has it, such as "1h 30m".
-- @tparam string text
-- @treturn number
-- @raise "bad argument #1 'str'"
-- @phases any
function _M.nginx_conf_time_to_seconds(text)
    local rest = type(text) == "string" and text or ""
    local total, found = 0, false
    for _, unit in ipairs(UNITS) do
        local number, after = rest:match("^ *(%d+)" .. unit[1] .. "(.*)$")
        if number then
            total, rest, found = total + tonumber(number) * unit[2], after, true
        end
    end
    local seconds = rest:match("^ *(%d+)$")
    if seconds then
        total, rest, found = total + tonumber(seconds), "", true
    end
    if not found or rest:find("[^ ]") then
        error("bad argument #1 'str'", 2)
    end
    return total
end

--- Nanoseconds since 1970, as exact as a number of Lua's is.
-- @phases any
function _M.time_ns()
    local seconds, nanoseconds = read(REALTIME)
    return seconds * 1e9 + nanoseconds
end

--- Seconds since 1970 as nginx has them, which asks the clock now.
-- @phases any
function _M.get_updated_now()
    ngx.update_time()
    return ngx.now()
end

--- Milliseconds since 1970, of the last turn of nginx's loop.
-- @phases any
function _M.get_now_ms()
    return ngx.now() * 1000
end

--- The same, which asks the clock now.
-- @phases any
function _M.get_updated_now_ms()
    ngx.update_time()
    return ngx.now() * 1000
end

--- When the request in hand began, in milliseconds since 1970.
-- @phases rewrite, access, content, header_filter, body_filter, log
function _M.get_start_time_ms()
    return ngx.req.start_time() * 1000
end

--- Milliseconds of a clock that nobody sets.
-- @phases any
function _M.get_updated_monotonic_ms()
    local seconds, nanoseconds = read(MONOTONIC)
    return seconds * 1000 + (nanoseconds - nanoseconds % 1e6) / 1e6
end

return _M
