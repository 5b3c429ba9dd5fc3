-- Files of plugins that do not end while they are loaded.

local bounded = require("gateway.plugin.bounded")

describe("a bounded call", function()
    it("returns what the function does, and throws what it throws", function()
        assert.same(
            { 1, nil, "a" },
            { bounded.call(function(...)
                return ...
            end, 1, nil, "a") }
        )
        local wrong = {}
        local ok, err = pcall(bounded.call, error, wrong)
        assert.is_false(ok)
        assert.equal(wrong, err)
        assert.is_true((jit.status()))
        assert.is_nil((debug.gethook()))
    end)

    it("ends at the line that runs", function()
        for _, code in ipairs({
            "\nwhile true do end",
            "local n = 0\nwhile true do n = n + 1 end",
            "local function f() local n = 1 while n > 0 do n = n + 1 end end\n"
                .. "while true do pcall(f) end",
            "local function f()\nlocal n = 1 while n > 0 do n = n + 1 end end pcall(f) f()",
        }) do
            local file = assert(loadstring(code, "@handler.lua"))
            local ok, err = pcall(bounded.within, 0.05, file)
            assert.is_false(ok)
            local why = ":%d: does not end: it has taken 0.05 s of CPU time while it was loaded$"
            assert.matches("^handler%.lua" .. why, err)
            assert.is_true((jit.status()))
            assert.is_nil((debug.gethook()))
        end
    end)
end)
