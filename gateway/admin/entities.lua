--- The entities: `/services`, `/services/{id or name}`, `/services/{id or name}/routes` and the
-- like for every kind, read and written.
--
-- Which collections there are, what stands nested in what (gateway.admin.collections) and
-- how an entity is found by name are read from the schemas.
-- @module gateway.admin.entities

local collections = require("gateway.admin.collections")
local drafts = require("gateway.change.draft")
local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local files = require("gateway.store.files")
local paging = require("gateway.admin.paging")
local response = require("gateway.admin.response")
local rules = require("gateway.schema.rules")
local views = require("gateway.admin.views")
local writes = require("gateway.admin.writes")

local READ_METHODS = "GET, HEAD, OPTIONS"
local READS = { GET = true, HEAD = true }

local _M = {}

local function show(live, kind, row, err)
    if row then
        return response.json(200, views.to_json(live, kind, entity_text.decode(row.text)))
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

-- Puts the id in the place of a name that is another entity's, as `lead` of gateway.change.lookup.
local function lead(live, at)
    local other = entities.get(at.kind).known_by
    if not other or not at.key then
        return
    elseif rules.check.uuid(at.key) and live.read("get", at.kind, at.key) then
        return
    end
    local row = live.read("named", other.kind, at.key)
    if row then
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
        return views.list(live, found.kind, args, path, { [found.parent.field] = parent.id })
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
    return views.list(live, found.kind, args, "/" .. segments[1])
end

-- What is sent is the value of the first operation, whose result is answered.
local function write(live, operations, args, given)
    local sent, refusal = given, writes.check_arguments(args)
    if not given then
        sent, refusal = writes.read_sent(args)
    elseif refusal then
        return writes.refuse(live, refusal)
    end
    if not sent then
        return writes.refuse(live, refusal)
    end
    operations[1].value, operations[1].is_form = sent.value, sent.is_form
    return writes.run(live, operations, sent.size, function(done)
        local result = done.results[1]
        if not result.entity then
            return response.no_content()
        end
        return response.json(result.status, views.to_json(live, result.kind, result.entity))
    end)
end

-- What an entity refers to (`/routes/{routes}/service`), as if it were asked for by its id. Where
-- it refers to none, a PUT makes one and the reference, as Kong's does.
local function handle_reference(live, method, found, args, sent)
    local by = found.by
    lead(live, by)
    local row, err = live.read("get", by.kind, by.key)
    if not row then
        return show(live, by.kind, nil, err)
    end
    local entity = entity_text.decode(row.text)
    local reference = entity[by.field]
    if READS[method] and reference then
        return show(live, found.kind, live.read("get", found.kind, reference.id))
    elseif method == "PUT" and not reference then
        local id = files.draw_uuid()
        return write(live, {
            { method = "PUT", kind = found.kind, key = id },
            {
                method = "PATCH",
                kind = by.kind,
                key = entity.id,
                value = { [by.field] = { id = id } },
            },
        }, args, sent)
    elseif not reference then
        return response.not_found()
    elseif method == "PUT" or method == "PATCH" then
        local operation = { method = method, kind = found.kind, key = reference.id }
        return write(live, { operation }, args, sent)
    end
    return response.method_not_allowed(writes.OF_REFERENCE)
end

--- Answers a request below a collection, or that there is nothing. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam string method
-- @tparam table segments of the path, unescaped
-- @tparam table args arguments of the query
-- @tparam[opt] table sent of gateway.admin.body, where that is read already
-- @phases content
function _M.handle(live, method, segments, args, sent)
    local found = collections.find(segments)
    if not found then
        return response.not_found()
    elseif READS[method] and not found.by then
        return get(live, found, segments, args)
    end
    local operation, allowed = writes.operation(method, segments)
    if method == "OPTIONS" then
        return response.options(live.is_writable and allowed or READ_METHODS)
    elseif not live.is_writable and not READS[method] then
        return response.read_only(READ_METHODS, live.settings, method, found.kind)
    elseif found.by then
        return handle_reference(live, method, found, args, sent)
    elseif not operation then
        return response.method_not_allowed(allowed)
    end
    return write(live, { operation }, args, sent)
end

return _M
