--- What went wrong with a store, in words that callers compare, with the file's name.
--
-- | word | means |
-- |---|---|
-- | `busy` | another program holds the file, five seconds long |
-- | `cannot open` | folder or file is missing, or not allowed |
-- | `corrupt` | the file is damaged |
-- | `disk error` | the system could not read, write or sync |
-- | `full` | no room on the disk |
-- | `moved` | a file was removed or replaced while the store was open |
-- | `no memory` | |
-- | `not a store` | the file is something else |
-- | `read only` | the file cannot be written |
-- | `schema` | the entities do not fit into what this version wants of them |
-- | `failed` | anything else that SQLite says |
-- @module gateway.store.failure

local ffi = require("ffi")
local sqlite = require("gateway.store.sqlite")

ffi.cdef("char *strerror(int number);")

local ENOSPC, EDQUOT = 28, 122

local WORDS = {
    [sqlite.BUSY] = "busy",
    [6] = "busy",
    [7] = "no memory",
    [sqlite.READONLY] = "read only",
    [sqlite.IOERR] = "disk error",
    [sqlite.CORRUPT] = "corrupt",
    [sqlite.FULL] = "full",
    [sqlite.CANTOPEN] = "cannot open",
    [sqlite.CONSTRAINT] = "schema",
    [sqlite.NOTADB] = "not a store",
}

local _M = {}

--- An error as the store's verbs return it.
-- @tparam string path of the store
-- @tparam string word
-- @tparam string reason for people
-- @treturn table `{ err = word, path =, message = }`
function _M.new(path, word, reason)
    return { err = word, path = path, message = string.format("%s: %s", path, reason) }
end

--- The same of what gateway.store.sqlite threw.
-- @tparam string path
-- @tparam table failure
-- @treturn table
function _M.describe(path, failure)
    local basic = sqlite.basic(failure.code)
    local word = WORDS[basic] or "failed"
    -- Of a damaged file SQLite quotes whatever stands there.
    local reason = failure.message:gsub("[^\32-\126]", "?")
    if basic == sqlite.IOERR and (failure.errno == ENOSPC or failure.errno == EDQUOT) then
        word = "full"
    end
    if failure.code == sqlite.IOERR_SHORT_READ then
        -- No call of the system has failed.
        reason = "the file or its log ends too early"
    elseif (basic == sqlite.IOERR or basic == sqlite.CANTOPEN) and failure.errno ~= 0 then
        reason = reason .. ": " .. ffi.string(ffi.C.strerror(failure.errno))
    end
    return _M.new(path, word, string.format("%s (SQLite %d)", reason, failure.code))
end

--- What a verb's function threw, as the error that the verb returns. A program's fault goes on.
-- @tparam string path
-- @param thrown `{ refused = error }` of changes, `{ word =, reason = }` of the file, or a failure
-- @treturn table
function _M.of_thrown(path, thrown)
    if type(thrown) ~= "table" then
        error(thrown, 0)
    elseif thrown.refused then
        return thrown.refused
    elseif thrown.word then
        return _M.new(path, thrown.word, thrown.reason)
    end
    return _M.describe(path, thrown)
end

return _M
