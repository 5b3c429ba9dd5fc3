--- The way back: a new revision that holds what an old one did.
-- @module gateway.change.rollback

local entity_text = require("gateway.store.entity_text")
local expiry = require("gateway.change.expiry")
local garbage_collector = require("sluice.garbage_collector")
local hosts = require("gateway.upstream.hosts")
local queue = require("gateway.writer.queue")
local role = require("gateway.writer.role")

local MAX_TRIES = 5

local _M = {}

-- Gives changes decoded entities, and the names that these need. Yields: `at_revision` sees to it
-- that nothing comes between.
local function complete(changes)
    local pause = garbage_collector.turns()
    for _, change in ipairs(changes) do
        change.put = change.put and entity_text.decode(change.put)
        change.id = change.put and change.put.id or change.delete
        pause()
    end
    for _, entity in ipairs((hosts.needed(changes, pause))) do
        changes[#changes + 1] = { kind = "names", put = entity, lenient = true }
    end
    return changes
end

--- Goes back to a revision. Yields; live on every worker when it returns.
-- @tparam number revision
-- @tparam string by who, for the history
-- @treturn table|nil `{ revision =, changes = number of entities that were changed }`
-- @treturn nil|table error of gateway.writer.queue, also "not found" and "too old"
-- @phases content, timer
function _M.run(revision, by)
    local done, err
    for _ = 1, MAX_TRIES do
        local changes, now = role.read("changes_back", revision)
        if not changes then
            return nil, now
        elseif #changes == 0 then
            return { revision = now.revision, changes = 0 }
        end
        local count = #changes
        done, err = queue.transaction(complete(changes), { by = by, at_revision = now.revision })
        if done then
            expiry.note()
            return { revision = done.revision, changes = count }
        elseif err.err ~= "changed" then
            break
        end
    end
    return nil, err
end

return _M
