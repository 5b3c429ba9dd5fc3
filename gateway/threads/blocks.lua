--- A long list outside of any Lua state, for those of a process that hand it on: its pieces
-- (gateway.threads.pieces) one behind the other, each behind its size. Whoever has it last frees
-- it.
--
-- It is mapped for itself, so that its memory goes back to the kernel.
-- @module gateway.threads.blocks

local ffi = require("ffi")
local string_buffer = require("string.buffer")

ffi.cdef([[
void *gateway_blocks_map(void *at, size_t size, int protection, int flags, int file, long offset)
    __asm__("mmap");
void *gateway_blocks_grow(void *at, size_t size, size_t to, int flags) __asm__("mremap");
int gateway_blocks_unmap(void *at, size_t size) __asm__("munmap");
]])

local C = ffi.C

-- Of Linux, on every machine that it runs on but for some (MIPS, Alpha) that LuaJIT's GC64 is not
-- for.
local READ_WRITE, PRIVATE, ANONYMOUS, MAY_MOVE = 3, 2, 0x20, 1
local FAILED = ffi.cast("void *", -1)

-- Items of a piece, bytes of an empty list, and what is freed at once: whole pages all of them.
local PIECE = 100
local LEAST_BYTES = 64 * 1024
local PART_BYTES = 16 * 1024 * 1024
-- A size, at an address that it divides.
local WORD, SIZE = 4, ffi.typeof("uint32_t *")

local _M = {}
local methods = {}
local mt = { __index = methods }

--- Begins a list. Throws where there is no memory.
-- @treturn table with `count`, items so far; `bytes`, the memory that it has
function _M.new()
    local memory = C.gateway_blocks_map(nil, LEAST_BYTES, READ_WRITE, PRIVATE + ANONYMOUS, -1, 0)
    if memory == FAILED then
        error("not enough memory", 0)
    end
    return setmetatable(
        { memory = memory, bytes = LEAST_BYTES, used = 0, count = 0, piece = {} },
        mt
    )
end

local function flush(self)
    local text = string_buffer.encode(self.piece)
    local needed = self.used + math.ceil(#text / WORD) * WORD + WORD
    if needed > self.bytes then
        local bytes = math.max(self.bytes * 2, needed)
        local memory = C.gateway_blocks_grow(self.memory, self.bytes, bytes, MAY_MOVE)
        if memory == FAILED then
            error("not enough memory", 0)
        end
        self.memory, self.bytes = memory, bytes
    end
    local at = ffi.cast("char *", self.memory) + self.used
    ffi.cast(SIZE, at)[0] = #text
    ffi.copy(at + WORD, text, #text)
    self.used, self.piece = needed, {}
end

--- Adds an item: plain data. Throws where there is no memory.
function methods:add(item)
    self.piece[#self.piece + 1] = item
    self.count = self.count + 1
    if #self.piece == PIECE then
        flush(self)
    end
end

--- Ends the list.
-- @treturn table `{ address =, bytes =, used =, count = }`: plain data, for the functions below
function methods:finish()
    flush(self)
    return {
        address = tonumber(ffi.cast("uintptr_t", self.memory)),
        bytes = self.bytes,
        used = self.used,
        count = self.count,
    }
end

--- Frees a list that is not finished.
function methods:drop()
    C.gateway_blocks_unmap(self.memory, self.bytes)
end

--- Goes through a list.
-- @tparam table list of `finish`
-- @tparam function fn called with each item
-- @tparam[opt] function pause called after each piece, may yield
function _M.each(list, fn, pause)
    local memory, at = ffi.cast("char *", ffi.cast("uintptr_t", list.address)), 0
    while at < list.used do
        local size = ffi.cast(SIZE, memory + at)[0]
        for _, item in ipairs(string_buffer.decode(ffi.string(memory + at + WORD, size))) do
            fn(item)
        end
        at = at + math.ceil(size / WORD) * WORD + WORD
        if pause then
            pause()
        end
    end
end

--- Frees a list, once. The kernel takes some 100 ms for a gigabyte: so in parts.
-- @tparam table list of `finish`
-- @tparam[opt] function pause called after each part, may yield
function _M.free(list, pause)
    local memory = ffi.cast("char *", ffi.cast("uintptr_t", list.address))
    for at = 0, list.bytes - 1, PART_BYTES do
        C.gateway_blocks_unmap(memory + at, math.min(PART_BYTES, list.bytes - at))
        if pause then
            pause()
        end
    end
end

return _M
