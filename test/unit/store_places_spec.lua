--- A store whose files go while it is open, and one that is opened beside what a gateway serves.

local damage = require("gateway.store.damage")
local database = require("gateway.store.database")
local errno = require("posix.errno")
local evidence = require("gateway.writer.evidence")
local file = require("sluice.file")
local files = require("gateway.store.files")
local on_disk = require("test.house.files")
local places = require("gateway.store.places")
local stat = require("posix.sys.stat")
local support = require("test.unit.support.writer")
local unistd = require("posix.unistd")
local witness = require("gateway.store.witness")
local writer = require("gateway.writer")

-- Linux's; luaposix does not name it.
local ESTALE = 116

local SUFFIXES = { "", "-wal", "-shm", ".lock" }

local function id(number)
    return ("00000000-0000-4000-8000-%012d"):format(number)
end

describe("a store whose files go while it is open", function()
    local place, opened

    before_each(function()
        place = support.place()
        opened = support.open(place)
    end)

    after_each(function()
        if opened then
            opened:close()
        end
        support.clean()
    end)

    local function make(number)
        local route = { id = id(number), name = "r" .. number, paths = { "/" .. number } }
        return opened:batch({ { support.put(opened, "routes", route) } })
    end

    local function count()
        return #opened.store:list("routes", { size = 100 })
    end

    for _, suffix in ipairs(SUFFIXES) do
        it(("store.db%s"):format(suffix), function()
            assert(make(1))
            local path, before = place.store .. suffix, support.published(place)
            assert.is_nil(places.lost(place.store, opened.store.places))
            assert(os.rename(path, path .. ".aside"))
            local done, err = make(2)
            assert.is_nil(done)
            assert.equal("moved", err.err)
            local said = suffix == "" and "is missing" or path .. " is missing"
            assert.equal(("%s: %s while the store was open"):format(place.store, said), err.message)
            -- What is live, and what is read, is as it was; nothing comes into its place.
            assert.equal(before, support.published(place))
            assert.equal(1, count())
            assert.is_false(files.exists(path))
            on_disk.write(path, "another")
            assert.equal("moved", select(2, make(2)).err)
            assert.equal("moved", select(2, opened:empty_log()).err)
            assert.equal("moved", select(2, opened:save(opened:live())).err)
            os.remove(path)
            assert(os.rename(path .. ".aside", path))
            assert(make(2))
            assert.equal(2, count())
        end)
    end

    it("that are there are not missing where they cannot be reached", function()
        assert(make(1))
        local path = place.store .. "-wal"
        assert(os.rename(path, path .. ".aside"))
        assert(unistd.link(path, path, true))
        local lost, reason = places.lost(place.store, opened.store.places)
        assert.is_true(lost["-wal"])
        local loop = "cannot be reached: too many levels of symbolic links"
        assert.equal(path .. " " .. loop, reason)
        os.remove(path)
        assert(os.rename(path .. ".aside", path))
        assert.is_nil(places.lost(place.store, opened.store.places))
        local _, why = places.place_of("/" .. ("x"):rep(300))
        assert.equal("cannot be reached: file name too long", why)
        assert.equal("is missing", select(2, places.place_of(place.store .. "/below")))
    end)

    -- Closes it, and opens what is there then.
    local function open_again()
        assert(opened:close())
        opened = nil
        assert(evidence.examine(place.store, place.layouts))
        opened = support.open(place)
    end

    it("keeps the log that was removed", function()
        assert(make(1))
        assert(make(2))
        local before = on_disk.read(place.store .. "-wal")
        os.remove(place.store .. "-wal")
        assert.equal("moved", select(2, make(3)).err)
        assert.is_true(opened:save_lost())
        assert.equal(before, on_disk.read(place.store .. "-wal"))
        assert(opened:close(true))
        assert(evidence.examine(place.store, place.layouts))
        opened = support.open(place)
        assert.equal(2, count())
        assert(make(3))
        assert.is_true(opened:empty_log())
        assert(evidence.examine(place.store, place.layouts))
    end)

    it("keeps it where another came into its place", function()
        assert(make(1))
        local older = on_disk.read(place.store .. "-wal")
        assert(make(2))
        os.remove(place.store .. "-wal")
        on_disk.write(place.store .. "-wal", older)
        open_again()
        assert.equal(2, count())
        assert.equal(older, on_disk.read(place.store .. "-wal.replaced"))
    end)

    it("is not closed while the log cannot be put back", function()
        assert(make(1))
        os.remove(place.store .. "-wal")
        -- As on a full disk: no file can be made.
        assert(stat.mkdir(place.store .. "-wal.new"))
        on_disk.write(place.store .. "-wal.new/x", "")
        local saved, err = opened:save_lost()
        assert.is_nil(saved)
        assert.is_truthy(err:find("-wal.new", 1, true), err)
        os.remove(place.store .. "-wal.new/x")
        os.remove(place.store .. "-wal.new")
        open_again()
        assert.equal(1, count())
    end)

    it("waits for who reads where the index is gone", function()
        assert(make(1))
        local other = assert(database.open(place.store, {
            layouts = place.layouts,
            read_only = true,
            check = false,
        }))
        other.db:run("BEGIN")
        assert.equal(1, other.db:row("SELECT count(*) FROM e_routes")[1])
        assert(make(2))
        os.remove(place.store .. "-shm")
        local saved, err = opened:save_lost()
        assert.is_nil(saved)
        assert.equal("another process reads the store", err)
        other.db:run("COMMIT")
        other:close()
        assert.is_true(opened:save_lost())
        open_again()
        assert.equal(2, count())
    end)

    it("leaves the files to the process that has the lock", function()
        assert(make(1))
        for _, suffix in ipairs({ ".lock", "-shm", "-wal" }) do
            os.rename(place.store .. suffix, place.store .. suffix .. ".aside")
        end
        local lock = assert(files.lock(place.store .. ".lock"))
        assert.is_true(opened:save_lost())
        assert(opened:close())
        opened = nil
        assert.is_false(files.exists(place.store .. "-wal"))
        files.unlock(lock)
        os.rename(place.store .. "-wal.aside", place.store .. "-wal")
        opened = support.open(place)
        assert.equal(1, count())
    end)

    it("is not opened where it was replaced meanwhile", function()
        assert(make(1))
        opened:close()
        opened = nil
        local check = damage.check
        damage.check = function(...)
            os.execute(
                ("cp -a %s %s.copy && mv %s.copy %s"):format(
                    place.store,
                    place.store,
                    place.store,
                    place.store
                )
            )
            return check(...)
        end
        local refused, err = writer.open(place)
        damage.check = check
        assert.is_nil(refused)
        assert.equal("moved", err.err)
        opened = support.open(place)
        assert.equal(1, count())
    end)
end)

