--- Has declarative files checked beside the event loop, which never has a large one in its hands:
-- in a thread, in a Lua state of its own (gateway.checker).
--
-- One file at a time, and a small one beside it, which so waits for no large one. The state of
-- small ones is used again: that it has loaded all, and compiled it, makes it four times as fast.
-- That of a large one is closed, which alone gives its memory back.
--
-- A check cannot be cut off from outside: compiled code calls no hooks, and a thread that is killed
-- keeps its locks. So it looks at a flag, every few entities.
-- @module gateway.change.checks

local blocks = require("gateway.threads.blocks")
local client = require("gateway.change.client")
local ffi = require("ffi")
local garbage_collector = require("sluice.garbage_collector")
local monotonic = require("sluice.clock").monotonic

-- How long a file waits for others to be checked, how often it looks, and how many may wait.
local WAIT_SECONDS = 10
local LOOK_SECONDS = 0.005
local MAX_WAITING = 16
-- Bytes of a file that is not small.
local LARGE_BYTES = 256 * 1024

local NO_MEMORY = "not enough memory"

-- nginx's threads; KiB that a state may have allocated to be kept.
local LANES = {
    large = { pool = "sluice_check_large", most_kb = 0 },
    small = { pool = "sluice_check_small", most_kb = 64 * 1024 },
}

-- nginx sets it where its master ends it at once, and then waits for its threads.
ffi.cdef("extern volatile int ngx_terminate[1];")

local _M = {}

-- What a lane takes no more, since this worker leaves.
local LEAVING = { word = "not ready", message = "the control worker is shutting down" }
local is_stopped = {}

-- By lane: who waits, the first comes first; what is being checked: `bytes`, `since` and `flag`, to
-- which nobody else holds on while the thread reads it; the address of the state, 0: there is none.
local waiting = { large = {}, small = {} }
local running = {}
local kept = { large = 0, small = 0 }

local function address_of(cdata)
    return tonumber(ffi.cast("uintptr_t", ffi.cast("void *", cdata)))
end

local function take_out(list, entry)
    for i = 1, #list do
        if list[i] == entry then
            return table.remove(list, i)
        end
    end
    return nil
end

-- Waits until it is an entry's turn. Nil: it has come; else why it did not.
local function wait_for_turn(lane, entry)
    local list, deadline = waiting[lane], monotonic() + WAIT_SECONDS
    while running[lane] or list[1] ~= entry do
        if client.is_gone() then
            return { word = "stopped" }
        elseif is_stopped[lane] then
            return LEAVING
        elseif monotonic() >= deadline then
            local message = "waited %d seconds for the check of other files"
            return { word = "busy", message = message:format(WAIT_SECONDS) }
        end
        ngx.sleep(LOOK_SECONDS)
    end
    return nil
end

-- The same; nobody is left in the queue, whatever happens.
local function enter(lane)
    local list, entry = waiting[lane], {}
    if #list >= MAX_WAITING then
        return {
            word = "busy",
            message = ("%d other files are waiting to be checked"):format(#list),
        }
    end
    list[#list + 1] = entry
    local ok, refused = pcall(wait_for_turn, lane, entry)
    take_out(list, entry)
    if not ok then
        error(refused, 0)
    end
    return refused
end

-- What a check is refused with that was not begun, or ended by an error.
local function failed(thrown)
    local reason = tostring(thrown)
    if reason:find(NO_MEMORY, 1, true) then
        return { word = "full", message = NO_MEMORY }
    end
    error(reason, 0)
end

local function in_thread(lane, request)
    local at = LANES[lane]
    local is_posted, address, ok, found, err = ngx.run_worker_thread(
        at.pool,
        "gateway.threads.lua_state",
        "reuse",
        kept[lane],
        at.most_kb,
        "gateway.checker",
        "run",
        request
    )
    if not is_posted then
        return failed(address)
    end
    kept[lane] = address
    if not ok then
        return failed(found)
    end
    return found or { word = err.err, message = err.message }
end

--- Frees what a check has made, once. Yields.
-- @tparam table found of `run`
function _M.free(found)
    for _, name in ipairs({ "made", "names", "remembered" }) do
        local list = found[name]
        found[name] = nil
        if list then
            blocks.free(list, garbage_collector.turns())
        end
    end
end

--- Whether a file is a large one, for whose check a state is made.
-- @tparam number bytes of the file
-- @treturn boolean
function _M.is_large(bytes)
    return bytes >= LARGE_BYTES
end

--- Has a file checked. Yields.
-- @tparam table request of gateway.checker, without `flags` and `is_large`
-- @tparam number bytes of the file
-- @treturn table of gateway.checker, for `free`; or its `word`, also "busy" and "not ready" (this
-- worker leaves) with a `message`. Where the client has left: "stopped". Throws what has gone wrong
-- in the checker, which then checks the next file
-- @phases content
function _M.run(request, bytes)
    -- To compare one is little to do, whatever its size.
    local lane = _M.is_large(bytes) and request.verb ~= "compare" and "large" or "small"
    local refused = enter(lane)
    if refused then
        return refused
    end
    local flag = ffi.new("int32_t[1]", is_stopped[lane] and 1 or 0)
    request.is_large = lane == "large"
    request.flags = { address_of(flag), address_of(ffi.C.ngx_terminate) }
    running[lane] = { bytes = bytes, since = ngx.time(), flag = flag }
    local ok, found = pcall(client.watch, function()
        flag[0] = 1
    end, in_thread, lane, request)
    running[lane] = nil
    if not ok then
        return failed(found)
    elseif found.word == "stopped" and not client.is_gone() then
        return LEAVING
    end
    return found
end

--- Ends what is being checked in a lane, and what comes: this worker leaves. Does not yield.
-- @tparam string lane "large" or "small"
function _M.stop(lane)
    is_stopped[lane] = true
    if running[lane] then
        running[lane].flag[0] = 1
    end
end

--- What is being checked, for `/status`.
-- @treturn {table,...} `{ bytes =, since = seconds }`
function _M.list()
    local list = {}
    for _, lane in ipairs({ "large", "small" }) do
        local at = running[lane]
        list[#list + 1] = at and { bytes = at.bytes, since = at.since } or nil
    end
    return list
end

return _M
