--- The addresses of names when a configuration comes.

local STUBS = { "gateway.control.addresses", "gateway.control.apply", "gateway.control.names" }

describe("addresses", function()
    local before, stored, unused, answers = {}, {}, {}, {}
    local addresses, made

    before_each(function()
        for _, name in ipairs(STUBS) do
            before[name] = package.loaded[name]
            package.loaded[name] = nil
        end
        package.loaded["gateway.control.names"] = {
            ask = function()
                return answers
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
            ["new.test"] = "no such name",
        }
        local found, warnings =
            addresses.ask({ "found.test", "old.test", "never.test", "new.test" })
        assert.are.same({
            ["found.test"] = { "10.0.0.2" },
            ["old.test"] = { "10.0.0.1", "[::1]" },
            ["never.test"] = "no such name",
            ["new.test"] = "no such name",
        }, found)
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
        unused = { "unused.test" }
        answers = {
            ["same.test"] = { "10.0.0.2", "10.0.0.1" },
            ["moved.test"] = { "10.0.0.2" },
            ["lost.test"] = "no such name",
        }
        local refresh
        addresses.start({
            named_every = function(_, _, _, fn)
                refresh = fn
            end,
        })
        refresh(false)
        assert.equal(2, #made)
        assert.equal("moved.test", made[1].put.name)
        assert.equal(4, made[1].if_revision)
        assert.same({ kind = "names", delete = "u", lenient = true, if_unused = true }, made[2])
    end)
end)
