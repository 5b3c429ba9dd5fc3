--- What clients are shown of entities: one of them, or a page of a list.
-- @module gateway.admin.views

local caller = require("gateway.admin.caller")
local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local garbage_collector = require("sluice.garbage_collector")
local json = require("gateway.schema.json")
local lifetime = require("gateway.schema.lifetime")
local paging = require("gateway.admin.paging")
local response = require("gateway.admin.response")
local schema = require("gateway.schema")
local transformations = require("gateway.schema.transformations")

-- Entities that are read at a time.
local PIECE = 1000

local _M = {}

--- All entities of a kind with a reference to one. Yields.
-- @tparam table live what `gateway.admin` is given
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

--- What a client is shown of an entity.
-- @tparam table live what `gateway.admin` is given
-- @tparam string kind
-- @tparam table entity
-- @treturn table for gateway.schema.json
function _M.to_json(live, kind, entity)
    local definition = entities.get(kind)
    if definition.show then
        definition.show(entity, function(...)
            return _M.find_all(live, ...)
        end)
    end
    lifetime.show(entity, ngx.time())
    -- A reload may have taken away a plugin that is still configured.
    definition = entities.definition(kind, entity, live.plugins)
    local shown = schema.to_json_entity(definition, entity, caller.hides_secrets())
    -- What is kept of a password is not to be taken for one (gateway.config.collect).
    if transformations.has_any(definition) and caller.reveals() then
        shown._transform = false
    end
    return shown
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

-- The options for the store; else as gateway.admin.paging.
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
        if not schema.field(entities.get(kind), "tags") then
            message = ("invalid option (tags: cannot be used with '%s')"):format(kind)
            return nil, "invalid options", 11, message
        end
        options.tags = args.tags
    end
    return options
end

--- Answers with a page of a kind. Yields.
-- @tparam table live what `gateway.admin` is given
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
        local entity = _M.to_json(live, kind, entity_text.decode(row.text))
        data[#data + 1] = more and more.show(entity) or not more and entity or nil
    end
    return paging.answer(path, args, data, offset, more and { node_id = more.node_id })
end

return _M
