--- The addresses of hosts when a configuration comes.

local STUBS = {
    "gateway.upstream.hosts",
    "gateway.writer.queue",
    "gateway.writer.role",
    "gateway.upstream.queries",
    "gateway.upstream.unresolved",
    "ngx.semaphore",
}

describe("hosts", function()
    local before, stored, unused, answers, noted = {}, {}, {}, {}, {}
    -- What is logged of hosts that cannot be resolved.
    local logged
    local hosts, made

    -- host -> revision that the store has by now
    local revisions

    -- Callbacks of timers, by delay; those of names that were asked for.
    local due, waiting

    -- Whether the worker exits: while it waits for names. Then nothing waits any more.
    local old_ngx, is_exiting

    -- Upstreams of the store, their ids in lowercase: found by these first, or by the name alone.
    local upstreams

    local function find_upstream(verb, key)
        for _, row in ipairs(verb == "get" and upstreams or {}) do
            if row.id == key:lower() then
                return row
            end
        end
        for _, row in ipairs(upstreams) do
            if row.name == key then
                return row
            end
        end
        return nil
    end

    local function run(delay)
        local callback = due[delay]
        due[delay] = nil
        callback(false)
    end

    before_each(function()
        for _, name in ipairs(STUBS) do
            before[name] = package.loaded[name]
            package.loaded[name] = nil
        end
        logged = {}
        due, waiting, noted, made, revisions, upstreams = {}, {}, {}, nil, {}, {}
        old_ngx, is_exiting = _G.ngx, false
        _G.ngx = {
            NOTICE = "notice",
            log = function(...)
                logged[#logged + 1] = { ... }
            end,
            now = function()
                return 0
            end,
            worker = {
                exiting = function()
                    return is_exiting
                end,
            },
        }
        local function wait()
            assert.is_false(is_exiting)
            is_exiting = true
        end
        package.loaded["ngx.semaphore"] = {
            new = function()
                return { post = function() end, wait = wait }
            end,
        }
        package.loaded["gateway.upstream.unresolved"] = {
            start = function() end,
            note = function(host)
                noted[#noted + 1] = host
            end,
            forget = function() end,
            warn = function(host, reason, effect, it)
                logged[#logged + 1] = { host, reason, effect }
                it.is_logged = true
            end,
            sweep = function() end,
        }
        package.loaded["gateway.upstream.queries"] = {
            ask = function()
                return answers
            end,
            ask_one = function(lane, host, callback)
                waiting[#waiting + 1] = { lane = lane, host = host, callback = callback }
            end,
        }
        package.loaded["gateway.writer.role"] = {
            read = function(verb, kind, host)
                if verb == "list" then
                    return stored
                elseif verb == "unused" then
                    return unused
                elseif kind == "upstreams" then
                    return find_upstream(verb, host)
                end
                assert.equal("names", kind)
                assert.equal("named", verb)
                return stored[host] and { text = stored[host], revision = revisions[host] }
            end,
        }
        package.loaded["gateway.writer.queue"] = {
            transaction = function(changes)
                made = changes
                for _, change in ipairs(changes) do
                    local host = change.put and change.put.name
                    if host and revisions[host] ~= change.if_revision then
                        return nil, { err = "changed" }
                    end
                end
                return { revision = 10 }
            end,
        }
        hosts = require("gateway.upstream.hosts")
        hosts.start({}, {
            at = function(_, delay, callback)
                due[delay] = callback
                return true
            end,
            named_every = function() end,
        })
    end)

    after_each(function()
        _G.ngx = old_ngx
        for _, name in ipairs(STUBS) do
            package.loaded[name] = before[name]
        end
    end)

    it("are what was found, else what the store knows", function()
        stored = {
            ["old.test"] = '{"name":"old.test","addresses":["10.0.0.1","[::1]"]}',
            ["never.test"] = '{"name":"never.test","failure":"no such name"}',
        }
        answers = {
            ["found.test"] = { "10.0.0.2" },
            ["old.test"] = "it timed out",
            ["never.test"] = "no such name",
            -- new.test has no answer
        }
        local found = hosts.ask({ "found.test", "old.test", "never.test", "new.test" })
        assert.are.same({
            ["found.test"] = { "10.0.0.2" },
            ["old.test"] = { "10.0.0.1", "[::1]" },
            ["never.test"] = "no such name",
            ["new.test"] = "no answer yet",
        }, found)
        assert.are.same({ "never.test", "new.test" }, noted)
        local once = { { "old.test", "it timed out", "its previous addresses are kept" } }
        assert.are.same(once, logged)
        hosts.ask({ "old.test" })
        answers["old.test"] = nil
        hosts.ask({ "old.test" })
        assert.are.same(once, logged)
    end)

    it("have no addresses where they are an upstream's name, which no id of one is", function()
        local id = "abcdef00-0000-4000-8000-00000000000f"
        upstreams = { { id = id, name = "pool" } }
        stored, answers = {}, {}
        local function needed(host)
            local change = { kind = "services", id = "s", put = { host = host } }
            local found = {}
            for i, entity in ipairs((hosts.needed({ change }, function() end))) do
                found[i] = entity.name
            end
            return found
        end
        assert.same({}, needed("pool"))
        assert.same({ id }, needed(id))
        assert.same({ id:upper() }, needed(id:upper()))
        upstreams[2] = { id = "b", name = id }
        package.loaded["gateway.upstream.hosts"] = nil
        hosts = require("gateway.upstream.hosts")
        assert.same({}, needed(id))
    end)

    it("are changed only where their name still is what it was when it was asked for", function()
        stored = {
            { text = '{"name":"same.test","addresses":["10.0.0.1","10.0.0.2"]}', revision = 3 },
            { text = '{"name":"moved.test","addresses":["10.0.0.1"]}', revision = 4 },
            { text = '{"name":"lost.test","addresses":["10.0.0.1"]}', revision = 5 },
            { text = '{"name":"unused.test","addresses":["10.0.0.1"]}', revision = 6, id = "u" },
        }
        stored[5] = { text = '{"name":"late.test","failure":"no such name"}', revision = 7 }
        unused = { "unused.test" }
        local found = {
            ["same.test"] = { "10.0.0.2", "10.0.0.1" },
            ["moved.test"] = { "10.0.0.2" },
            ["lost.test"] = "no such name",
        }
        run(0)
        assert.same({ { kind = "names", delete = "u", lenient = true, if_unused = true } }, made)
        assert.same({ "late.test" }, noted)
        revisions["moved.test"] = 4
        for _, it in ipairs(waiting) do
            assert.equal("resolved", it.lane)
            it.callback(found[it.host])
        end
        run(0.1)
        assert.equal(1, #made)
        assert.equal("moved.test", made[1].put.name)
        assert.equal(4, made[1].if_revision)
        local once = { { "lost.test", "no such name", "its previous addresses are kept" } }
        assert.same(once, logged)
        -- What could not be resolved does not wait for others the next time, nor they for it.
        waiting = {}
        hosts.refresh(false)
        local lanes = {}
        for _, it in ipairs(waiting) do
            lanes[it.host] = it.lane
        end
        local known = { ["same.test"] = "resolved", ["moved.test"] = "resolved" }
        known["lost.test"] = "unresolved"
        assert.same(known, lanes)
        for _, it in ipairs(waiting) do
            it.callback("no such name")
        end
        assert.same({ "same.test", "moved.test" }, { logged[2][1], logged[3][1] })
        assert.equal(3, #logged)
        waiting[3].callback({ "10.0.0.1" })
        assert.same({ "notice", "names: ", "lost.test", ": can be resolved again" }, logged[4])
    end)

    it("are put though other names of the same batch have changed meanwhile", function()
        for number, host in ipairs({ "a.test", "stale.test", "gone.test", "b.test" }) do
            local text = ('{"name":"%s","addresses":["10.0.0.1"]}'):format(host)
            stored[number] = { text = text, revision = 3 }
        end
        local kept = { "a.test", "b.test", "stale.test" }
        for _, host in ipairs(kept) do
            stored[host] = ('{"name":"%s","addresses":["10.0.0.1"]}'):format(host)
        end
        revisions = { ["a.test"] = 3, ["b.test"] = 3, ["stale.test"] = 4 }
        run(0)
        for _, it in ipairs(waiting) do
            it.callback({ "10.0.0.2" })
        end
        run(0.1)
        local put = {}
        for _, change in ipairs(made) do
            assert.equal(3, change.if_revision)
            put[change.put.name] = change.put.addresses
        end
        assert.same({ ["a.test"] = { "10.0.0.2" }, ["b.test"] = { "10.0.0.2" } }, put)
    end)
end)
