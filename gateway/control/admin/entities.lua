--- The entities: `/services`, `/services/{id or name}`, `/services/{id or name}/routes` and the
-- like for every kind, read and written.
--
-- Which collections there are, what stands nested in what (gateway.control.admin.collections) and
-- how an entity is found by name are read from the schemas.
-- @module gateway.control.admin.entities

local body = require("gateway.control.admin.body")
local collections = require("gateway.control.admin.collections")
local response = require("gateway.control.admin.response")
local caller = require("gateway.control.admin.caller")
local drafts = require("gateway.control.draft")
local editing = require("gateway.control.editing")
local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local garbage_collector = require("gateway.control.garbage_collector")
local json = require("gateway.control.admin.json")
local paging = require("gateway.control.admin.paging")
local rules = require("gateway.schema.rules")
local schema = require("gateway.schema")

-- Entities that are read at a time.
local PIECE = 1000

-- Methods of a collection, and of one entity.
local OF_ALL = "GET, HEAD, OPTIONS, POST"
local OF_ONE = "GET, HEAD, OPTIONS, PUT, PATCH, DELETE"
local READ_METHODS = "GET, HEAD, OPTIONS"
local READS = { GET = true, HEAD = true }
local WRITES = { DELETE = true, PATCH = true, POST = true, PUT = true }

local _M = {}

