--- What is known of a store before anybody writes it: by the copy of the last base, which is made
-- of a revision that was answered, and by the store's own witness (docs/store.md).
-- @module gateway.writer.evidence

local core = require("sluice.ffi.core")
local damage = require("gateway.store.damage")
local database = require("gateway.store.database")
local dirent = require("posix.dirent")
local errno = require("posix.errno")
local ffi = require("ffi")
local failure = require("gateway.store.failure")
local files = require("gateway.store.files")
local journal = require("gateway.store.journal")
local signal = require("posix.signal")
local sqlite = require("gateway.store.sqlite")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")
local witness = require("gateway.store.witness")

local C = core.C

local HEADER_ONLY, CHECK = 0, 1

-- Verbs of the store that a command copies it with (cli/instance/store.lua).
local COPIES = { backup = true, export = true }

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

--- What a command of this process has copied into, before it is taken: named after the process, and
-- unlike any copy that an operator would keep, such as `store.db.backup.20261125`.
-- @tparam string store path
-- @tparam string verb "backup" or "export"
-- @treturn string path
function _M.unfinished_of(store, verb)
    return string.format("%s.%s.%d.unfinished", store, verb, unistd.getpid())
end

--- Removes what commands have left behind that were killed while they copied the store.
-- @tparam string store path
function _M.clean_copies(store)
    local folder, base = files.folder_of(store), store:match("[^/]+$"):gsub("%p", "%%%0")
    for name in dirent.files(folder) do
        local verb, pid = name:match("^" .. base .. "%.(%l+)%.(%d+)%.unfinished")
        if COPIES[verb] and select(3, signal.kill(tonumber(pid), 0)) == errno.ESRCH then
            os.remove(folder .. "/" .. name)
        end
    end
end

local function read_copy(path, how)
    local space = ffi.new("sluice_core_space_t")
    if C.sluice_core_file_open(path, unistd.geteuid(), how, space) ~= C.SLUICE_CORE_OK then
        return nil
    end
    local identity = ffi.new("sluice_core_identity_t")
    C.sluice_core_identity(space, identity)
    C.sluice_core_file_close(space)
    local uuid = files.uuid_of(ffi.string(identity.store, 16))
    return { uuid = uuid, revision = tonumber(identity.revision), path = path }
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

--- Whether this process can write the files of a store, those beside it, and its folder.
-- @tparam string path
-- @treturn boolean|nil
-- @treturn nil|table error "cannot open", "read only"
function _M.check_usable(path)
    local ok, thrown = pcall(damage.check_usable, path)
    return ok or nil, not ok and failure.of_thrown(path, thrown) or nil
end

-- A transaction that was broken off where there is no log: who only reads cannot take it back. It
-- filled a new file, or changed its journal.
local function take_back(path)
    if stat.lstat(path .. "-journal") and journal.is_ours(path, (witness.read(path))) then
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
-- @tparam[opt] table live `{ uuid =, revision = }` that a running gateway serves
-- @treturn table|nil `{ uuid =, revision =, origin =, is_backup = }`
-- @treturn nil|table error
function _M.examine(path, layouts, live)
    take_back(path)
    local store, err = open(path, {
        layouts = layouts,
        read_only = true,
        check = false,
        verify = true,
        live = live,
    })
    if not store then
        return nil, err
    end
    local now
    now, err = store:read(function(db, revision)
        revision.is_backup = db:row("SELECT is_backup FROM meta")[1] == 1
        return revision
    end)
    store:close()
    return now, err
end

return _M
