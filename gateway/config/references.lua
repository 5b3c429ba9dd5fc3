--- Where an entity refers to a value, `{vault://env/NAME}`: the store and images have the
-- reference, who uses the entity the value.
-- @module gateway.config.references

local find = string.find
local ipairs = ipairs
local pairs = pairs
local type = type

local BEGIN = "{vault://"

local _M = {}

--- Puts the references of a checked entity in the place of the values that stand for them.
-- @tparam table entity of a snapshot, changed in place
-- @treturn table the entity
function _M.put(entity)
    for _, reference in ipairs(entity.__references or {}) do
        local place, keys = entity, reference.keys
        for i, key in ipairs(keys) do
            -- Indices of paths count from 0.
            key = type(key) == "number" and key + 1 or key
            if i == #keys then
                place[key] = reference.text
            end
            place = place[key]
        end
    end
    return entity
end

local function resolve(value, look_up)
    for key, item in pairs(value) do
        local found, err = item, nil
        if type(item) == "table" then
            found, err = resolve(item, look_up)
        elseif type(item) == "string" and find(item, BEGIN, 1, true) == 1 then
            found, err = look_up(item)
            value[key] = found
        end
        if found == nil then
            return nil, err
        end
    end
    return value
end

--- Looks the references in a decoded entity up.
-- @tparam string text of the entity: most have none, which it tells at once
-- @tparam table entity changed in place
-- @tparam function look_up of gateway.config.vault
-- @treturn table|nil the entity
-- @treturn nil|string why a value is not there
function _M.resolve(text, entity, look_up)
    if not find(text, BEGIN, 1, true) then
        return entity
    end
    return resolve(entity, look_up)
end

return _M
