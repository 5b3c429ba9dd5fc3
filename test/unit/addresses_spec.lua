--- The addresses of names when a configuration comes.

local STUBS = {
    "gateway.control.addresses",
    "gateway.control.apply",
    "gateway.control.names",
    "gateway.control.unknown_names",
    "ngx.semaphore",
}

describe("addresses", function()
    local before, stored, unused, answers, noted = {}, {}, {}, {}, {}
    local addresses, made

    -- Callbacks of timers, by delay; those of names that were asked for.
    local due, waiting

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
        due, waiting, noted, made = {}, {}, {}, nil
        package.loaded["ngx.semaphore"] = {
            new = function()
                return { post = function() end, wait = function() end }
            end,
        }
        package.loaded["gateway.control.unknown_names"] = {
            start = function() end,
            note = function(host)
                noted[#noted + 1] = host
            end,
            forget = function() end,
            sweep = function() end,
        }
        package.loaded["gateway.control.names"] = {
            ask = function()
                return answers
            end,
            ask_one = function(lane, host, callback)
                waiting[#waiting + 1] = { lane = lane, host = host, callback = callback }
            end,
        }
        package.loaded["gateway.control.apply"] = {
            read = function(verb, kind, host)
                assert.equal("names", kind)
                if verb == "list" then
                    return stored
                elseif verb == "unused" then
                    return unused
                end
                assert.equal("get", verb)
                return stored[host] and { text = stored[host] }
            end,
            transaction = function(changes)
                made = changes
                return nil, { err = "changed" }
            end,
        }
        addresses = require("gateway.control.addresses")
        addresses.start({}, {
            at = function(_, delay, callback)
                due[delay] = callback
                return true
            end,
            named_every = function() end,
        })
    end)

    after_each(function()
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
        local found, warnings =
            addresses.ask({ "found.test", "old.test", "never.test", "new.test" })
        assert.are.same({
            ["found.test"] = { "10.0.0.2" },
            ["old.test"] = { "10.0.0.1", "[::1]" },
            ["never.test"] = "no such name",
            ["new.test"] = "no answer yet",
        }, found)
        assert.are.same({ "never.test", "new.test" }, noted)
        assert.are.same({
            "old.test: cannot be resolved: it timed out; it keeps the addresses that it had",
        }, warnings)
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
        for _, it in ipairs(waiting) do
            assert.equal("known", it.lane)
            it.callback(found[it.host])
        end
        run(0.1)
        assert.equal(1, #made)
        assert.equal("moved.test", made[1].put.name)
        assert.equal(4, made[1].if_revision)
        -- What could not be resolved does not wait for others the next time, nor they for it.
        waiting = {}
        addresses.refresh(false)
        local lanes = {}
        for _, it in ipairs(waiting) do
            lanes[it.host] = it.lane
        end
        local known = { ["same.test"] = "known", ["moved.test"] = "known" }
        known["lost.test"] = "unknown"
        assert.same(known, lanes)
    end)
end)
