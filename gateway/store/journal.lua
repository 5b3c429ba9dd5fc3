--- SQLite's rollback journal: whether it is of this store, at this time.
--
-- Whoever opens a store has SQLite play back a journal beside it, whatever store or day that is of,
-- and nothing tells that SQLite did. A store has one while its new file is filled, and for a moment
-- when it gets its log: page 1 is written, and nothing else. A journal beside a store that was
-- closed, or that has had its log, is of that moment, or foreign. The format:
-- https://sqlite.org/fileformat2.html#the_rollback_journal
-- @module gateway.store.journal

local ffi = require("ffi")
local pages = require("gateway.store.pages")
local stat = require("posix.sys.stat")

local MAGIC = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
-- Of the magic: how many records, a nonce, pages of the file, bytes of a sector and of a page.
local HEADER_BYTES = 28
local RECORDS_AT, PAGES_AT, SECTOR_AT, PAGE_AT = 9, 17, 21, 25
-- A record is the number of a page, the page, a checksum.
local NUMBER_BYTES, CHECKSUM_BYTES = 4, 4
local MAX_PAGE, MAX_SECTOR = 65536, 65536
-- In page 1, https://sqlite.org/fileformat2.html#the_database_header
local FILE_PAGE_AT, FILE_MODE_AT, HAS_LOG = 17, 19, 2

local _M = {}

local function begin_of(path, size)
    local from = io.open(path, "rb")
    local text = from and from:read(size) or ""
    if from then
        from:close()
    end
    return text
end

local function number_at(text, at)
    local a, b, c, d = text:byte(at, at + 3)
    return ((a * 256 + b) * 256 + c) * 256 + d
end

local function page_size_of(head)
    local size = head:byte(FILE_PAGE_AT) * 256 + head:byte(FILE_PAGE_AT + 1)
    return size == 1 and MAX_PAGE or size
end

local function digest(text, size)
    local bytes = ffi.new("uint8_t[?]", size)
    ffi.copy(bytes, text, size)
    return pages.digest(bytes, 1, size)
end

-- Whether it changes nothing: it has page 1 as that is, and cuts nothing off. A file of one page is
-- of a store that was never filled.
local function is_of_the_switch(path, head, journal, size)
    local page_size = page_size_of(head)
    local file_size = stat.stat(path).st_size
    if file_size <= page_size then
        return true
    end
    local text = begin_of(journal, MAX_SECTOR + NUMBER_BYTES + MAX_PAGE + CHECKSUM_BYTES)
    local sector, length = number_at(text, SECTOR_AT), NUMBER_BYTES + page_size + CHECKSUM_BYTES
    if text:byte(1) == 0 then
        -- Not synced yet, or ended: SQLite passes it over.
        return true
    elseif
        text:sub(1, #MAGIC) ~= MAGIC
        or number_at(text, PAGE_AT) ~= page_size
        or number_at(text, PAGES_AT) * page_size ~= file_size
        or sector > MAX_SECTOR
        or size > sector + length
    then
        return false
    elseif size < sector + length then
        return number_at(text, RECORDS_AT) == 0
    end
    local record = text:sub(sector + 1)
    local page = begin_of(path, page_size)
    return number_at(record, 1) == 1
        and digest(record:sub(NUMBER_BYTES + 1), page_size) == digest(page, page_size)
end

--- Whether SQLite may play back the journal beside a store; true where it would not, or there is
-- none.
-- @tparam string path of the store
-- @tparam table|nil known of gateway.store.witness
-- @treturn boolean
function _M.is_ours(path, known)
    local journal = path .. "-journal"
    local found, head = stat.stat(journal), begin_of(path, HEADER_BYTES)
    if not found or found.st_size < HEADER_BYTES or #head < HEADER_BYTES then
        return true
    end
    local is_filled = known and known.is_closed or head:byte(FILE_MODE_AT) == HAS_LOG
    return not is_filled or is_of_the_switch(path, head, journal, found.st_size)
end

return _M