--- All entities of a kind with a reference to one. Yields.
-- @tparam table live what `gateway.control.admin` is given
-- @tparam string kind
-- @tparam string field that refers
-- @tparam string id
-- @treturn {table,...}
-- @phases content
function _M.find_all(live, kind, field, id)
    local found, offset = {}, nil
    repeat
        local options = { size = PIECE, offset = offset, where = { [field] = id } }
        local rows, next_offset = live.read("list", kind, options)
        for _, row in ipairs(rows or {}) do
            found[#found + 1] = entity_text.decode(row.text)
        end
        offset = rows and next_offset
    until not offset
    return found
end

local function to_json(live, kind, entity)
    local definition = entities.get(kind)
    if definition.show then
        definition.show(entity, function(...)
            return _M.find_all(live, ...)
        end)
    end
    -- A reload may have taken away a plugin that is still configured.
    return schema.to_json_entity(
        entities.definition(kind, entity, live.plugins),
        entity,
        caller.hides_secrets()
    )
end

--- Whether the kind's entities can have tags.
local function has_tags(kind)
    return schema.field(entities.get(kind), "tags") ~= nil
end

-- What a client asks for by a unique value, as Kong's do by `?custom_id=`: they take the first of
-- the answer for it.
local function read_wanted(kind, args, where)
    local wanted = {}
    for _, name in ipairs(entities.unique_fields(kind)) do
        local value = args[name]
        if value and (type(value) ~= "string" or value == "") then
            return nil, ("invalid option (%s: must be given once)"):format(name)
        end
        wanted[name] = value
    end
    for name, value in pairs(where or {}) do
        wanted[name] = value
    end
    return wanted
end

--- Reads the arguments of a list.
-- @treturn table|nil options for the store
-- @return as of gateway.control.admin.paging
local function read_options(kind, args, where)
    local options, name, code, message = paging.read(args)
    if not options then
        return nil, name, code, message
    end
    options.where, message = read_wanted(kind, args, where)
    if message then
        return nil, "invalid options", 11, message
    end
    if args.tags ~= nil then
        if type(args.tags) ~= "string" or args.tags == "" then
            return nil, "invalid options", 11, "invalid option (tags: cannot be null)"
        end
        if not has_tags(kind) then
            message = ("invalid option (tags: cannot be used with '%s')"):format(kind)
            return nil, "invalid options", 11, message
        end
        options.tags = args.tags
    end
    return options
end

--- Answers with a page of a kind. Yields.
-- @tparam table live what `gateway.control.admin` is given
-- @tparam string kind
-- @tparam table args arguments of the query
-- @tparam string path of the list
-- @tparam[opt] table where as of the store's `list`
-- @tparam[opt] table more `node_id` of the answer; `size` of a page where the client names none;
-- `show(entity)` -> what stands for it, nil: nothing
-- @phases content
function _M.list(live, kind, args, path, where, more)
    local options, name, code, message = read_options(kind, args, where)
    if not options then
        return response.bad_request(name, code, message)
    end
    options.size = options.size or more and more.size
    local page, offset = live.read("list", kind, options)
    if not page and offset.err == "invalid tags" then
        message = "invalid option (tags: invalid filter syntax)"
        return response.bad_request("invalid options", 11, message)
    elseif not page then
        return paging.refuse(offset, options)
    end
    local data, pause = json.array({}), garbage_collector.turns()
    for _, row in ipairs(page) do
        pause()
        local entity = to_json(live, kind, entity_text.decode(row.text))
        data[#data + 1] = more and more.show(entity) or not more and entity or nil
    end
    return paging.answer(path, args, data, offset, more and { node_id = more.node_id })
end

local function show(live, kind, row, err)
    if row then
        return response.json(200, to_json(live, kind, entity_text.decode(row.text)))
    elseif err and err.err ~= "not found" then
        return paging.unreadable(err)
    end
    return response.not_found()
end

--- Finds a child by its id or name among those of one parent only.
local function find_child(live, child, parent, id_or_name)
    local row, err = live.read("get", child.kind, id_or_name)
    if not row and err.err ~= "not found" then
        return nil, err
    elseif row then
        local owner = entity_text.decode(row.text)[child.field]
        return type(owner) == "table" and owner.id == parent.id and row or nil
    end
    local name = entities.get(child.kind).endpoint_key
    if not name then
        return nil
    end
    local where = { [child.field] = parent.id, [name] = drafts.normal_name(child.kind, id_or_name) }
    local rows
    rows, err = live.read("list", child.kind, { size = 1, where = where })
    return rows and rows[1], err
end

-- Puts the id in the place of a name that is another entity's.
local function lead(live, at)
    local other = entities.get(at.kind).known_by
    local row = other and at.key and live.read("get", other.kind, at.key)
    if row and not rules.check.uuid(at.key) then
        at.key = entity_text.decode(row.text)[other.field].id
    end
end

local function get_nested(live, found, segments, args)
    local parent, err = live.read("get", found.parent.kind, found.parent.key)
    if not parent then
        return show(live, found.parent.kind, nil, err)
    end
    -- In Kong "all" once meant old revisions of targets, too.
    if not found.key or (found.kind == "targets" and found.key == "all") then
        local path = ("/%s/%s/%s"):format(segments[1], parent.id, segments[3])
        return _M.list(live, found.kind, args, path, { [found.parent.field] = parent.id })
    end
    local child = { kind = found.kind, field = found.parent.field }
    return show(live, found.kind, find_child(live, child, parent, found.key))
end

local function get(live, found, segments, args)
    lead(live, found.parent or found)
    if found.parent then
        return get_nested(live, found, segments, args)
    elseif found.key then
        return show(live, found.kind, live.read("get", found.kind, found.key))
    end
    return _M.list(live, found.kind, args, "/" .. segments[1])
end

--- The operation of gateway.control.editing that a method on a path is.
-- @tparam string method
-- @tparam table segments of the path, unescaped
-- @treturn table|nil without its value; nil where the path leads to nothing
-- @treturn nil|string methods that the path has, as in an Allow header, where it has not this one
-- @phases any
function _M.operation(method, segments)
    local found = collections.find(segments)
    if not found then
        return nil
    end
    local methods = found.key and OF_ONE or OF_ALL
    if not WRITES[method] or not methods:find(method, 1, true) then
        return nil, methods
    end
    found.method = method
    return found
end

--- What is wrong with the arguments of a write: `sync`, which Kong's clients and ours may say.
-- @tparam table args arguments of the query
-- @treturn table|nil refusal
-- @phases any
function _M.check_arguments(args)
    local sync = args.sync
    if sync ~= nil and sync ~= "0" and sync ~= "1" then
        return { status = 400, message = "sync must be 0 or 1, given once" }
    end
    return nil
end

--- Answers with a refusal of gateway.control.editing.
-- @tparam table live what `gateway.control.admin` is given
-- @tparam table refusal
-- @tparam[opt] table blamed which of several operations is to blame: `operation`, its place from 0;
-- `method` and `path`
-- @phases content
function _M.refuse(live, refusal, blamed)
    blamed = blamed or {}
    return response.json(refusal.status, {
        message = refusal.message,
        name = refusal.name,
        code = refusal.code,
        fields = refusal.fields,
        operation = blamed.operation,
        method = blamed.method,
        path = blamed.path,
        state = refusal.name == "not ready" and live.state().state or nil,
    })
end

--- What a client is shown of an entity.
-- @tparam table live what `gateway.control.admin` is given
-- @tparam string kind
-- @tparam table entity
-- @treturn table for gateway.control.admin.json
_M.to_json = to_json

--- Reads what a write has sent. Yields.
-- @tparam table args arguments of the query
-- @treturn table|nil `{ value = table, is_form =, size = }` of gateway.control.admin.body
-- @treturn nil|table refusal
-- @phases content
function _M.read_sent(args)
    local wrong_argument = _M.check_arguments(args)
    if wrong_argument then
        return nil, wrong_argument
    end
    local sent, refusal = body.read(body.MAX_BYTES)
    if sent and sent.value[1] ~= nil then
        local message = "Cannot parse JSON body (expected an object)"
        return nil, { status = 400, message = message }
    end
    return sent, refusal
end

local function write(live, operation, args)
    local sent, refusal = _M.read_sent(args)
    if not sent then
        return _M.refuse(live, refusal)
    end
    operation.value, operation.is_form = sent.value, sent.is_form
    local done
    done, refusal = editing.run(live, { operation }, sent.size, caller.describe())
    if not done then
        return _M.refuse(live, refusal)
    end
    local result = done.results[1]
    response.set_revision(done.revision)
    if not result.entity then
        return response.no_content()
    end
    return response.json(result.status, to_json(live, result.kind, result.entity))
end

--- Answers a request below a collection, or that there is nothing. Yields.
-- @tparam table live what `gateway.control.admin` is given
-- @tparam string method
-- @tparam table segments of the path, unescaped
-- @tparam table args arguments of the query
-- @phases content
function _M.handle(live, method, segments, args)
    local found = collections.find(segments)
    if not found then
        return response.not_found()
    elseif READS[method] then
        return get(live, found, segments, args)
    end
    local operation, allowed = _M.operation(method, segments)
    if method == "OPTIONS" then
        return response.options(live.is_writable and allowed or READ_METHODS)
    elseif not live.is_writable then
        return response.read_only(READ_METHODS)
    elseif not operation then
        return response.method_not_allowed(allowed)
    end
    return write(live, operation, args)
end

return _M
