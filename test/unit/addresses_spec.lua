--- The addresses of names when a configuration comes.

local STUBS = { "gateway.control.addresses", "gateway.control.apply", "gateway.control.names" }

describe("addresses", function()
    local before, stored, answers = {}, {}, {}
    local addresses

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
                assert.are.same({ "get", "names" }, { verb, kind })
                return stored[host] and { text = stored[host] }
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
end)
