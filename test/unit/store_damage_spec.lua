--- Damage of any file of a store, after an orderly end and after a hard one: refused with a reason
--- and every file as it was, or all entities are there. Never fewer or others without a word.

local evidence = require("gateway.writer.evidence")
local ffi = require("ffi")
local support = require("test.unit.support.writer")
local log_file = require("gateway.store.log_file")
local on_disk = require("test.house.files")
local sqlite = require("gateway.store.sqlite")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local FLIPS = 50
local FILES = { "store.db", "store.db-wal", "store.db-shm", "store.db.witness", "base" }
local ENDS = { orderly = "an orderly end", hard = "a hard end", first = "a hard end of the first" }
-- Where each flip is found: nothing is there that nobody reads.
local ALL = {
    ["store.db orderly"] = FLIPS,
    ["store.db-wal hard"] = FLIPS,
    ["store.db-wal first"] = FLIPS,
}
-- What is made anew: no flip there keeps a start from what was answered. Elsewhere a flip is found,
-- or on a page that the log has anew.
local NONE = { ["store.db-shm"] = 0, ["store.db.witness"] = 0, base = 0 }
local KINDS = { "services", "routes", "consumers", "keyauth_credentials" }

local function id(number)
    return ("00000000-0000-4000-8000-%012d"):format(number)
end

local function write(path, text)
    if not text then
        os.remove(path)
        return
    end
    on_disk.write(path, text)
    stat.chmod(path, tonumber("600", 8))
end

local function snapshot(folder)
    local files = {}
    for _, name in ipairs(FILES) do
        files[name] = on_disk.read_if_there(folder .. "/" .. name)
    end
    return files
end

local function put_back(folder, files)
    for _, name in ipairs(FILES) do
        write(folder .. "/" .. name, files[name])
    end
end

-- A change with entities of all kinds, some texts of which are over several pages.
local function change(opened, number, mark)
    local function put(kind, entity)
        return support.put(opened, kind, entity)
    end
    local long = (mark .. number .. " "):rep(number % 3 == 0 and 2000 or 20)
    assert(opened:batch({
        {
            put("routes", { id = id(number), name = "r" .. number, paths = { "/" .. mark } }),
            put("consumers", { id = id(100 + number), username = mark .. number, tags = { long } }),
            put("keyauth_credentials", {
                id = id(200 + number),
                key = mark .. "key" .. number,
                consumer = { id = id(100 + number) },
            }),
        },
        number > 4 and { { kind = "routes", delete = id(number - 4) } } or nil,
    }))
end

