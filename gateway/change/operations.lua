--- What operations of Kong's Admin API make of entities: each checked as a file's entities are, and
-- put into a draft (gateway.change.draft).
--
-- A run has `draft`; `live`, what gateway.admin is given; `pairs` of gateway.config.route_pairs;
-- `patterns` of gateway.entities.long_patterns; `at`, the place of the operation in hand; `again`,
-- how often what has no name came; `warnings`, of entities that are right and of no use.
-- What is wrong is thrown (gateway.change.refusals).
-- @module gateway.change.operations

local cjson = require("cjson")
local checked = require("gateway.entities.checked")
local drafts = require("gateway.change.draft")
local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local files = require("gateway.store.files")
local identity = require("gateway.config.identity")
local lifetime = require("gateway.schema.lifetime")
local lists = require("gateway.entities.lists")
local lookup = require("gateway.change.lookup")
local plan = require("gateway.schema.plan")
local random = require("openssl.rand")
local references = require("gateway.config.references")
local refusals = require("gateway.change.refusals")
local rules = require("gateway.schema.rules")
local schema = require("gateway.schema")
local texts = require("gateway.schema.texts")
local transformations = require("gateway.schema.transformations")
local types = require("gateway.schema.types")
local vaults = require("gateway.change.vaults")

local normal_id = rules.normal_id

local NULL = cjson.null
-- A credential's key that nobody gave, as Kong draws it.
local KEY_LENGTH = 32
local LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

local _M = {}

