--- The first pass over a decoded file: every entity, nested or not, checked by
-- its schema and put into one flat list for each kind.
-- @module gateway.config.collect

local cjson = require("cjson")
local context = require("gateway.schema.context")
local entities = require("gateway.entities")
local migrate = require("gateway.config.migrate")
local references = require("gateway.config.references")
local report = require("gateway.config.report")
local schema = require("gateway.schema")

local error = error
local format = string.format
local huge = math.huge
local ipairs = ipairs
local next = next
local pairs = pairs
local tostring = tostring
local type = type

local clear = require("table.clear")
local new_table = require("table.new")

local NULL = cjson.null
-- Keys of any record that are for people and tools.
local REMARKS = { _comment = "string", _ignore = "table" }
-- Few entities give more, with their parent.
local OWN_FIELDS = 7
-- Those of `run`, and what gateway.config.link adds: an id, a reference to those without a parent.
local ITEM_FIELDS = 8
-- Of a kind whose entities have none.
local NO_LINKS = {}
-- Fields of a file, and values of an entity without those nested in it: some lists of what an image
-- holds at most, 65,535. To look at one takes no pauses.
local MAX_FIELDS = 1000
local MAX_VALUES = 200000
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
        {
            _info = {
                type = "record",
                required = false,
                fields = {
                    { select_tags = { type = "array", elements = { type = "string" } } },
                    { defaults = { type = "any", supported = false } },
                },
            },
        },
        { _workspace = { type = "string", supported = { "default" } } },
        { _plugin_configs = { type = "any", supported = false } },
        { _konnect = { type = "any", supported = false } },
    },
}

local _M = {}

--- Whose bound `max_entities` is.
_M.MAX_OF = "the setting max_entities allows"

local function add_error(state, path, message)
    state.errors:add(path, message)
end

-- Adds errors of a value that stands at a path.
local function add_all(state, path, errors)
    for _, err in ipairs(errors) do
        add_error(state, context.join(path, err.path), err.message)
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

local function is_given(value)
    return value ~= nil and value ~= NULL and not (type(value) == "table" and next(value) == nil)
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
        if REMARKS[key] then
            if value ~= NULL and type(value) ~= REMARKS[key] then
                add_error(state, path .. "." .. key, "expected a " .. REMARKS[key])
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

local function set_parent(state, item, own)
    local field = entities.children(item.parent.kind)[item.kind]
    if own[field] ~= nil and own[field] ~= NULL then
        local message = format("value must be null: the entity stands in its %s", field)
        add_error(state, _M.path(item) .. "." .. field, message)
    end
    own[field] = PARENT
    item.parent_field = field
end

local function warn(state, item, definition)
    for _, warning in ipairs(definition.warnings(item.entity, state.now)) do
        local path = _M.path(item) .. "." .. warning.field
        state.warnings[#state.warnings + 1] = format("%s: %s", path, warning.message)
    end
end

local function check(state, item, own)
    local definition, unknown_plugin = entities.definition(item.kind, own, state.registry)
    if item.kind == "plugins" then
        if unknown_plugin then
            local message = format("plugin '%s' not installed", unknown_plugin)
            add_error(state, _M.path(item) .. ".name", message)
        end
        -- without a plugin's schema there is nothing to say about its settings
        own.config = definition == entities.get("plugins") and NULL or own.config
        if state.old_format then
            own.config = migrate.plugin_config(own.name, own.config)
        end
    elseif item.kind == "routes" and state.old_format then
        own.paths = migrate.paths(own.paths)
    end
    local entity, errors, found = schema.validate(definition, own, "", state.vault)
    if errors then
        add_all(state, _M.path(item), errors)
    elseif found then
        references.note(entity, found, state.begin_of)
    end
    item.entity = not unknown_plugin and entity or nil
    if item.entity and definition.warnings then
        warn(state, item, definition)
    end
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

local collect_list, count_list

-- What is left of so many values behind one; below 0: it has more, and is not looked through.
local function take_values(value, left)
    if type(value) == "table" then
        for _, item in pairs(value) do
            left = take_values(item, left - 1)
            if left < 0 then
                break
            end
        end
    end
    return left
end

-- Whether an entity has more values than one may have.
local function is_too_large(kind, raw)
    local children, links = entities.children(kind), entities.get(kind).links or NO_LINKS
    local left = MAX_VALUES
    for key, value in pairs(raw) do
        left = left - 1
        if not children[key] and not links[key] then
            left = take_values(value, left)
        end
        if left < 0 then
            return true
        end
    end
    return false
end

local function collect_entity(state, kind, raw, index, parent, list_name)
    local item = new_table(0, ITEM_FIELDS)
    item.kind, item.index, item.parent, item.raw = kind, index, parent, raw
    item.list = list_name
    if type(raw) ~= "table" then
        local message = raw == NULL and "required field missing" or "expected a record"
        add_error(state, _M.path(item), message)
        return
    elseif is_too_large(kind, raw) then
        local message = format("an entity may have %d values at most", MAX_VALUES)
        add_error(state, _M.path(item), message)
        return
    end
    local own, nested = split(state, item)
    if parent then
        set_parent(state, item, own)
    end
    check(state, item, own)
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
            errors:add("", format("a file may have %d fields at most", MAX_FIELDS))
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
        if not is_kind and not refuse_collection(state, key, value, tostring(key)) then
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
-- @tparam table opts `vault`, `begin_of`, `at`, `pause`, `max_entities` and `max_of` of
-- gateway.config
-- @treturn table `items`: kind -> array of `{ kind, list, index, raw, entity, parent,
-- parent_field }`, entity nil when it is wrong; `errors`; `warnings`; `format_version`
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
        -- The fields of the entity in hand, looked at before the next one: one table for all.
        own = new_table(0, OWN_FIELDS),
    }
    state.vault = references.with(opts.vault, state.begin_of)
    local top, top_errors = schema.validate(top_schema, split_top(state, document), "")
    if top_errors then
        add_all(state, "", top_errors)
    end
    state.format_version = document._format_version
    state.old_format = state.format_version == "1.1" or state.format_version == "2.1"
    if top and top._info and top._info.select_tags then
        state.warnings[1] = "_info.select_tags: tags are not added to the entities"
    end
    for _, kind in ipairs(entities.kinds) do
        state.items[kind] = {}
    end
    for _, kind in ipairs(entities.kinds) do
        if document[kind] ~= nil then
            collect_list(state, kind, document[kind], nil, kind)
        end
    end
    return state
end

return _M
