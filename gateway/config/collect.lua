--- The first pass over a decoded file: every entity, nested or not, checked by
-- its schema and put into one flat list for each kind.
-- @module gateway.config.collect

local cjson = require("cjson")
local checked = require("gateway.entities.checked")
local context = require("gateway.schema.context")
local coverage = require("gateway.config.coverage")
local deck = require("gateway.config.deck")
local entities = require("gateway.entities")
local entity_size = require("gateway.config.entity_size")
local migrate = require("gateway.config.migrate")
local references = require("gateway.config.references")
local report = require("gateway.config.report")
local schema = require("gateway.schema")
local transformations = require("gateway.schema.transformations")

local format = string.format
local huge = math.huge

local clear = require("table.clear")
local new_table = require("table.new")

local NULL = cjson.null
-- Keys of any record that are for people and tools.
local REMARKS = { _comment = "string", _ignore = "table", ws_id = "string" }
-- Where values are kept in place of given ones: false where they are what is kept
-- (gateway.schema.transformations).
local TRANSFORM = "_transform"
-- Of plugins: the name of a part of `_plugin_configs`.
local CONFIG = "_config"
-- Few entities give more, with their parent.
local OWN_FIELDS = 7
-- Those of `run`, and what gateway.config.link adds: an id, a reference to those without a parent.
local ITEM_FIELDS = 8
-- Of a kind whose entities have none.
local NO_LINKS = {}
-- Fields of a file.
local MAX_FIELDS = 1000
-- Stands for the parent while a nested entity is checked.
local PARENT = "parent"

local top_schema = {
    name = "declarative_config",
    fields = {
        {
            _format_version = {
                type = "string",
                required = true,
                one_of = { "1.1", "2.1", "3.0" },
            },
        },
        { _transform = { type = "boolean", default = true } },
        { _comment = { type = "string" } },
        { _ignore = { type = "array", elements = { type = "any" } } },
    },
}
for _, entry in ipairs(deck.fields) do
    table.insert(top_schema.fields, entry)
end

-- Collections of Kong's database that a file may have, and nobody here needs.
local NOT_NEEDED = { parameters = true, workspaces = true }

local PLUGIN = "the plugin '%s'"

local _M = {}

--- Of a file, without its collections.
_M.schema = top_schema

--- Whose bound `max_entities` is.
_M.MAX_OF = "the setting max_entities allows"

local function add_error(state, path, message)
    return state.errors:add(path, message)
end

