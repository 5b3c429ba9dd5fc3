--- The files of images and the page that says which are live: of the one writer.
--
--   <folder>/base.<n>    an image, never changed
--   <folder>/delta.<n>   changes to it
--
-- n grows with each file, so that a name never comes again. What is live is what the page names;
-- any other file is of a writer that died, and goes when the next base is published, unless it has
-- another layout: those go with the next start. Files outlive processes, not the machine, as far as
-- the folder is on a tmpfs.
--
-- The state stands outside Lua, since threads have Lua VMs of their own: `handle` and `attach`. One
-- call at a time; `build`, `is_whole`, `merge`, `stamp` and `save` read only what they are given.
--
-- What fails is thrown as `{ refused = { err =, path =, message = } }`: "full" (no room in the
-- folder, no memory), "unbuildable" (over a limit of the core), "cannot open".
--
-- Long on purpose: what reads, makes and drops the files of one folder.
-- @module gateway.writer.files

local core = require("sluice.ffi.core")
local dirent = require("posix.dirent")
local disk_space = require("gateway.writer.disk_space")
local ffi = require("ffi")
local files = require("gateway.store.files")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local C = core.C
local cast = ffi.cast

ffi.cdef([[
typedef struct {
    sluice_core_view_t view;
    sluice_core_writer_t delta;
    sluice_core_published_t published;
    sluice_core_identity_t identity;
    uint64_t next;
    double pattern_bytes;
} gateway_images_t;

void *calloc(size_t count, size_t size);
void free(void *pointer);
char *strerror(int number);
]])

local ENOMEM, ENOSPC, EDQUOT = 12, 28, 122
local HEADER_ONLY, CHECK = 0, 1
local OTHERS = tonumber("077", 8)

local _M = {}
local methods = {}
local mt = { __index = methods }

local function refuse(word, path, reason)
    error({ refused = { err = word, path = path, message = ("%s: %s"):format(path, reason) } }, 0)
end

-- Throws what a code of the core means; `path` is what it was about.
local function check(rc, path)
    if rc == C.SLUICE_CORE_OK then
        return
    end
    local errno = ffi.errno()
    if rc == C.SLUICE_CORE_SYSTEM then
        local is_full = errno == ENOSPC or errno == EDQUOT or errno == ENOMEM
        refuse(is_full and "full" or "cannot open", path, ffi.string(C.strerror(errno)))
    elseif rc == C.SLUICE_CORE_MEMORY then
        refuse("full", path, "no memory")
    elseif
        rc == C.SLUICE_CORE_LARGE
        or rc == C.SLUICE_CORE_CROWDED
        or rc == C.SLUICE_CORE_FULL
        or rc == C.SLUICE_CORE_REPEAT
    then
        refuse("unbuildable", path, "the entities exceed a limit of images: " .. core.word(rc))
    end
    refuse("cannot open", path, "is " .. core.word(rc))
end

local function identity_of(store, revision)
    local identity = ffi.new("sluice_core_identity_t", { revision = revision })
    ffi.copy(identity.store, store, 16)
    return identity
end

-- The folder, for its owner alone; made where there is none.
local function prepare(folder)
    local made, err = files.make_folder(folder)
    if not made then
        refuse("cannot open", folder, err)
    end
    local found = stat.stat(folder)
    if stat.S_ISDIR(found.st_mode) == 0 then
        refuse("cannot open", folder, "is not a folder")
    elseif found.st_uid ~= unistd.geteuid() or bit.band(found.st_mode, OTHERS) ~= 0 then
        refuse("cannot open", folder, "belongs to another user, or other users can access it")
    end
end

