-- docs/plugin-development.md lists what gateway.pdk gives to plugins: all of it, with its phases.

local files = require("test.house.files")
local pdk = require("gateway.pdk")

-- The functions of gateway.pdk, with what their comments say.
local function documented()
    local found = {}
    local source = "\n" .. files.read("gateway/pdk/init.lua")
    for comment, rest in source:gmatch("\n(%-%-%-[^\n]*.-)\n([^-\n][^\n]*)") do
        local name = rest:match("^function _M%.([%w_]+)%(") or rest:match("^_M%.([%w_]+) = ")
        if name and not comment:find("@local", 1, true) then
            local arguments = {}
            for argument in comment:gmatch("@tparam%S* %S+ ([%w_]+)") do
                arguments[#arguments + 1] = argument
            end
            local call = ("%s(%s)"):format(name, table.concat(arguments, ", "))
            found[call] = comment:match("@phases ([^\n]*)")
        end
    end
    return found
end

describe("the table of docs/plugin-development.md", function()
    local page = files.read("docs/plugin-development.md")

    it("has the functions of gateway.pdk with their arguments and phases", function()
        local listed = {}
        local _, from = page:find("\n## Interfaces for plugins\n", 1, true)
        for call, phases in page:sub(from):gmatch("\n| `([%w_]+%([^`]*%))` | [^|]+ | ([^|]+) |") do
            listed[call] = phases
        end
        assert.same(documented(), listed)
    end)

    it("leaves out only what the gateway itself calls", function()
        local left_out = {}
        for name in pairs(pdk) do
            left_out[#left_out + 1] = not page:find("`" .. name .. "(", 1, true) and name or nil
        end
        table.sort(left_out)
        assert.same({ "identified", "name_client", "set_store", "set_timers" }, left_out)
    end)

    it("has modules that are there", function()
        for name in page:gmatch("\n| `sluice%.([%w_]+)` |") do
            local path = "lib/sluice/" .. name
            assert.is_truthy(io.open(path .. ".lua") or io.open(path .. "/init.lua"), name)
        end
    end)
end)