describe("what keeps from a path", function()
    for name, said in pairs({
        ENOENT = "is missing",
        ENOTDIR = "is missing",
        EACCES = "cannot be reached: permission denied",
        EIO = "cannot be reached: input/output error",
        ESTALE = "cannot be reached: stale file handle",
        ELOOP = "cannot be reached: too many levels of symbolic links",
    }) do
        it(name, function()
            assert.equal(said, file.lack(errno[name] or ESTALE))
        end)
    end

    it("is told, and never taken for a store that is none yet", function()
        local folder = support.folder()
        local store = folder .. "/store/store.db"
        assert.is_true(pcall(damage.check_usable, store))
        assert(unistd.link(folder .. "/store", folder .. "/store", true))
        local loop = "cannot be reached: too many levels of symbolic links"
        for name, look in pairs({
            usable = damage.check_usable,
            files = function(path)
                damage.check_files(path, {})
            end,
        }) do
            local ok, thrown = pcall(look, store)
            assert.is_false(ok, name)
            assert.same({ word = "cannot open", reason = loop }, thrown)
        end
        assert.equal("damaged", select(2, witness.read(store)))
        support.clean()
    end)
end)

describe("a store beside what a gateway serves", function()
    local place, now

    before_each(function()
        place = support.place()
        local opened = support.open(place)
        local service = { id = id(1), name = "s", host = "h", port = 80, protocol = "http" }
        service.retries, service.connect_timeout = 5, 1
        service.write_timeout, service.read_timeout = 1, 1
        assert(opened:batch({ { support.put(opened, "services", service) } }))
        now = opened.store:revision()
        opened:close()
    end)

    after_each(support.clean)

    local function open(live)
        place.live = live
        local opened, err = writer.open(place)
        place.live = nil
        if opened then
            opened:close()
        end
        local read, why = evidence.examine(place.store, place.layouts, live)
        assert.equal(err and err.err, why and why.err)
        assert.equal(opened ~= nil, read ~= nil)
        return err and err.err, err and err.message
    end

    it("is opened where it is that one, and no older", function()
        assert.is_nil((open({ uuid = now.uuid, revision = now.revision })))
        assert.is_nil((open({ uuid = now.uuid, revision = now.revision - 1 })))
    end)

    it("is refused where it is older, or another", function()
        local word, message = open({ uuid = now.uuid, revision = now.revision + 1 })
        assert.equal("behind", word)
        local reason = "holds revision %d, but the gateway serves revision %d"
        assert.is_truthy(message:find(reason:format(now.revision, now.revision + 1), 1, true))
        assert.equal("foreign", (open({ uuid = id(9), revision = 1 })))
    end)

    for _, what in ipairs({ "folder", "files" }) do
        it("is not made anew where it has lost its " .. what, function()
            local folder = files.folder_of(place.store)
            if what == "folder" then
                os.execute("rm -rf " .. folder)
            else
                os.execute(("rm -f %s/*"):format(folder))
            end
            local live = { uuid = now.uuid, revision = now.revision }
            local word, message = open(live)
            assert.equal("missing", word)
            local reason = ("the gateway serves revision %d of %s"):format(now.revision, now.uuid)
            assert.is_truthy(message:find(reason, 1, true))
            -- Nothing stands where a volume may be mounted again.
            assert.is_nil(stat.stat(place.store .. ".lock"))
            assert.equal(what ~= "folder", stat.stat(folder) ~= nil)
        end)
    end
end)