local function list(folder)
    local found = {}
    for name in dirent.files(folder) do
        local kind, number = name:match("^(%l+)%.(%d+)")
        if kind == "base" or kind == "delta" then
            found[#found + 1] = { name = name, kind = kind, number = tonumber(number) }
        end
    end
    return found
end

--- Prepares the folder and reads what is published; maps nothing.
-- @tparam table opts
-- @tparam string opts.folder
-- @tparam number opts.page address of the page, `sluice_core_page_t`, zeroed when it was made
-- @tparam[opt=16777216] number opts.delta_bytes
-- @treturn table; throws
function _M.open(opts)
    prepare(opts.folder)
    local state = cast("gateway_images_t *", C.calloc(1, ffi.sizeof("gateway_images_t")))
    if state == nil then
        refuse("full", opts.folder, "no memory")
    end
    local self = _M.attach({
        folder = opts.folder,
        page = opts.page,
        delta_bytes = opts.delta_bytes or disk_space.DELTA_BYTES,
        state = tonumber(cast("uintptr_t", state)),
    })
    C.sluice_core_published(self.page, state.published)
    local last = math.max(tonumber(state.published.base), tonumber(state.published.delta))
    for _, file in ipairs(list(opts.folder)) do
        last = math.max(last, file.number)
    end
    state.next = last + 1
    return self
end

--- Makes the folder again where somebody has removed it.
-- Throws what `open` does.
function methods:prepare()
    prepare(self.folder)
end

--- What another Lua VM of this process needs for `attach`: plain data.
function methods:handle()
    return self.shared
end

--- The images behind a handle.
function _M.attach(handle)
    return setmetatable({
        shared = handle,
        folder = handle.folder,
        delta_bytes = handle.delta_bytes,
        page = cast("sluice_core_page_t *", cast("uintptr_t", handle.page)),
        state = cast("gateway_images_t *", cast("uintptr_t", handle.state)),
    }, mt)
end

--- Unmaps everything; the files and what is published stay. Nothing may be called after it.
function methods:close()
    C.sluice_core_file_close(self.state.view.base)
    C.sluice_core_file_close(self.state.view.delta)
    C.free(self.state)
    self.state = nil
end

local function path_of(self, kind, number)
    return ("%s/%s.%d"):format(self.folder, kind, tonumber(number))
end

--- A number for a file.
function methods:take_number()
    local number = tonumber(self.state.next)
    self.state.next = number + 1
    return number
end

--- What is live: plain data, of this process's own memory, whatever stands in the files by now.
-- @treturn table|nil `base`, `delta`: numbers; `revision`; `store`, `base_revision`: identity of
-- the base; `bytes` of the base; of the delta `room` and `used` bytes, and `linked`: its end;
-- `pattern_bytes` of gateway.writer.patterns
function methods:live()
    local state = self.state
    if state.view.base.base == nil then
        return nil
    end
    local left = tonumber(C.sluice_core_delta_room(state.delta))
    return {
        base = tonumber(state.published.base),
        delta = tonumber(state.published.delta),
        revision = tonumber(state.published.revision),
        store = ffi.string(state.identity.store, 16),
        base_revision = tonumber(state.identity.revision),
        linked = tonumber(state.delta.linked),
        bytes = tonumber(state.view.base.size),
        room = left,
        used = self.delta_bytes - left,
        pattern_bytes = state.pattern_bytes,
    }
end

-- Building: pure, of any thread -------------------------------------------------------------------

local function begin(path, records, count, identity)
    local work = ffi.new("sluice_core_work_t", {
        identity = identity,
        entities = records,
        count = count,
        path = path,
    })
    C.sluice_core_work_begin(work)
    return { work = work, path = path }
end

--- Begins to build an image as a file, in a thread of its own. `finish` has to follow; until then
-- what is given stays as it is. What a cut of power leaves of the file is found by its checksum.
-- @tparam string path
-- @tparam cdata records of gateway.image.memory
-- @tparam number count
-- @tparam string store 16 bytes
-- @tparam number revision
-- @treturn table
function _M.begin(path, records, count, store, revision)
    return begin(path, records, count, identity_of(store, revision))
end

--- Waits for an image.
-- @tparam table begun of `begin`
-- @treturn number its bytes; throws
function _M.finish(begun)
    check(C.sluice_core_work_end(begun.work), begun.path)
    return tonumber(begun.work.size)
end

local function open_base(path, how)
    local space = ffi.new("sluice_core_space_t")
    check(C.sluice_core_file_open(path, unistd.geteuid(), how, space), path)
    return space
end

-- Maps what is live, `how` a new worker does, or one after a crash. The caller unmaps it,
-- also where it throws.
local function map(self, from, view, how)
    view.base = open_base(path_of(self, "base", from.base), how)
    local path = path_of(self, "delta", from.delta)
    check(C.sluice_core_delta_open(path, unistd.geteuid(), how, view.delta), path)
end

local function unmap(view)
    C.sluice_core_file_close(view.base)
    C.sluice_core_file_close(view.delta)
end

-- Whether files that are mapped are those: not older ones, nor others of the same store.
local function is_same(view, from)
    local wanted = identity_of(from.store, from.base_revision)
    local identity = ffi.new("sluice_core_identity_t")
    C.sluice_core_identity(view.base, identity)
    return identity.revision == wanted.revision
        and ffi.string(identity.store, 16) == from.store
        and C.sluice_core_delta_holds(view.delta, wanted, from.linked) ~= 0
end

--- Whether a new worker can map what is live: somebody may have removed the files, or
-- written into them, or put others in their place.
-- @tparam table from of `live`
-- @tparam[opt=false] boolean is_thorough looks at each byte; else at the files' heads
-- @treturn boolean
function methods:is_whole(from, is_thorough)
    local view = ffi.new("sluice_core_view_t")
    local ok = pcall(map, self, from, view, is_thorough and CHECK or HEADER_ONLY)
    local is_whole = ok and is_same(view, from)
    unmap(view)
    return is_whole
end

--- When somebody has changed the files last; with us whoever writes into their pages.
-- @tparam table from of `live`
-- @treturn string another one after each change
function methods:stamp(from)
    local base = C.sluice_core_file_changed(path_of(self, "base", from.base))
    local delta = C.sluice_core_file_changed(path_of(self, "delta", from.delta))
    return tostring(base) .. " " .. tostring(delta)
end

--- Builds the image that a view sees, as a file, in mappings of its own.
-- @tparam table from of `live`
-- @tparam number number of the new base
-- @treturn number its revision, which is that of `from`
function methods:merge(from, number)
    local view = ffi.new("sluice_core_view_t", { revision = from.revision })
    local live = ffi.new("sluice_core_live_t")
    local identity = ffi.new("sluice_core_identity_t")
    local ok, thrown = pcall(function()
        -- What is damaged would be sound in the new one.
        map(self, from, view, CHECK)
        if not is_same(view, from) then
            refuse("cannot open", path_of(self, "delta", from.delta), "is another one")
        end
        C.sluice_core_identity(view.base, identity)
        identity.revision = from.revision
        check(C.sluice_core_live(view, nil, 0, live), "a merge")
        local path = path_of(self, "base", number)
        _M.finish(begin(path, live.entities, live.count, identity))
    end)
    C.sluice_core_live_free(live)
    unmap(view)
    if not ok then
        error(thrown, 0)
    end
    return from.revision
end

--- Copies a base to the disk.
-- @tparam table from of `live`
-- @tparam string path
function methods:save(from, path)
    local base = open_base(path_of(self, "base", from.base), CHECK)
    local ok, thrown = pcall(function()
        check(C.sluice_core_file_write(path, base.base, base.size, 1), path)
    end)
    C.sluice_core_file_close(base)
    if not ok then
        error(thrown, 0)
    end
end

-- Publishing -------------------------------------------------------------------------------------

local function drop(self, made)
    C.sluice_core_file_close(made.view.base)
    C.sluice_core_file_close(made.view.delta)
    os.remove(path_of(self, "delta", made.delta))
    if not made.is_live then
        os.remove(path_of(self, "base", made.base))
    end
end

-- A base that is mapped, with an empty delta on it.
local function add_delta(self, base, space, is_live)
    local made = {
        base = base,
        delta = self:take_number(),
        view = ffi.new("sluice_core_view_t"),
        writer = ffi.new("sluice_core_writer_t"),
        is_live = is_live,
    }
    made.view.base = space
    local identity = ffi.new("sluice_core_identity_t")
    C.sluice_core_identity(space, identity)
    local path = path_of(self, "delta", made.delta)
    local rc = C.sluice_core_delta_create(path, self.delta_bytes, identity, made.writer)
    if rc ~= C.SLUICE_CORE_OK then
        local ok, thrown = pcall(check, rc, path)
        drop(self, made)
        error(not ok and thrown, 0)
    end
    made.view.delta = made.writer.space
    made.view.revision = identity.revision
    made.identity = identity
    made.base_revision = tonumber(identity.revision)
    return made
end

--- A base of this folder with a new delta on it, which nobody sees yet.
-- @tparam number number
-- @treturn table `view`, and for `publish`, `stage`, `drop`
function methods:take_base(number)
    return add_delta(self, number, open_base(path_of(self, "base", number), HEADER_ONLY), false)
end

--- The same from a file elsewhere, if that is sound and of this store.
-- @tparam string|nil path nil: the base that is published
-- @tparam string store 16 bytes
-- @treturn table|nil
function methods:find_base(path, store)
    local published = self.state.published
    if not path and published.base == 0 then
        return nil
    end
    local from = path or path_of(self, "base", published.base)
    local ok, space = pcall(open_base, from, CHECK)
    if not ok then
        return nil
    end
    local identity = ffi.new("sluice_core_identity_t")
    C.sluice_core_identity(space, identity)
    -- Under one number everybody has the same base mapped; an older one in its place is another.
    local is_older = not path
        and self.state.view.base.base ~= nil
        and identity.revision ~= self.state.identity.revision
    if is_older or ffi.string(identity.store, 16) ~= store then
        C.sluice_core_file_close(space)
        return nil
    elseif not path then
        return add_delta(self, tonumber(published.base), space, true)
    end
    local number = self:take_number()
    local copied, thrown = pcall(function()
        local to = path_of(self, "base", number)
        check(C.sluice_core_file_write(to, space.base, space.size, 0), to)
    end)
    C.sluice_core_file_close(space)
    if not copied then
        error(thrown, 0)
    end
    return self:take_base(number)
end

--- Where a base is, or will be.
-- @tparam number number
-- @treturn string
function methods:base_path(number)
    return path_of(self, "base", number)
end

--- Removes the file of a base that was not taken.
-- @tparam number number
function methods:forget_base(number)
    os.remove(path_of(self, "base", number))
end

--- What is live, as the others have it: to be staged on.
-- @treturn table
function methods:current()
    local state = self.state
    return {
        view = state.view,
        writer = state.delta,
        pattern_bytes = state.pattern_bytes,
        is_current = true,
    }
end

--- Stages changes.
-- @tparam table made of `current`, `take_base` or `find_base`
-- @tparam table memory of gateway.image.rows
-- @tparam number revision
-- @treturn boolean false: the delta has no room
function _M.stage(made, memory, revision)
    if memory.count == 0 then
        made.revision = revision
        return true
    end
    -- What a call left behind that was broken off.
    C.sluice_core_delta_abandon(made.writer)
    local rc =
        C.sluice_core_delta_stage(made.writer, made.view, memory.records, memory.count, revision)
    if rc == C.SLUICE_CORE_FULL then
        return false
    end
    check(rc, "a change")
    made.revision, made.is_staged = revision, true
    return true
end

--- Undoes what was made or staged, and not published.
-- @tparam table made
function methods:drop(made)
    if not made.is_current then
        drop(self, made)
    elseif made.is_staged then
        C.sluice_core_delta_abandon(made.writer)
    end
end

-- Whether a file has another layout: after a binary upgrade it may be live in an nginx that has
-- another page, and may come back.
local function is_others(path, kind)
    local space = ffi.new("sluice_core_space_t")
    local uid = unistd.geteuid()
    local rc = kind == "delta" and C.sluice_core_delta_open(path, uid, HEADER_ONLY, space)
        or C.sluice_core_file_open(path, uid, HEADER_ONLY, space)
    C.sluice_core_file_close(space)
    return rc == C.SLUICE_CORE_VERSION
end

-- Removes every file but the live ones, and those of another layout.
local function clean(self)
    local published = self.state.published
    for _, file in ipairs(list(self.folder)) do
        local path = self.folder .. "/" .. file.name
        local is_live = file.name == "base." .. tonumber(published.base)
            or file.name == "delta." .. tonumber(published.delta)
        if not is_live and not is_others(path, file.kind) then
            os.remove(path)
        end
    end
end

--- Makes it what every worker sees from its next request on. Cannot fail.
-- @tparam table made with its `pattern_bytes`
function methods:publish(made)
    local state = self.state
    if made.is_staged then
        C.sluice_core_delta_link(made.writer)
    end
    made.view.revision = made.revision or made.view.revision
    state.published.revision = made.view.revision
    state.pattern_bytes = made.pattern_bytes
    if made.is_current then
        C.sluice_core_publish(self.page, state.published)
        return
    end
    state.published.base, state.published.delta = made.base, made.delta
    C.sluice_core_publish(self.page, state.published)
    local old = ffi.new("sluice_core_view_t", state.view)
    state.view, state.delta, state.identity = made.view, made.writer, made.identity
    C.sluice_core_file_close(old.base)
    C.sluice_core_file_close(old.delta)
    clean(self)
end

return _M
