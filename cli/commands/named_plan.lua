--- What a declarative file changes of a store that has the same names under other ids: an import
-- has kept those that the store gave, and a file gives the same ones on each node.

local items = require("gateway.config.items")
local known_ids = require("gateway.plan.known_ids")
local sources = require("gateway.plan.sources")
local store = require("cli.instance.store")

local _M = {}

--- A plan of a file whose entities have the ids of those of the same names.
-- @tparam table instance cli.instance
-- @tparam table settings resolved settings
-- @tparam table found the file, of cli.instance.preflight
-- @tparam[opt] boolean is_first there may be no store yet
-- @treturn table|nil plan
function _M.of(instance, settings, found, is_first)
    return store.plan(settings, instance, function(held)
        local snapshot = found.parse(known_ids.finder(held)) or found.snapshot
        return sources.replacement(held, found.plugins, (items.of(snapshot, {})))
    end, is_first)
end

-- Whether a plan deletes and creates something of one kind and name.
local function replaces(plan)
    local deleted = {}
    for _, entity in ipairs(plan.deleted > 0 and plan.created > 0 and plan.entities or {}) do
        if entity.change == "deleted" then
            deleted[("%s %s"):format(entity.kind, entity.name)] = true
        end
    end
    for _, entity in ipairs(next(deleted) and plan.entities or {}) do
        if entity.change == "created" and deleted[("%s %s"):format(entity.kind, entity.name)] then
            return true
        end
    end
    return false
end

--- What a file changes beside ids, and how many of these.
-- @tparam table instance cli.instance
-- @tparam table settings resolved settings
-- @tparam table found the file, of cli.instance.preflight
-- @tparam table plan of all that changes
-- @treturn table plan, the same where no ids change; `ids_changed`, also in its `text`
function _M.beside_ids(instance, settings, found, plan)
    local named = replaces(plan) and _M.of(instance, settings, found, true)
    local ids = named and plan.created - named.created or 0
    if ids <= 0 then
        return plan
    end
    named.ids_changed = ids
    named.text = ('%s,"ids_changed":%d}'):format(named.text:sub(1, -2), ids)
    return named
end

return _M
