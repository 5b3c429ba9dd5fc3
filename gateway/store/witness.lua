--- What is known of a store outside of it, in a file beside it: `store.db.witness`.
--
-- | at | what | written |
-- |---|---|---|
-- | 0 | the *claim*: the store's uuid, the last revision that was answered, whether it was closed
--       in order, whether its entities are those of a file | with each commit, in its place |
-- | 512 | the *table*: size and number of pages, a digest of the digests | with each checkpoint |
-- | 4096 | a digest of each page of `store.db`; 0: nothing is known of it | with each checkpoint |
--
-- A claim is written after the log was synced, and before the change is answered: so it outlives
-- whatever ends the process, and after a cut of power it is at most behind, never ahead. The first
-- one after a checkpoint is synced. The rest is written before a checkpoint, into a file that takes
-- the place of this one. docs/store.md has what is found by it.
-- @module gateway.store.witness

local fcntl = require("posix.fcntl")
local ffi = require("ffi")
local file = require("sluice.file")
local files = require("gateway.store.files")
local unistd = require("posix.unistd")

local band, bnot, bor = bit.band, bit.bnot, bit.bor
local cast = ffi.cast
local sizeof = ffi.sizeof

ffi.cdef([[
typedef struct {
    char magic[8];
    uint64_t revision;
    char uuid[36];
    uint32_t flags;
    uint64_t digest;
} store_claim_t;

typedef struct {
    uint64_t revision;
    uint32_t page_size;
    uint32_t pages;
    uint64_t table;
    uint64_t digest;
} store_table_t;

int64_t pread(int fd, void *bytes, size_t size, int64_t offset);
int64_t pwrite(int fd, const void *bytes, size_t size, int64_t offset);
]])

local MAGIC = "SLCWITN1"
local IS_CLOSED, IS_OF_FILE = 1, 2
-- The table stands in another sector than the claim, which is written in its place.
local TABLE_AT, DIGESTS_AT = 512, 4096
local WORD, UUID_BYTES = 8, 36
-- Of a database of 64 GiB.
local MAX_BYTES = DIGESTS_AT + WORD * 2 ^ 24

local words_type = ffi.typeof("const uint64_t *")
local claim_type, table_type = ffi.typeof("store_claim_t"), ffi.typeof("store_table_t")
local buffer_type = ffi.typeof("uint8_t[?]")

local _M = {}

--- A digest that is another one for any two texts which differ in one word of 8 bytes, and for
-- nearly all others that differ. 10 GB a second.
-- @tparam cdata bytes
-- @tparam number size a multiple of 8
-- @tparam number seed
-- @treturn cdata `uint64_t`, never 0
function _M.digest(bytes, size, seed)
    local words = cast(words_type, bytes)
    local one, two = 1ULL * seed, 1ULL
    for i = 0, size / WORD - 1 do
        one = one + words[i]
        two = two + one
    end
    -- An even factor: what differs in one word differs here.
    local both = one + 0x9e3779b97f4a7c16ULL * two
    return both == 0 and 1ULL or both
end

local function seal(struct)
    struct.digest = _M.digest(struct, sizeof(struct) - WORD, 0)
end

local function is_sealed(struct)
    return struct.digest == _M.digest(struct, sizeof(struct) - WORD, 0)
end

