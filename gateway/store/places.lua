--- Whether the files of an open store are still where they were opened. A process can write to
-- files that were removed, or whose volume is no longer mounted: what it answers then is lost.
-- @module gateway.store.places

local file = require("sluice.file")

-- Those that hold what is answered, and those by which several processes know of each other. The
-- first that is lost says what may be done: without the lock another process may be the writer.
local FILES = { "", ".lock", "-wal", "-shm" }

local _M = {}

--- What tells a file from another one.
-- @tparam string path; a link is followed
-- @treturn string|nil nil: there is none, or none that can be reached now
-- @treturn nil|string what has become of it
function _M.place_of(path)
    local found, lack = file.stat(path)
    return found and ("%d:%d"):format(found.st_dev, found.st_ino), lack
end

--- Notes where the files are.
-- @tparam string path of the store
-- @treturn table plain data for `lost`; of the files that are there
function _M.note(path)
    local places = {}
    for _, suffix in ipairs(FILES) do
        places[suffix] = _M.place_of(path .. suffix)
    end
    return places
end

--- Looks whether they are still there; some microseconds, and no file is opened.
-- @tparam string path of the store
-- @tparam table places of `note`
-- @treturn nil|table the suffixes of those that are not: "", ".lock", "-wal", "-shm"; nil: all are
-- @treturn nil|string what has become of the first, with its name unless it is the store's own
function _M.lost(path, places)
    local lost, reason
    for _, suffix in ipairs(FILES) do
        local now, why = _M.place_of(path .. suffix)
        -- Without the store itself there is nothing to be noted.
        if now ~= places[suffix] and (places[suffix] or suffix == "") then
            lost = lost or {}
            lost[suffix] = true
            local name = suffix == "" and "" or path .. suffix .. " "
            reason = reason or name .. (why or "was replaced")
        end
    end
    return lost, reason
end

return _M
