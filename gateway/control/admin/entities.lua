--- Read-only views of the entities: `/services`, `/services/{id or name}`,
-- `/services/{id or name}/routes` and the like for every kind.
--
-- Which collections there are, what stands nested in what and how an entity is found by name are
-- read from the schemas.
-- @module gateway.control.admin.entities

local response = require("gateway.control.admin.response")
local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local json = require("gateway.control.admin.json")
local schema = require("gateway.schema")

local ngx = ngx

local MAX_SIZE = 1000

-- Kinds that have no collection of their own, only one in their parent.
local NESTED_ONLY = { targets = true }

-- Collections that every client of Kong asks for, still without entities.
local EMPTY_COLLECTIONS = { certificates = true, snis = true }

local _M = {}

local function path_name(kind, is_nested)
    local definition = entities.get(kind)
    return is_nested and definition.admin_api_nested_name or definition.admin_api_name or kind
end

-- Name in the path -> kind.
local collections
-- Kind of the parent -> name in the path -> { kind =, field = of the child that names the parent }.
local nested = {}

-- At the first request: the plugins have added their kinds by then.
local function find_collection(name)
    if not collections then
        collections = {}
        for _, kind in ipairs(entities.kinds) do
            if not NESTED_ONLY[kind] then
                collections[path_name(kind)] = kind
            end
            nested[kind] = {}
            for child, field in pairs(entities.children(kind)) do
                nested[kind][path_name(child, true)] = { kind = child, field = field }
            end
        end
    end
    return collections[name]
end

local function to_json(live, kind, entity)
    local definition = entities.get(kind)
    -- A reload may have taken away a plugin that is still configured.
    local plugin = kind == "plugins" and live.plugins:get(entity.name)
    if plugin then
        definition = entities.for_plugin(plugin)
    end
    return schema.to_json_entity(definition, entity)
end

--- Whether the kind's entities can have tags.
local function has_tags(kind)
    return schema.field(entities.get(kind), "tags") ~= nil
end

--- Reads the arguments of a list.
-- @treturn table|nil options for the store
-- @treturn string|nil Kong's name of the error
-- @treturn number|nil Kong's number of the error
-- @treturn string|nil what is wrong
local function read_options(kind, args)
    local options = {}
    if args.size ~= nil then
        options.size = tonumber(args.size)
        if not options.size then
            return nil, "invalid size", 9, "size must be a number"
        end
        local is_whole = args.size:find("^%d+$") ~= nil
        if not is_whole or options.size < 1 or options.size > MAX_SIZE then
            return nil, "invalid size", 9, "size must be an integer between 1 and " .. MAX_SIZE
        end
    end
    if args.offset ~= nil then
        if type(args.offset) ~= "string" then
            return nil, "invalid offset", 7, "offset must be given once"
        end
        options.offset = args.offset
    end
    if args.tags ~= nil then
        if type(args.tags) ~= "string" or args.tags == "" then
            return nil, "invalid options", 11, "invalid option (tags: cannot be null)"
        end
        if not has_tags(kind) then
            local message = ("invalid option (tags: cannot be used with '%s')"):format(kind)
            return nil, "invalid options", 11, message
        end
        options.tags = args.tags
    end
    return options
end

--- The path of the next page, or null.
local function next_page(path, offset, args)
    if not offset then
        return json.null
    end
    local link = path .. "?offset=" .. ngx.escape_uri(offset)
    if args.tags then
        link = link .. "&tags=" .. ngx.escape_uri(args.tags)
    end
    if args.size then
        link = link .. "&size=" .. args.size
    end
    return link
end

--- What a client gets where the store cannot be read.
local function unreadable(err)
    return response.json(503, { message = err.message or err.err, name = err.err })
end

local function list(live, kind, args, path, where)
    local options, name, code, message = read_options(kind, args)
    if not options then
        return response.bad_request(name, code, message)
    end
    options.where = where
    local page, offset = live.read("list", kind, options)
    local word = not page and offset.err
    if word == "invalid offset" then
        message = ("'%s' is not a valid offset"):format(options.offset)
        return response.bad_request("invalid offset", 7, message)
    elseif word == "invalid tags" then
        message = "invalid option (tags: invalid filter syntax)"
        return response.bad_request("invalid options", 11, message)
    elseif word then
        return unreadable(offset)
    end
    local data = json.array({})
    for i, row in ipairs(page) do
        data[i] = to_json(live, kind, entity_text.decode(row.text))
    end
    return response.json(
        200,
        { data = data, next = next_page(path, offset, args), offset = offset }
    )
end

local function show(live, kind, row, err)
    if row then
        return response.json(200, to_json(live, kind, entity_text.decode(row.text)))
    elseif err and err.err ~= "not found" then
        return unreadable(err)
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
    local where = { [child.field] = parent.id, [name] = id_or_name }
    local rows
    rows, err = live.read("list", child.kind, { size = 1, where = where })
    return rows and rows[1], err
end

local function get_nested(live, parent_kind, segments, args)
    local child = nested[parent_kind][segments[3]]
    if not child then
        return response.not_found()
    end
    local parent, err = live.read("get", parent_kind, segments[2])
    if not parent then
        return show(live, parent_kind, nil, err)
    end
    -- In Kong "all" once meant old revisions of targets, too.
    local is_list = #segments == 3 or (child.kind == "targets" and segments[4] == "all")
    if is_list then
        local path = ("/%s/%s/%s"):format(segments[1], parent.id, segments[3])
        return list(live, child.kind, args, path, { [child.field] = parent.id })
    end
    return show(live, child.kind, find_child(live, child, parent, segments[4]))
end

--- Answers a GET below a collection, or that there is nothing. Yields.
-- @tparam table live what `gateway.control.admin` is given
-- @tparam table segments of the path, unescaped
-- @tparam table args arguments of the query
-- @phases content
function _M.get(live, segments, args)
    local depth = #segments
    if depth == 1 and EMPTY_COLLECTIONS[segments[1]] then
        return response.json(200, { data = json.array({}), next = json.null })
    end
    local kind = find_collection(segments[1])
    if not kind or depth > 4 then
        return response.not_found()
    end
    if depth == 1 then
        return list(live, kind, args, "/" .. segments[1])
    elseif depth == 2 then
        return show(live, kind, live.read("get", kind, segments[2]))
    end
    return get_nested(live, kind, segments, args)
end

--- Tells whether a path leads to a collection, so that it has methods to speak of.
-- @tparam table segments of the path
-- @treturn boolean
-- @phases any
function _M.is_known(segments)
    local first = segments[1]
    return (find_collection(first) or EMPTY_COLLECTIONS[first]) ~= nil
end

return _M
