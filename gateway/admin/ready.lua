--- Whether this node serves what it is configured with.
-- @module gateway.admin.ready

local images = require("sluice.ffi.images")

local _M = {}

-- The revision that is live, also while another control worker takes this one's place.
local function live_revision()
    local block = images.C.sluice_images_control_block()
    return block ~= nil and tonumber(block.revision) or 0
end

-- Traffic workers that are there: the place of one that has died is kept for its successor.
local function count_workers(live)
    local count = 0
    for _, pid in ipairs(live.workers()) do
        local file = io.open(("/proc/%d/stat"):format(pid))
        if file then
            file:close()
            count = count + 1
        end
    end
    return count
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
