--- What a worker has mapped of what is live, and the block of the control worker
-- (module/gateway/image/ngx_sluice_images.h).
--
-- Functions are called as in C: `images.C.sluice_images_by_slot(...)`; the header has them. What
-- they find points into files that are mapped: it is good until nginx's event loop is returned to,
-- so copy it before anything yields.
-- @module sluice.ffi.images
-- @usage
-- local rc = images.C.sluice_images_by_slot(C.SLUICE_CORE_SERVICE, slot, found)

local abi = require("sluice.ffi.abi")
local core = require("sluice.ffi.core")
local ffi = require("ffi")

local tonumber = tonumber

local _M = {}

local is_nginx = abi.declare("core/image", "gateway/image", "gateway/process")

--- The functions and constants; outside nginx the constants alone.
_M.C = core.C

local C = core.C

--- Where is published what is live.
-- @treturn cdata|nil sluice_core_page_t; nil outside nginx, and without `sluice_control on`
-- @phases any but init
function _M.page()
    local page = is_nginx and ffi.C.sluice_images_page() or nil
    return page ~= nil and page or nil
end

--- The files that are live.
-- @treturn number|nil of the base; nil: nothing is published
-- @treturn number|nil of the delta
-- @phases any but init
function _M.published()
    local found = ffi.new("sluice_core_published_t")
    local page = _M.page()
    if not page or C.sluice_core_published(page, found) ~= C.SLUICE_CORE_OK then
        return nil
    end
    return tonumber(found.base), tonumber(found.delta)
end

-- A worker that cannot map what is live notes so each second, and takes the note back once it can.
-- One that has died, or leaves, takes nothing back: a note is good for so long.
local FAILED_MS = 5000

local WHY = {
    checking = "a worker was killed by a signal; checking the live image",
    damaged = "a worker cannot map the live image and answers 503",
}

--- Whether what is live may be damaged, as far as the block tells.
-- @tparam cdata block sluice_control_t
-- @tparam number now_ms since 1970
-- @treturn string|nil "damaged": a worker cannot map it; "checking": a worker has died by a signal,
-- and the files were not checked since; nil: nothing is known
-- @treturn nil|string a sentence
-- @phases any
function _M.damage(block, now_ms)
    local word
    if block.failed_at ~= 0 and now_ms - tonumber(block.failed_at) < FAILED_MS then
        word = "damaged"
    elseif block.crashes ~= block.checked then
        word = "checking"
    end
    return word, word and WHY[word]
end

-- A UUID in 16 bytes: none.
local NO_STORE = ("\0"):rep(16)

--- The store of what is live: whoever opens another one beside it has lost this one.
-- @tparam cdata block sluice_control_t
-- @treturn table|nil `store`, its UUID in 16 bytes; `revision`, the last that was answered, or one
-- before it; nil: nothing was ever changed, or an older Sluice made it live
-- @phases any
function _M.live_store(block)
    local bytes = ffi.string(block.store, 16)
    if bytes == NO_STORE or block.revision == 0 then
        return nil
    end
    return { store = bytes, revision = tonumber(block.revision) }
end

--- Notes the store of what is live; of the control worker.
-- @tparam cdata block sluice_control_t
-- @tparam string store its UUID in 16 bytes
-- @phases timer
function _M.note_store(block, store)
    ffi.copy(block.store, store, 16)
end

--- How many workers were started after one that died by a signal.
-- @treturn number 0 without `sluice_control on`
-- @phases any but init
function _M.crashes()
    local block = C.sluice_images_control_block()
    return block ~= nil and block.crashes or 0
end

--- Whether the files were checked after that many crashes.
-- @tparam number crashes of `crashes`
-- @treturn boolean
-- @phases any but init
function _M.are_checked(crashes)
    local block = C.sluice_images_control_block()
    return block == nil or block.checked == crashes
end

--- Notes that they are sound; of the control worker.
-- @tparam number crashes of `crashes`, before the check began
-- @phases timer
function _M.note_checked(crashes)
    local block = C.sluice_images_control_block()
    if block ~= nil then
        block.checked = crashes
    end
end

return _M