local function entities(opened)
    local out = {}
    for _, kind in ipairs(KINDS) do
        for _, row in ipairs(opened.store:list(kind, { size = 1000 })) do
            out[#out + 1] = kind .. row.text
            local found = opened.store:get(kind, row.id)
            out[#out + 1] = found and found.text == row.text and "found" or "lost"
        end
    end
    return table.concat(out, "\n")
end

local function save(opened)
    local job = opened:start_merge()
    assert(opened:merge(job) and opened:finish_merge(job))
    assert(opened:save(opened:live()))
    assert(opened:compact(opened:live().base_revision))
end

-- In memory: a case is a dozen syncs.
local function place_of(mark)
    local folder = stat.stat("/dev/shm")
            and ("/dev/shm/sluice-test-%d%s"):format(unistd.getpid(), mark)
        or support.folder()
    os.execute("mkdir -p " .. folder)
    return support.place({ store = folder .. "/store/store.db", images = folder .. "/images" }),
        folder
end

-- What each end leaves, an older state of the same store, and what the entities are.
local function make(mark, revisions)
    local place, above = place_of(mark)
    local folder = above .. "/store"
    local opened = support.open(place)
    local made = { place = place, folder = folder, above = above }
    for number = 1, revisions do
        change(opened, number, mark)
        if number == 3 then
            opened:close()
            made.older = snapshot(folder)
            opened = support.open(place)
        elseif number == 2 then
            made.first = snapshot(folder)
            made.of_first = { entities(opened), (support.published(place)) }
        elseif number == 4 then
            made.behind = on_disk.read_if_there(folder .. "/store.db.witness")
        elseif number == revisions - 2 then
            save(opened)
        end
    end
    made.of_last = { entities(opened), (support.published(place)) }
    made.hard = snapshot(folder)
    opened:close()
    made.orderly = snapshot(folder)
    return made
end

-- The file with a bit of it flipped, at one of so many places all over it.
local function flipped(text, number)
    local at = math.floor((number - 0.5) * #text / FLIPS) + 1
    local bit_ = 2 ^ (number % 8)
    local byte = bit.bxor(text:byte(at), bit_)
    return text:sub(1, at - 1) .. string.char(byte) .. text:sub(at + 1)
end

local function damages(made, other, state, name)
    local whole, list = made[state][name], {}
    list[1] = { "missing", nil }
    list[2] = { "empty", "" }
    list[3] = { "cut", whole and whole:sub(1, math.floor(#whole * 0.6)) }
    list[4] = { "older", made.older[name] }
    list[5] = { "another's", other[state][name] }
    list[6] = { "of a hard end", other.hard[name] }
    list[7] = { "of its own hard end", name == "store.db-wal" and made.hard[name] or whole }
    for number = 1, whole and #whole > 0 and FLIPS or 0 do
        list[#list + 1] = { "flip " .. number, flipped(whole, number), is_flip = true }
    end
    return list
end

describe("a damaged file", function()
    local made, other

    setup(function()
        made, other = make("a", 11), make("b", 14)
    end)

    teardown(function()
        support.clean()
        for _, each in ipairs({ made, other }) do
            os.execute("rm -rf " .. each.above)
        end
    end)

    -- Nil where all is there; else the word of the refusal.
    local function start(wanted)
        local place = made.place
        place.forget()
        local before = snapshot(made.folder)
        local now, err = evidence.examine(place.store, place.layouts)
        if not now then
            assert.is_truthy(err.message:find(place.store, 1, true), err.message)
            local after = snapshot(made.folder)
            for _, name in ipairs(FILES) do
                -- SQLite makes an empty log, and an index of it.
                local is_made = name == "store.db-wal" and not before[name] and after[name] == ""
                assert(name == "store.db-shm" or is_made or before[name] == after[name], name)
            end
            return err.err
        end
        place.forget()
        local opened = support.open(place)
        local found, published = entities(opened), (support.published(place))
        opened:close()
        assert.same(wanted, { found, published })
        return nil
    end

    for state in pairs(ENDS) do
        for _, name in ipairs(FILES) do
            it(("%s, after %s"):format(name, ENDS[state]), function()
                local refused = 0
                for _, damage in ipairs(damages(made, other, state, name)) do
                    put_back(made.folder, made[state])
                    write(made.folder .. "/" .. name, damage[2])
                    local ok, word =
                        pcall(start, state == "first" and made.of_first or made.of_last)
                    assert(ok, damage[1] .. ": " .. tostring(word))
                    refused = refused + (damage.is_flip and word and 1 or 0)
                    local is_other = damage[2] ~= made[state][name]
                    -- One that was closed differs in its mark alone, which the log has anew.
                    is_other = is_other and not (damage[1] == "older" and state == "hard")
                    local is_gone = name == "store.db" and state ~= "first" and is_other
                    if is_gone and not damage.is_flip then
                        assert(word, damage[1])
                    end
                end
                local wanted = ALL[name .. " " .. state] or NONE[name] or refused
                assert.equal(wanted, refused)
            end)
        end
    end

    -- A journal as SQLite writes it, of pages by number.
    local function journal_of(count, records, page_size)
        local nonce, sector = 4711, 512
        local function word(number)
            return ffi.string(ffi.new("uint32_t[1]", bit.bswap(number)), 4)
        end
        local text = { "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" }
        for _, number in ipairs({ #records, nonce, count, sector, page_size }) do
            text[#text + 1] = word(number)
        end
        text[#text + 1] = ("\0"):rep(sector - 28)
        for _, record in ipairs(records) do
            local sum = nonce
            for at = page_size - 200, 1, -200 do
                sum = sum + record[2]:byte(at + 1)
            end
            text[#text + 1] = word(record[1]) .. record[2] .. word(sum)
        end
        return table.concat(text)
    end

    describe("a journal", function()
        local path

        -- Of pages of a file, as a transaction over them has it.
        local function of(text, numbers, count)
            local size = text:byte(17) * 256 + text:byte(18)
            local records = {}
            for i, number in ipairs(numbers) do
                records[i] = { number, text:sub((number - 1) * size + 1, number * size) }
            end
            return journal_of(count or #text / size, records, size)
        end

        before_each(function()
            path = made.place.store .. "-journal"
        end)

        after_each(function()
            os.remove(path)
        end)

        local function assert_refused(state, text, what)
            put_back(made.folder, made[state])
            write(path, text)
            local ok, word = pcall(start, made.of_last)
            assert(ok, what .. ": " .. tostring(word))
            assert.equal("foreign", word, what)
            assert.equal(text, on_disk.read_if_there(path), what)
            made.place.forget()
            assert.is_false(pcall(support.open, made.place), what)
            assert.equal(text, on_disk.read_if_there(path), what)
            assert.equal(made[state]["store.db"], on_disk.read_if_there(made.place.store), what)
        end

        for _, state in ipairs({ "orderly", "hard" }) do
            it("of another store or time, after " .. ENDS[state], function()
                local now = made[state]["store.db"]
                local size = now:byte(17) * 256 + now:byte(18)
                assert_refused(state, of(made.older["store.db"], { 2, 3, 4 }), "older")
                assert_refused(state, of(other[state]["store.db"], { 1, 2 }), "another's")
                assert_refused(state, of(now, {}, 3), "one that only cuts off")
                assert_refused(state, of(now, { 1, 2 }), "more than page 1")
                assert_refused(state, of(now, { 3 }, #now / size), "another page")
                assert_refused(state, ("x"):rep(2000), "none")
                local wide = of(now, { 1 })
                wide = wide:sub(1, 20) .. "\0\4\0\0" .. wide:sub(25) .. ("\0"):rep(2 ^ 18)
                assert_refused(state, wide:sub(1, 2 ^ 18 + size + 8), "a sector beyond any")
            end)
        end

        it("of the switch to the log is played back", function()
            local now = made.orderly["store.db"]
            local before = now:sub(1, 18) .. "\1\1" .. now:sub(21)
            for _, numbers in ipairs({ {}, { 1 } }) do
                put_back(made.folder, made.orderly)
                write(path, of(before, numbers))
                assert.is_nil(start(made.of_last))
                assert.is_nil(on_disk.read_if_there(path))
            end
        end)

        it("that is cut short, empty or ended is none", function()
            local not_synced = ("\0"):rep(12) .. of(made.older["store.db"], { 2, 3 }):sub(13)
            for _, text in ipairs({ "", "\xd9\xd5\x05\xf9", not_synced }) do
                put_back(made.folder, made.orderly)
                write(path, text)
                assert.is_nil(start(made.of_last))
            end
        end)
    end)

    it("is no page that was written when the witness could not be", function()
        put_back(made.folder, made.orderly)
        made.place.forget()
        local opened = support.open(made.place)
        -- As on a full disk: a new witness cannot be made.
        local blocked = made.place.store .. ".witness.new"
        assert(stat.mkdir(blocked))
        assert(stat.mkdir(blocked .. "/x"))
        for number = 12, 14 do
            change(opened, number, "a")
            local done, err = opened:empty_log()
            assert.is_nil(done)
            assert.is_truthy(err.message:find(blocked, 1, true), err.message)
        end
        local wanted = entities(opened)
        made.place.forget()
        assert(evidence.examine(made.place.store, made.place.layouts))
        os.remove(blocked .. "/x")
        os.remove(blocked)
        assert.is_true(opened:empty_log())
        assert.equal("", on_disk.read_if_there(made.folder .. "/store.db-wal"))
        assert(evidence.examine(made.place.store, made.place.layouts))
        opened:close()
        opened = support.open(made.place)
        assert.equal(wanted, entities(opened))
        opened:close()
    end)

    it("in the middle of a log, where nobody knows what was answered", function()
        put_back(made.folder, made.hard)
        local path = made.folder .. "/store.db-wal"
        -- As after a cut of power: what the witness knows is behind.
        write(made.folder .. "/store.db.witness", made.behind)
        local function examined()
            local now, err = evidence.examine(made.place.store, made.place.layouts)
            return now or err.err
        end
        local whole = made.hard["store.db-wal"]
        write(made.folder .. "/base", nil)
        assert.is_table(examined())
        write(path, flipped(whole, 30))
        assert.equal("corrupt", examined())
        local log = log_file.open(path)
        log:close()
        assert.is_true(log.lost > 1, log.lost)
        -- A last commit that is not whole is what a cut of power leaves.
        write(path, whole:sub(1, -3000))
        log = log_file.open(path)
        log:close()
        assert.equal(0, log.lost)
    end)

    it("is no frame that was being written when it was looked at", function()
        put_back(made.folder, made.hard)
        write(made.folder .. "/store.db.witness", made.behind)
        write(made.folder .. "/base", nil)
        local path = made.folder .. "/store.db-wal"
        local whole = made.hard["store.db-wal"]
        local open = log_file.open
        -- While it looks the frame becomes whole.
        log_file.open = function(...)
            write(path, flipped(whole, 30))
            local log = open(...)
            log_file.open = open
            write(path, whole)
            return log
        end
        local now, err = evidence.examine(made.place.store, made.place.layouts)
        log_file.open = open
        assert(now, err and err.message)
    end)

    it("is none where an older Sluice has written, which knows of no witness", function()
        put_back(made.folder, made.orderly)
        local db = sqlite.open(made.place.store)
        db:run("UPDATE kind SET columns = replace(columns, ',\"witness\"', '')")
        db:run("UPDATE e_routes SET text = replace(text, 'r11', 'r99')")
        db:run("UPDATE meta SET revision = revision + 1")
        db:row("PRAGMA wal_checkpoint(FULL)")
        db:close()
        local now = assert(evidence.examine(made.place.store, made.place.layouts))
        support.open(made.place):close()
        assert.is_true(
            now.revision <= evidence.examine(made.place.store, made.place.layouts).revision
        )
        -- From here on it knows the pages again.
        local text = on_disk.read_if_there(made.place.store)
        write(made.place.store, flipped(text, 20))
        local again, err = evidence.examine(made.place.store, made.place.layouts)
        assert.is_nil(again)
        assert.equal("corrupt", err.err)
    end)
end)
