--- Entities of the published image as Lua plugins see them: tables, decoded at their first use.
--
-- They are kept in caches of a bounded size, each as long as its revision is the one that its slot
-- has. A table keeps its identity while it is cached; nobody writes to it.
-- @module gateway.proxy.entities

local cache = require("gateway.proxy.cache")
local core = require("sluice.core")
local entity_text = require("gateway.store.entity_text")
local image = require("gateway.proxy.image")
local images = require("sluice.images").C
local matched = require("gateway.request.matched")
local references = require("gateway.config.references")

local C = core.C
local CONSUMER, PLUGIN = C.SLUICE_CORE_CONSUMER, C.SLUICE_CORE_PLUGIN

-- Of each kind: what a generation of a cache holds.
local CAPACITY = 1024

local _M = {}

local plugins, look_up, report

-- The epoch in which the caches were looked at last, and the store whose entities they hold.
local seen_epoch, store_id

-- By slot: {revision, entity}; of plugins {revision, generation, name, conf, err}.
local consumers, credentials, configurations

-- Kind of credentials -> {epoch, revision, found = by key: {credential, consumer}}.
local keys_of_kind

local UUID = "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$"

-- Routes and services that requests were matched with: by slot {text, entity}.
local routes_and_services

-- Configuration -> {slot, generation}.
local places = setmetatable({}, { __mode = "k" })

local function clear()
    consumers, credentials = cache.new(CAPACITY), cache.new(CAPACITY)
    configurations = cache.new(CAPACITY)
    keys_of_kind = {}
    routes_and_services = { route = cache.new(CAPACITY), service = cache.new(CAPACITY) }
end

--- Starts with nothing.
-- @tparam table registry the plugins, of gateway.plugin.registry
-- @tparam function vault of gateway.config.vault, for the values that configurations refer to
-- @tparam function on_failure `(plugin, id, revision, message)`: a plugin cannot do with its
-- configuration
-- @phases init_worker
function _M.init_worker(registry, vault, on_failure)
    plugins, look_up, report = registry, vault, on_failure
    clear()
    seen_epoch, store_id = nil, nil
end

--- Forgets everything where the slots and revisions are another store's.
local function follow()
    local now = tonumber(images.sluice_images_epoch())
    if now ~= seen_epoch then
        local id = image.store()
        if id ~= store_id then
            clear()
        end
        seen_epoch, store_id = now, id
    end
end

--- The table of a record.
local function entity_of(kept, found)
    follow()
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
        local err = ("plugin '%s' is not loaded"):format(entity.name)
        return { revision = revision, generation = generation, name = entity.name, err = err }
    end
    local entry = { revision = revision, generation = generation, name = entity.name }
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
        entry.err = message
        return entry
    end
    entry.conf = conf
    return entry
end

--- The configuration of a plugin entity. At its first use here the plugin's `configure` is called
-- with it.
local function configuration_of(found)
    follow()
    local slot, generation, revision = image.place(found)
    local entry = configurations:get(slot)
    if not entry or entry.revision ~= revision then
        entry = configure(found, slot, generation, revision)
        configurations:set(slot, entry)
    end
    return entry
end

local function read_configuration(name, slot, generation)
    local found = image.look() and image.by_slot(PLUGIN, slot)
    local entry = found and configuration_of(found)
    if entry and entry.generation == generation and entry.name == name then
        return entry.conf, entry.err
    end
    return nil, ("the configuration of plugin '%s' is gone"):format(name)
end

--- The configuration that a chain has chosen (gateway.plugin.chain). A request that has waited may
-- get a newer one of the same entity, and that of one that is gone as long as it is known here.
-- @tparam string name of the plugin
-- @tparam number slot
-- @tparam number generation
-- @tparam number revision
-- @treturn table|nil `config`, and in `__id` the entity's id
-- @treturn nil|string why the plugin cannot do with it, for the log
function _M.configuration(name, slot, generation, revision)
    follow()
    local entry = configurations:get(slot)
    local is_it = entry and entry.generation == generation and entry.revision >= revision
    if is_it and entry.name == name then
        return entry.conf, entry.err
    end
    return read_configuration(name, slot, generation)
end

-- The record of a consumer; nil also where it is no id.
local function consumer_record(id)
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
    local found = consumer_record(id_or_name) or image.by_key(CONSUMER, id_or_name)
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

--- The route of the request in hand, or its service, as they were when it was matched.
-- @tparam string kind "route" or "service"
-- @treturn table|nil not to be changed; nil: no route has matched, or it has no service
function store.matched(_, kind)
    local slot = matched.entity(kind)
    if not slot then
        return nil
    end
    local kept = routes_and_services[kind]
    local entry = kept:get(slot)
    if not entry or not matched.is_body(entry.text) then
        local text = matched.body()
        entry = { text = text, entity = entity_text.decode(text) }
        kept:set(slot, entry)
    end
    return entry.entity
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
    return generation == place.generation and configuration_of(found).conf or nil
end

local function entity_at(kept, kind, slot, generation, id)
    local found = image.by_slot(kind, slot)
    local _, lives = 0, nil
    if found then
        _, lives = image.place(found)
    end
    return lives == generation and entity_of(kept, found) or { id = id }
end

--- A consumer that C has found.
-- @tparam number slot
-- @tparam number generation
-- @tparam string id
-- @treturn table not to be changed; where it is gone meanwhile, its `id` is all that is known
function store.consumer_at(_, slot, generation, id)
    return entity_at(consumers, CONSUMER, slot, generation, id)
end

--- A credential that C has found. As `consumer_at`.
function store.credential_at(_, slot, generation, id)
    return entity_at(credentials, C.SLUICE_CORE_CREDENTIAL, slot, generation, id)
end

return _M
