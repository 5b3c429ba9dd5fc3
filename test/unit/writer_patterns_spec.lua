--- How much the regular expressions of routes may take that are live together, however they come.

local patterns = require("gateway.entities.patterns")
local support = require("test.unit.support.writer")

local function id(number)
    return ("00000000-0000-4000-8000-%012d"):format(number)
end

-- Compiled, about 30 KB.
local LARGE = "~/%d/%d/(?:" .. ("word0001|"):rep(400) .. ")$"

local function route(number, count)
    local paths = { "/" .. number }
    for i = 1, count do
        paths[i + 1] = LARGE:format(number, i)
    end
    return { id = id(number), name = "r" .. number, paths = paths }
end

local EACH = patterns.bytes(route(1, 1))
assert(EACH > 20000, EACH)
-- Of these a MB, and as many as fit into each of some routes.
local MB = math.floor(2 ^ 20 / EACH)
local ROUTES = 16
local COUNT = math.floor(patterns.MOST / ROUTES / EACH)

describe("patterns of routes", function()
    local place, opened

    local function open_place(delta_bytes)
        place = support.place({ delta_bytes = delta_bytes })
        opened = support.open(place)
    end

    after_each(function()
        opened:close()
        support.clean()
    end)

    local function put(entity)
        return support.put(opened, "routes", entity)
    end

    local function make(...)
        local results, err = opened:batch({ { ... } })
        return results and results[1] or err
    end

    local function fill()
        for number = 1, ROUTES do
            assert.equal(number, make(put(route(number, COUNT))).revision)
        end
    end

    local function assert_refused(err, number)
        assert.same(
            { "unbuildable", "routes", id(number), "paths" },
            { err.err, err.kind, err.id, err.field }
        )
        assert.equal(("route 'r%d': %s"):format(number, err.reason), err.message)
        assert.matches(
            "^the regular expressions of all routes and plugins take [67]%d%.%d MB",
            err.reason
        )
    end

    local function revision()
        return opened:live().revision
    end

    -- What changes stands in a delta, or takes a new base.
    local DELTAS = { large = 16 * 2 ^ 20, small = 64 * 1024 }

    local function check_single_writes(delta_bytes)
        open_place(delta_bytes)
        fill()
        assert_refused(make(put(route(100, MB))), 100)
        assert.equal(ROUTES, revision())
        -- What is in a route's place takes its room, and one that goes leaves it.
        local other = route(3, COUNT)
        other.name = "other"
        assert.equal(ROUTES + 1, make(put(other)).revision)
        assert_refused(make(put(route(3, COUNT + MB))), 3)
        assert.equal(ROUTES + 2, make(put(route(3, COUNT - MB))).revision)
        assert.equal(ROUTES + 3, make(put(route(100, MB))).revision)
        assert.equal(ROUTES + 4, make({ kind = "routes", delete = id(4) }).revision)
        assert.equal(ROUTES + 5, make(put(route(101, COUNT))).revision)
        assert_refused(make(put(route(102, MB))), 102)
        -- Those without one are nothing to it.
        assert.equal(ROUTES + 6, make(put(route(103, 0))).revision)
    end

    for name, bytes in pairs(DELTAS) do
        it("are counted by single writes, the delta being " .. name, function()
            check_single_writes(bytes)
        end)
    end

    it("are counted by transactions as a whole", function()
        open_place()
        fill()
        local gone = { kind = "routes", delete = id(1) }
        assert.equal(ROUTES + 1, make(put(route(50, COUNT)), gone).revision)
        assert_refused(make(put(route(51, MB)), put(route(52, MB))), 51)
        -- Of many that share a commit one is to blame.
        local results = opened:batch({ { put(route(53, 0)) }, { put(route(54, MB)) } })
        assert.equal(ROUTES + 2, results[1].revision)
        assert_refused(results[2], 54)
    end)

    it("are counted by replacements", function()
        open_place()
        local function all(count)
            local items = {}
            for number = 1, ROUTES do
                items[number] = { kind = "routes", put = route(number, count) }
            end
            return items
        end
        local done, err = opened:replace(all(COUNT + MB))
        assert.is_nil(done)
        assert_refused(err, err.id and tonumber(err.id:match("%d+$")))
        assert.equal(1, opened:replace(all(COUNT)).revision)
        done, err = opened:replace(all(COUNT + MB))
        assert.is_nil(done)
        assert_refused(err, tonumber(err.id:match("%d+$")))
        assert.equal(1, revision())
        assert_refused(make(put(route(100, MB))), 100)
    end)

    it("are counted after a merge, by a successor, and after a start of the machine", function()
        open_place(DELTAS.large)
        fill()
        local job = opened:start_merge()
        assert.equal(ROUTES + 1, make(put(route(1, COUNT - MB))).revision)
        assert(opened:merge(job) and opened:finish_merge(job))
        assert.equal(ROUTES + 2, make(put(route(60, MB))).revision)
        assert_refused(make(put(route(61, MB))), 61)
        assert(opened:save(opened:live()))
        for _, from in ipairs({ "live", "copy", "rows" }) do
            opened:close()
            if from ~= "live" then
                place.forget()
            end
            if from == "rows" then
                os.remove(place.copy)
            end
            local found
            opened, found = support.open(place)
            assert.equal(from, found)
            assert_refused(make(put(route(61, MB))), 61)
        end
    end)

    it("that are too much already are served, and may become less", function()
        open_place()
        fill()
        local most = patterns.MOST
        finally(function()
            patterns.MOST = most
        end)
        patterns.MOST = 20 * 2 ^ 20
        opened:close()
        place.forget()
        os.remove(place.copy)
        opened = support.open(place)
        assert.equal(ROUTES, revision())
        assert.equal("unbuildable", make(put(route(60, 1))).err)
        assert.equal(ROUTES + 1, make(put(route(1, 1))).revision)
        assert.equal("unbuildable", make(put(route(1, 2))).err)
    end)
end)
