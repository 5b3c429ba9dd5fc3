--- Whether the files of an open store are still where they were opened. A process can write to
-- files that were removed, or whose volume is no longer mounted: what it answers then is lost.
-- @module gateway.store.places

local stat = require("posix.sys.stat")

-- Those that hold what is answered, and those by which several processes know of each other.
local FILES = { "", "-wal", "-shm", ".lock" }

local _M = {}

local function place_of(path)
    local found = stat.stat(path)
    return found and ("%d:%d"):format(found.st_dev, found.st_ino) or nil
end

--- Notes where the files are.
-- @tparam string path of the store
-- @treturn table plain data for `lost`; of the files that are there
function _M.note(path)
    local places = {}
    for _, suffix in ipairs(FILES) do
        places[suffix] = place_of(path .. suffix)
    end
    return places
end

--- Looks whether they are still there; some microseconds, and no file is opened.
-- @tparam string path of the store
-- @tparam table places of `note`
-- @treturn nil|string suffix of the first that is not: "", "-wal", "-shm", ".lock"; nil: all are
-- @treturn nil|string what has become of it, beginning with its name unless it is the store's own
function _M.lost(path, places)
    for _, suffix in ipairs(FILES) do
        local now = place_of(path .. suffix)
        if places[suffix] and now ~= places[suffix] then
            local name = suffix == "" and "" or path .. suffix .. " "
            return suffix, name .. (now and "was replaced" or "is missing")
        end
    end
    return nil
end

return _M
