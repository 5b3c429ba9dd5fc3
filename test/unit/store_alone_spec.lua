--- `store.db` without what stands beside it, as somebody has copied it: whole where its last writer
--- has closed it, else refused.

local on_disk = require("test.house.files")
local sqlite = require("gateway.store.sqlite")
local support = require("test.unit.support.store")

local put = support.put

describe("the file of a store alone", function()
    local path

    before_each(function()
        path = support.folder() .. "/store/store.db"
    end)

    after_each(support.clean)

    -- Copies files of a store, as they are at this moment, into a folder of their own.
    local function copied(...)
        local to = support.folder() .. "/store.db"
        for _, suffix in ipairs({ "", ... }) do
            on_disk.write(to .. suffix, on_disk.read(path .. suffix))
        end
        return to
    end

    local function add(store, id, long)
        assert(store:transaction({ put("services", { id = id, name = id, host = long or "h" }) }))
    end

    -- A store with one service in its file, and one more in its log, which is open.
    local function make()
        local s = assert(support.open(path))
        add(s, "one")
        s:close()
        s = assert(support.open(path))
        add(s, "two")
        return s
    end

    local function assert_refused(word, at)
        local before = on_disk.read(at)
        for _, opts in ipairs({ { read_only = true, verify = true }, {}, {} }) do
            local s, err = support.open(at, opts)
            assert.is_nil(s)
            assert.equal(word, err.err)
            assert.truthy(
                err.message:find("was not closed by its last writer, and its log", 1, true)
            )
            assert.equal(before, on_disk.read(at))
            assert.is_nil(on_disk.read_if_there(at .. ".witness"))
        end
    end

    local function assert_holds(ids, at)
        local s = assert(support.open(at, { verify = true }))
        assert.equal(ids, support.ids(s:list("services")))
        s:close()
    end

    it("is refused where its writer was killed, and can be read as it is", function()
        local s = make()
        local at = copied()
        assert_refused("behind", at)
        local seen = assert(support.open(at, { read_only = true, as_is = true }))
        assert.equal("one", support.ids(seen:list("services")))
        seen:close()
        assert_holds("one two", copied("-wal"))
        s:close()
    end)

    it("is refused where nothing has been moved into it yet", function()
        local s = assert(support.open(path))
        add(s, "one")
        assert_refused("missing", copied())
        assert_holds("one", copied("-wal"))
        s:close()
    end)

    it("is refused where it was filled without a log, and not closed", function()
        local s = assert(support.open(path, { alone = true }))
        assert(s:replace({ put("services", { id = "one", name = "one", host = "h" }) }))
        assert_refused("behind", copied())
        assert_holds("one", copied(".witness"))
        s:close()
        assert_holds("one", copied())
    end)

    it("is refused after a kill that came behind a kill", function()
        local s = make()
        local names = { "", "-wal", ".witness" }
        local killed = {}
        for i, suffix in ipairs(names) do
            killed[i] = on_disk.read(path .. suffix)
        end
        s:close()
        for i, suffix in ipairs(names) do
            on_disk.write(path .. suffix, killed[i])
        end
        s = assert(support.open(path, { verify = true }))
        assert_refused("behind", copied())
        s:close()
        assert_holds("one two", copied())
    end)

    it("is whole where it was closed, also by one that had nothing to write", function()
        make():close()
        assert_holds("one two", copied())
        assert(support.open(path)):close()
        assert_holds("one two", copied())
    end)

    it("is refused where it could not be closed in order, since somebody was reading", function()
        local s = make()
        local reader = assert(support.open(path, { read_only = true }))
        reader.db:run("BEGIN")
        assert(reader.db:row("SELECT count(*) FROM e_services"))
        s:close()
        assert_refused("behind", copied())
        reader.db:run("ROLLBACK")
        reader:close()
        assert_holds("one two", path)
        assert_holds("one two", copied())
    end)

    it(
        "is opened where its witness is there, though its log was emptied before the kill",
        function()
            local s = make()
            assert.is_true(s:empty_log())
            assert_holds("one two", copied(".witness"))
            s:close()
        end
    )

    it("is opened where an older Sluice has closed it, which leaves the mark", function()
        local s = make()
        local at = copied("-wal")
        local db = sqlite.open(at)
        db:run("UPDATE kind SET columns = replace(columns, ',\"mark\"', '')")
        db:row("PRAGMA wal_checkpoint(TRUNCATE)")
        assert.equal(1, db:row("SELECT is_open FROM meta")[1])
        db:close()
        assert_holds("one two", at)
        s:close()
    end)

    it("is opened where it is a backup, made while its store was open", function()
        local s = make()
        local backup = path .. ".copy"
        assert(s:backup(backup))
        assert_holds("one two", backup)
        s:close()
    end)
end)
