local blocks = require("gateway.threads.blocks")
local checker = require("gateway.checker")
local ffi = require("ffi")

describe("the check of a file", function()
    it("leaves no memory behind where a list cannot be ended", function()
        local new, made, dropped, flags = blocks.new, 0, 0, ffi.new("int32_t[2]")
        local address = tonumber(ffi.cast("uintptr_t", ffi.cast("void *", flags)))
        finally(function()
            blocks.new = new
        end)
        blocks.new = function()
            made = made + 1
            local list = new()
            local drop = list.drop
            list.finish = function()
                error("not enough memory", 0)
            end
            list.drop = function(self)
                dropped = dropped + 1
                drop(self)
            end
            return list
        end
        assert.error_matches(function()
            checker.run({
                verb = "replace",
                sent = { text = '{"_format_version": "3.0"}' },
                plugins = {},
                vault_env = {},
                max_entities = 1,
                surroundings = "",
                at = 0,
                flags = { address, address + 4 },
            })
        end, "not enough memory")
        assert.same({ 2, 2 }, { made, dropped })
    end)
end)
