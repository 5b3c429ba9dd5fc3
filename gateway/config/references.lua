--- Where an entity refers to a value, `{vault://env/NAME}`: the store and images have the
-- reference, who uses the entity the value.
--
-- Images have no vaults: an entity that refers to one, `{vault://my/NAME}`, has in `_vaults` what
-- the names of that vault's variables begin with: `{ my = "APP_" }`. No schema has this field, so
-- nobody is shown it or can send it.
-- @module gateway.config.references

local vault = require("gateway.config.vault")

local find = string.find
local format = string.format
local match = string.match

local BEGIN = "{vault://"
local PREFIX = "^{vault://([%w-]+)/"

local _M = {}

--- What checks look references up with.
-- @tparam function|nil look_up of gateway.config.vault
-- @tparam function begin_of `(prefix)` -> what the names of a vault's variables begin with, or nil
-- @treturn function|nil `(reference)`
function _M.with(look_up, begin_of)
    return look_up and function(reference)
        return look_up(reference, begin_of)
    end
end

--- Notes what a check has found of references.
-- @tparam table entity checked
-- @tparam table|nil found of gateway.schema's `validate`
-- @tparam function begin_of that of `with`
function _M.note(entity, found, begin_of)
    entity.__references = found
    for _, reference in ipairs(found or {}) do
        local prefix = match(reference.text, PREFIX)
        if prefix ~= vault.ENV then
            entity._vaults = entity._vaults or {}
            entity._vaults[prefix] = begin_of(prefix)
        end
    end
end

--- Whether an entity's text refers to a vault.
-- @tparam string text of gateway.store.entity_text
-- @tparam string prefix of the vault
-- @treturn boolean
function _M.has(text, prefix)
    return find(text, format("%s%s/", BEGIN, prefix), 1, true) ~= nil
end

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

--- A reference as who has no vaults looks it up: to the variable itself, `{vault://env/NAME}`.
-- @tparam string|nil value of a field
-- @tparam table|nil begins `_vaults` of its entity
-- @treturn string|nil a value that is no reference is given back
function _M.of_environment(value, begins)
    local prefix, rest = match(type(value) == "string" and value or "", "^{vault://([%w-]+)/(.*)$")
    local begin = prefix and prefix ~= vault.ENV and begins and begins[prefix]
    return begin and format("%s%s/%s%s", BEGIN, vault.ENV, begin, rest) or value
end

local function resolve(value, look_up, begin_of)
    for key, item in pairs(value) do
        local found, err = item, nil
        if type(item) == "table" then
            found, err = resolve(item, look_up, begin_of)
        elseif type(item) == "string" and find(item, BEGIN, 1, true) == 1 then
            found, err = look_up(item, begin_of)
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
    local begins = entity._vaults or {}
    return resolve(entity, look_up, function(prefix)
        return begins[prefix]
    end)
end

return _M
