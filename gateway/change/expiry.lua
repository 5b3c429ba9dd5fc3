--- Deletes entities that have expired (`ttl` of keys), in slices, as changes of their own. Requests
-- and readers do not find them from their last second on, whether they are deleted yet or not.
-- @module gateway.change.expiry

local queue = require("gateway.writer.queue")
local role = require("gateway.writer.role")

-- Entities that are deleted with one commit; between two, others have their turn.
local SLICE = 200
local PAUSE_SECONDS = 0.01
-- How long it waits at most where nothing is about to expire; and after a failure.
local PERIOD_SECONDS = 3600
local RETRY_SECONDS = 1
-- By which a timer may be early.
local EARLY_SECONDS = 0.1

local _M = {}

-- The gateway's own.
local timers
-- When it looks next, and whether it does now.
local due, is_busy = 0, false

local look

local function look_at(at)
    due = at
    timers:at(math.max(0, at - ngx.now()), look)
end

-- Deletes what has expired. When it is to look again.
local function sweep()
    local found, next_at = role.read("expired", SLICE)
    local changes = {}
    for i, row in ipairs(found or {}) do
        changes[i] = { kind = row.kind, delete = row.id, lenient = true, if_expired = true }
    end
    if #changes > 0 then
        -- A file whose keys have expired is not to be loaded again: they would begin anew.
        local done, err = queue.transaction(changes, { by = "expiry", keeps_origin = true })
        if not done then
            ngx.log(
                ngx.WARN,
                "control: expired entities are not deleted yet: ",
                err.message or err.err
            )
            found = nil
        end
    end
    if not found then
        return ngx.now() + RETRY_SECONDS
    elseif #found == SLICE then
        return ngx.now() + PAUSE_SECONDS
    end
    return math.min(next_at or math.huge, ngx.now() + PERIOD_SECONDS)
end

look = function(premature)
    -- What expires sooner has had another timer set.
    if premature or is_busy or ngx.now() + EARLY_SECONDS < due or queue.state().state == "left" then
        return
    end
    is_busy, due = true, math.huge
    local ok, at = pcall(sweep)
    if not ok then
        ngx.log(ngx.ERR, "control: ", tostring(at))
        at = ngx.now() + RETRY_SECONDS
    end
    is_busy = false
    look_at(math.min(due, at))
end

--- Notes that something may expire from a moment on.
-- @tparam number|nil at seconds since 1970; nil: the store is to be asked
-- @phases content, timer
function _M.note(at)
    at = at or ngx.now()
    if at < due and is_busy then
        due = at
    elseif at < due then
        look_at(at)
    end
end

--- Notes the changes of a run.
-- @tparam {table,...} changes `{ put = entity }`
-- @phases content, timer
function _M.note_changes(changes)
    local first = math.huge
    for _, change in ipairs(changes) do
        first = math.min(first, change.put and change.put.expires_at or math.huge)
    end
    _M.note(first)
end

--- Deletes them from now on.
-- @tparam table system timers of sluice.timer
-- @phases init_worker
function _M.start(system)
    timers = system
    look_at(ngx.now())
end

return _M
