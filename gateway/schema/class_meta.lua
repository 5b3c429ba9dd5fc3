--- `kong.db.schema.metaschema`: checks schemas, with Kong's nesting of errors.
-- @module gateway.schema.class_meta

local metaschema = require("gateway.schema.metaschema")
local nested = require("gateway.schema.nested")

-- An object that checks schemas of entities, or of plugins.
local function checker(is_entity)
    return {
        validate = function(_, definition)
            local errors = metaschema.check(definition, is_entity)
            if not errors then
                return true
            end
            local out = {}
            for _, err in ipairs(errors) do
                local keys = {}
                for i, key in ipairs(err.keys) do
                    keys[i] = type(key) == "number" and key - 1 or key
                end
                nested.place(out, keys, err.message)
            end
            return nil, out
        end,
    }
end

local _M = checker(true)

--- Checks schemas of plugins: `validate(self, definition)`, true or nil and messages by field.
_M.MetaSubSchema = checker(false)

return _M
