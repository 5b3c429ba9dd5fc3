--- What is published, as Lua reads it: the worker's view of images and deltas
-- (module/nginx/ngx_sluice_images.c).
--
-- What is found points into mapped files: it is good until the worker looks what is published
-- next, at the latest when the caller yields. Nothing here yields.
-- @module gateway.proxy.image

local base = require("resty.core.base")
local core = require("sluice.core")
local ffi = require("ffi")
local images = require("sluice.images")

local get_request = base.get_request
local tonumber = tonumber

local C = images.C

local OK = 0

local _M = {
    --- The slot that is none.
    NOBODY = core.NOBODY,
    --- The answers of `match`.
    OK = OK,
    NONE = -1,
    LIMIT = -5,
    PATTERN = -6,
    MEMORY = -7,
    LARGE = -9,

    text = core.text,
    list = core.list,
    body = core.body,
    reason = core.reason,
}

-- Of the request in hand; nothing yields between the match and the last look at it.
local match = ffi.new("sluice_images_match_t")

local head = ffi.new("sluice_core_entity_t")
local slots = ffi.new("const uint32_t *[1]")

--- Says where images are. Opens nothing.
-- @tparam string folder
-- @phases init_worker
function _M.open(folder)
    local rc = C.sluice_images_open(folder, #folder)
    if rc ~= OK then
        error("images: " .. core.word(rc), 0)
    end
end

--- Looks what is published, then for the route of the request in hand.
-- @tparam string path normalised
-- @treturn number OK; NONE; LIMIT, PATTERN, MEMORY: nobody knows whether it is the request's route;
--   LARGE: a header has too many lines; else this worker cannot see what is published
-- @treturn cdata `sluice_images_match_t`, until the next match. Its epoch changes with all that
--   plans are made of, save routes; 0: nothing is published yet
-- @phases rewrite, access
function _M.match(path)
    return C.sluice_images_match(get_request(), path, #path, match), match
end

--- The store whose entities these are.
-- @treturn string 16 bytes
function _M.store()
    local identity = ffi.new("sluice_core_identity_t")
    C.sluice_core_identity(C.sluice_images_view().base, identity)
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

--- The entity's id.
-- @treturn string with dashes, in lower case
function _M.id(found)
    C.sluice_core_head(found, head)
    local hex = ffi.string(head.id, 16):gsub(".", function(char)
        return ("%02x"):format(char:byte())
    end)
    return (hex:gsub("^(%x%x%x%x%x%x%x%x)(%x%x%x%x)(%x%x%x%x)(%x%x%x%x)", "%1-%2-%3-%4-"))
end

--- The entities of a kind that belong to one.
-- @tparam number child the kind of those
-- @tparam number kind of the owner; KINDS with slot 0: that have none
-- @tparam number slot of the owner
-- @treturn {cdata,...} in the order of their slots
function _M.children(child, kind, slot)
    local children = {}
    local count = C.sluice_core_children(C.sluice_images_view(), child, kind, slot, slots)
    local list = slots[0]
    for i = 1, count do
        children[i] = _M.by_slot(child, list[i - 1])
    end
    return children
end

return _M
