--- The pages of a store's file: their digests, and which are not what the witness says.
-- @module gateway.store.pages

local ffi = require("ffi")
local witness = require("gateway.store.witness")

local PIECE_BYTES = 1048576
-- In page 1: what SQLite writes when it changes the journal's mode, counts commits or is another
-- version. Offset and length; https://sqlite.org/fileformat2.html#the_database_header
local CHANGING = { { 18, 2 }, { 24, 4 }, { 92, 8 } }

local _M = {}

--- The digest of a page. What may change in page 1 without a checkpoint becomes zeros.
-- @tparam cdata bytes
-- @tparam number page from 1
-- @tparam number size
-- @treturn cdata `uint64_t`, never 0
function _M.digest(bytes, page, size)
    if page == 1 then
        for i = 1, #CHANGING do
            ffi.fill(bytes + CHANGING[i][1], CHANGING[i][2])
        end
    end
    return witness.digest(bytes, size, page)
end

--- Visits the digests of a file's pages.
-- @tparam table db connection
-- @tparam number size of a page
-- @tparam number count of pages
-- @tparam function visit `(page, digest)`
function _M.each(db, size, count, visit)
    local at_once = math.max(1, PIECE_BYTES / size)
    local buffer = ffi.new("uint8_t[?]", at_once * size)
    for first = 1, count, at_once do
        local n = math.min(at_once, count - first + 1)
        db:read_file(buffer, n * size, (first - 1) * size)
        for i = 0, n - 1 do
            visit(first + i, _M.digest(buffer + i * size, first + i, size))
        end
    end
end

--- The digest of a whole file without a log, but for itself: of every page but that of `meta`, and
-- of what `meta` says.
-- @tparam table db connection, to a store
-- @treturn string
function _M.total(db)
    local size = db:row("PRAGMA page_size")[1]
    local count = math.floor(db:file_size() / size)
    local own = db:row("SELECT rootpage FROM sqlite_schema WHERE name = 'meta'")[1]
    local columns = "uuid, revision, sequence, compacted, is_backup, origin, packed_as"
    local row = db:row("SELECT " .. columns .. " FROM meta")
    local parts = {}
    for i = 1, 7 do
        parts[i] = tostring(row[i])
    end
    local text = table.concat(parts, "\n")
    local words = math.ceil(#text / 8)
    local digests = ffi.new("uint64_t[?]", count + words)
    _M.each(db, size, count, function(page, digest)
        digests[page - 1] = page == own and 0 or digest
    end)
    ffi.copy(digests + count, text, #text)
    return bit.tohex(witness.digest(digests, 8 * (count + words), 0))
end

--- Looks for pages that are not as the witness has them. Those that stand in the log are the log's.
-- @tparam table db connection, in a transaction
-- @tparam table known of gateway.store.witness, read in that transaction
-- @tparam table log of gateway.store.log_file, read after `known`
-- @treturn number how many are damaged
-- @treturn number|nil the first of them
function _M.compare(db, known, log)
    local count, first = 0, nil
    _M.each(db, known.page_size, known.pages, function(page, digest)
        local wanted = known.digests[page - 1]
        if wanted ~= 0 and wanted ~= digest and not log.frames[page] then
            count, first = count + 1, first or page
        end
    end)
    return count, first
end

return _M
