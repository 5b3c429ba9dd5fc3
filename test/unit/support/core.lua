--- The C core by FFI: entities from Lua tables, images in memory.

local abi = require("sluice.ffi.abi")
local core = require("sluice.ffi.core")
local ffi = require("ffi")

abi.declare("core/balancer", "core/limits", "core/path", "core/text")

local lib = core.C

local _M = { lib = lib, ffi = ffi, NOBODY = core.NOBODY }

_M.entities = require("test.unit.support.entities").entities

--- A signed number as a field holds it.
local function signed(number)
    return number % 2 ^ 32
end

--- A route entity of the gateway as an entity of the core.
function _M.route(route, slot, sequence)
    local function list(given)
        return given ~= nil and next(given) ~= nil and given or nil
    end
    return {
        kind = lib.SLUICE_CORE_ROUTE,
        slot = slot,
        sequence = sequence,
        created_at = route.created_at,
        revision = route.revision,
        [0] = _M.NOBODY,
        [2] = route.name,
        [3] = list(route.hosts),
        [4] = list(route.paths),
        [5] = list(route.methods),
        [6] = list(route.headers),
        [7] = route.regex_priority and signed(route.regex_priority) or 0,
        [8] = list(route.snis),
    }
end

--- Memory for an image, aligned as the builder wants it.
function _M.memory(size)
    local raw = ffi.new("uint8_t[?]", size + 64)
    local at = tonumber(ffi.cast("uintptr_t", raw)) % 64
    return raw + (64 - at) % 64, raw
end

local function build(array, count, revision)
    local identity = ffi.new("sluice_core_identity_t", { revision = revision })
    local bound = tonumber(lib.sluice_core_image_bound(array, count))
    local memory, raw = _M.memory(bound)
    local used = ffi.new("uint64_t[1]")
    local rc = lib.sluice_core_image_build(identity, array, count, memory, bound, used)
    if rc ~= 0 then
        return nil, ffi.string(lib.sluice_core_word(rc))
    end
    assert(lib.sluice_core_check(memory, used[0]) == 0, "a fresh image is bad")
    return { base = memory, size = tonumber(used[0]), raw = raw }
end

--- Builds an image and checks it.
-- @treturn[1] table `base`, `size`, and what keeps the memory
-- @treturn[2] nil
-- @treturn[2] string the core's word
function _M.build(list, revision)
    local array, anchors = _M.entities(list)
    local image, err = build(array, #list, revision or 1)
    -- What the array points at has to live until here.
    anchors.array = array
    return image, err
end

--- A view on an image.
function _M.view(image)
    local view = ffi.new("sluice_core_view_t")
    view.base.base, view.base.size = image.base, image.size
    return view
end

local DELTA_SIZE = 64 * 1024

--- A delta on an image, in memory; `view` sees both.
function _M.delta(image, view, revision)
    local memory, raw = _M.memory(DELTA_SIZE)
    ffi.fill(memory, DELTA_SIZE)
    local identity = ffi.new("sluice_core_identity_t", { revision = revision })
    local writer = ffi.new("sluice_core_writer_t")
    assert(lib.sluice_core_delta_init(memory, DELTA_SIZE, identity, writer) == 0)
    view.base.base, view.base.size = image.base, image.size
    view.delta = writer.space
    view.revision = revision
    return { writer = writer, raw = raw, image = image }
end

--- Stages and links changes, and lets the view see them.
-- @treturn string the core's word
function _M.apply(delta, view, list)
    local array, anchors = _M.entities(list)
    local revision = view.revision + 1
    local rc = lib.sluice_core_delta_stage(delta.writer, view, array, #list, revision)
    anchors.array = array
    if rc == 0 then
        lib.sluice_core_delta_link(delta.writer)
        view.revision = revision
    end
    return ffi.string(lib.sluice_core_word(rc))
end

--- The image that a view and changes on it merge to.
function _M.merge(view, list, revision)
    local array, anchors = _M.entities(list)
    local live = ffi.new("sluice_core_live_t")
    assert(lib.sluice_core_live(view, array, #list, live) == 0)
    local image = build(live.entities, tonumber(live.count), revision)
    anchors.array = array
    lib.sluice_core_live_free(live)
    return assert(image)
end

--- The bytes of an image, or of a text.
function _M.string(data, length)
    return data ~= nil and ffi.string(data, length) or nil
end

return _M
