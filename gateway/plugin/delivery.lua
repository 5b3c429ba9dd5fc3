--- Hands entries of log plugins that deliver in Lua to these, in the control worker.
--
-- Entries come out of the spool in a thread, which hands them over
-- (module/gateway/plugin/ngx_sluice_handover.h), those of one configuration together. Here they are
-- taken in slices, between which nginx's loop turns: a burst holds up no probe, no change and no
-- watchdog. A worker that leaves takes what comes until there will be no more.
-- @module gateway.plugin.delivery

local abi = require("sluice.ffi.abi")
local clock = require("sluice.clock").monotonic
local ffi = require("ffi")
local spool = require("sluice.ffi.spool")

local ngx = ngx
local pcall = pcall
local tonumber = tonumber

abi.declare("core/image", "gateway/plugin")

local C = ffi.C

local OK, DONE = 0, -4

-- A slice ends after so long.
local SLICE_SECONDS = 0.001
local PAUSE_SECONDS = 0.001
-- Between two looks of a worker that leaves.
local LOOK_SECONDS = 0.02
-- As long as a semaphore can wait, 23 days; then it waits again.
local FOREVER_SECONDS = 2000000
-- What is dropped is logged at most this often; what falls between is counted.
local REPORT_SECONDS = 10

local _M = {}

local plugins, configuration, look, is_live, wake

local found

local dropped, next_report_at = 0, 0

local function drop(name, count, reason)
    spool.note_lost(count)
    dropped = dropped + count
    local now = clock()
    if now >= next_report_at then
        local entries = dropped == 1 and "1 entry was" or dropped .. " entries were"
        ngx.log(ngx.ERR, name, ": ", entries, " dropped: ", reason)
        dropped, next_report_at = 0, now + REPORT_SECONDS
    end
end

--- What is in hand. A configuration that a worker begins to use has to be known here, since it may
-- be gone when entries for it come: those go where it said.
local function deliver(name)
    local conf, err = configuration(name, found.slot, found.generation, tonumber(found.revision))
    if found.count == 0 then
        return
    elseif not conf then
        error(err, 0)
    end
    local handler = plugins:get(name).handler
    handler:deliver(conf, ffi.string(found.lines.data, found.lines.length), found.count)
end

--- Who delivers nothing maps nothing; entries of those before may come sooner than what is live.
local function deliver_next()
    while not is_live and not ngx.worker.exiting() do
        is_live = look()
        if not is_live then
            ngx.sleep(LOOK_SECONDS)
        end
    end
    local name = ffi.string(found.plugin.data, found.plugin.length)
    local ok, err = pcall(deliver, name)
    if not ok and found.count > 0 then
        drop(name, found.count, tostring(err))
    end
end

--- One slice.
-- @treturn number OK where there may be more, else what C has said
local function run_slice()
    local ends = clock() + SLICE_SECONDS
    repeat
        local rc = C.sluice_handover_next(found)
        if rc ~= OK then
            return rc
        end
        deliver_next()
    until clock() >= ends
    return OK
end

local function run()
    while true do
        local rc = run_slice()
        if rc == OK then
            ngx.sleep(PAUSE_SECONDS)
        elseif rc == DONE then
            return
        elseif ngx.worker.exiting() then
            ngx.sleep(LOOK_SECONDS)
        else
            wake:wait(FOREVER_SECONDS)
        end
    end
end

--- Begins to take entries.
-- @tparam table registry the plugins, of gateway.plugin.registry
-- @tparam function find as that of gateway.plugin.chain
-- @tparam function see whether configurations can be found yet
-- @phases init_worker
function _M.init_worker(registry, find, see)
    plugins, configuration, look = registry, find, see
    found = ffi.new("sluice_handover_t")
    wake = assert(require("ngx.semaphore").new(0))
    local post = ffi.cast("int (*)(void *, int)", C.ngx_http_lua_ffi_sema_post)
    C.sluice_handover_start(wake.sem, post)
    assert(ngx.timer.at(0, run))
end

return _M
