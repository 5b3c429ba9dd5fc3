--- Notifies those who have mapped files of images that others are live, once for each new file. A
-- worker looks by itself when a request comes, so that one that is not notified serves nothing old;
-- but an idle one keeps the old files in memory.
-- @module gateway.writer.announcing

local monotonic = require("sluice.clock").monotonic

-- How long after it failed it is tried again, and how long at most: each time twice as long.
local FIRST_SECONDS, MOST_SECONDS = 1, 60
-- As long as a semaphore can wait.
local FOREVER_SECONDS = 2000000

local _M = {}
local methods = {}
local mt = { __index = methods }

--- Makes one, which has notified nobody yet.
-- @tparam function published gives the numbers of the base and the delta that are live, or nil
-- @tparam function notify true where all are notified; else nil and why not
-- @treturn table
function _M.new(published, notify)
    return setmetatable({
        published = published,
        notify = notify,
        wait = FIRST_SECONDS,
        due = 0,
    }, mt)
end

--- Notifies where that is due. Does not yield.
-- @treturn number seconds after which to call it again; sooner where other files are published
function methods:look()
    local base, delta = self.published()
    if not base or (base == self.base and delta == self.delta) then
        return FOREVER_SECONDS
    end
    local left = self.due - monotonic()
    if left > 0 then
        return left
    end
    local done, err = self.notify()
    if done then
        self.base, self.delta = base, delta
        self.wait, self.due = FIRST_SECONDS, 0
        return FOREVER_SECONDS
    end
    if self.wait == FIRST_SECONDS then
        ngx.log(ngx.WARN, "control: workers are not notified of new files yet: ", tostring(err))
    end
    local wait = self.wait
    self.due, self.wait = monotonic() + wait, math.min(2 * wait, MOST_SECONDS)
    return wait
end

return _M
