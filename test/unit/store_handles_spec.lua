--- Handles: what one VM has opened, and others find.

local handles = require("gateway.store.handles")

describe("a handle", function()
    local attached

    -- Another VM has a list of its own.
    local function new_list()
        return handles.new(function(data)
            attached = attached + 1
            return data
        end)
    end

    before_each(function()
        attached = 0
    end)

    it("is two strings, whatever it takes to attach", function()
        local opened = {
            handle = function()
                return { address = 2 ^ 47, layouts = { { kind = "routes" } } }
            end,
        }
        local here, there = new_list(), new_list()
        local handle = here:add(opened)
        local types = {}
        for name, value in pairs(handle) do
            types[name] = type(value)
        end
        assert.same({ token = "string", bytes = "string" }, types)
        assert.equal(opened, here:find(handle))
        assert.equal(0, attached)
        assert.same(opened.handle(), there:find(handle))
        assert.equal(there:find(handle), there:find(handle))
        assert.equal(1, attached)
    end)

    it("is forgotten when it is taken", function()
        local list = new_list()
        local opened = {
            handle = function()
                return {}
            end,
        }
        local handle = list:add(opened)
        assert.equal(opened, list:take(handle))
        assert.not_equal(opened, list:find(handle))
        assert.equal(1, attached)
    end)
end)
