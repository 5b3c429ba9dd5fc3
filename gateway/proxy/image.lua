--- What is published, as Lua reads it: the worker's view of images and deltas
-- (module/gateway/image/ngx_sluice_images.c).
--
-- What is found points into mapped files: it is good until the worker looks what is published
-- next, at the latest when the caller yields. Nothing here yields.
-- @module gateway.proxy.image

local core = require("sluice.ffi.core")
local ffi = require("ffi")
local images = require("sluice.ffi.images")

local tonumber = tonumber

local C = images.C

local OK = 0

local _M = { body = core.body }

local head = ffi.new("sluice_core_entity_t")

--- Says where images are. Opens nothing.
-- @tparam string folder
-- @phases init_worker
function _M.open(folder)
    local rc = C.sluice_images_open(folder, #folder)
    if rc ~= OK then
        error("images: " .. core.word(rc), 0)
    end
end

--- The store whose entities these are.
-- @treturn string|nil 16 bytes; nil: this worker has mapped nothing, or cannot map what is live
function _M.store()
    local view = C.sluice_images_view()
    if view == nil then
        return nil
    end
    local identity = ffi.new("sluice_core_identity_t")
    C.sluice_core_identity(view.base, identity)
    return ffi.string(identity.store, 16)
end

local function found_by(rc, found)
    return rc == OK and found or nil
end

--- What a slot holds.
-- @treturn cdata|nil `sluice_core_found_t`
function _M.by_slot(kind, slot)
    local found = ffi.new("sluice_core_found_t")
    return found_by(C.sluice_images_by_slot(kind, slot, found), found)
end

--- What has a key: the name of an upstream, of a consumer, of a host.
-- @treturn cdata|nil
function _M.by_key(kind, key)
    local found = ffi.new("sluice_core_found_t")
    return found_by(C.sluice_images_by_key(kind, key, #key, found), found)
end

--- What has an id: a consumer.
-- @tparam number kind
-- @tparam string id 16 bytes
-- @treturn cdata|nil
function _M.by_id(kind, id)
    local found = ffi.new("sluice_core_found_t")
    return found_by(C.sluice_images_by_id(kind, id, found), found)
end

--- Looks what is published.
-- @treturn number|nil the epoch; nil: nothing is, or this worker cannot map it
-- @treturn number|nil the revision: where both are the same, all entities are
function _M.look()
    if C.sluice_images_refresh() ~= OK then
        return nil
    end
    return tonumber(C.sluice_images_epoch()), tonumber(C.sluice_images_view().revision)
end

--- The credential with a key.
-- @tparam string kind such as "keyauth_credentials"
-- @tparam string key as the client sends it
-- @treturn cdata|nil
function _M.credential(kind, key)
    local found = ffi.new("sluice_core_found_t")
    return found_by(C.sluice_images_credential(kind, #kind, key, #key, found), found)
end

--- An entity of a plugin's by one of its look-ups; none that has expired.
-- @tparam number kind of the core's
-- @tparam string name of the look-up (gateway.store.layout)
-- @tparam string key
-- @treturn cdata|nil
function _M.entity(kind, name, key)
    local found = ffi.new("sluice_core_found_t")
    return found_by(C.sluice_images_entity(kind, name, #name, key, #key, found), found)
end

--- An entity of a plugin's by its id; none that has expired.
-- @tparam number kind of the core's
-- @tparam number of the number of its kind (gateway.store.layout)
-- @tparam string id 16 bytes
-- @treturn cdata|nil
function _M.of_kind(kind, of, id)
    local found = ffi.new("sluice_core_found_t")
    return found_by(C.sluice_images_of_kind(kind, of, id, found), found)
end

--- A number, or the slot that a reference holds.
function _M.number(found, field)
    return C.sluice_core_number(found, field)
end

--- Which entity it is, and which of its lives and texts.
-- @treturn number slot
-- @treturn number generation
-- @treturn number revision of the last change
function _M.place(found)
    C.sluice_core_head(found, head)
    return head.slot, head.generation, tonumber(head.revision)
end

return _M
