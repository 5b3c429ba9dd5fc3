-- docs/pdk.md is what `make docs` writes from gateway/kit, and what it says of phases is what the
-- functions ask.

local files = require("test.house.files")
local names = require("scripts.docs.pdk_names")
local page = require("scripts.docs.pdk")
local phases = require("gateway.kit.phases")

-- Of Kong, in which no plugin of ours can run: comments leave them out.
local OTHERS = { balancer = true, client_hello = true }

local function set_of(text)
    local set = {}
    for name in text:gmatch("[%w_]+") do
        set[name] = not OTHERS[name] or nil
    end
    return set
end

describe("docs/pdk.md", function()
    it("is what `make docs` writes", function()
        assert.is_true(page.text() == files.read("docs/pdk.md"), "run `make docs`")
    end)

    it("has the phases that functions ask for", function()
        local there = page.there()
        for name, mask in pairs(phases.allowed()) do
            local value = there[name]
            local comment = type(value) == "function" and page.comment(value)
            if comment and comment.phases then
                local asked = set_of(table.concat(phases.names(mask), " "))
                assert.same(asked, next(asked) and set_of(comment.phases) or {}, name)
            end
        end
    end)

    it("refuses at most five functions, none of which is there", function()
        local count, there = 0, page.there()
        for name in pairs(names.refused) do
            count = count + 1
            assert.is_nil(there[name], name)
        end
        assert.is_true(count <= 5)
    end)
end)
