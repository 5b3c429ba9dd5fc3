--- Records of a test's own, and what the validator says of values for them.

local schema = require("gateway.schema")

local _M = {}

--- A record of these fields; `more`: its other attributes.
function _M.record(fields, more)
    local definition = { type = "record", fields = fields }
    for key, value in pairs(more or {}) do
        definition[key] = value
    end
    return definition
end

--- The errors as text, one a line; "" when the value is valid.
function _M.errors_of(definition, value, path)
    local filled, errors = schema.validate(definition, value, path)
    if filled then
        return ""
    end
    local lines = {}
    for i, err in ipairs(errors) do
        lines[i] = err.path .. ": " .. err.message
    end
    return table.concat(lines, "\n")
end

return _M
