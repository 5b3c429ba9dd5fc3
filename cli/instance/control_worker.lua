--- What the control worker of a running gateway does and did, read from the memory that its nginx
-- shares (ngx_sluice_images.h): so it is known of one that does not answer, too.

local bit = require("bit")
local ffi = require("ffi")
local time = require("posix.time")

local process = require("cli.instance.process")

local _M = {}

-- As the memfd is named, and begins.
local NAME = "^/memfd:sluice%-images"
local MAGIC = "SLCEPAGE"
-- Where the block stands in it.
local OFFSET = 64
-- Behind it stands what is counted, which may be large.
local READ_BYTES = 4096

local SLOTS = 8

-- A worker that works beats twice a second; in the beat of one that waits is this bit.
local SILENT_S = 3
local RESTS = 0x8000000000000000ULL

local STATES = { [0] = "stopped", "starting", "waiting", "building", "live", "read only" }

local function now_ms()
    local now = time.clock_gettime(time.CLOCK_REALTIME)
    return now.tv_sec * 1000 + now.tv_nsec / 1e6
end

-- After an upgrade to another layout, the master has the memory of the one before open, too: its
-- own comes later.
local function read_page(master)
    local own = nil
    for name, fd in process.open_files(master) do
        own = name:find(NAME) and fd or own
    end
    local path = own and ("/proc/%d/fd/%d"):format(master, own)
    local text = path and process.read_file(path, READ_BYTES)
    return text and text:sub(1, #MAGIC) == MAGIC and text or nil
end

-- Whether it does anything, by its last beat and what the kernel says of the process.
local function describe_life(pid, silent_s)
    if pid == 0 or not process.alive(pid) then
        return "dead"
    elseif process.is_stopped(pid) then
        return "stopped by a signal"
    end
    return silent_s > SILENT_S and "hangs" or "answers"
end

local function read_block(master)
    local text = read_page(master)
    -- The declaration comes with the core's library, which `make build` makes.
    local is_there = text and pcall(require, "sluice.ffi.images")
    if not is_there or #text < OFFSET + ffi.sizeof("sluice_control_t") then
        return nil
    end
    local block = ffi.new("sluice_control_t")
    ffi.copy(block, text:sub(OFFSET + 1, OFFSET + ffi.sizeof(block)), ffi.sizeof(block))
    return block
end

--- The control workers that live: two of them while one takes the other's place.
-- @tparam number master pid of nginx's master
-- @treturn table set of pids; empty where this user may not see them
function _M.pids(master)
    local block, found = read_block(master), {}
    for i = 0, block and SLOTS - 1 or -1 do
        if block.slots[i] ~= 0 then
            found[block.slots[i]] = true
        end
    end
    return found
end

--- Reads the block.
-- @tparam number master pid of nginx's master
-- @treturn table|nil `pid`, `life` ("answers", "hangs", "stopped by a signal", "dead"), `silent_s`,
-- `state` (of gateway.writer.queue), `revision`, `store` (UUID of the store that is live, where
-- anything was ever changed), `starts`, `deaths`, `crashes` (deaths of any
-- worker by a signal), `unmapped` (answers of 503 by workers that could not map an image), `error`;
-- nil where this user may not see it
function _M.read(master)
    local block = read_block(master)
    if not block then
        return nil
    end
    local is_resting = bit.band(block.heartbeat, RESTS) ~= 0
    local silent_s = is_resting and 0 or math.max(0, (now_ms() - tonumber(block.heartbeat)) / 1000)
    local state, said = STATES[block.state] or "unknown", ffi.string(block.error)
    if state == "live" then
        local damage, why = require("sluice.ffi.images").damage(block, now_ms())
        state, said = damage or state, why or said
    end
    local live = require("sluice.ffi.images").live_store(block)
    return {
        pid = block.pid,
        life = describe_life(block.pid, silent_s),
        silent_s = math.floor(silent_s),
        state = state,
        revision = tonumber(block.revision),
        store = live and require("gateway.store.files").uuid_of(live.store),
        starts = block.starts,
        deaths = block.deaths,
        crashes = block.crashes,
        unmapped = tonumber(block.failures),
        error = said ~= "" and said or nil,
    }
end

return _M
