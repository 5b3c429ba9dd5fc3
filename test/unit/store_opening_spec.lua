--- Opening a store: one writer, and files that are none, damaged, newer, or not to be written.

local files = require("gateway.store.files")
local on_disk = require("test.house.files")
local sqlite = require("gateway.store.sqlite")
local stat = require("posix.sys.stat")
local support = require("test.unit.support.store")

local put = support.put

local function refused(word, path, opts)
    local store, err = support.open(path, opts)
    if store then
        store:close()
    end
    assert.is_nil(store)
    assert.equal(word, err.err)
    assert.equal(path, err.path)
    assert.truthy(err.message:find(path .. ": ", 1, true))
end

describe("opening a store", function()
    local path

    before_each(function()
        path = support.folder() .. "/store/store.db"
    end)

    after_each(support.clean)

    -- A store with so many services, closed: its log is in the file.
    local function make(count)
        local s = assert(support.open(path))
        local changes = {}
        for i = 1, count or 1 do
            changes[i] = put("services", { id = "s" .. i, name = "n" .. i, host = ("h"):rep(200) })
        end
        local revision = assert(s:transaction(changes))
        s:close()
        return revision
    end

    it("makes it for its owner alone, and finds it again", function()
        local revision = make()
        local s = assert(support.open(path))
        assert.same(revision, s:revision())
        local modes = on_disk.run("stat -c %a " .. path .. "* " .. files.folder_of(path))
        assert.equal("600 600 600 600 600 700 ", (modes:gsub("\n", " ")))
        s:close()
    end)

    it("has one writer, and readers beside", function()
        make()
        local s = assert(support.open(path))
        refused("locked", path)
        local reader = assert(support.open(path, { read_only = true }))
        assert(s:transaction({ put("services", { id = "t" }) }))
        assert.equal("s1 t", support.ids(reader:list("services")))
        local done, err = reader:transaction({ put("services", { id = "u" }) })
        assert.is_nil(done)
        assert.equal("read only", err.err)
        reader:close()
        s:close()
        assert(support.open(path)):close()
    end)

    it("makes nothing where it only reads", function()
        refused("cannot open", path, { read_only = true })
        assert.is_nil(io.open(files.folder_of(path)))
    end)

    it("does not follow a link, nor open what is no file", function()
        make()
        os.execute(("mkfifo %s.pipe && ln -s store.db %s.link"):format(path, path))
        refused("cannot open", path .. ".pipe")
        refused("cannot open", path .. ".link")
        refused("cannot open", "/proc/none/store.db")
    end)

    it("leaves foreign files alone", function()
        os.execute("mkdir " .. files.folder_of(path))
        on_disk.write(path, ("no database "):rep(1000))
        refused("not a store", path)
        assert.equal(("no database "):rep(1000), on_disk.read(path))
        on_disk.write(path, "")
        local db = sqlite.open(path)
        db:run("CREATE TABLE other (x)")
        db:close()
        local before = on_disk.read(path)
        refused("not a store", path)
        assert.equal(before, on_disk.read(path))
    end)

    it("refuses the store of a newer Sluice, save one that says it can be read", function()
        make()
        local db = sqlite.open(path)
        db:run("PRAGMA user_version = " .. support.FORMAT + 1)
        db:close()
        refused("too new", path)
        refused("too new", path, { read_only = true })
    end)

    it("shows nothing of damage that a terminal or JSON cannot take", function()
        make()
        local text = on_disk.read(path)
        local damaged, count = text:gsub("INTEGER PRIMARY KEY", "INTEGER PRIMARY \27\217Y")
        assert.is_true(count > 0)
        on_disk.write(path, damaged)
        local store, err = support.open(path, { read_only = true })
        assert.is_nil(store)
        assert.equal("corrupt", err.err)
        assert.truthy(err.message:find("?", 1, true), err.message)
        assert.is_nil(err.message:find("[^\32-\126]"))
    end)

    it("finds damaged pages, whichever it is", function()
        make(2000)
        local whole, found = on_disk.read(path), 0
        for page = 0, #whole / 4096 - 1, 7 do
            local at = page * 4096 + 16
            on_disk.write(path, whole:sub(1, at) .. ("\255"):rep(2000) .. whole:sub(at + 2001))
            local store, err = support.open(path)
            if store then
                -- the texts of entities have no checksum
                store:close()
            else
                found = found + 1
                assert.is_truthy(err.err == "corrupt" or err.err == "not a store", err.err)
                assert.truthy(err.message:find(path, 1, true))
            end
        end
        assert.is_true(found > #whole / 4096 / 7 / 2, found)
        on_disk.write(path, whole:sub(1, #whole - 8192))
        refused("corrupt", path)
        on_disk.write(path, whole)
        assert(support.open(path)):close()
    end)

    it("misses what a log lost that was answered", function()
        local revision = make()
        local s = assert(support.open(path))
        revision.revision = revision.revision + 1
        assert.same(revision, s:transaction({ put("services", { id = "t" }) }))
        local other = support.folder() .. "/store.db"
        on_disk.write(other, on_disk.read(path))
        on_disk.write(other .. "-wal", on_disk.read(path .. "-wal"):sub(1, -5))
        s:close()
        refused("behind", other, { at_least = revision })
        assert(support.open(other)):close()
        assert(support.open(path, { at_least = revision })):close()
        assert(support.open(path, { at_least = { uuid = "x", revision = 9 } })):close()
    end)

    it("has a file that is whole without its log, once it was closed", function()
        make(300)
        assert.equal("", on_disk.read(path .. "-wal"))
        local other = support.folder() .. "/alone.db"
        on_disk.write(other, on_disk.read(path))
        local s = assert(support.open(other))
        assert.equal(300, #s:list("services", { size = 1000 }))
        s:close()
    end)

    it("cuts a log that was large once, though nothing of it was committed", function()
        local s = assert(support.open(path))
        local function log_bytes()
            return stat.stat(path .. "-wal").st_size
        end
        -- More than the cache holds: SQLite writes pages into the log before they are decided.
        s.db:run("PRAGMA cache_size = 10")
        s.db:run("BEGIN")
        s.db:run("CREATE TABLE large (x)")
        for _ = 1, 70 do
            s.db:run("INSERT INTO large VALUES (zeroblob(1048576))")
        end
        s.db:run("ROLLBACK")
        assert.is_true(log_bytes() > 64 * 1024 * 1024)
        assert(s:transaction({ put("services", { id = "t" }) }))
        assert.equal(0, log_bytes())
        assert(s:transaction({ put("services", { id = "u" }) }))
        assert.equal("t u", support.ids(s:list("services")))
        s:close()
        s = assert(support.open(path, { verify = true }))
        assert.equal("t u", support.ids(s:list("services")))
        s:close()
    end)

    it("checks every page and reference when asked", function()
        make()
        local s = assert(support.open(path))
        assert.is_true(s:check())
        s.db:run("PRAGMA foreign_keys = OFF")
        s.db:run("INSERT INTO e_routes VALUES (9, 'r', 9, 1, 1, 0, 0, '{}', NULL, 'n', 'none')")
        local ok, err = s:check()
        assert.is_nil(ok)
        assert.equal("corrupt", err.err)
        assert.same({ "e_routes refers to none in e_services" }, err.details)
        s:close()
    end)

    it("knows network file systems", function()
        assert.equal("NFS", files.refused(0x6969))
        assert.equal("CIFS", files.refused(0xff534d42))
        assert.equal("CIFS", files.refused(0xff534d42 - 2 ^ 32))
        assert.is_nil(files.refused(0xef53))
        assert.is_true(files.check("/tmp"))
    end)

    it(
        "fills a new file without a log where nobody is beside it; the next one has the log",
        function()
            local function journal(s)
                return s.db:row("PRAGMA journal_mode")[1]
            end
            local s = assert(support.open(path, { alone = true }))
            assert.equal("delete", journal(s))
            local done =
                assert(s:replace({ put("services", { id = "a", name = "n", host = "h" }) }, "x"))
            s:close()
            s = assert(support.open(path, { alone = true }))
            assert.equal("wal", journal(s))
            assert.equal(done.revision, s:revision().revision)
            assert.is_table(s:get("services", "a"))
            s:close()
        end
    )
end)
