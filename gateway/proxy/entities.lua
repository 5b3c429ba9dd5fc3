--- Entities of the published image as Lua plugins see them: tables, decoded at their first use.
--
-- They are kept in caches of a bounded size, each as long as its revision is the one that its slot
-- has. A table keeps its identity while it is cached; nobody writes to it, but that a plugin writes
-- into its configuration, of which there is one table as long as anybody holds it.
-- @module gateway.proxy.entities

local cache = require("gateway.proxy.cache")
local core = require("sluice.ffi.core")
local entity_text = require("gateway.store.entity_text")
local ffi = require("ffi")
local image = require("gateway.proxy.image")
local images = require("sluice.ffi.images").C
local matched = require("gateway.pdk.matched")
local references = require("gateway.config.references")

local C = core.C
local CONSUMER, CREDENTIAL, PLUGIN =
    C.SLUICE_CORE_CONSUMER, C.SLUICE_CORE_CREDENTIAL, C.SLUICE_CORE_PLUGIN

-- What a configuration may be bound to.
local OWNERS = { "route", "service", "consumer", "consumer_group" }

-- Of each kind: what a generation of a cache holds.
local CAPACITY = 1024

local _M = {}

local plugins, look_up, report, on_change

-- The epoch in which the caches were looked at last, and the store whose entities they hold.
local seen_epoch, store_id

-- By slot: {revision, entity}; of plugins {revision, generation, name, conf, err}.
local consumers, credentials, configurations

-- Kind of credentials -> {epoch, revision, found = by key: {credential, consumer}}.
local keys_of_kind

local UUID = "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$"

-- Routes and services that requests were matched with: by slot {text, entity}.
local routes_and_services

-- Configuration -> {slot, generation, revision}, and slot -> the last one that somebody holds:
-- plugins keep what they derive by it.
local places, held

local function clear()
    consumers, credentials = cache.new(CAPACITY), cache.new(CAPACITY)
    configurations = cache.new(CAPACITY)
    places, held = setmetatable({}, { __mode = "k" }), setmetatable({}, { __mode = "v" })
    keys_of_kind = {}
    routes_and_services = { route = cache.new(CAPACITY), service = cache.new(CAPACITY) }
end

--- Starts with nothing.
-- @tparam table registry the plugins, of gateway.plugin.registry
-- @tparam function vault of gateway.config.vault, for the values that configurations refer to
-- @tparam function on_failure `(plugin, id, revision, message)`: a plugin cannot do with its
-- configuration
-- @tparam[opt] function changed without arguments: plugins, services or routes may have changed
-- since it was called last; before anybody sees what is new
-- @phases init_worker
function _M.init_worker(registry, vault, on_failure, changed)
    plugins, look_up, report, on_change = registry, vault, on_failure, changed
    clear()
    seen_epoch, store_id = nil, nil
end

--- Forgets everything where the slots and revisions are another store's. Where nothing is mapped,
-- or not any more, what is known stays: requests that have begun end with it.
local function follow()
    local now = tonumber(images.sluice_images_epoch())
    local id = now ~= seen_epoch and image.store()
    if id then
        if id ~= store_id then
            clear()
        end
        seen_epoch, store_id = now, id
        if on_change then
            on_change()
        end
    end
end

--- Looks what is published, in a worker that may have no requests.
-- @phases timers
function _M.look()
    if image.look() then
        follow()
    end
end

--- The table of a record: of a consumer or of a credential.
local function entity_of(kind, found)
    follow()
    local kept = kind == CONSUMER and consumers or credentials
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

-- What Kong adds to a configuration for its plugin.
local function describe(conf, entity, revision)
    for _, kind in ipairs(OWNERS) do
        local owner = entity[kind]
        conf[kind .. "_id"] = type(owner) == "table" and owner.id or nil
    end
    local instance = entity.instance_name
    conf.plugin_instance_name = type(instance) == "string" and instance or nil
    conf.__id, conf.__plugin_id, conf.__seq__ = entity.id, entity.id, revision
    conf.__key__ = ("plugins:%s:%s:%s:%s::"):format(
        entity.name,
        conf.route_id or "",
        conf.service_id or "",
        conf.consumer_id or ""
    )
end

-- The configuration that somebody holds still, though this forgot it.
local function find_held(slot, generation, revision)
    local conf = held[slot]
    local place = conf and places[conf]
    local is_same = place and place.generation == generation and place.revision == revision
    return is_same and conf or nil
end

--- Decodes a configuration.
local function decode(found, slot, generation, revision)
    local text = image.body(found)
    if not text then
        -- It stands for those of consumers or of groups (gateway.image.placeholders).
        return { revision = revision, generation = generation }
    end
    local entity = entity_text.decode(text)
    local entry = { revision = revision, generation = generation, name = entity.name }
    if not plugins:get(entity.name) then
        -- It may be one that refuses requests: without it none may pass.
        entry.err = ("plugin '%s' is not loaded"):format(entity.name)
        return entry
    end
    entry.is_enabled = entity.enabled ~= false
    entry.is_global = true
    for _, kind in ipairs(OWNERS) do
        entry.is_global = entry.is_global and type(entity[kind]) ~= "table"
    end
    entry.conf = find_held(slot, generation, revision)
    if entry.conf then
        return entry
    end
    local conf = entity.config
    describe(conf, entity, revision)
    local ok, err = references.resolve(text, entity, look_up)
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
    places[conf] = { slot = slot, generation = generation, revision = revision }
    held[slot], entry.conf = conf, conf
    return entry
