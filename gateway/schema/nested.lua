--- Errors of a validation as Kong nests them: a message where the field stands; what is said of a
-- record as a whole is in its list `@entity`.
-- @module gateway.schema.nested

local cjson = require("cjson")

local NULL = cjson.null

local _M = {}

-- The table of what stands at a key of another.
local function inner(fields, key)
    -- Lists begin with 0 in paths. What comes before has nothing wrong.
    key = type(key) == "number" and key + 1 or key
    for before = 1, type(key) == "number" and key - 1 or 0 do
        if fields[before] == nil then
            fields[before] = NULL
        end
    end
    local there = fields[key]
    if type(there) ~= "table" then
        there = { ["@entity"] = type(there) == "string" and { there } or nil }
        fields[key] = there
    end
    return there
end

--- Puts a message where it belongs.
-- @tparam table fields is changed
-- @tparam table keys of a list, from 0, and names
-- @tparam string message
-- @tparam[opt] boolean is_of_record whether it is about the record that stands there, as a whole
function _M.place(fields, keys, message, is_of_record)
    for i = 1, #keys - 1 do
        fields = inner(fields, keys[i])
    end
    local last = keys[#keys]
    local key = type(last) == "number" and last + 1 or last
    if last and not is_of_record and type(fields[key]) ~= "table" then
        inner(fields, last)
        fields[key] = message
        return
    elseif last then
        fields = inner(fields, last)
    end
    local messages = fields["@entity"] or {}
    if type(messages) == "string" then
        -- A client has sent a field of this name.
        messages = { messages }
    end
    messages[#messages + 1] = message
    fields["@entity"] = messages
end

--- All errors of a validation.
-- @tparam {table,...} errors of gateway.schema
-- @tparam function place `(keys, message, is_of_record)`
function _M.each(errors, place)
    for _, err in ipairs(errors) do
        if err.of_record then
            place(err.of_record.keys, err.of_record.message, true)
        end
        place(err.keys, err.plain or err.message, err.is_of_record)
    end
end

return _M