local function draw_key()
    local out = {}
    while #out < KEY_LENGTH do
        for _, byte in ipairs({ random.bytes(KEY_LENGTH):byte(1, KEY_LENGTH) }) do
            -- The rest of a byte's values would make some letters more likely than others.
            if byte < 4 * #LETTERS and #out < KEY_LENGTH then
                local at = byte % #LETTERS + 1
                out[#out + 1] = LETTERS:sub(at, at)
            end
        end
    end
    return table.concat(out)
end

-- References --------------------------------------------------------------------------------------

local function resolve_all(run, operation, entity, owner)
    local parent = operation.parent
    for _, field in ipairs(entities.foreign(operation.kind)) do
        local reference = entity[field.name]
        local is_parent = parent and field.name == parent.field
        if reference ~= nil then
            local id = lookup.reference_id(run, field, reference)
            if is_parent and id ~= owner then
                refusals.throw(refusals.invalid_field(field.name, "value must be that of the path"))
            end
            entity[field.name] = { id = id }
        end
    end
end

-- Lists of ids, of which the store knows nothing.
local function check_ids(run, kind, entity)
    for _, list in ipairs(entities.id_lists(kind)) do
        for _, id in ipairs(lists.items(entity, list)) do
            if not refusals.must(run.draft:by_its_id(list.reference, id)) then
                refusals.throw(refusals.no_reference(list.keys, list.reference, { id = id }))
            end
        end
    end
end

-- Checking ----------------------------------------------------------------------------------------

-- Of those of this run.
local function check_pairs(run, entity)
    local _, message = run.pairs:add(entity)
    if message then
        refusals.throw(refusals.invalid_field("@entity", message))
    end
    local _, field, reason = run.patterns:add(entity)
    if reason then
        refusals.throw(refusals.invalid_field(field:match("^%l+"), reason))
    end
end

-- What was found right, with its references resolved. `stored`: what it takes the place of.
local function link(run, operation, entity, owner, stored)
    references.put(entity)
    entity.__references = nil
    resolve_all(run, operation, entity, owner)
    check_ids(run, operation.kind, entity)
    local definition = entities.definition(operation.kind, entity, run.live.plugins)
    local err = not operation.is_kept
        and transformations.run(definition, entity, operation.given, stored)
    if err then
        refusals.throw(refusals.invalid({ { keys = {}, message = err } }))
    end
    lifetime.begin(definition, entity, ngx.time())
    if operation.kind == "routes" then
        check_pairs(run, entity)
    end
    return entity
end

-- A value with its defaults, its references resolved: what the store is to hold but for id, dates.
local function check(run, operation, value, owner, stored)
    local kind, parent = operation.kind, operation.parent
    local definition, unknown = entities.definition(kind, value, run.live.plugins)
    if unknown and not checked.may_be_of_none(value) then
        local message = ("plugin '%s' not installed"):format(unknown)
        refusals.throw(refusals.invalid_field("name", message))
    end
    if parent and types.is_null(value[parent.field]) then
        value[parent.field] = { id = owner }
    end
    local begin_of = vaults.finder_in_run(run)
    local vault = references.with(run.live.vault, begin_of)
    local entity, errors, found = checked.check(definition, value, vault, unknown)
    if errors then
        refusals.throw(refusals.invalid(errors))
    end
    if definition.warnings then
        for _, warning in ipairs(definition.warnings(entity, ngx.time())) do
            warning.kind, warning.entity = kind, entity
            run.warnings[#run.warnings + 1] = warning
        end
    end
    references.note(entity, found, begin_of)
    return link(run, operation, entity, owner, stored)
end

-- Values that nobody gave, and may not be guessed: calls `fn(name)` for each.
local function each_missing(kind, entity, fn)
    for _, entry in ipairs(entities.get(kind).fields) do
        local name, field = next(entry)
        local is_drawn = field.auto and field.type == "string" and not field.uuid
        if is_drawn and entity[name] == nil and not (field.unless and field.unless(entity)) then
            fn(name)
        end
    end
end

local function draw(kind, entity)
    each_missing(kind, entity, function(name)
        entity[name] = draw_key()
    end)
end

local function set_date(entity, fields, name)
    local field = fields[name]
    if field and entity[name] == nil then
        entity[name] = field.type == "integer" and ngx.time() or ngx.now()
    end
end

-- What is known of when an entity was made, that was put by an operation before.
local function made_at(entity)
    local undated = entity and entity.__undated
    return undated and not undated.created_at and entity.created_at or nil
end

-- Dates that nobody gave are those that the store has; when it was changed, the store says.
local function set_dates(kind, entity)
    local fields = schema.fields(entities.get(kind))
    entity.__undated = {
        created_at = entity.created_at == nil,
        updated_at = fields.updated_at ~= nil,
    }
    entity.updated_at = nil
    set_date(entity, fields, "created_at")
    set_date(entity, fields, "updated_at")
end

local function must_be(field, value, wanted)
    if not types.is_null(value) and value ~= wanted then
        refusals.throw(refusals.invalid_field(field, "value must be " .. wanted))
    end
end

local function must_be_id(value, wanted)
    must_be("id", type(value) == "string" and normal_id(value) or value, wanted)
end

-- Verbs ------------------------------------------------------------------------------------------

-- What is sent with an entity, and makes others: null is none of them, where it is left out those
-- that there are stay.
local function complete_transient(operation, value)
    local definition = entities.get(operation.kind)
    for _, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        if field.transient and value[name] == NULL then
            value[name] = {}
        end
    end
    if operation.new_name then
        local field = definition.known_by.kind
        local names = type(value[field]) == "table" and plan.merged(value[field], {}) or {}
        if not rules.contains(names, operation.new_name) then
            names[#names + 1] = operation.new_name
        end
        value[field] = names
    end
    return value
end

-- The value of an operation: a form's texts as its schema wants them.
local function value_of(run, operation, name)
    local value = operation.value or {}
    if operation.is_form then
        local like = { name = value.name or name }
        local definition = entities.definition(operation.kind, like, run.live.plugins)
        value = texts.typed(definition, value)
    else
        value = plan.merged(value, {})
    end
    operation.given = value
    return complete_transient(operation, value)
end

local verbs = {}

-- What an entity was sent with and is not stored in it: by its schema it makes further operations.
local function spread(run, kind, entity)
    local definition, values = entities.get(kind), {}
    for _, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        if field.transient then
            values[name], entity[name] = entity[name], nil
        end
    end
    local function find_all(...)
        return refusals.must(run.draft:all(...))
    end
    local more = definition.spread and definition.spread(entity, values, find_all) or {}
    for _, operation in ipairs(more) do
        verbs[operation.method](run, operation)
    end
end

local function put(run, operation, entity, revision)
    local kind = operation.kind
    draw(kind, entity)
    set_dates(kind, entity)
    local change = run.draft:put(kind, entity, run.at, revision)
    spread(run, kind, entity)
    return change
end

function verbs.POST(run, operation)
    local owner = lookup.parent_id(run, operation)
    local entity = check(run, operation, value_of(run, operation), owner)
    local is_given = entity.id ~= nil
    entity.id = entity.id or files.draw_uuid()
    if is_given and run.draft:has(operation.kind, entity.id) then
        refusals.throw(refusals.known_id(entity.id))
    end
    put(run, operation, entity, is_given and 0 or nil)
    return 201, entity
end

-- By name: one that is there stays the same entity. The entity, and its revision in the store (0:
-- there is to be none).
local function put_by_name(run, operation, value, owner)
    local kind, key = operation.kind, operation.key
    local definition = entities.get(kind)
    local name = definition.endpoint_key
    if not name then
        refusals.throw(refusals.NOT_FOUND)
    end
    if types.is_null(value[name]) then
        value[name] = key
    end
    local entity = check(run, operation, value, owner)
    must_be(name, entity[name], drafts.normal_name(kind, key))
    local found = lookup.find_own(run, operation, owner)
    if found then
        must_be("id", entity.id, found.id)
        entity.id = found.id
        return entity
    end
    local is_given = entity.id ~= nil
    entity.id = entity.id or files.draw_uuid()
    return entity, is_given and 0 or nil
end

function verbs.PUT(run, operation)
    local owner = lookup.parent_id(run, operation)
    local value = value_of(run, operation)
    local is_named = not rules.check.uuid(operation.key)
    local entity, revision
    if not is_named then
        local id = normal_id(operation.key)
        must_be_id(value.id, id)
        value.id = id
        entity = check(run, operation, value, owner)
    else
        entity, revision = put_by_name(run, operation, value, owner)
    end
    local before = run.draft:changed(operation.kind, entity.id)
    entity.created_at = entity.created_at or made_at(before)
    -- One that is there by this name may be another by the time of the transaction.
    put(run, operation, entity, revision).is_named = is_named
    return 200, entity
end

-- What the schema knows of an entity of the store: a newer Sluice may have written it.
local function known(definition, entity)
    local out, fields = {}, schema.fields(definition)
    for name, value in pairs(entity) do
        local field = fields[name]
        if field and field.type == "record" and field.fields and type(value) == "table" then
            value = known(field, value)
        end
        out[name] = field and value
    end
    return out
end

-- Records are merged field by field; lists, maps and all else is replaced.
local function merge(definition, under, over)
    local out, fields = plan.merged(under, {}), schema.fields(definition)
    for name, value in pairs(over) do
        local field = fields[name]
        local is_record = field and field.type == "record" and field.fields
        if is_record and type(value) == "table" and type(under[name]) == "table" then
            out[name] = merge(field, under[name], value)
        else
            out[name] = value
        end
    end
    return out
end

function verbs.PATCH(run, operation)
    local kind = operation.kind
    local owner = lookup.parent_id(run, operation)
    local found, revision = lookup.find_own(run, operation, owner)
    if not found then
        refusals.throw(refusals.NOT_FOUND)
    end
    local value = value_of(run, operation, found.name)
    must_be_id(value.id, found.id)
    local like = { name = value.name or found.name }
    local definition = entities.definition(kind, like, run.live.plugins)
    for name in pairs(definition.stored_as or {}) do
        -- what is stored of it was made with the consumer's id
        if not types.is_null(value.consumer) and types.is_null(value[name]) then
            local words = "all or none of these fields must be set: '%s', 'consumer.id'"
            refusals.throw(refusals.invalid_field("@entity", words:format(name)))
        end
    end
    local merged = merge(definition, known(definition, found), value)
    if found.__undated then
        merged.created_at = value.created_at or made_at(found)
    end
    local entity = check(run, operation, merged, owner, found)
    if value.ttl == nil then
        entity.expires_at = found.expires_at
    end
    put(run, operation, entity, revision)
    return 200, entity
end

-- Without a key, all that the parent has.
local function delete_all(run, operation)
    local owner = lookup.parent_id(run, operation)
    for _, entity in
        ipairs(refusals.must(run.draft:all(operation.kind, operation.parent.field, owner)))
    do
        run.draft:delete(operation.kind, entity.id, run.at)
    end
    return 204
end

function verbs.DELETE(run, operation)
    local id = operation.key and normal_id(operation.key)
    if not id then
        return delete_all(run, operation)
    elseif operation.parent or entities.get(operation.kind).endpoint_key then
        local owner = lookup.parent_id(run, operation)
        local found = lookup.find_own(run, operation, owner)
        if not found and operation.parent and not entities.get(operation.kind).joins then
            refusals.throw(refusals.NOT_FOUND)
        end
        id = found and found.id
    end
    if id then
        run.draft:delete(operation.kind, id, run.at)
    end
    return 204
end

local function require_given(name)
    -- A drawn one would differ each time.
    refusals.throw(
        refusals.invalid_field(name, "required field missing: a declarative file must give it")
    )
end

-- Whether two that have nothing in common but an id that was made for both are two.
local function is_another(kind, row, entity)
    local definition = entities.get(kind)
    if not definition.has_secret_name or entity.id then
        return false
    end
    local name = definition.endpoint_key
    return entity_text.decode(row.text)[name] ~= entity[name]
end

-- The id of an entity of a file, as gateway.config.link gives it, and the row that has it or is the
-- same by its name or what else is unique.
local function find_same(run, kind, entity)
    local key, is_unique = identity.key(entities.get(kind), entity)
    local place = kind .. key
    while true do
        local again = is_unique and 1 or (run.again[place] or 0) + 1
        run.again[place] = again
        local id = entity.id or identity.uuid(kind, again > 1 and key .. "#" .. again or key)
        local row = refusals.must(run.draft:same(kind, entity, id))
        if not row or not is_another(kind, row, entity) then
            return row, row and row.id or id
        end
    end
end

local function change_word(row, entity)
    if not row then
        return "created"
    end
    local text = entity_text.encode(entity)
    local created_at = entity.__undated.created_at and row.created_at or entity.created_at
    return entity_text.with_dates(text, created_at, row.updated_at) == row.text and "unchanged"
        or "changed"
end

-- An entity of a declarative file, checked by gateway.config.collect: in the place of the one that
-- is there, or new. `operation.id` is for what is nested in it; for people there are its `change`,
-- and the text `before` it.
function verbs.UPSERT(run, operation)
    local kind, parent = operation.kind, operation.parent
    local entity, owner = plan.merged(operation.value, {}), parent and parent.operation.id
    operation.given = operation.value
    if parent then
        entity[parent.field] = { id = owner }
    end
    link(run, operation, entity, owner)
    each_missing(kind, entity, require_given)
    local row, id = find_same(run, kind, entity)
    if run.draft:has(kind, id) then
        refusals.throw(refusals.invalid_field("@entity", "duplicate entity in the file"))
    end
    entity.id, operation.id = id, id
    put(run, operation, entity, row and row.revision or 0).is_upsert = true
    operation.change, operation.before = change_word(row, entity), row and row.text
    return 200, entity
end

--- Makes one operation, in the draft. Yields where it has to read.
-- @tparam table run
-- @tparam table operation of gateway.change.run
-- @treturn number status
-- @treturn table|nil entity
-- @phases content, timer
function _M.run(run, operation)
    return verbs[operation.method](run, lookup.lead(run, operation))
end

return _M
