--- The entities of one snapshot, to be looked up. Read-only.
-- @module gateway.store
-- @usage
-- local s = store.new(snapshot)
-- local service = s:get("services", "orders")
-- local by_key = s:index("keyauth_credentials", "key") -- plain table for hot paths

local entities = require("gateway.entities")

local ipairs = ipairs
local next = next
local pairs = pairs
local setmetatable = setmetatable
local tonumber = tonumber
local tostring = tostring
local type = type

local DEFAULT_SIZE = 100

local _M = {}
local methods = {}
local mt = { __index = methods }

local EMPTY = {}

local function index_kind(kind, list)
    local unique, foreign = { id = {} }, {}
    for _, entry in ipairs(entities.get(kind).fields) do
        local name, field = next(entry)
        if field.unique then
            unique[name] = {}
        end
    end
    for _, field in ipairs(entities.foreign(kind)) do
        foreign[field.name] = {}
    end
    for _, entity in ipairs(list) do
        for name, index in pairs(unique) do
            if entity[name] ~= nil then
                index[entity[name]] = entity
            end
        end
        for name, index in pairs(foreign) do
            local id = entity[name] and entity[name].id
            if id then
                index[id] = index[id] or {}
                index[id][#index[id] + 1] = entity
            end
        end
    end
    return unique, foreign
end

--- Makes a store over a snapshot; all its indexes are built here.
-- @tparam table snapshot as returned by `gateway.config.load`; it is not copied
-- @treturn table store
function _M.new(snapshot)
    local self = { lists = {}, unique = {}, foreign = {} }
    for _, kind in ipairs(entities.kinds) do
        self.lists[kind] = snapshot[kind] or {}
        self.unique[kind], self.foreign[kind] = index_kind(kind, self.lists[kind])
    end
    return setmetatable(self, mt)
end

--- Finds an entity by its id or its name (the schema's endpoint key).
-- A target has no name that is unique: only its id finds it.
-- @tparam string kind
-- @tparam string id_or_name
-- @treturn table|nil the entity itself, not a copy
function methods:get(kind, id_or_name)
    local unique = self.unique[kind]
    if not unique then
        return nil
    end
    local names = unique[entities.get(kind).endpoint_key]
    return unique.id[id_or_name] or (names and names[id_or_name])
end

--- The look-up table of a unique field, for hot paths. Not to be changed.
-- @tparam string kind
-- @tparam string field unique one, or `id`
-- @treturn table|nil value -> entity; nil when the field is not unique
function methods:index(kind, field)
    return self.unique[kind] and self.unique[kind][field]
end

--- The entities that refer to one entity.
-- @tparam string kind of the children, such as `routes`
-- @tparam string field of theirs that refers, such as `service`
-- @tparam string id of the parent
-- @treturn table array in the order of the file, not to be changed
function methods:children(kind, field, id)
    local index = self.foreign[kind] and self.foreign[kind][field]
    return index and index[id] or EMPTY
end

local function split(text, separator)
    local parts = {}
    for part in (text .. separator):gmatch("(.-)" .. separator) do
        parts[#parts + 1] = part
    end
    return parts
end

-- "a,b": both tags, "a/b": one of them.
local function tag_filter(text)
    if text:find(",", 1, true) and text:find("/", 1, true) then
        return nil, "invalid tags"
    end
    local any = text:find("/", 1, true) ~= nil
    local wanted = split(text, any and "/" or ",")
    for _, tag in ipairs(wanted) do
        if tag == "" then
            return nil, "invalid tags"
        end
    end
    return function(entity)
        local has = {}
        for _, tag in ipairs(entity.tags or EMPTY) do
            has[tag] = true
        end
        for _, tag in ipairs(wanted) do
            if (has[tag] or false) == any then
                return any
            end
        end
        return not any
    end
end

local function matches(entity, where)
    for field, wanted in pairs(where) do
        local value = entity[field]
        if type(value) == "table" then
            value = value.id
        end
        if value ~= wanted then
            return false
        end
    end
    return true
end

local function source_of(self, kind, where)
    for field, wanted in pairs(where) do
        if self.foreign[kind][field] then
            return self:children(kind, field, wanted)
        end
    end
    return self.lists[kind]
end

--- Lists entities, a page at a time, in the order of the file.
-- @tparam string kind
-- @tparam[opt] table opts
-- @tparam[opt=100] number opts.size entities a page
-- @tparam[opt] string opts.offset what the page before returned
-- @tparam[opt] string opts.tags `a,b` for both, `a/b` for one of them
-- @tparam[opt] table opts.where field -> value, for references the id
-- @treturn table|nil array of the entities themselves
-- @treturn string|nil offset of the next page, nil after the last; after a nil
-- "unknown entity", "invalid offset" or "invalid tags"
function methods:list(kind, opts)
    opts = opts or EMPTY
    if not self.lists[kind] then
        return nil, "unknown entity"
    end
    local where = opts.where or EMPTY
    local keep, err
    if opts.tags then
        keep, err = tag_filter(opts.tags)
        if err then
            return nil, err
        end
    end
    local from = opts.offset and tonumber(tostring(opts.offset):match("^%d+$")) or 0
    if opts.offset and not tostring(opts.offset):find("^%d+$") then
        return nil, "invalid offset"
    end
    local source, page = source_of(self, kind, where), {}
    local size = opts.size or DEFAULT_SIZE
    for i = from + 1, #source do
        local entity = source[i]
        if (not keep or keep(entity)) and matches(entity, where) then
            if #page == size then
                return page, tostring(i - 1)
            end
            page[#page + 1] = entity
        end
    end
    return page
end

return _M
