--- The entities that an operation of the Admin API is about, by ids or names: its own, its parent.
--
-- All of it reads the draft of a run (gateway.change.operations), so it yields; what is wrong is
-- thrown (gateway.change.refusals).
-- @module gateway.change.lookup

local entities = require("gateway.entities")
local files = require("gateway.store.files")
local plan = require("gateway.schema.plan")
local refusals = require("gateway.change.refusals")
local rules = require("gateway.schema.rules")
local schema = require("gateway.schema")

local _M = {}

local function find(draft, kind, key)
    if rules.check.uuid(key) then
        return refusals.must(draft:by_its_id(kind, key))
    end
    return refusals.must(draft:by_name(kind, key))
end

--- Kong's paths take the name of an SNI for its certificate: puts an id in the place of the name. A
-- PUT of a name that is not there makes both.
-- @tparam table run
-- @tparam table operation of gateway.change.run
-- @treturn table operation; `new_name`, where one is to be made
function _M.lead(run, operation)
    local at = operation.parent or operation
    local other = at.key and entities.get(at.kind).known_by
    if not other or rules.check.uuid(at.key) then
        return operation
    end
    local led, found = plan.merged(operation, {}), find(run.draft, other.kind, at.key)
    if operation.parent then
        led.parent = plan.merged(operation.parent, {})
    end
    if found then
        (led.parent or led).key = found[other.field].id
    elseif operation.method == "PUT" and not operation.parent then
        led.key, led.new_name = files.draw_uuid(), at.key
    end
    return led
end

--- The id of the parent; one that is not there is found out by the store, at no cost.
-- @treturn string|nil nil where the operation has no parent
function _M.parent_id(run, operation)
    local parent = operation.parent
    if not parent then
        return nil
    elseif rules.check.uuid(parent.key) and not run.draft:has(parent.kind) then
        return rules.normal_id(parent.key)
    end
    local found = find(run.draft, parent.kind, parent.key)
    if not found then
        refusals.throw(refusals.NOT_FOUND)
    end
    return found.id
end

-- What joins the parent with another entity, by the name or id of that one.
local function find_joining(run, operation, owner)
    local definition, parent = entities.get(operation.kind), operation.parent
    local first, second = definition.joins[1], definition.joins[2]
    local other = parent.field == first and second or first
    local id = rules.normal_id(operation.key)
    if not rules.check.uuid(id) then
        local found = find(run.draft, schema.field(definition, other).reference, id)
        id = found and found.id
    end
    local where = { [parent.field] = owner, [other] = id }
    return id and refusals.must(run.draft:by_values(operation.kind, where))
end

--- The entity that an operation is about.
-- @tparam table run
-- @tparam table operation
-- @tparam string|nil owner id of the parent
-- @treturn table|nil not to be changed; nil where there is none
-- @treturn nil|number the revision at which it was read, nil where it comes from this run
function _M.find_own(run, operation, owner)
    local kind, key, parent = operation.kind, operation.key, operation.parent
    local definition = entities.get(kind)
    if definition.joins then
        return find_joining(run, operation, owner)
    elseif rules.check.uuid(key) then
        local found, revision = refusals.must(run.draft:by_its_id(kind, key))
        local has = found and parent and found[parent.field]
        if found and parent and not (type(has) == "table" and has.id == owner) then
            return nil
        elseif found then
            return found, revision
        end
    end
    -- A name may look like an id, as keys often do.
    if not definition.endpoint_key then
        return nil
    elseif parent then
        return refusals.must(run.draft:by_parent(kind, key, parent.field, owner))
    end
    return refusals.must(run.draft:by_name(kind, key))
end

return _M
