--- How much the regular expressions of plugins may take that are live, beside those of routes.

local entities = require("gateway.entities")
local layout = require("gateway.store.layout")
local patterns = require("gateway.entities.patterns")
local store = require("test.unit.support.store")
local support = require("test.unit.support.writer")

local MOST = 8 * 2 ^ 20

-- Compiled, about 30 KB.
local LARGE = "https://%d\\.%d\\.(?:" .. ("word0001|"):rep(400) .. ")"

local FIELDS = { cors = "origins", ["bot-detection"] = "deny" }

local function list_of(number, count)
    local list = {}
    for i = 1, count do
        list[i] = LARGE:format(number, i)
    end
    return list
end

local function plugin(number, count, name, more)
    name = name or "cors"
    local list = list_of(number, count)
    list[#list + 1] = "https://a.example.com"
    local entity = {
        id = store.uuid(number),
        name = name,
        instance_name = "p" .. number,
        enabled = true,
        -- One has one of each name.
        route = { id = store.uuid(1100 + number) },
        config = { [FIELDS[name]] = list },
    }
    for key, value in pairs(more or {}) do
        entity[key] = value
    end
    return entity
end

local function route(number, count)
    local paths = { "/" .. number }
    for i = 1, count do
        paths[i + 1] = "~/" .. LARGE:format(number, i):sub(9)
    end
    return { id = store.uuid(1000 + number), name = "r" .. number, paths = paths }
end

local EACH = patterns.bytes(route(1, 1))
-- So many are a quarter of all, and so many a MB.
local COUNT = math.floor(MOST / 4 / EACH) - 1
local MB = math.floor(2 ^ 20 / EACH)

describe("patterns of plugins", function()
    local place, opened
    local most = patterns.MOST

    local function open_place(delta_bytes)
        patterns.MOST = MOST
        local layouts = layout.derive(entities.stored(), entities.of_plugins())
        place = support.place({ delta_bytes = delta_bytes, layouts = layouts })
        opened = support.open(place)
    end

    after_each(function()
        patterns.MOST = most
        opened:close()
        support.clean()
    end)

    local function make(kind, ...)
        local changes = {}
        for i, entity in ipairs({ ... }) do
            changes[i] = support.put(opened, kind, entity)
        end
        local results, err = opened:batch({ changes })
        return results and results[1] or err
    end

    local function revision()
        return opened:live().revision
    end

    local function assert_made(done)
        assert.is_nil(done.err, done.message)
    end

    local function assert_refused(err, number, name)
        local field = "config." .. FIELDS[name or "cors"]
        assert.same(
            { "unbuildable", "plugins", store.uuid(number), field },
            { err.err, err.kind, err.id, err.field }
        )
        assert.matches("^the regular expressions of all routes and plugins take", err.reason)
        local words = "plugin '%s' (%s): %s"
        assert.equal(words:format(name or "cors", store.uuid(number), err.reason), err.message)
    end

    local function put_routes()
        for number = 101, 107 do
            assert_made(make("routes", route(number, 0)))
        end
    end

    -- Half of it routes', half of it two plugins'.
    local function fill()
        put_routes()
        assert_made(make("routes", route(1, COUNT), route(2, COUNT)))
        assert_made(make("plugins", plugin(1, COUNT)))
        assert_made(make("plugins", plugin(2, COUNT, "bot-detection")))
    end

    for name, bytes in pairs({ large = 16 * 2 ^ 20, small = 64 * 1024 }) do
        it("are counted by single writes, the delta being " .. name, function()
            open_place(bytes)
            fill()
            local before = revision()
            assert_refused(make("plugins", plugin(3, MB)), 3)
            assert_refused(make("plugins", plugin(3, MB, "bot-detection")), 3, "bot-detection")
            assert.equal("routes", make("routes", route(3, MB)).kind)
            -- From few to many, and from many to fewer.
            assert_refused(make("plugins", plugin(1, COUNT + MB)), 1)
            assert.equal(before, revision())
            assert_made(make("plugins", plugin(1, COUNT - MB)))
            assert_made(make("plugins", plugin(3, MB)))
            assert_refused(make("plugins", plugin(4, MB)), 4)
            -- Those without one are nothing to it, nor what all origins have in common.
            assert_made(make("plugins", plugin(4, 0)))
            local all = { config = { origins = { "*" } } }
            assert_made(make("plugins", plugin(5, 0, "cors", all)))
            assert_made(opened:batch({ { { kind = "plugins", delete = store.uuid(2) } } })[1])
            assert_made(make("plugins", plugin(6, COUNT)))
            assert_refused(make("plugins", plugin(7, MB)), 7)
        end)
    end

    it("count once they are enabled", function()
        open_place()
        fill()
        local off = { enabled = false }
        assert_made(make("plugins", plugin(3, COUNT, "cors", off)))
        assert_refused(make("plugins", plugin(3, COUNT)), 3)
        assert_made(make("plugins", plugin(1, COUNT, "cors", off)))
        assert_made(make("plugins", plugin(3, COUNT)))
    end)

    it("count whatever they are bound to", function()
        open_place()
        fill()
        local global = { route = require("cjson").null }
        assert_refused(make("plugins", plugin(3, MB, "cors", global)), 3)
        assert_made(make("plugins", plugin(1, COUNT, "cors", global)))
    end)

    it("are counted by replacements", function()
        open_place()
        local function all(count)
            return {
                { kind = "routes", put = route(1, COUNT) },
                { kind = "routes", put = route(101, 0) },
                { kind = "routes", put = route(102, 0) },
                { kind = "routes", put = route(103, 0) },
                { kind = "plugins", put = plugin(1, COUNT) },
                { kind = "plugins", put = plugin(2, count, "bot-detection") },
            }
        end
        local done, err = opened:replace(all(2 * COUNT + MB))
        assert.is_nil(done)
        assert_refused(err, 2, "bot-detection")
        assert.equal(1, opened:replace(all(2 * COUNT)).revision)
        assert_refused(make("plugins", plugin(3, MB)), 3)
    end)

    it("are counted after a merge, by a successor, and after a start of the machine", function()
        open_place(16 * 2 ^ 20)
        fill()
        local job = opened:start_merge()
        assert_made(make("plugins", plugin(1, COUNT - MB)))
        assert(opened:merge(job) and opened:finish_merge(job))
        assert_made(make("plugins", plugin(3, MB)))
        assert_refused(make("plugins", plugin(4, MB)), 4)
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
            assert_refused(make("plugins", plugin(4, MB)), 4)
        end
    end)

    it("that are too much already are served, and may become less", function()
        open_place()
        patterns.MOST = most
        fill()
        assert_made(make("plugins", plugin(3, COUNT, "bot-detection")))
        patterns.MOST = MOST
        opened:close()
        place.forget()
        os.remove(place.copy)
        opened = support.open(place)
        assert_refused(make("plugins", plugin(4, 1)), 4)
        assert_made(make("plugins", plugin(3, COUNT - 1, "bot-detection")))
        assert_refused(make("plugins", plugin(3, COUNT, "bot-detection")), 3, "bot-detection")
    end)

    it("may be none where a list is null", function()
        open_place()
        put_routes()
        local null = require("cjson").null
        local none = { config = { origins = null } }
        assert_made(make("plugins", plugin(1, 0, "cors", none)))
        none = { config = { allow = null, deny = null } }
        assert_made(make("plugins", plugin(2, 0, "bot-detection", none)))
    end)

    it("stand in an image as their C runs them", function()
        open_place()
        put_routes()
        local config = { allow = { "^good/" }, deny = { "bad", "worse" } }
        assert_made(make("plugins", plugin(1, 0, "bot-detection", { config = config })))
        config = { origins = { "https://a.com", "https://.*\\.b\\.com", "c.(com|org)" } }
        assert_made(make("plugins", plugin(2, 0, "cors", { config = config })))
        local text = support.published(place)
        assert.matches(" *(?-i)^good/,*(?-i)bad,*(?-i)worse ", text, nil, true)
        assert.matches(" ~(?:https://.*\\.b\\.com)$,~(?:c.(com|org))$ ", text, nil, true)
    end)
end)
