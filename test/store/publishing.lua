--- What publisher.lua and follower.lua share: a page in a file, so that it outlives processes as
--- nginx's does, and transactions whose halves would show.

local core = require("sluice.ffi.core")
local entities = require("gateway.entities")
local fcntl = require("posix.fcntl")
local ffi = require("ffi")
local layout = require("gateway.store.layout")
local support = require("test.unit.support.writer")
local writer = require("gateway.writer")

ffi.cdef("void *mmap(void *at, size_t length, int protection, int flags, int fd, long offset);")

local C = core.C
local READ_WRITE, SHARED = 3, 1

local _M = { published = support.published, built = support.built }

--- Where things are below a folder.
function _M.place(folder)
    local size = tonumber(C.sluice_core_page_size())
    local path = folder .. "/page"
    local fd = assert(fcntl.open(path, fcntl.O_RDWR + fcntl.O_CREAT, tonumber("600", 8)))
    local file = assert(io.open(path, "rb"))
    local is_new = file:seek("end") == 0
    file:close()
    if is_new then
        assert(require("posix.unistd").write(fd, ("\0"):rep(size)))
    end
    local page = ffi.C.mmap(nil, size, READ_WRITE, SHARED, fd, 0)
    local schemas = {}
    for i, kind in ipairs(entities.kinds) do
        schemas[i] = entities.get(kind)
    end
    return {
        store = folder .. "/store/store.db",
        images = folder .. "/images",
        layouts = layout.derive(schemas),
        page = tonumber(ffi.cast("uintptr_t", page)),
        delta_bytes = 64 * 1024,
    }
end

--- Opens a writer; nil and an error where it cannot, or cannot publish.
function _M.open(place)
    local opened, err = writer.open(place)
    if not opened then
        return nil, err
    end
    local begun
    begun, err = opened:begin()
    if not begun then
        opened:close()
        return nil, err
    end
    return opened, begun.from
end

local function id(kind, number)
    return ("%08x-0000-4000-8000-%012d"):format(kind, number)
end

local FILL = ("x"):rep(1500)

local function route(i)
    return { id = id(1, i % 5), name = "r" .. i, paths = { "/" .. i }, tags = { FILL } }
end

local function consumer(i)
    return { id = id(2, i % 3), username = "c" .. i }
end

local function upstream(i)
    return { id = id(3, i), name = "u" .. i, slots = 10 }
end

--- The changes that make revision i.
function _M.changes(opened, i)
    local changes = {
        support.put(opened, "routes", route(i)),
        support.put(opened, "consumers", consumer(i)),
        support.put(opened, "upstreams", upstream(i)),
    }
    if i > 3 then
        changes[4] = { kind = "upstreams", delete = id(3, i - 3) }
    end
    return changes
end

--- The names that stand after revision n.
function _M.expected(n)
    local names = {}
    for i = math.max(1, n - 4), n do
        names[#names + 1] = "r" .. i
    end
    for i = math.max(1, n - 2), n do
        names[#names + 1] = "c" .. i
        names[#names + 1] = "u" .. i
    end
    table.sort(names)
    return table.concat(names, " ")
end

--- The names that a text of `published` has.
function _M.names(text)
    local names = {}
    for line in text:gmatch("[^\n]+") do
        names[#names + 1] = line:match('name":"(%w+)"')
    end
    table.sort(names)
    return table.concat(names, " ")
end

return _M
