--- What the benchmarks of variables run in nginx: loops of one access each, and whole requests.

local clock = require("clock")
local ffi = require("ffi")
local var = require("sluice.var")

-- Of each loop, of which the fastest counts: nothing makes a program faster than it is.
local REPEATS = 5

local C = ffi.C
local now_ns = clock.now_ns

-- Each loop is a chunk of its own, so that its trace is its own.
local LOOP = [[
local now_ns, handle, call, text, data = ...
local ngx_var = ngx.var
return function(turns)
    local value
    local began = now_ns()
    for _ = 1, turns do
        BODY
    end
    return (now_ns() - began) / turns, value
end
]]

local BODIES = {
    empty = "value = _",
    get = { ngx = "value = ngx_var.NAME", sluice = "value = handle:get()" },
    -- As if the value were another one than the last read.
    changed = { ngx = "value = ngx_var.NAME", sluice = "handle.last = '' value = handle:get()" },
    set = { ngx = "ngx_var.NAME = 'a=1&page=22'", sluice = "handle:set('a=1&page=22')" },
    -- The floor: a call into C, and a Lua string of 13 bytes that exists already.
    call = "value = call()",
    string = "value = text(data, 13)",
}

local data = ffi.new("char[?]", 14, "10.0.0.1:8080")

local function loop(body, name)
    local source = LOOP:gsub("BODY", (body:gsub("NAME", name)))
    local make = assert(loadstring(source, "=" .. body .. " " .. name))
    return make(now_ns, var.handle(name), C.sluice_var_count, ffi.string, data)
end

local loops = {}

local function fastest(body, name, turns)
    local key = body .. name
    loops[key] = loops[key] or loop(body, name)
    local best, value = math.huge, nil
    for _ = 1, REPEATS do
        local ns
        ns, value = loops[key](turns)
        best = math.min(best, ns)
    end
    return best, value
end

local _M = {}

--- In the header filter: times what the header X-Measure asks for, "get|changed|set|call|string
-- <name> <turns> <first side>", and answers in the header X-Took with nanoseconds of an access,
-- the loop's own taken off: of ngx.var and of sluice.var, or of the floor.
function _M.time()
    local what, name, turns, first =
        ngx.req.get_headers()["X-Measure"]:match("(%S+) (%S+) (%d+) (%S+)")
    turns = tonumber(turns)
    ngx.header["X-Answer"] = "of this nginx"
    local empty = fastest(BODIES.empty, "host", turns)
    if type(BODIES[what]) == "string" then
        ngx.header["X-Took"] = fastest(BODIES[what], name, turns) - empty
        return
    end
    local took, values = {}, {}
    for _, side in ipairs(first == "ngx" and { "ngx", "sluice" } or { "sluice", "ngx" }) do
        took[side], values[side] = fastest(BODIES[what][side], name, turns)
    end
    ngx.header["X-Took"] = (took.ngx - empty) .. " " .. (took.sluice - empty)
    ngx.header["X-Same"] = tostring(values.ngx == values.sluice)
end

local READ = {
    "host",
    "request_uri",
    "uri",
    "args",
    "is_args",
    "scheme",
    "request_method",
    "remote_addr",
    "remote_port",
    "server_port",
    "server_protocol",
    "content_type",
    "request_length",
    "http_host",
    "http_user_agent",
    "http_x_forwarded_for",
    "http_x_tenant",
    "arg_page",
    "cookie_session",
    "made_by_set",
}
local WRITTEN = { "made_1", "made_2", "made_3", "made_4", "made_5" }

-- A request handler in straight code, as one is written by hand: 20 reads, 5 writes.
local function handler(get, set, prepare)
    local lines = { "local prepare = ..." }
    for i, name in ipairs(READ) do
        lines[#lines + 1] = ("local r%d = prepare(%q)"):format(i, name)
    end
    for i, name in ipairs(WRITTEN) do
        lines[#lines + 1] = ("local w%d = prepare(%q)"):format(i, name)
    end
    lines[#lines + 1] = "local ngx_var, say = ngx.var, ngx.say\nreturn function()\nlocal length = 0"
    for i, name in ipairs(READ) do
        lines[#lines + 1] = "do local value = " .. get:gsub("NAME", name):gsub("HANDLE", "r" .. i)
        lines[#lines + 1] = "if value then length = length + #value end end"
    end
    for i, name in ipairs(WRITTEN) do
        lines[#lines + 1] = set:gsub("NAME", name):gsub("HANDLE", "w" .. i)
    end
    lines[#lines + 1] = "say(length)\nend"
    return assert(loadstring(table.concat(lines, "\n"), "=handler"))(prepare)
end

--- The same request with either.
_M.with_ngx = handler("ngx_var.NAME", "ngx_var.NAME = 'a value of it'", tostring)
_M.with_sluice = handler("HANDLE:get()", "HANDLE:set('a value of it')", var.handle)

return _M
