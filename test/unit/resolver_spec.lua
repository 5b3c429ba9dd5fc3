--- Names of a configuration, within a time.

local resolver = require("gateway.upstream.resolver")

describe("gateway.upstream.resolver", function()
    it("asks for no further name after its time, and needs none for addresses", function()
        local found = resolver.resolve_all({ "localhost", "localhost.", "127.0.0.1", "::1" }, 0)
        assert.equal("table", type(found.localhost))
        found.localhost = nil
        assert.same({ ["127.0.0.1"] = { "127.0.0.1" }, ["::1"] = { "[::1]" } }, found)
    end)

    it("says why there is no address", function()
        local found = resolver.resolve_all({ "no-such-name.invalid", "127.0.0.1" }, 30)
        assert.equal("string", type(found["no-such-name.invalid"]))
        assert.same({ "127.0.0.1" }, found["127.0.0.1"])
    end)
end)
