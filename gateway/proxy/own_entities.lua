--- Entities as `kong.db` finds them, in what is published now: plugins' own ones by id and by what
-- is unique in them, consumers by id and username. Nothing here yields.
--
-- An entity is decoded each time, so that its finder may write to it; who asks for the same one
-- often keeps it (`kong.cache`).
-- @module gateway.proxy.own_entities

local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local image = require("gateway.proxy.image")
local layout = require("gateway.store.layout")
local lifetime = require("gateway.schema.lifetime")
local records = require("gateway.image.records")
local references = require("gateway.config.references")
local rows = require("gateway.image.rows")

local find = string.find

local CONSUMER = require("sluice.ffi.core").C.SLUICE_CORE_CONSUMER

local _M = {}

local look_up_vault

-- kind -> { kind = the core's, number =, names = field or "cache_key" -> name of the look-up }
local kinds

-- kind -> names of the fields that may refer to a vault
local fields_of = {}

local function referenceable(kind)
    local names = fields_of[kind]
    if not names then
        names = {}
        for _, entry in ipairs(entities.get(kind).fields) do
            local name, field = next(entry)
            names[#names + 1] = field.referenceable and name or nil
        end
        fields_of[kind] = names
    end
    return names
end

-- What is known of a kind, from its layout.
local function place_of(of)
    local names = {}
    for _, column in ipairs(of.space == "credentials" and of.columns or {}) do
        if column.is_name then
            names[column.fields[1]] = of.kind
        end
    end
    for _, look_up in ipairs(of.look_ups) do
        names[look_up.field or "cache_key"] = look_up.name
    end
    return { kind = records.kind_of(of), number = of.number, names = names, expiry = of.expiry }
end

--- Learns which kinds there are.
-- @tparam function vault of gateway.config.vault
-- @phases init_worker
function _M.init_worker(vault)
    look_up_vault, kinds = vault, {}
    for _, of in ipairs(layout.derive(entities.stored(), entities.of_plugins())) do
        if of.look_ups then
            kinds[of.kind] = place_of(of)
        end
    end
    kinds.consumers = { kind = CONSUMER, names = { username = true } }
end

--- Whether images have a look-up.
-- @tparam string kind
-- @tparam string by "id", a field that is unique, or "cache_key"
-- @treturn boolean
-- @phases any but init
function _M.has(kind, by)
    local place = kinds[kind]
    return place ~= nil and (by == "id" or place.names[by] ~= nil)
end

-- Looks up what fields refer to that may refer to a vault, and no others: those are a client's to
-- write.
local function resolve(kind, text, entity)
    local begins = entity._vaults
    entity._vaults = nil
    for _, name in ipairs(find(text, "{vault://", 1, true) and referenceable(kind) or {}) do
        local one = { [name] = entity[name], _vaults = begins }
        local ok, err = references.resolve(text, one, look_up_vault)
        if not ok then
            error(err, 0)
        end
        entity[name] = one[name]
    end
end

--- Reads the text of an entity.
-- @tparam string kind
-- @tparam string text
-- @treturn table the caller's own
-- @raise a value of the environment that it refers to is not there
-- @phases any
function _M.decode(kind, text)
    local entity = entity_text.decode(text)
    lifetime.show(entity, ngx.time())
    resolve(kind, text, entity)
    return entity
end

local function record_of(place, by, value)
    local is_consumer, is_id = place.kind == CONSUMER, by == "id"
    if is_consumer and is_id then
        return image.by_id(CONSUMER, rows.uuid_bytes(value))
    elseif is_consumer then
        return image.by_key(CONSUMER, value)
    elseif is_id then
        return image.of_kind(place.kind, place.number, rows.uuid_bytes(value))
    end
    return image.entity(place.kind, place.names[by], value)
end

--- Finds an entity.
-- @tparam string kind
-- @tparam string by as of `has`, which has to be there
-- @tparam string value of an id a UUID; of a cache key Kong's, without its workspace
-- @treturn table|nil the caller's own; nil: there is none, or it has expired
-- @raise this worker cannot map what is published
-- @phases any but init
function _M.find(kind, by, value)
    if not image.look() then
        error("the configuration cannot be read", 0)
    end
    local found = record_of(kinds[kind], by, value)
    return found and _M.decode(kind, image.body(found))
end

return _M
