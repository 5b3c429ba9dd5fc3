--- The generations of keys, which all workers share (module/core/image/generations.h).
--
-- An entry of `kong.cache` remembers the word of its key as it was before the value was read. The
-- writer raises the words of what a change can have made wrong, before the change is answered
-- (gateway.writer.raising), and so does who invalidates a key.
-- @module gateway.kit.cache.generations

local core = require("sluice.ffi.core")
local ffi = require("ffi")
local images = require("sluice.ffi.images")

local C = core.C

local _M = {}

local all, words

-- Elsewhere there are no images to follow.
local is_nginx = ngx ~= nil and ngx.get_phase ~= nil

--- Where the words are; a process that shares none with others has its own.
-- @tparam[opt] cdata generations `sluice_core_generations_t`
-- @phases init_worker, or without nginx
function _M.use(generations)
    all = generations or ffi.new("sluice_core_generations_t")
    words = all.words
end

--- Takes those that the workers of this nginx share.
-- @phases init_worker
function _M.init_worker()
    local page = images.page()
    _M.use(page and C.sluice_images_generations() or nil)
end

--- The number of a key's word. Some 20 ns.
-- @tparam string key
-- @treturn number
-- @phases any
function _M.place(key)
    return C.sluice_core_generations_place(key, #key)
end

--- The word at a place, for who compares.
-- @tparam number place
-- @treturn number
-- @phases any
function _M.read(place)
    return C.sluice_core_generations_read(all, place)
end

--- The same, for who loads: what this worker sees of the configuration is as new as the word, or
-- newer. A request sees that of its beginning otherwise, and would keep it under the new word.
-- @tparam number place
-- @treturn number
-- @phases any
function _M.begin(place)
    local word = C.sluice_core_generations_read(all, place)
    if is_nginx then
        C.sluice_images_refresh()
    end
    return word
end

--- The words themselves, for who compares what it has kept.
-- @treturn cdata array of numbers, good until the worker ends
-- @phases any
function _M.words()
    return words
end

--- Has what is kept under a place's keys read again.
-- @tparam number place
-- @treturn number the new word
-- @phases any
function _M.raise(place)
    return C.sluice_core_generations_raise(all, place)
end

--- The same, if nothing has changed since the word was read.
-- @tparam number place
-- @tparam number word
-- @treturn boolean whether it has raised it, to `word + 1`
-- @phases any
function _M.raise_from(place, word)
    return C.sluice_core_generations_raise_from(all, place, word) ~= 0
end

--- Has everything read again.
-- @phases any
function _M.raise_all()
    C.sluice_core_generations_raise_all(all)
end

_M.use()

return _M