local function add_warning(state, path, message)
    state.warnings[#state.warnings + 1] = { path = path, message = message }
end

local function is_given(value)
    return value ~= nil and value ~= NULL and not (type(value) == "table" and next(value) == nil)
end

-- What a value has for a dotted name.
local function field_of(value, name)
    for part in name:gmatch("[^.]+") do
        value = type(value) == "table" and value[part] or nil
    end
    return value
end

-- Adds errors of a value that stands at a path. Beside its own fields it may have others there,
-- `more`.
local function add_all(state, path, errors, value, more)
    for _, err in ipairs(errors) do
        local added = add_error(state, context.join(path, err.path), err.message)
        if err.known then
            added.known = { err.known, #err.keys == 1 and more or nil }
            added.key = err.keys[#err.keys]
        end
        local unless = err.unless
        if unless and not is_given(field_of(value, unless.field)) then
            added.said = unless.message
        end
    end
end

--- Where an entity stands in the file, such as `services[0].routes[2]`: written for errors only.
-- @tparam table item of `run`
-- @treturn string
function _M.path(item)
    local list = item.list
    if item.parent then
        list = _M.path(item.parent) .. "." .. list
    end
    return format("%s[%d]", list, item.index - 1)
end

-- The schema's own fields come first: a route has a field `snis`, a certificate
-- has a collection of that name.
local function refuse_collection(state, name, value, path)
    if not entities.unsupported[name] then
        return false
    end
    if is_given(value) then
        add_error(
            state,
            path,
            "this collection is not supported by this version, or its plugin is not loaded"
        )
    end
    return true
end

local function may_be_kept(state, kind, raw)
    return transformations.has_any(entities.definition(kind, raw, state.registry))
end

-- Splits an entity as written into its own fields, in `state.own`, and its nested children.
local function split(state, item)
    local kind, raw = item.kind, item.raw
    local own, nested, is_odd = state.own, nil, false
    clear(own)
    local children, definition = entities.children(kind), entities.get(kind)
    local fields, links = schema.fields(definition), definition.links or NO_LINKS
    for key, value in pairs(raw) do
        if children[key] or links[key] then
            nested = nested or {}
            nested[key] = value
        elseif fields[key] then
            own[key] = value
        else
            is_odd = true
        end
    end
    for _, key in ipairs(is_odd and schema.sorted_keys(raw, fields) or {}) do
        local value, path = raw[key], _M.path(item)
        local wanted = REMARKS[key]
            or (key == TRANSFORM and may_be_kept(state, kind, raw) and "boolean")
            or (key == CONFIG and kind == "plugins" and "string")
        if wanted then
            if value ~= NULL and type(value) ~= wanted then
                add_error(state, path .. "." .. key, "expected a " .. wanted)
            end
        elseif
            not children[key]
            and not links[key]
            and not refuse_collection(state, key, value, path .. "." .. tostring(key))
        then
            own[key] = value
        end
    end
    return own, nested
end

-- Whether a reference is to the entity in which it stands, by the id or the name that this one has:
-- Kong's ingress controller writes it into the SNIs of a certificate.
local function is_to_parent(reference, parent)
    local raw, key = parent.raw, entities.get(parent.kind).endpoint_key
    if type(reference) == "string" then
        return reference == raw.id or (key ~= nil and reference == raw[key])
    end
    for name, value in pairs(type(reference) == "table" and reference or { id = false }) do
        if (name ~= "id" and name ~= key) or value ~= raw[name] then
            return false
        end
    end
    return next(reference) ~= nil
end

local function set_parent(state, item, own)
    local field = entities.children(item.parent.kind)[item.kind]
    if own[field] ~= nil and own[field] ~= NULL and not is_to_parent(own[field], item.parent) then
        local message = format("value must be null: the entity is nested in its %s", field)
        add_error(state, _M.path(item) .. "." .. field, message)
    end
    own[field] = PARENT
    item.parent_field = field
end

local function warn(state, item, warnings, own)
    for _, warning in ipairs(warnings(item.entity, state.now, own)) do
        add_warning(state, _M.path(item) .. "." .. warning.field, warning.message)
    end
end

local function check(state, item, own)
    local count = #state.warnings
    local definition, unknown_plugin = entities.definition(item.kind, own, state.registry)
    local is_kept = unknown_plugin and checked.may_be_of_none(own)
    if is_kept then
        local message = "plugin '%s' not installed; stored, as it is disabled"
        add_warning(state, _M.path(item), format(message, unknown_plugin))
    elseif item.kind == "plugins" then
        if unknown_plugin then
            local message = format("plugin '%s' not installed", unknown_plugin)
            local added = add_error(state, _M.path(item) .. ".name", message)
            added.hint = state.registry:hint(unknown_plugin)
            local is_near = added.hint:find("^; did you mean")
            added.is_hinted_once = not is_near
            coverage.note(item, is_near and coverage.ERRORS or format(PLUGIN, unknown_plugin))
        end
        -- without a plugin's schema there is nothing to say about its settings
        own.config = definition == entities.get("plugins") and NULL or own.config
        if state.old_format and definition.migrate and type(own.config) == "table" then
            own.config = definition.migrate(own.config)
        end
    elseif item.kind == "routes" and state.old_format then
        own.paths = migrate.paths(own.paths)
    end
    local entity, errors, found, waived =
        checked.check(definition, own, state.vault, is_kept and unknown_plugin or nil)
    for _, warning in ipairs(waived or {}) do
        local path = context.join(_M.path(item), warning.path)
        add_warning(state, path, warning.message .. "; stored, as it is disabled")
    end
    if errors then
        coverage.note_all(item, errors, own)
        add_all(state, _M.path(item), errors, own, entities.children(item.kind))
    elseif found then
        references.note(entity, found, state.begin_of)
    end
    item.entity = (not unknown_plugin or is_kept) and entity or nil
    local warnings = item.kind == "routes" and migrate.warnings or definition.warnings
    if item.entity and warnings then
        warn(state, item, warnings, own)
    end
    item.warns = #state.warnings > count or nil
end

-- The members of a list of references as entities of the kind that links both sides.
local function linked(link, list)
    local out = list
    if type(list) == "table" and list[1] ~= nil then
        out = {}
        for i, reference in ipairs(list) do
            out[i] = { [link.field] = reference }
        end
    end
    return out
end

-- The same where their names are all that is there, as the Admin API shows a certificate's SNIs.
local function named(kind, child_kind, list)
    local field = schema.field(entities.get(kind), child_kind)
    local name, out = entities.get(child_kind).endpoint_key, list
    if field and field.transient and type(list) == "table" and list[1] ~= nil then
        out = {}
        for i, item in ipairs(list) do
            out[i] = type(item) == "string" and { [name] = item } or item
        end
    end
    return out
end

-- One workspace is the gateway; of several, entities with the same name are not the same.
local function check_workspace(state, item)
    local workspace = item.raw.ws_id
    if type(workspace) == "string" then
        state.workspace = state.workspace or workspace
        if workspace ~= state.workspace then
            local message = "the file has entities of several workspaces; use a file for each"
            add_error(state, _M.path(item) .. ".ws_id", message)
        end
    end
end

-- What stands where an entity is to be. Of a text, which may be a secret, only the name of a field
-- is shown.
local function no_record(kind, raw)
    if raw == NULL then
        return "required field missing"
    elseif type(raw) ~= "string" then
        return "expected a record, found a " .. type(raw)
    end
    local name, sign = raw:match("^([%w_]+)([%s:])")
    local missing = ""
    if name and schema.fields(entities.get(kind))[name] then
        missing = sign == ":" and format(" (is a space missing after '%s:'?)", name)
            or format(" (is a ':' missing after '%s'?)", name)
    end
    return "expected a record, found a string" .. missing
end

local collect_list, count_list

local function collect_entity(state, kind, raw, index, parent, list_name)
    local item = new_table(0, ITEM_FIELDS)
    item.kind, item.index, item.parent, item.raw = kind, index, parent, raw
    item.list = list_name
    if type(raw) ~= "table" then
        add_error(state, _M.path(item), no_record(kind, raw))
        return
    end
    local is_too_large, is_large = entity_size.look(kind, raw)
    if is_too_large then
        local message = format("an entity can have at most %d values", entity_size.MAX_VALUES)
        add_error(state, _M.path(item), message)
        return
    end
    local own, nested = split(state, item)
    local message, field =
        state.deck:fill(kind, entities.get(kind), own, kind == "plugins" and raw[CONFIG] or nil)
    if message then
        add_error(state, context.join(_M.path(item), field or ""), message)
    end
    -- What `_info` gives it has not been looked at.
    item.is_large = is_large or state.deck:count() > 0 or nil
    check_workspace(state, item)
    if parent then
        set_parent(state, item, own)
    end
    check(state, item, own)
    local is_kept = state.is_kept
    if type(raw[TRANSFORM]) == "boolean" then
        is_kept = not raw[TRANSFORM]
    end
    if is_kept and item.entity then
        local definition = entities.definition(kind, item.entity, state.registry)
        transformations.keep(definition, item.entity)
    end
    local list = state.items[kind]
    list[#list + 1] = item
    if state.pause then
        state.pause()
    end
    local links = nested and entities.get(kind).links or NO_LINKS
    for _, child_kind in ipairs(nested and entities.kinds or {}) do
        if nested[child_kind] ~= nil and not links[child_kind] then
            local children = named(kind, child_kind, nested[child_kind])
            collect_list(state, child_kind, children, item, child_kind)
        end
    end
    for name, link in pairs(links) do
        if nested[name] ~= nil then
            collect_list(state, link.kind, linked(link, nested[name]), item, name)
        end
    end
end

collect_list = function(state, kind, list, parent, list_name)
    if list == NULL then
        return
    elseif type(list) ~= "table" or (next(list) ~= nil and list[1] == nil) then
        local path = parent and _M.path(parent) .. "." .. list_name or list_name
        add_error(state, path, "expected an array")
        return
    end
    for i, raw in ipairs(list) do
        collect_entity(state, kind, raw, i, parent, list_name)
    end
end

local function count_children(kind, raw)
    local count = 0
    for child_kind in pairs(entities.children(kind)) do
        count = count + count_list(child_kind, raw[child_kind])
    end
    for name, link in pairs(entities.get(kind).links or NO_LINKS) do
        count = count + count_list(link.kind, raw[name])
    end
    return count
end

-- The entities of a list, with those nested in them.
count_list = function(kind, list)
    local count = 0
    for _, raw in ipairs(type(list) == "table" and list or NO_LINKS) do
        count = count + 1 + (type(raw) == "table" and count_children(kind, raw) or 0)
    end
    return count
end

-- Before any is checked, which is what takes memory.
local function check_count(errors, document, most, max_of)
    local fields, count = 0, 0
    for _ in pairs(document) do
        fields = fields + 1
        if fields > MAX_FIELDS then
            errors:add("", format("a file can have at most %d fields", MAX_FIELDS))
            error(report.FULL, 0)
        end
    end
    for _, kind in ipairs(entities.kinds) do
        count = count + count_list(kind, document[kind])
    end
    if count > most then
        errors:add("", format("the file has %d entities, more than %s: %d", count, max_of, most))
        error(report.FULL, 0)
    end
end

local function split_top(state, document)
    local top = {}
    for _, key in ipairs(schema.sorted_keys(document)) do
        local value = document[key]
        local is_kind = type(key) == "string" and entities.get(key)
        if NOT_NEEDED[key] and type(value) == "table" then
            if is_given(value) then
                add_warning(state, key, "no effect")
            end
        elseif not is_kind and not refuse_collection(state, key, value, tostring(key)) then
            top[key] = value
        end
    end
    return top
end

-- What the names of a vault's variables begin with: of one in the file, else of one that the caller
-- has. Those of the file are not checked yet; where one is wrong the file is refused.
local function begin_of(document, others)
    local begins = {}
    for _, raw in ipairs(type(document.vaults) == "table" and document.vaults or {}) do
        local prefix = type(raw) == "table" and raw.prefix
        if type(prefix) == "string" then
            local begin = type(raw.config) == "table" and raw.config.prefix
            begins[prefix] = type(begin) == "string" and begin or ""
        end
    end
    return function(prefix)
        return begins[prefix] or (others and others(prefix))
    end
end

--- Collects and checks the entities of a decoded file.
-- Order within a kind: entities nested in others as their parents stand, in the
-- order of `entities.kinds`, those at the top of the file after them.
-- @tparam table document
-- @tparam table registry of plugins: `registry:get(name)`
-- @tparam table errors of gateway.config.report; throws its `FULL`
-- @tparam table opts `vault`, `begin_of`, `at`, `pause`, `max_entities`, `max_of` and `limit` of
-- gateway.config
-- @treturn table `items`: kind -> array of `{ kind, list, index, raw, entity, parent,
-- parent_field }`, entity nil when it is wrong, `warns` where a warning is of it, `is_large` where
-- images may not have it; `errors`;
-- `warnings`, an array of `{ path =, message = }`; `format_version`; `workspace` of the entities
function _M.run(document, registry, errors, opts)
    check_count(errors, document, opts.max_entities or huge, opts.max_of or _M.MAX_OF)
    local state = {
        items = {},
        errors = errors,
        warnings = {},
        now = opts.at or os.time(),
        registry = registry,
        begin_of = begin_of(document, opts.begin_of),
        pause = opts.pause,
        known_id = opts.known_id,
        outside = opts.outside,
        limit = opts.limit,
        -- The fields of the entity in hand, looked at before the next one: one table for all.
        own = new_table(0, OWN_FIELDS),
    }
    state.vault = references.with(opts.vault, state.begin_of)
    for _, kind in ipairs(entities.kinds) do
        state.items[kind] = {}
    end
    local top, top_errors = schema.validate(top_schema, split_top(state, document), "")
    if top_errors then
        add_all(state, "", top_errors, document, state.items)
    end
    state.format_version = document._format_version
    state.old_format = state.format_version == "1.1" or state.format_version == "2.1"
    state.deck = deck.new(top, function(...)
        add_warning(state, ...)
    end)
    state.is_kept = document._transform == false or state.deck.is_hashed
    for _, kind in ipairs(entities.kinds) do
        if document[kind] ~= nil then
            collect_list(state, kind, document[kind], nil, kind)
        end
    end
    return state
end

return _M
