--- The worker's half of a flame graph: its Lua stack at each SIGPROF, and the traces of its JIT.
--
-- Made a plugin of the gateway, which starts it with each worker and runs it in no request; or
-- required by any nginx. bench/stacks.py reads what it writes to `samples`:
--
--     S <ns> <state> <stack>         at a sample; state: N compiled, I interpreted, C in C, ...
--     T <ns> <address> <bytes> <trace> <where>   a trace was compiled that begins there
--
-- Times are CLOCK_MONOTONIC, as perf's are told to be. The stack is outermost first, each frame
-- `function@file:line;`.

local ffi = require("ffi")
local profile = require("jit.profile")
local util = require("jit.util")

ffi.cdef([[
    typedef struct { long sec; long nsec; } sluice_sampler_time_t;
    int sluice_sampler_clock(int clock, sluice_sampler_time_t *time) asm("clock_gettime");
]])

local FILE = "@folder@/samples"
local CLOCK_MONOTONIC = 1
-- Not LuaJIT's own timer: its signals come from perf. `l` has every line compiled with a check.
local MODE = "li1000000000"
local FRAMES = -100 -- the outermost comes first
local FLUSH_EVERY = 64 -- samples; a worker ends without closing its files

local now = ffi.new("sluice_sampler_time_t")
local file
local samples = 0
local started -- where the trace begins that is being recorded

local function now_ns()
    ffi.C.sluice_sampler_clock(CLOCK_MONOTONIC, now)
    return ("%d%09d"):format(tonumber(now.sec), tonumber(now.nsec))
end

local function on_sample(thread, count, state)
    local ns = now_ns()
    local stack = profile.dumpstack(thread, "f@pl;", FRAMES)
    file:write("S ", ns, " ", state, " ", stack, "\n")
    samples = samples + count
    if samples >= FLUSH_EVERY then
        samples = 0
        file:flush()
    end
end

local function on_trace(what, trace, func, pc)
    if what == "start" then
        started = tostring(util.funcinfo(func, pc).loc)
    elseif what == "stop" then
        local code, address = util.tracemc(trace)
        file:write(("T %s %.0f %d %d %s\n"):format(now_ns(), address, #code, trace, started))
    end
end

-- Worker 0 of a gateway with a control worker, which serves no requests.
local function is_control()
    local is_there, images = pcall(require, "sluice.ffi.images")
    if not is_there then
        is_there, images = pcall(require, "sluice.images")
    end
    return is_there and images.C.sluice_images_control_block() ~= nil and ngx.worker.id() == 0
end

local function start()
    if is_control() then
        return
    end
    file = assert(io.open(FILE, "a"))
    file:setvbuf("full", 65536)
    jit.attach(on_trace, "trace")
    profile.start(MODE, on_sample)
end

local NAME = "flame-sampler"
local PRIORITY = 1
local VERSION = "1.0.0"

-- A plugin's handler; and the whole plugin, for older trees.
return {
    PRIORITY = PRIORITY,
    VERSION = VERSION,
    init_worker = start,
    name = NAME,
    priority = PRIORITY,
    version = VERSION,
    schema = { name = NAME, fields = {} },
}
