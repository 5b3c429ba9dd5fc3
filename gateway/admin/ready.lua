--- Whether this node serves what it is configured with.
-- @module gateway.admin.ready

local images = require("sluice.ffi.images")

local _M = {}

-- The revision that is live, also while another control worker takes this one's place.
local function live_revision()
    local block = images.C.sluice_images_control_block()
    return block ~= nil and tonumber(block.revision) or 0
end

-- nginx forks this worker before the traffic workers, and ends the former ones 0.1 s after it has
-- forked the last. A new one has no place in the events' log before it has started: for so many
-- seconds after nginx has read this configuration, the former ones count, and when they have ended
-- those that take the connections in their place.
local START_SECONDS = 10
local read_at = ngx.now()

-- Whether all workers of this configuration have been there once, and whether those of a former one
-- were there when this worker started.
local was_complete, had_former = false, false

-- Those of the workers that are there: the place of one that has died is kept for its successor.
local function count_alive(pids)
    local count = 0
    for _, pid in ipairs(pids) do
        local file = io.open(("/proc/%d/stat"):format(pid))
        if file then
            file:close()
            count = count + 1
        end
    end
    return count
end

-- How many traffic workers serve: those of this worker's configuration of nginx or, while it takes
-- the place of another or leaves its own to one, of both.
local function count_workers(live)
    local ours, others = live.workers()
    local count, needed = count_alive(ours), live.settings.workers
    was_complete = was_complete or count >= needed
    if ngx.worker.exiting() then
        return math.min(needed, count + count_alive(others))
    elseif not was_complete and ngx.now() - read_at < START_SECONDS then
        return had_former and needed or count
    end
    return count
end

--- Looks which workers are there when the control worker starts.
-- @tparam table live what `gateway.admin` is given
-- @phases init_worker
function _M.init_worker(live)
    local _, others = live.workers()
    had_former = count_alive(others) >= live.settings.workers
end

--- Whether a configuration is live on every worker. Does not yield.
-- @tparam table live what `gateway.admin` is given
-- @treturn boolean
-- @treturn string|nil why not, for a human
-- @phases content
function _M.check(live)
    local settings, state = live.settings, live.state()
    if not images.published() then
        return false, "no configuration is live yet: " .. (state.message or state.state)
    elseif state.state == "damaged" then
        return false, state.message
    end
    local count = count_workers(live)
    if count < settings.workers then
        local message = "the configuration is live on %d of %d workers"
        return false, message:format(count, settings.workers)
    end
    -- Nothing was ever posted, nor a file without entities, which changes nothing; Kong's text.
    local is_pushed = settings.database == "off" and settings.file == ""
    if is_pushed and live_revision() == 0 and not state.origin then
        return false, "no configuration available (empty configuration present)"
    end
    return true
end

return _M
