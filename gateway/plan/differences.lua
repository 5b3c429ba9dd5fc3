--- The fields in which two entities of a kind differ, with what stands there before and after;
-- of a secret only that it differs.
-- @module gateway.plan.differences

local json = require("gateway.schema.json")
local secrets = require("gateway.schema.secrets")

local concat = table.concat
local gsub = string.gsub
local sort = table.sort

local NULL = json.null
local HIDDEN = secrets.HIDDEN
local is_secret = secrets.is_secret

local _M = {}

-- The fields of a record by their names.
local function fields_of(field)
    local out = {}
    for _, entry in ipairs(field and field.fields or {}) do
        local name, of = next(entry)
        out[name] = of
    end
    return out
end

-- A value as it may be shown: without secrets within, and credentials in a URL. `name`: under which
-- it stands; nil of what stands in a list.
local function shown(field, name, value)
    if value == nil then
        return NULL
    elseif is_secret(field, name, value) then
        return HIDDEN
    elseif type(value) == "string" then
        return (gsub(value, "://[^/@]*@", "://" .. HIDDEN .. "@"))
    elseif type(value) ~= "table" then
        return value
    end
    local is_listed = field and (field.type == "array" or field.type == "set")
    local out, fields = is_listed and json.array({}) or {}, fields_of(field)
    for key, item in pairs(value) do
        local of = type(key) == "number" and field and field.elements
            or fields[key]
            or field and field.values
            or nil
        out[key] = shown(of, type(key) == "string" and key or nil, item)
    end
    return out
end

-- Whether it has fields of its own to compare, or is not there.
local function is_deep(value)
    return value == nil or (type(value) == "table" and value[1] == nil)
end

local function names_of(...)
    local names, seen = {}, {}
    for _, entity in ipairs({ ... }) do
        for name in pairs(entity) do
            if not seen[name] then
                seen[name] = true
                names[#names + 1] = name
            end
        end
    end
    sort(names)
    return names
end

local walk

-- Records and maps, field by field.
local function walk_within(list, field, keys, names, before, after)
    local fields = fields_of(field)
    for _, name in ipairs(names) do
        keys[#keys + 1] = name
        walk(list, fields[name] or (field and field.values), keys, before[name], after[name])
        keys[#keys] = nil
    end
end

walk = function(list, field, keys, before, after)
    if before == NULL then
        before = nil
    end
    if after == NULL then
        after = nil
    end
    if json.encode(before) == json.encode(after) then
        return
    end
    local path = concat(keys, ".")
    local name = keys[#keys]
    if is_secret(field, name, before) or is_secret(field, name, after) then
        list[#list + 1] = { field = path, secret = true }
        return
    end
    local names = is_deep(before) and is_deep(after) and names_of(before or {}, after or {}) or {}
    if #names > 0 and not (field and field.type == "foreign") then
        walk_within(list, field, keys, names, before or {}, after or {})
    else
        list[#list + 1] =
            { field = path, old = shown(field, name, before), new = shown(field, name, after) }
    end
end

--- The fields in which two entities differ.
-- @tparam table definition schema
-- @tparam table before decoded from the store's text
-- @tparam table after
-- @treturn {table,...} in order of their names: `{ field = "config.minute", old =, new = }`, both
-- cjson's null where unset, or `{ field =, secret = true }`
function _M.find(definition, before, after)
    local list, fields = {}, fields_of(definition)
    for _, name in ipairs(names_of(before, after)) do
        -- Not of the entity, but what was noted beside it; and what follows from a change.
        if name:sub(1, 1) ~= "_" and name ~= "updated_at" then
            walk(list, fields[name], { name }, before[name], after[name])
        end
    end
    return list
end

return _M
