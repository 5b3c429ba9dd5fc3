--- Memory outside Lua's, for what the core is given: taken piece by piece, given back at once.
--
-- A hundred thousand records as Lua strings would be work for the collector; and what stands here
-- does not move. Where there is none it throws `{ word = "full" }`, as gateway.store.failure knows.
-- @module gateway.image.memory

local ffi = require("ffi")

local C = ffi.C
local cast = ffi.cast
local copy = ffi.copy

ffi.cdef([[
void *malloc(size_t size);
void *realloc(void *pointer, size_t size);
void free(void *pointer);
]])

-- The first is for one change: larger ones are mapped and unmapped by the kernel each time.
local FIRST_CHUNK, CHUNK = 16 * 1024, 1024 * 1024
local RECORD = "sluice_core_entity_t"

local _M = {}
local methods = {}
local mt = { __index = methods }

local bytes = ffi.typeof("char *")

--- Makes memory that holds nothing.
-- @treturn table `records`, an array of `sluice_core_entity_t`, and `count`
function _M.new()
    return setmetatable({
        chunks = {},
        at = nil,
        left = 0,
        records = ffi.cast("sluice_core_entity_t *", nil),
        count = 0,
        capacity = 0,
    }, mt)
end

local function check(pointer)
    if pointer == nil then
        error({ word = "full", reason = "no memory for an image" }, 0)
    end
    return pointer
end

--- Takes bytes, not zeroed, aligned to 8.
-- @tparam number size
-- @treturn cdata `char *`
function methods:take(size)
    size = size + -size % 8
    if size > self.left then
        local least = #self.chunks == 0 and FIRST_CHUNK or CHUNK
        local chunk = size > least and size or least
        local taken = cast(bytes, check(C.malloc(chunk)))
        self.chunks[#self.chunks + 1] = taken
        self.at, self.left = taken, chunk
    end
    local found = self.at
    self.at, self.left = found + size, self.left - size
    return found
end

--- Copies bytes.
-- @tparam cdata|string from
-- @tparam number length
-- @treturn cdata `char *`
function methods:copy(from, length)
    local to = self:take(length)
    copy(to, from, length)
    return to
end

--- Copies a string.
function methods:put(text)
    return self:copy(text, #text)
end

--- One more record, zeroed. Those before it may move.
-- @treturn cdata
function methods:add()
    if self.count == self.capacity then
        local capacity = self.capacity > 0 and self.capacity * 2 or 64
        local size = capacity * ffi.sizeof(RECORD)
        self.records = cast("sluice_core_entity_t *", check(C.realloc(self.records, size)))
        self.capacity = capacity
    end
    local record = self.records[self.count]
    ffi.fill(record, ffi.sizeof(RECORD))
    self.count = self.count + 1
    return record
end

--- Gives everything back.
function methods:free()
    for i = 1, #self.chunks do
        C.free(self.chunks[i])
    end
    C.free(self.records)
    self.chunks, self.records, self.left, self.count, self.capacity = {}, nil, 0, 0, 0
end

return _M
