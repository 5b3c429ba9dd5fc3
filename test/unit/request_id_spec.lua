-- Request ids: form, uniqueness, and the carry of the counter.

local request_id = require("gateway.request_id")

describe("request id", function()
    it("is 32 hexadecimal digits and never the same twice", function()
        request_id.init_worker()
        local seen = {}
        for _ = 1, 70000 do -- beyond four digits of the counter
            local id = request_id.next()
            assert.truthy(id:find("^%x+$") and #id == 32, id)
            assert.is_nil(seen[id], id)
            seen[id] = true
        end
    end)

    it("counts in hexadecimal", function()
        request_id.init_worker()
        local first = request_id.next()
        assert.equal("00000001", first:sub(25))
        for _ = 2, 256 do
            request_id.next()
        end
        assert.equal("00000101", request_id.next():sub(25))
    end)

    it("begins anew elsewhere in each worker", function()
        request_id.init_worker()
        local one = request_id.next()
        request_id.init_worker()
        assert.are_not.equal(one:sub(1, 24), request_id.next():sub(1, 24))
    end)
end)
