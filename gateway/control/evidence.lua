--- What is known of a store before anybody writes it: by the copy of the last base, which is made
-- of a revision that was answered, and by the store's own witness (docs/store.md).
-- @module gateway.control.evidence

local core = require("sluice.core")
local database = require("gateway.store.database")
local dirent = require("posix.dirent")
local ffi = require("ffi")
local files = require("gateway.store.files")
local sqlite = require("gateway.store.sqlite")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local C = core.C
local format = string.format
local os = os
local pcall = pcall
local tonumber = tonumber

local HEADER_ONLY, CHECK = 0, 1

local _M = {}

--- Where the copy is.
-- @tparam string store path
-- @treturn string
function _M.copy_of(store)
    return files.folder_of(store) .. "/base"
end

--- Removes what those have left behind who died while they wrote the copy.
-- @tparam string store path
function _M.clean(store)
    local folder = files.folder_of(store)
    for name in dirent.files(folder) do
        if name:find("^base%.") then
            os.remove(folder .. "/" .. name)
        end
    end
end

local function uuid_of(identity)
    local hex = ffi.string(identity.store, 16):gsub(".", function(char)
        return format("%02x", char:byte())
    end)
    return (hex:gsub("^(........)(....)(....)(....)", "%1-%2-%3-%4-"))
end

local function read_copy(path, how)
    local space = ffi.new("sluice_core_space_t")
    if C.sluice_core_file_open(path, unistd.geteuid(), how, space) ~= C.SLUICE_CORE_OK then
        return nil
    end
    local identity = ffi.new("sluice_core_identity_t")
    C.sluice_core_identity(space, identity)
    C.sluice_core_file_close(space)
    return { uuid = uuid_of(identity), revision = tonumber(identity.revision), path = path }
end

-- Opens a store with what the copy says of it. A copy that seems to know better is read whole: a
-- damaged one knows nothing.
local function open(path, opts)
    local copy = _M.copy_of(path)
    opts.at_least = stat.lstat(copy) and read_copy(copy, HEADER_ONLY) or nil
    local store, err = database.open(path, opts)
    if not store and opts.at_least and not read_copy(copy, CHECK) then
        opts.at_least = nil
        return database.open(path, opts)
    end
    return store, err
end

--- Opens a store that is not older than its copy.
-- @tparam string path
-- @tparam table opts of gateway.store.database
-- @treturn table|nil store
-- @treturn nil|table error
_M.open = open

-- A transaction that was broken off where there is no log: who only reads cannot take it back. It
-- filled a new file, or changed its journal.
local function take_back(path)
    if stat.lstat(path .. "-journal") then
        pcall(function()
            local db = sqlite.open(path)
            pcall(db.row, db, "SELECT count(*) FROM sqlite_master")
            db:close()
        end)
    end
end

--- Reads every page of a store and compares it with what is known of it; writes nothing, but takes
-- back what was broken off.
-- @tparam string path
-- @tparam {table,...} layouts
-- @treturn table|nil `{ uuid =, revision =, origin = }`
-- @treturn nil|table error
function _M.examine(path, layouts)
    take_back(path)
    local store, err =
        open(path, { layouts = layouts, read_only = true, check = false, verify = true })
    if not store then
        return nil, err
    end
    local now
    now, err = store:revision()
    store:close()
    return now, err
end

return _M
