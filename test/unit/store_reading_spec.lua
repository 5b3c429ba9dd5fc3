--- What the store tells: entities, pages while they change, tags, changes since a revision, copies.

local config = require("gateway.config")
local support = require("test.unit.support.store")

local put, delete, to = support.put, support.delete, support.to

describe("reading the store", function()
    local s

    before_each(function()
        s = assert(support.open())
    end)

    after_each(function()
        s:close()
        support.clean()
    end)

    local function make(changes)
        return assert(s:transaction(changes))
    end

    local function pages(kind, opts)
        local out = {}
        repeat
            local page
            page, opts.offset = s:list(kind, opts)
            out[#out + 1] = support.ids(page)
        until not opts.offset
        return table.concat(out, "|")
    end

    it("finds by any unique value, then by id", function()
        make({
            put("services", { id = "a", name = "x" }),
            put("services", { id = "b", name = "y" }),
            put("upstreams", { id = "u", name = "u.test" }),
            put("targets", { id = "t", upstream = to("u"), target = "x:80" }),
        })
        local function found(...)
            local row, err = s:find(...)
            return row and row.id or err.err
        end
        assert.equal("b", found("services", { name = "y" }, "a"))
        assert.equal("a", found("services", { name = "z" }, "a"))
        assert.equal("a", found("services", {}, "a"))
        assert.equal("not found", found("services", { name = "z" }, "c"))
        assert.equal("t", found("targets", { upstream = to("u"), target = "x:80" }, "other"))
        assert.equal("not found", found("targets", { upstream = to("v"), target = "x:80" }, "c"))
    end)

    it("gets by id and by name, the id first", function()
        make({
            put("services", { id = "a", name = "b", created_at = 5 }),
            put("services", { id = "b", name = "c", updated_at = 1.5 }),
            put("upstreams", { id = "u", name = "u.test" }),
            put("targets", { id = "t", upstream = to("u"), target = "x:80" }),
        })
        assert.equal("b", s:get("services", "b").id)
        assert.equal("b", s:get("services", "c").id)
        assert.equal(5, s:get("services", "a").created_at)
        assert.equal(1.5, s:get("services", "c").updated_at)
        assert.equal('{"id":"a","name":"b","created_at":5}', s:get("services", "a").text)
        local none, err = s:get("targets", "x:80")
        assert.is_nil(none)
        assert.equal("not found", err.err)
        assert.equal("unknown kind", select(2, s:get("things", "x")).err)
    end)

    it("finds by the name alone, which may be another one's id", function()
        local id = "abcdef00-0000-4000-8000-00000000000f"
        make({
            put("services", { id = id, name = "a" }),
            put("services", { id = "b", name = id }),
            put("services", { id = "c", name = id:upper() }),
            put("upstreams", { id = "u", name = "u.test" }),
            put("targets", { id = "t", upstream = to("u"), target = "x:80" }),
        })
        local function named(...)
            local row, err = s:named(...)
            return row and row.id or err.err
        end
        assert.equal("b", named("services", id))
        assert.equal("c", named("services", id:upper()))
        assert.equal(id, named("services", "a"))
        assert.equal("not found", named("services", "b"))
        -- Of no other kind is the name alone enough.
        assert.equal("not found", named("targets", "x:80"))
        assert.equal("unknown kind", named("things", "x"))
    end)

    it("lists tags, of all kinds and of one", function()
        make({
            put("services", { id = "s1", tags = { "b", "a" } }),
            put("services", { id = "s2", tags = { "b" } }),
            put("services", { id = "s3" }),
            put("upstreams", { id = "u", name = "u.test", tags = { "b", "x:y" } }),
        })
        local function all(opts)
            local out = {}
            repeat
                local page, offset = assert(s:tags(opts))
                local line = {}
                for i, row in ipairs(page) do
                    line[i] = row.kind:sub(1, 1) .. " " .. row.tag .. " " .. row.id
                end
                out[#out + 1] = table.concat(line, ", ")
                opts.offset = offset
            until not offset
            return table.concat(out, " | ")
        end
        assert.equal("s a s1, s b s1, s b s2, u b u, u x:y u", all({}))
        assert.equal("s a s1, s b s1 | s b s2, u b u | u x:y u", all({ size = 2 }))
        assert.equal("s b s1 | s b s2 | u b u", all({ size = 1, tag = "b" }))
        assert.equal("u x:y u", all({ tag = "x:y" }))
        assert.equal("", all({ tag = "none" }))
        local wrong = { "x", "services", "services:x:a", "none:1:a", "services:1:", 7 }
        for _, offset in ipairs(wrong) do
            assert.equal("invalid offset", select(2, s:tags({ offset = offset })).err)
        end
        for _, size in ipairs({ 0, "x", 10001 }) do
            assert.equal("invalid size", select(2, s:tags({ size = size })).err)
        end
    end)

    it("lists pages that additions and deletions do not shift", function()
        for i = 1, 7 do
            make({ put("services", { id = "s" .. i }) })
        end
        local page, offset = s:list("services", { size = 3 })
        assert.equal("s1 s2 s3", support.ids(page))
        make({ delete("services", "s3"), delete("services", "s4"), put("services", { id = "s0" }) })
        page, offset = s:list("services", { size = 3, offset = offset })
        assert.equal("s5 s6 s7", support.ids(page))
        page, offset = s:list("services", { size = 3, offset = offset })
        assert.equal("s0", support.ids(page))
        assert.is_nil(offset)
        assert.equal("s1 s2|s5 s6|s7 s0", pages("services", { size = 2 }))
        assert.same({}, (s:list("routes")))
    end)

    it("lists by tags and by fields", function()
        make({
            put("services", { id = "s", tags = { "x", "y" } }),
            put("services", { id = "t", tags = { "y" } }),
            put("services", { id = "u", tags = { "z", "x" } }),
            put("routes", { id = "q", service = to("s"), name = "n" }),
            put("routes", { id = "r", service = to("t"), tags = { "x" } }),
        })
        local function tagged(tags)
            return pages("services", { size = 1, tags = tags })
        end
        assert.equal("s|u", tagged("x"))
        assert.equal("s", tagged("x,y"))
        assert.equal("s|t|u", tagged("z/y"))
        assert.equal("", tagged("none"))
        make({ put("services", { id = "s", tags = { "z" } }) })
        assert.equal("u", tagged("x"))
        assert.equal("s|u", tagged("z"))
        assert.equal("q", pages("routes", { where = { service = "s" } }))
        assert.equal("r", pages("routes", { where = { service = "t" }, tags = "x" }))
        assert.equal("", pages("routes", { where = { service = "t", name = "n" } }))
    end)

    it("says what is wrong with a question", function()
        for err, opts in pairs({
            ["invalid size"] = { size = 0 },
            ["invalid offset"] = { offset = "x" },
            ["invalid tags"] = { tags = "a,b/c" },
            ["unknown field"] = { where = { ["id = id or id"] = "x" } },
        }) do
            local page, found = s:list("services", opts)
            assert.is_nil(page)
            assert.equal(err, found.err)
        end
        for _, opts in ipairs({
            { size = 10001 },
            { size = "1e1" },
            { size = -1 },
            { offset = "-1" },
            { offset = ("9"):rep(20) },
            { tags = "" },
            { tags = "a," },
            { tags = ("a,"):rep(60) .. "b" },
        }) do
            local page = s:list("services", opts)
            assert.is_truthy(page == nil or opts.tags and #opts.tags > 100)
        end
        assert.equal("unknown kind", select(2, s:list("things")).err)
    end)

    it("tells what has changed, until it is compacted", function()
        local first = make({
            put("services", { id = "s", name = "a" }),
            put("services", { id = "t", name = "b" }),
        })
        local second = make({ delete("services", "s") })
        local third = make({ put("services", { id = "t", name = "c" }) })
        local function since(revision)
            local out, now = s:changes_since(revision)
            if not out then
                return now.err
            end
            assert.equal(third.revision, now.revision)
            for i, change in ipairs(out) do
                out[i] = (change.gone and "-" or "+") .. change.id .. change.revision
            end
            return table.concat(out, " ")
        end
        assert.equal("-s2 +t3", since(first))
        assert.equal("+t3", since(second))
        assert.equal("", since(third))
        assert.equal("too old", since({ uuid = "other", revision = 1 }))
        assert.equal("too old", since({ uuid = first.uuid, revision = 4 }))
        assert.is_true(s:compact(3))
        assert.equal("-s2 +t3", since(first))
        s:release(2)
        assert.is_true(s:compact(3))
        assert.equal("too old", since(first))
        assert.equal("+t3", since(second))
    end)

    it("copies itself; the copy is a store with revisions of its own", function()
        local before = make({ put("services", { id = "s", host = "a" }) })
        local path = support.folder() .. "/copy.db"
        assert.is_true(s:backup(path))
        make({ put("services", { id = "t", host = "b" }) })
        local done, err = s:backup(path)
        assert.is_nil(done)
        assert.equal("exists", err.err)
        local copy = assert(support.open(path))
        assert.equal("s", support.ids(copy:list("services")))
        assert.not_equal(before.uuid, copy:revision().uuid)
        local uuid = copy:revision().uuid
        copy:close()
        copy = assert(support.open(path))
        assert.equal(uuid, copy:revision().uuid)
        copy:close()
    end)

    it("exports a configuration that means the same", function()
        local snapshot = support.parse([[
services:
- name: a
  host: a
  tags: [x]
  routes: [{ name: r2, paths: [/2] }, { name: r1, paths: [/1], headers: { h: [v] } }]
upstreams: [{ name: u, targets: [{ target: "t:1" }] }]
consumers: [{ username: c, keyauth_credentials: [{ key: k }] }]
plugins: [{ name: rate-limiting, config: { minute: 5 } }]
]])
        assert(s:replace(support.items(snapshot)))
        local path = support.folder() .. "/export.json"
        assert.is_true(s:export(path))
        local again, errors = config.load(path, support.registry)
        assert.is_truthy(again, errors and config.format_errors(errors))
        assert.same(support.items(snapshot), support.items(again))
    end)
end)
