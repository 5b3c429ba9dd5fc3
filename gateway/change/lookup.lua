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

--- Turns a text into the entity that it means: the one with this id, or else with this name, which
-- may look like an id.
-- @tparam table draft of gateway.change.draft
-- @tparam string kind
-- @tparam string key
-- @treturn table|nil entity, not to be changed
-- @treturn nil|number as `by_its_id` of gateway.change.draft
function _M.find(draft, kind, key)
    if rules.check.uuid(key) then
        local found, revision = refusals.must(draft:by_its_id(kind, key))
        if found or not entities.get(kind).endpoint_key then
            return found, revision
        end
    end
    return refusals.must(draft:by_name(kind, key))
end

-- Whether what looks like an id is one: of a PUT it always is.
local function is_id(run, operation, at)
    if not rules.check.uuid(at.key) then
        return false
    end
    local is_put = operation.method == "PUT" and not operation.parent
    return is_put or refusals.must(run.draft:by_its_id(at.kind, at.key)) ~= nil
end

--- Kong's paths take the name of an SNI for its certificate: puts an id in the place of the name. A
-- PUT of a name that is not there makes both.
-- @tparam table run
-- @tparam table operation of gateway.change.run
-- @treturn table operation; `new_name`, where one is to be made
function _M.lead(run, operation)
    local at = operation.parent or operation
    local other = at.key and entities.get(at.kind).known_by
    if not other or is_id(run, operation, at) then
        return operation
    end
    local led = plan.merged(operation, {})
    local found = refusals.must(run.draft:by_name(other.kind, at.key))
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

--- The id that a checked reference leads to; whether an id is there, the store says.
-- @tparam table run
-- @tparam table field of the schema
-- @tparam table|string reference
-- @treturn string
function _M.reference_id(run, field, reference)
    local found
    local name = reference
    if type(reference) == "table" then
        if reference.id and not rules.check.uuid(reference.id) then
            local message = "expected a valid UUID"
            refusals.throw(refusals.invalid({ { keys = { field.name, "id" }, message = message } }))
        elseif reference.id then
            return reference.id
        end
        name = reference.name or reference.username
        found = refusals.must(run.draft:by_name(field.reference, name))
    else
        found = _M.find(run.draft, field.reference, name)
        if not found and rules.check.uuid(name) then
            return rules.normal_id(name)
        end
    end
    if not found and not entities.get(field.reference).endpoint_key then
        refusals.throw(refusals.id_wanted(run.draft, field, name))
    elseif not found then
        local key = entities.get(field.reference).endpoint_key or "id"
        refusals.throw(refusals.no_reference({ field.name }, field.reference, { [key] = name }))
    end
    return found.id
end

--- The id of the parent.
-- @treturn string|nil nil where the operation has no parent
function _M.parent_id(run, operation)
    local parent = operation.parent
    if not parent then
        return nil
    end
    local found = _M.find(run.draft, parent.kind, parent.key)
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
    local found = _M.find(run.draft, schema.field(definition, other).reference, operation.key)
    local where = { [parent.field] = owner, [other] = found and found.id }
    return found and refusals.must(run.draft:by_values(operation.kind, where))
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
    if not definition.endpoint_key then
        return nil
    elseif parent then
        return refusals.must(run.draft:by_parent(kind, key, parent.field, owner))
    end
    return refusals.must(run.draft:by_name(kind, key))
end

return _M