local function fill_claim(claim, uuid, revision, flags)
    ffi.copy(claim.magic, MAGIC, #MAGIC)
    ffi.fill(claim.uuid, UUID_BYTES)
    ffi.copy(claim.uuid, uuid, math.min(#uuid, UUID_BYTES))
    claim.revision, claim.flags = revision, flags
end

--- The witness of a store.
-- @tparam string path of the store
-- @treturn string
function _M.path(path)
    return path .. ".witness"
end

-- The table, where that is whole.
local function read_table(bytes, size)
    local head = table_type()
    ffi.copy(head, bytes + TABLE_AT, sizeof(head))
    local length = WORD * tonumber(head.pages)
    local is_whole = is_sealed(head)
        and size == DIGESTS_AT + length
        and head.table == _M.digest(bytes + DIGESTS_AT, length, 0)
    return is_whole and head or nil
end

--- Reads it.
-- @tparam string path of the store
-- @treturn table|nil `uuid`, `revision`, `is_closed`, `is_of_file`; `pages`, `page_size`, `digests`
-- (`uint64_t` array, from page 1) as of the last checkpoint, no pages where none are known
-- @treturn nil|string "damaged", or nil where there is none
function _M.read(path)
    path = _M.path(path)
    local _, lack = file.lstat(path)
    if lack == file.MISSING then
        return nil
    end
    local text = file.read(path, { max = MAX_BYTES })
    if not text or #text < DIGESTS_AT then
        return nil, "damaged"
    end
    local bytes = buffer_type(#text)
    ffi.copy(bytes, text, #text)
    local claim, head = claim_type(), read_table(bytes, #text)
    ffi.copy(claim, bytes, sizeof(claim))
    if not head or not is_sealed(claim) or ffi.string(claim.magic, #MAGIC) ~= MAGIC then
        return nil, "damaged"
    end
    local flags = tonumber(claim.flags)
    return {
        uuid = ffi.string(claim.uuid, UUID_BYTES):match("^%Z*"),
        revision = tonumber(claim.revision),
        is_closed = band(flags, IS_CLOSED) ~= 0,
        is_of_file = band(flags, IS_OF_FILE) ~= 0,
        pages = head.pages,
        page_size = head.page_size,
        digests = cast(words_type, bytes + DIGESTS_AT),
        bytes = bytes,
    }
end

local function flags_of(known)
    return (known.is_closed and IS_CLOSED or 0) + (known.is_of_file and IS_OF_FILE or 0)
end

--- Puts another one in its place, on the disk when it returns.
-- @tparam string path of the store
-- @tparam table known as `read` gives it; `pages` 0 where no digests are known
-- @treturn true|nil
-- @treturn nil|string the reason, with the path
function _M.replace(path, known)
    path = _M.path(path)
    local length = WORD * known.pages
    local bytes = buffer_type(DIGESTS_AT + length)
    local claim, head = claim_type(), table_type()
    fill_claim(claim, known.uuid, known.revision, flags_of(known))
    seal(claim)
    head.revision, head.page_size, head.pages = known.revision, known.page_size, known.pages
    if length > 0 then
        ffi.copy(bytes + DIGESTS_AT, known.digests, length)
    end
    head.table = _M.digest(bytes + DIGESTS_AT, length, 0)
    seal(head)
    ffi.copy(bytes, claim, sizeof(claim))
    ffi.copy(bytes + TABLE_AT, head, sizeof(head))
    local temporary = path .. ".new"
    os.remove(temporary)
    local made, err = file.create(temporary, ffi.string(bytes, DIGESTS_AT + length))
    if made then
        made, err = os.rename(temporary, path)
    end
    if made then
        made, err = files.sync_folder(files.folder_of(path))
    end
    return made and true, err
end

-- The claim and the table that stand in the file; of this VM, which does one thing at a time.
local claim, head = claim_type(), table_type()

-- Reads both, for a claim that takes the place of this one.
local function begin(path)
    -- That it is a file was seen when the store was opened.
    local fd, err = fcntl.open(_M.path(path), fcntl.O_RDWR + fcntl.O_CLOEXEC)
    if fd then
        ffi.C.pread(fd, claim, sizeof(claim), 0)
        ffi.C.pread(fd, head, sizeof(head), TABLE_AT)
    end
    return fd, err
end

local function finish(path, fd, is_synced)
    seal(claim)
    local done = ffi.C.pwrite(fd, claim, sizeof(claim), 0) == sizeof(claim)
    if done and is_synced then
        done = unistd.fdatasync(fd) == 0
    end
    unistd.close(fd)
    return done or nil, not done and "cannot write " .. _M.path(path) or nil
end

--- Notes a revision that was committed, before it is answered. Some microseconds, but for the first
-- after a checkpoint, which is synced. Where it cannot be written less is known, and no more.
-- @tparam string path of the store
-- @tparam table now `{ uuid =, revision =, origin = }`
function _M.note(path, now)
    local fd = begin(path)
    if fd then
        local is_first = claim.revision == head.revision
        fill_claim(claim, now.uuid, now.revision, now.origin and IS_OF_FILE or 0)
        finish(path, fd, is_first)
    end
end

--- Notes that the store is open, on the disk: its log may have something from now on.
-- @tparam string path of the store
-- @treturn true|nil
-- @treturn nil|string the reason
function _M.open(path)
    local fd, err = begin(path)
    if not fd then
        return nil, err
    end
    claim.flags = band(claim.flags, bnot(IS_CLOSED))
    return finish(path, fd, true)
end

--- Notes that the store is closed, and that its log is empty.
-- @tparam string path of the store
function _M.close(path)
    local fd = begin(path)
    if fd then
        claim.flags = bor(claim.flags, IS_CLOSED)
        finish(path, fd, false)
    end
end

return _M
