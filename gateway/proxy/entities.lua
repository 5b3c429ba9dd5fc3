--- Entities of the published image as Lua plugins see them: tables, decoded at their first use.
--
-- They are kept in caches of a bounded size, each as long as its revision is the one that its slot
-- has. A table keeps its identity while it is cached; nobody writes to it.
-- @module gateway.proxy.entities

local cache = require("gateway.proxy.cache")
local core = require("sluice.core")
local entity_text = require("gateway.store.entity_text")
local image = require("gateway.proxy.image")
local references = require("gateway.config.references")

local C = core.C
local CONSUMER, PLUGIN = C.SLUICE_CORE_CONSUMER, C.SLUICE_CORE_PLUGIN

-- Of each kind: what a generation of a cache holds.
local CAPACITY = 1024

local _M = {}

local plugins, look_up, report

-- By slot: {revision, entity}; of plugins {revision, conf, err}.
local consumers, credentials, configurations

-- Kind of credentials -> {epoch, revision, found = by key: {credential, consumer}}.
local keys_of_kind

local UUID = "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$"

-- Configuration -> {slot, generation}.
local places = setmetatable({}, { __mode = "k" })

--- Forgets everything: the slots are another store's.
function _M.clear()
    consumers, credentials = cache.new(CAPACITY), cache.new(CAPACITY)
    configurations = cache.new(CAPACITY)
    keys_of_kind = {}
end

--- Starts with nothing.
-- @tparam table registry the plugins, of gateway.plugin.registry
-- @tparam function vault of gateway.config.vault, for the values that configurations refer to
-- @tparam function on_failure `(plugin, id, revision, message)`: a plugin cannot do with its
-- configuration
-- @phases init_worker
function _M.init_worker(registry, vault, on_failure)
    plugins, look_up, report = registry, vault, on_failure
    _M.clear()
end

--- The table of a record.
local function entity_of(kept, found)
    local slot, _, revision = image.place(found)
    local entry = kept:get(slot)
    if not entry or entry.revision ~= revision then
        entry = { revision = revision, entity = entity_text.decode(image.body(found)) }
        kept:set(slot, entry)
    end
    return entry.entity
end

local function byte_of(hex)
    return string.char(tonumber(hex, 16))
end

local function get_ready(plugin, conf)
    if plugin.configure then
        plugin:configure({ conf })
    end
end

--- Decodes a configuration, and gets its plugin ready for it.
local function configure(found, slot, generation, revision)
    local text = image.body(found)
    local entity = entity_text.decode(text)
    local plugin = plugins:get(entity.name)
    if not plugin then
        -- It may be one that refuses requests: without it none may pass.
        return { revision = revision, err = ("plugin '%s' is not loaded"):format(entity.name) }
    end
    local conf = entity.config
    conf.__id = entity.id
    places[conf] = { slot = slot, generation = generation }
    local ok, err = references.resolve(text, entity, look_up)
    if ok then
        ok, err = pcall(get_ready, plugin, conf)
    end
    if not ok then
        local message = ("plugin '%s' failed to configure %s: %s"):format(
            entity.name,
            entity.id,
            tostring(err)
        )
        report(entity.name, entity.id, tonumber(revision), message)
        return { revision = revision, err = message }
    end
    return { revision = revision, conf = conf }
end

--- The configuration of a plugin entity. At its first use here the plugin's `configure` is called
-- with it.
-- @tparam cdata found of gateway.proxy.image
-- @treturn table|nil `config`, and in `__id` the entity's id
-- @treturn nil|string why the plugin cannot do with it, for the log
function _M.configuration(found)
    local slot, generation, revision = image.place(found)
    local entry = configurations:get(slot)
    if not entry or entry.revision ~= revision then
        entry = configure(found, slot, generation, revision)
        configurations:set(slot, entry)
    end
    return entry.conf, entry.err
end

--- The record of a consumer.
-- @tparam string id
-- @treturn cdata|nil of gateway.proxy.image; nil also where it is no id
function _M.consumer_record(id)
    if not id:find(UUID) then
        return nil
    end
    return image.by_id(CONSUMER, (id:gsub("-", ""):gsub("%x%x", byte_of)))
end

--- What plugins may look up (gateway.plugin.pdk).
local store = {}
_M.store = store

--- Finds an entity by its id or its name.
-- @tparam string kind "consumers": what an image has an index of
-- @tparam string id_or_name
-- @treturn table|nil not to be changed
function store.get(_, kind, id_or_name)
    if kind ~= "consumers" then
        error(("requests find no %s"):format(tostring(kind)), 2)
    end
    local found = _M.consumer_record(id_or_name) or image.by_key(CONSUMER, id_or_name)
    return found and entity_of(consumers, found)
end

local function find_credential(kind, key)
    local found = image.credential(kind, key)
    local owner = found
        and image.by_slot(CONSUMER, image.number(found, C.SLUICE_CORE_CREDENTIAL_CONSUMER))
    if not owner then
        return nil
    end
    return { credential = entity_of(credentials, found), consumer = entity_of(consumers, owner) }
end

--- Finds a credential, in what is published now: a key that was revoked while its request waited in
-- another plugin is not found. To compute a key's digest costs more than all else here, so what was
-- found is remembered until anything changes.
-- @tparam string kind such as "keyauth_credentials"
-- @tparam string key as the client sends it
-- @treturn table|nil the credential, not to be changed
-- @treturn table|nil its consumer
-- @raise this worker cannot map what is published
function store.credential(_, kind, key)
    local epoch, revision = image.look()
    if not epoch then
        error("the configuration cannot be read", 0)
    end
    local keys = keys_of_kind[kind]
    if not keys or keys.epoch ~= epoch or keys.revision ~= revision then
        keys = { epoch = epoch, revision = revision, found = cache.new(CAPACITY) }
        keys_of_kind[kind] = keys
    end
    local entry = keys.found:get(key)
    if not entry then
        entry = find_credential(kind, key)
        if not entry then
            return nil
        end
        keys.found:set(key, entry)
    end
    return entry.credential, entry.consumer
end

--- What stands now where a configuration came from.
-- @tparam table conf that a plugin was given
-- @treturn table|nil the same, or a newer one; nil where its plugin entity is gone or disabled
function store.current(_, conf)
    local place = places[conf]
    -- A timer asks, in a worker that may have had no request since.
    local found = place and image.look() and image.by_slot(PLUGIN, place.slot)
    if not found then
        return nil
    end
    local _, generation = image.place(found)
    return generation == place.generation and _M.configuration(found) or nil
end

return _M
