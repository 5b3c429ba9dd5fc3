--- What is wrong with the `schema.lua` of a plugin.
-- @module gateway.plugin.schema_check

local metaschema = require("gateway.schema.metaschema")
local nearest = require("sluice.nearest")
local plan = require("gateway.schema.plan")

local _M = {}

-- What all that reads configurations relies on.
local function check_config(schema)
    local names = {}
    for i, entry in ipairs(schema.fields) do
        local name, field = next(entry)
        if name == "config" then
            local is_record = field.type == "record" and field.fields
            return not is_record and "config: record with fields expected" or nil
        end
        names[i] = name
    end
    local near = nearest.find("config", names)
    return near and ("%s: unknown field; did you mean config?"):format(near)
        or "config: required field missing"
end

--- Checks the schema of a plugin, and makes its records required. Does not yield.
-- @param schema what the file returns
-- @tparam string name of the plugin
-- @tparam[opt=false] boolean is_bundled its words are not looked at: those of all bundled ones take
-- 7 ms, which each start would pay
-- @treturn string|nil what is wrong, in one line for people
function _M.check(schema, name, is_bundled)
    local errors = not is_bundled and metaschema.check(schema)
    if errors then
        return metaschema.text(errors)
    elseif schema.name ~= name then
        return ("is named '%s' inside"):format(tostring(schema.name))
    end
    local err = check_config(schema)
    if not err then
        plan.require_records(schema)
    end
    return err
end

return _M
