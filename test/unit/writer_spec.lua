--- The writer: what it refuses, what it leaves alone, what it begins with.

-- Long on purpose: one case after the other, of one writer.

local C = require("sluice.ffi.core").C
local dirent = require("posix.dirent")
local on_disk = require("test.house.files")
local support = require("test.unit.support.writer")
local writer = require("gateway.writer")

local function id(number)
    return ("00000000-0000-4000-8000-%012d"):format(number)
end

local function route(number, more)
    local entity = { id = id(number), name = "r" .. number, paths = { "/" .. number } }
    for key, value in pairs(more or {}) do
        entity[key] = value
    end
    return entity
end

local function service(number, more)
    local entity = { id = id(100 + number), name = "s" .. number, host = "h", port = 80 }
    entity.retries, entity.connect_timeout, entity.write_timeout = 5, 1, 1
    entity.read_timeout, entity.protocol = 1, "http"
    for key, value in pairs(more or {}) do
        entity[key] = value
    end
    return entity
end

describe("the writer", function()
    local place, opened

    before_each(function()
        place = support.place()
        opened = support.open(place)
    end)

    after_each(function()
        opened:close()
        support.clean()
    end)

    local function put(kind, entity)
        return support.put(opened, kind, entity)
    end

    local function make(...)
        local results, err = opened:batch({ { ... } })
        return results and results[1] or err
    end

    local function names(kind)
        local found = {}
        for line in support.published(place):gmatch("[^\n]+") do
            local name = line:find("^kind " .. tonumber(kind) .. " ")
                and line:match('name":"(%w+)"')
            found[#found + 1] = name
        end
        table.sort(found)
        return table.concat(found, " ")
    end

    local function routes()
        return names(C.SLUICE_CORE_ROUTE)
    end

    --- The writer's files, by kind; temporary ones among them.
    local function files()
        local found = {}
        for name in io.popen("ls -A " .. place.images):lines() do
            found[#found + 1] = name:match("^%l+")
        end
        return table.concat(found, " ")
    end

    -- Too many for the delta: they take a new base.
    local function make_base()
        local changes = {}
        for i = 1, 60 do
            changes[i] = put("routes", route(i, { tags = { ("x"):rep(2000) } }))
        end
        return opened:batch({ changes })
    end

    local function fail_commits(err)
        local db = opened.store.db
        local run = db.run
        db.run = function(self, sql, ...)
            if sql == "COMMIT" then
                error(err, 0)
            end
            return run(self, sql, ...)
        end
    end

    local function merge()
        local job = opened:start_merge()
        assert(opened:merge(job) and opened:finish_merge(job))
    end

    local function reopen()
        opened:close()
        local from
        opened, from = support.open(place)
        return from
    end

    it("publishes nothing of a commit that fails, and goes on", function()
        make(put("routes", route(1)))
        fail_commits({ code = 13, errno = 0, message = "no room" })
        assert.equal("full", make(put("routes", route(2))).err)
        opened.store.db.run = nil
        assert.equal("r1", routes())
        assert.equal(2, make(put("routes", route(3))).revision)
        assert.equal("r1 r3", routes())
    end)

    it("drops a base that was built for a commit that fails", function()
        fail_commits({ code = 10, errno = 5, message = "broken" })
        assert.is_nil((make_base()))
        opened.store.db.run = nil
        assert.equal("base delta", files())
        assert.equal("", routes())
    end)

    it("builds a base where a delta has no room, and frees its slots", function()
        local before = opened:live().base
        assert.equal(1, make_base()[1].revision)
        assert.is_true(opened:live().base > before)
        assert.equal("base delta", files())
    end)

    it("refuses what is over a limit of images, names it, and makes the others", function()
        local _, err = writer.complete(opened.store.by_kind, {
            kind = "routes",
            put = route(1, { paths = { ("x"):rep(2 ^ 20 + 1) } }),
        })
        assert.equal("unbuildable routes paths", ("%s %s %s"):format(err.err, err.kind, err.field))
        assert.equal(id(1), err.id)
        _, err = writer.complete(opened.store.by_kind, {
            kind = "routes",
            put = route(2, { hosts = { ("h"):rep(255), ("h"):rep(256) } }),
        })
        assert.equal("unbuildable hosts", err.err .. " " .. err.field)
        -- What only shows with the others: too many plugins that consumers have configured.
        local plugins = { put("consumers", { id = id(50), username = "ann" }) }
        for i = 1, 257 do
            local plugin = { id = id(1000 + i), name = "p" .. i, consumer = { id = id(50) } }
            plugins[i + 1] = put("plugins", plugin)
        end
        local results = opened:batch({
            { put("routes", route(1)) },
            plugins,
            { put("routes", route(3)) },
        })
        assert.equal(1, results[1].revision)
        assert.equal("unbuildable plugins", results[2].err .. " " .. results[2].kind)
        assert.equal(2, results[3].revision)
        assert.equal("r1 r3", routes())
    end)

    it("gives a slot again only when no live image knows who had it", function()
        local function slot_of(number)
            return opened.store:get("routes", id(number)).slot
        end
        make(put("routes", route(1)))
        local slot = slot_of(1)
        make({ kind = "routes", delete = id(1) })
        make(put("routes", route(2)))
        assert.are_not.equal(slot, slot_of(2))
        local job = opened:start_merge()
        assert.is_true(opened:merge(job))
        make(put("routes", route(3)))
        assert.are_not.equal(slot, slot_of(3))
        assert.is_true(opened:finish_merge(job))
        make(put("routes", route(4)))
        assert.equal(slot, slot_of(4))
        assert.equal(2, opened.store:get("routes", id(4)).generation)
        assert.equal("r2 r3 r4", routes())
    end)

    it("leaves a merge behind that another base has overtaken", function()
        make(put("routes", route(1)))
        local job = opened:start_merge()
        assert.is_true(opened:merge(job))
        make_base()
        assert.is_false(opened:finish_merge(job))
        assert.equal("base delta", files())
    end)

    it("has nothing to merge where another base has come before it began", function()
        make(put("routes", route(1)))
        local job = opened:start_merge()
        make_base()
        local done, err = opened:merge(job)
        assert.is_false(done)
        assert.is_nil(err)
        assert.equal("base delta", files())
    end)

    it("changes only what a file changes", function()
        local first = { id = id(101), name = "s", host = "a.test", port = 80, retries = 5 }
        assert(opened:replace({ put("services", first), put("routes", route(1)) }))
        local before = assert(opened.store:revision())
        local another = { id = id(102), name = "t", host = "b.test", port = 80, retries = 5 }
        assert(opened:replace({
            put("services", first),
            put("services", another),
            put("routes", route(1)),
        }))
        local changes = assert(opened.store:changes_since(before))
        assert.equal(1, #changes)
        assert.equal(another.id, changes[1].id)
    end)

    it("hides the routes of a disabled service, and shows them again", function()
        local of = { service = { id = id(101) } }
        make(put("services", service(1)), put("routes", route(1, of)), put("routes", route(2)))
        assert.equal("r1 r2", routes())
        make(put("services", service(1, { enabled = false })))
        assert.equal("r2", routes())
        make(put("routes", route(3, of)))
        assert.equal("r2", routes())
        assert.equal(support.built(opened), (support.published(place)))
        make(put("services", service(1)))
        assert.equal("r1 r2 r3", routes())
    end)

    it("has placeholders for what only consumers or groups have configured", function()
        local function placeholders()
            local found = {}
            for line in support.published(place):gmatch("[^\n]+") do
                local name, flags = line:match("^kind 6 %d+ %d+ %d+ %d+ (%S+) ([12]) ")
                found[#found + 1] = name and name .. flags
            end
            return table.concat(found, " ")
        end
        local function plugin(number, owner, more)
            local entity = { id = id(number), name = "key-auth", config = {} }
            entity[owner], entity.enabled = { id = id(50) }, more ~= "disabled"
            return put("plugins", entity)
        end
        make(
            put("consumers", { id = id(50), username = "ann" }),
            put("consumer_groups", { id = id(50), name = "gold" })
        )
        for flag, owner in ipairs({ "consumer", "consumer_group" }) do
            make(plugin(1, owner))
            assert.equal("key-auth" .. flag, placeholders())
            make(plugin(1, owner, "disabled"))
            assert.equal("", placeholders())
        end
        make(plugin(1, "consumer"), plugin(2, "consumer_group"))
        assert.equal("key-auth1 key-auth2", placeholders())
        make(plugin(1, "consumer", "disabled"))
        assert.equal("key-auth2", placeholders())
        make(plugin(1, "consumer"))
        make({ kind = "consumer_groups", delete = id(50) })
        assert.equal("key-auth1", placeholders())
        make({ kind = "consumers", delete = id(50) })
        assert.equal("", placeholders())
        assert.equal(support.built(opened), (support.published(place)))
    end)

    it("has certificates without their JSON, by names in lower case", function()
        local to = { id = id(60) }
        local pair = { id = id(60), cert = "C", key = "{vault://env/KEY}" }
        make(put("certificates", pair))
        make(put("snis", { id = id(61), name = "*.Example.COM", certificate = to }))
        make(put("ca_certificates", { id = id(62), cert = "A" }))
        local text = support.published(place)
        local slot = text:match("kind 10 slot (%d+)%.%d+ revision %d+ C {vault://env/KEY} %- %- %-")
        assert.truthy(slot)
        assert.truthy(text:match("kind 11 slot %d+%.%d+ revision %d+ A %-"))
        assert.equal(slot, text:match("kind 12 slot [%d.]+ revision %d+ (%d+) %*%.example%.com %-"))
        assert.equal(support.built(opened), text)
        make({ kind = "certificates", delete = id(60) })
        assert.is_nil(support.published(place):match("kind 10 "))
        assert.is_nil(support.published(place):match("kind 12 "))
    end)

    describe("begins", function()
        local copy

        before_each(function()
            copy = place.copy
            make(put("routes", route(1)))
            merge()
            assert(opened:save(opened:live()))
            make(put("routes", route(2)))
        end)

        it("with the base that is live, and changes", function()
            local before = opened:live().base
            assert.equal("live", reopen())
            assert.equal(before, opened:live().base)
            assert.equal("r1 r2", routes())
        end)

        it("with the copy, and changes", function()
            place.forget()
            assert.equal("copy", reopen())
            assert.equal("r1 r2", routes())
        end)

        it("not where the copy or the witness is newer than the store", function()
            opened:close()
            local aside = place.store .. ".aside"
            assert(os.execute(("cp %s %s"):format(place.store, aside)))
            opened = support.open(place)
            make(put("routes", route(3)))
            merge()
            assert(opened:save(opened:live()))
            opened:close()
            assert(os.execute(("mv %s %s"):format(aside, place.store)))
            place.forget()
            local function refusal()
                local refused, err = writer.open(place)
                assert.is_nil(refused)
                return err.err .. " " .. err.message:match("[^ ]+ ?[^ ]*;")
            end
            local witness = place.store .. ".witness"
            assert.equal(("behind answered (%s);"):format(witness), refusal())
            os.remove(witness)
            assert.equal("behind of it;", refusal())
            os.remove(copy)
            local from
            opened, from = support.open(place)
            assert.equal("rows", from)
            make(put("routes", route(4)))
            assert.equal("r1 r2 r4", routes())
        end)

        it("without what those left behind who died while they wrote the copy", function()
            for _, name in ipairs({ "/base.4711.new", "/base.next", "/base.next.4711.new" }) do
                assert(io.open(copy:match("^(.*)/") .. name, "w")):close()
            end
            reopen()
            local found = {}
            for name in dirent.files(copy:match("^(.*)/")) do
                found[#found + 1] = name:find("^base") and name or nil
            end
            assert.same({ "base" }, found)
        end)

        it("with every row where the log does not reach back to the copy", function()
            make({ kind = "routes", delete = id(1) })
            merge()
            assert(opened:compact(3))
            place.forget()
            assert.equal("rows", reopen())
            assert.equal("r2", routes())
        end)

        local function damage(path, how)
            local file = assert(io.open(path, "r+b"))
            how(file)
            file:close()
        end

        local DAMAGES = {
            missing = os.remove,
            truncated = function(path)
                local text = on_disk.read(path)
                damage(path, function() end)
                on_disk.write(path, text:sub(1, #text / 2))
            end,
            ["of another layout"] = function(path)
                damage(path, function(file)
                    file:seek("set", 16)
                    file:write("\99")
                end)
            end,
            ["with a changed byte"] = function(path)
                damage(path, function(file)
                    file:seek("set", 300)
                    file:write("\255")
                end)
            end,
            ["others may write"] = function(path)
                os.execute("chmod 666 " .. path)
            end,
            ["no image"] = function(path)
                damage(path, function(file)
                    file:write(("x"):rep(4096))
                end)
            end,
        }

        for what, break_it in pairs(DAMAGES) do
            it("with every row where the bases are: " .. what, function()
                break_it(copy)
                break_it(("%s/base.%d"):format(place.images, opened:live().base))
                assert.equal("rows", reopen())
                assert.equal("r1 r2", routes())
                assert.equal(support.built(opened), (support.published(place)))
            end)
        end

        it("with every row where a kind has come or gone: nobody looked after it", function()
            local layouts, fewer = place.layouts, {}
            for _, of in ipairs(layouts) do
                fewer[#fewer + 1] = of.kind ~= "keyauth_credentials" and of or nil
            end
            make(put("consumers", { id = id(50), username = "ann" }))
            local key = { id = id(51), key = "secret", consumer = { id = id(50) } }
            make(put("keyauth_credentials", key))
            assert(opened:save(opened:live()))
            place.layouts = fewer
            assert.equal("rows", reopen())
            -- Its credentials go with it, though their kind is not known.
            make({ kind = "consumers", delete = id(50) })
            place.layouts = layouts
            assert.equal("rows", reopen())
            assert.is_nil(support.published(place):find("secret", 1, true))
            assert.equal("live", reopen())
        end)

        it("with every row where the base is another store's", function()
            opened:close()
            local aside = place.images .. ".aside"
            assert(os.rename(copy, aside))
            os.execute(("rm -rf %s/store.db*"):format(place.store:match("^(.*)/")))
            opened = support.open(place)
            make(put("routes", route(7)))
            opened:close()
            assert(os.rename(aside, copy))
            place.forget()
            local from
            opened, from = support.open(place)
            assert.equal("rows", from)
            assert.equal("r7", routes())
        end)
    end)

    it("does not mind a clock that was set back", function()
        make(put("routes", route(1, { created_at = 2e9, updated_at = 2e9 })))
        make(put("routes", route(1, { created_at = 5, updated_at = 5, name = "past" })))
        assert.equal("past", routes())
        assert.equal("live", reopen())
    end)

    it("refuses a folder that others may use", function()
        opened:close()
        os.execute("chmod 755 " .. place.images)
        local refused, err = writer.open(place)
        assert.is_nil(refused)
        assert.equal("cannot open", err.err)
        os.execute("chmod 700 " .. place.images)
        opened = support.open(place)
    end)

    it("has one writer at a time", function()
        local other, err = writer.open(place)
        assert.is_nil(other)
        assert.equal("locked", err.err)
    end)

    it("loads a configuration without a page, whose copy the start begins with", function()
        opened:close()
        local opts = { store = place.store, layouts = place.layouts, images = place.images }
        local items = { { kind = "routes", put = route(7) } }
        local done = assert(writer.load(opts, items, "a file"))
        assert.is_true(done.changed)
        assert.is_false(writer.load(opts, items, "a file").changed)
        place.forget()
        local from
        opened, from = support.open(place)
        assert.equal("copy", from)
        assert.equal("r7", routes())
        assert.equal("a file", opened.store:revision().origin)
    end)

    it("leaves files of another layout alone, and takes their numbers for used", function()
        local live = opened.images:live()
        local function copy(kind, number, layout_at)
            local text = on_disk.read(("%s/%s.%d"):format(place.images, kind, live[kind]))
            if layout_at then
                text = text:sub(1, layout_at) .. "\99" .. text:sub(layout_at + 2)
            end
            local path = ("%s/%s.%d"):format(place.images, kind, number)
            on_disk.write(path, text)
            assert(os.execute("chmod 600 " .. path))
        end
        copy("base", 900, 16)
        copy("delta", 901, 8)
        copy("base", 902)
        copy("delta", 903)
        reopen()
        make(put("routes", route(1)))
        merge()
        local found = {}
        for name in dirent.files(place.images) do
            found[#found + 1] = name:find("^%l") and name or nil
        end
        table.sort(found)
        assert.same({ "base.900", "base.905", "delta.901", "delta.906" }, found)
    end)

    it("loads nothing whose images would have no room", function()
        opened:close()
        local opts = { store = place.store, layouts = place.layouts, images = place.images }
        local items = { { kind = "routes", put = route(7) } }
        local statvfs = require("posix.sys.statvfs")
        local real, mebibytes = statvfs.statvfs, nil
        statvfs.statvfs = function()
            return { f_bavail = mebibytes, f_frsize = 1024 * 1024 }
        end
        mebibytes = 31
        local done, err = writer.load(opts, items, "a file")
        mebibytes = 33
        local loaded = writer.load(opts, items, "a file")
        statvfs.statvfs = real
        assert.is_nil(done)
        assert.equal("full", err.err)
        local sizes = "33 MiB are needed (two images of 1 MiB, two deltas of 16 MiB), "
        local text = place.images .. " has too little space: " .. sizes .. "31 MiB are available"
        assert.equal(text, err.message)
        -- Of the first nothing was left, and nothing was committed.
        assert.is_true(loaded.changed)
        assert.equal(0, os.execute("test ! -e " .. place.copy .. ".next"))
        opened = support.open(place)
    end)

    it("hands itself to another Lua VM", function()
        local other = writer.attach(opened:handle())
        assert.equal(1, other:batch({ { put("routes", route(1)) } })[1].revision)
        assert.equal("r1", routes())
    end)
end)
