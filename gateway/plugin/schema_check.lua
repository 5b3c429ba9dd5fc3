--- What is wrong with the `schema.lua` of a plugin.
-- @module gateway.plugin.schema_check

local entities = require("gateway.entities")
local metaschema = require("gateway.schema.metaschema")
local nearest = require("sluice.nearest")
local plan = require("gateway.schema.plan")
local schema_of = require("gateway.schema")
local text = require("gateway.schema.text")

-- Bytes of a name that are shown.
local MAX_NAME = 60

local _M = {}

-- Fields that all configurations of plugins have; a schema may only be stricter about them, as in
-- Kong (`new_subschema`): a new field would never be read.
local function check_field(name, field, base)
    local of = base[name]
    if of and of.type ~= field.type then
        return ("%s: expected the type %s"):format(name, of.type)
    elseif of then
        return nil
    end
    local near = nearest.find(name, schema_of.sorted_keys(base))
    local hint = near and ("did you mean %s?"):format(near)
        or "a plugin's own fields stand in the record config"
    return ("%s: unknown field; %s"):format(name, hint)
end

-- What all that reads configurations relies on.
local function check_config(fields)
    local config = fields.config
    if config then
        local is_record = config.type == "record" and config.fields
        return not is_record and "config: record with fields expected" or nil
    end
    local near = nearest.find("config", schema_of.sorted_keys(fields))
    return near and ("%s: unknown field; did you mean config?"):format(near)
        or "config: required field missing"
end

local function check_fields(schema)
    local fields = {}
    for _, entry in ipairs(schema.fields) do
        local name, field = next(entry)
        fields[name] = field
    end
    local base, err = schema_of.fields(entities.get("plugins")), check_config(fields)
    for _, name in ipairs(schema_of.sorted_keys(fields)) do
        err = err or check_field(name, fields[name], base)
    end
    return err
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
        local line = "the schema's name is '%s'; expected '%s', the name of its folder"
        return line:format(text.plain(tostring(schema.name), MAX_NAME), name)
    end
    local err = check_fields(schema)
    if not err then
        plan.require_records(schema)
    end
    return err
end

return _M
