--- `kong.db.<entity>.schema`: a schema as plugins read Kong's, its fields in order and by name.
-- @module gateway.kit.db.dao_schema

local _M = {}
local methods = {}

--- Visits the fields in order: `for name, field in schema:each_field() do`.
function methods:each_field()
    local i = 0
    return function()
        i = i + 1
        local entry = self.fields[i]
        if entry then
            return next(entry)
        end
    end
end

--- The part of an entity that is its primary key.
-- @tparam table entity
-- @treturn table
function methods.extract_pk_values(_, entity)
    return { id = entity.id }
end

--- Makes that of a kind.
-- @tparam table definition schema, ours
-- @treturn table its own fields are the kind's
-- @phases any
function _M.new(definition)
    local self = {}
    for name, value in pairs(definition) do
        self[name] = value
    end
    self.fields = {}
    for i, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        self.fields[i], self.fields[name] = entry, field
    end
    self.primary_key = definition.primary_key or { "id" }
    return setmetatable(self, { __index = methods })
end

--- Errors by name, as one line.
-- @tparam table wrong name -> what
-- @treturn string
-- @phases any
function _M.lines(wrong)
    local names, parts = {}, {}
    for name in pairs(wrong) do
        names[#names + 1] = name
    end
    table.sort(names)
    for i, name in ipairs(names) do
        parts[i] = ("%s: %s"):format(name, tostring(wrong[name]))
    end
    return table.concat(parts, "; ")
end

return _M
