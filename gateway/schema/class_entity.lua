--- `kong.db.schema.entity`: schemas of what a database keeps, whose records are whole where nobody
-- says otherwise.
-- @module gateway.schema.class_entity

local Schema = require("gateway.schema.class")
local plans = require("gateway.schema.plan")

local _M = {}

--- As Schema's, with records that are required.
function _M.new_subschema(self, key, definition)
    plans.require_records(definition)
    return Schema.new_subschema(self, key, definition)
end

--- Makes an object of the schema of a kind of entities.
-- @tparam table definition
-- @treturn table|nil of gateway.schema.class
-- @treturn nil|string why not
function _M.new(definition)
    local self, err = Schema.new(definition)
    if not self then
        return nil, err
    end
    for name, field in self:each_field() do
        if field.nilable then
            return nil, name .. ": Entities cannot have nilable types."
        elseif field.type == "map" and field.keys.type ~= "string" then
            return nil, name .. ": Entities map keys must be strings."
        elseif field.type == "function" then
            return nil, name .. ": Entities cannot have function types."
        end
    end
    plans.require_records(self)
    self.new_subschema = _M.new_subschema
    return self
end

return _M
