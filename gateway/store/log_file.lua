--- SQLite's write-ahead log as a file: which pages stand in it, and where it stops being whole.
--
-- SQLite takes the frames up to the last commit before the first that is damaged, and says nothing
-- of those behind. So a store that wants to know has to look by itself. The format:
-- https://sqlite.org/fileformat2.html#walformat
-- @module gateway.store.log_file

local fcntl = require("posix.fcntl")
local ffi = require("ffi")
local file = require("sluice.file")
local unistd = require("posix.unistd")

local bswap = bit.bswap
local cast = ffi.cast
local tobit = bit.tobit

ffi.cdef("int64_t pread(int fd, void *bytes, size_t size, int64_t offset);")

local HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
-- The lowest bit says that checksums are of big-endian words.
local MAGIC = 0x377f0682
local MIN_PAGE, MAX_PAGE = 512, 65536

local words_type = ffi.typeof("const int32_t *")

local _M = {}
local methods = {}
local mt = { __index = methods }

-- The log's checksum goes on from frame to frame.
local function add(self, words, count)
    local one, two = self.one, self.two
    if self.swaps then
        for i = 0, count - 1, 2 do
            one = tobit(one + bswap(words[i]) + two)
            two = tobit(two + bswap(words[i + 1]) + one)
        end
    else
        for i = 0, count - 1, 2 do
            one = tobit(one + words[i] + two)
            two = tobit(two + words[i + 1] + one)
        end
    end
    self.one, self.two = one, two
end

local function read_at(self, offset, size)
    return ffi.C.pread(self.fd, self.buffer, size, offset) == size
end

-- Whether the header is one, and whole.
local function read_header(self)
    self.buffer = ffi.new("uint8_t[?]", FRAME_HEADER_BYTES + MAX_PAGE)
    if not read_at(self, 0, HEADER_BYTES) then
        return false
    end
    local words = cast(words_type, self.buffer)
    local magic, page = tobit(bswap(words[0])), bswap(words[2])
    self.page_size, self.salt_one, self.salt_two = page, words[4], words[5]
    self.swaps = magic == MAGIC + 1
    add(self, words, 6)
    return (magic == MAGIC or magic == MAGIC + 1)
        and page >= MIN_PAGE
        and page <= MAX_PAGE
        and bit.band(page, page - 1) == 0
        and self.one == bswap(words[6])
        and self.two == bswap(words[7])
end

-- A frame of this log: page, pages of the file if it is a commit, and whether it is whole.
local function read_frame(self, number)
    local size = FRAME_HEADER_BYTES + self.page_size
    if not read_at(self, HEADER_BYTES + (number - 1) * size, size) then
        return nil
    end
    local words = cast(words_type, self.buffer)
    local is_ours, is_second = words[2] == self.salt_one, words[3] == self.salt_two
    if not is_ours and not is_second then
        return nil
    end
    add(self, words, 2)
    add(self, words + FRAME_HEADER_BYTES / 4, self.page_size / 4)
    local one, two = bswap(words[4]), bswap(words[5])
    local is_whole = is_ours and is_second and self.one == one and self.two == two
    -- Behind a damaged one the next may still be told by what this one says of itself.
    self.one, self.two = one, two
    local page, pages = bswap(words[0]), bswap(words[1])
    return page, pages, is_whole and page > 0
end

-- All frames: those of commits that are whole, and commits behind the first that is not.
local function scan(self)
    local waiting, is_sound, number = {}, true, 1
    local page, pages, is_whole = read_frame(self, number)
    while page do
        is_sound = is_sound and is_whole
        if is_sound then
            waiting[#waiting + 1] = page
        end
        if is_sound and pages > 0 then
            for i = 1, #waiting do
                self.frames[waiting[i]] = number - #waiting + i
            end
            waiting, self.pages, self.count = {}, pages, number
        elseif not is_sound and is_whole and pages > 0 then
            self.lost = self.lost + 1
        end
        number = number + 1
        page, pages, is_whole = read_frame(self, number)
    end
end

-- The frames that SQLite has said are whole: their heads alone are read.
local function list(self, count)
    local size = FRAME_HEADER_BYTES + self.page_size
    local words = cast(words_type, self.buffer)
    for number = 1, count do
        if not read_at(self, HEADER_BYTES + (number - 1) * size, FRAME_HEADER_BYTES) then
            error("a log that ends before SQLite says", 0)
        end
        self.frames[bswap(words[0])] = number
    end
    self.count, self.pages = count, bswap(words[1])
end

--- Reads a log. One that is not there, or whose header is damaged, has no frames.
-- @tparam string path
-- @tparam[opt] number count of frames up to the last commit, as SQLite has them
-- @treturn table `frames`: page -> number of the last whole frame that has it; `count` of frames up
-- to the last commit; `pages` of the database after it; `lost`: commits behind the first damaged
-- frame, none in a log that a cut of power has left but the last; for the caller to `close`
function _M.open(path, count)
    local self = setmetatable({ frames = {}, count = 0, lost = 0, one = 0, two = 0 }, mt)
    self.fd = file.open(path, fcntl.O_RDONLY)
    if self.fd and count ~= 0 and read_header(self) then
        if count then
            list(self, count)
        else
            scan(self)
        end
    end
    return self
end

--- Reads a page as its last whole frame has it.
-- @tparam number page that stands in `frames`
-- @treturn cdata|nil its bytes, good until the next call; nil where they cannot be read
function methods:read(page)
    local at = HEADER_BYTES + (self.frames[page] - 1) * (FRAME_HEADER_BYTES + self.page_size)
    return read_at(self, at + FRAME_HEADER_BYTES, self.page_size) and self.buffer or nil
end

--- Closes the file; SQLite has no locks on it.
function methods:close()
    if self.fd then
        unistd.close(self.fd)
    end
end

return _M
