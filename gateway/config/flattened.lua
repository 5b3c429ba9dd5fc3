--- Errors of a declarative file by entity, as `flatten_errors=1` asks for them: what Kong's ingress
-- controller tells its users.
-- @module gateway.config.flattened

local json = require("gateway.schema.json")
local text_rules = require("gateway.schema.text")

local min = math.min

local _M = {}

-- What an entity may have of tags, and bytes of a text that is shown: one that is wrong may have
-- more.
local MAX_TAGS = 256
local MAX_TEXT = 300

local function text_or_nil(value)
    return type(value) == "string" and text_rules.shorten(value, MAX_TEXT) or nil
end

-- `.paths[0]` as Kong writes it: `paths.1`.
local function field_of(err)
    local field = err.field:gsub("%[(%d+)%]", function(index)
        return "." .. tonumber(index) + 1
    end)
    return field:gsub("^%.", "")
end

local function described(err)
    local value = type(err.value) == "table" and err.value or {}
    local tags = json.array({})
    local given = type(value.tags) == "table" and value.tags or {}
    for i = 1, min(#given, MAX_TAGS) do
        tags[#tags + 1] = text_or_nil(given[i])
    end
    return {
        entity_type = err.kind:gsub("s$", ""),
        entity_id = text_or_nil(value.id),
        entity_name = text_or_nil(value.name),
        entity_tags = #tags > 0 and tags or nil,
        errors = json.array({}),
    }
end

--- The errors that are about entities, each with what it is known by; without the entity as the
-- file has it, which may hold secrets.
-- @tparam {table,...} errors of gateway.config
-- @treturn {table,...} in the order of the file's errors
-- @treturn {table,...} the other errors
function _M.of(errors)
    local list, others, by_value = json.array({}), {}, {}
    for _, err in ipairs(errors) do
        if err.kind then
            local key = err.value ~= nil and err.value or err.path
            local entry = by_value[key]
            if not entry then
                entry = described(err)
                list[#list + 1] = entry
                by_value[key] = entry
            end
            local field = field_of(err)
            entry.errors[#entry.errors + 1] = {
                type = field == "" and "entity" or "field",
                field = field ~= "" and field or nil,
                message = err.message,
            }
        else
            others[#others + 1] = err
        end
    end
    return list, others
end

return _M
