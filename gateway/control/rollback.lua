--- The way back: a new revision that holds what an old one did.
-- @module gateway.control.rollback

local apply = require("gateway.control.apply")
local entity_text = require("gateway.store.entity_text")
local garbage_collector = require("gateway.control.garbage_collector")
local needed_names = require("gateway.control.needed_names")

local ipairs = ipairs

local MAX_TRIES = 5

local _M = {}

-- The changes with decoded entities, and with the names that these need. Yields: `at_revision` sees
-- to it that nothing comes between.
local function changes_of(found)
    local changes, entries, pause = {}, {}, garbage_collector.turns()
    for i, change in ipairs(found) do
        local entity = change.put and entity_text.decode(change.put)
        local id = entity and entity.id or change.delete
        entries[i] = { kind = change.kind, id = id, entity = entity }
        changes[i] = {
            kind = change.kind,
            put = entity,
            delete = change.delete,
            sequence = change.sequence,
        }
        pause()
    end
    for _, entity in ipairs((needed_names.of(entries, pause))) do
        changes[#changes + 1] = { kind = "names", put = entity, lenient = true }
    end
    return changes
end

--- Goes back to a revision. Yields; live on every worker when it returns.
-- @tparam number revision
-- @tparam string by who, for the history
-- @treturn table|nil `{ revision =, changes = number of entities that were changed }`
-- @treturn nil|table error of gateway.control.apply, also "not found" and "too old"
-- @phases content, timer
function _M.run(revision, by)
    local done, err
    for _ = 1, MAX_TRIES do
        local found, now = apply.read("changes_back", revision)
        if not found then
            return nil, now
        elseif #found == 0 then
            return { revision = now.revision, changes = 0 }
        end
        done, err = apply.transaction(changes_of(found), { by = by, at_revision = now.revision })
        if done then
            return { revision = done.revision, changes = #found }
        elseif err.err ~= "changed" then
            break
        end
    end
    return nil, err
end

return _M