end

--- The configuration of a plugin entity.
local function configuration_of(found)
    follow()
    local slot, generation, revision = image.place(found)
    local entry = configurations:get(slot)
    if not entry or entry.revision ~= revision then
        entry = decode(found, slot, generation, revision)
        configurations:set(slot, entry)
    end
    return entry
end

-- Room for slots, as many as there were at most.
local slots, room = nil, 0

-- How many slots there are, in `slots`.
local function list_slots()
    local count = images.sluice_images_slots(PLUGIN, slots, room)
    while count > room do
        room = count + 64
        slots = ffi.new("uint32_t[?]", room)
        count = images.sluice_images_slots(PLUGIN, slots, room)
    end
    return count
end

--- All configurations of some plugins that are enabled and can be used. Decodes those that were
-- not; of all others it looks at the names.
-- @tparam table wanted name -> anything
-- @treturn table name -> list of `{ conf, is_global }`
-- @treturn table name -> text that differs where the list does
-- @phases any in a worker
function _M.all(wanted)
    local lists, marks = {}, {}
    for name in pairs(wanted) do
        lists[name], marks[name] = {}, {}
    end
    for i = 0, list_slots() - 1 do
        local slot = slots[i]
        local found = image.by_slot(PLUGIN, slot)
        local list = found and lists[core.text(found, C.SLUICE_CORE_PLUGIN_NAME)]
        local entry = list and configuration_of(found)
        if entry and entry.conf and entry.is_enabled then
            list[#list + 1] = { conf = entry.conf, is_global = entry.is_global }
            table.insert(marks[entry.name], ("%d:%d"):format(slot, entry.revision))
        end
    end
    for name, mark in pairs(marks) do
        marks[name] = table.concat(mark, " ")
    end
    return lists, marks
end

local function read_configuration(name, slot, generation)
    local found = image.look() and image.by_slot(PLUGIN, slot)
    local entry = found and configuration_of(found)
    if entry and entry.generation == generation and entry.name == name then
        return entry.conf, entry.err
    end
    return nil, ("the configuration of plugin '%s' does not exist"):format(name)
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

--- The id of the configuration in a slot, of those that are known here.
-- @tparam number slot
-- @treturn string|nil
function _M.id_of(slot)
    local conf = held[slot]
    return conf and conf.__plugin_id
end

--- Reports that C cannot do with a configuration.
-- @tparam string name of the plugin
-- @tparam number slot
-- @tparam string message
function _M.report_native(name, slot, message)
    local found = image.look() and image.by_slot(PLUGIN, slot)
    local entity = found and entity_text.decode(image.body(found))
    -- Another one may have the slot by now.
    if entity and entity.name == name then
        local _, _, revision = image.place(found)
        report(name, entity.id, tonumber(revision), message)
    end
end

-- The record of a consumer; nil also where it is no id.
local function consumer_record(id)
    if not id:find(UUID) then
        return nil
    end
    return image.by_id(CONSUMER, (id:gsub("-", ""):gsub("%x%x", byte_of)))
end

--- What plugins may look up (gateway.pdk).
local store = {}
_M.store = store

--- Finds an entity by its id or its name.
-- @tparam string kind "consumers": what an image has an index of
-- @tparam string id_or_name
-- @treturn table|nil not to be changed
function store.get(_, kind, id_or_name)
    if kind ~= "consumers" then
        error(("requests cannot find a %s"):format(tostring(kind)), 2)
    end
    local found = consumer_record(id_or_name) or image.by_key(CONSUMER, id_or_name)
    return found and entity_of(CONSUMER, found)
end

--- The id of the store whose entities these are: of all nodes that have a copy of it.
-- @treturn string|nil 16 bytes; nil: nothing can be read yet
function store.id()
    return image.look() and image.store()
end

local function find_credential(kind, key)
    local found = image.credential(kind, key)
    local owner = found
        and image.by_slot(CONSUMER, image.number(found, C.SLUICE_CORE_CREDENTIAL_CONSUMER))
    if not owner then
        return nil
    end
    return { credential = entity_of(CREDENTIAL, found), consumer = entity_of(CONSUMER, owner) }
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
    local expires_at = entry and entry.credential.expires_at
    if not entry or (expires_at and expires_at <= ngx.time()) then
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
    -- A timer asks, in a worker that may have had no request since.
    _M.look()
    local place = places[conf]
    local found = place and image.by_slot(PLUGIN, place.slot)
    if not found then
        return nil
    end
    local _, generation = image.place(found)
    return generation == place.generation and configuration_of(found).conf or nil
end

local function entity_at(kind, slot, generation, id)
    local found = image.by_slot(kind, slot)
    local _, lives = 0, nil
    if found then
        _, lives = image.place(found)
    end
    return lives == generation and entity_of(kind, found) or { id = id }
end

--- A consumer that C has found.
-- @tparam number slot
-- @tparam number generation
-- @tparam string id
-- @treturn table not to be changed; where it is gone meanwhile, its `id` is all that is known
function store.consumer_at(_, slot, generation, id)
    return entity_at(CONSUMER, slot, generation, id)
end

--- A credential that C has found. As `consumer_at`.
function store.credential_at(_, slot, generation, id)
    return entity_at(CREDENTIAL, slot, generation, id)
end

return _M
