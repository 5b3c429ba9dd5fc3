-- What Lua declares of C (sluice.ffi.abi): each module by itself, in whatever order they are
-- loaded, as a plugin's own test loads one alone.

local files = require("test.house.files")
local scan = require("test.house.scan")

-- What a LuaJIT of its own says of one declaration.
local function said_of(calls)
    local path = os.tmpname()
    local source = [[package.path = "lib/?.lua;lib/?/init.lua"
        local ok, err = pcall(function() local abi = require("sluice.ffi.abi") %s end)
        print(ok and "declared" or err)]]
    files.write(path, source:format(calls))
    local said = files.run(("luajit %s 2>&1"):format(path))
    os.remove(path)
    return said
end

describe("what C declares for Lua", function()
    it("is declared alone by each who uses it", function()
        local count, found = 0, {}
        for file, text in scan.sources({ "cli", "gateway", "lib", "plugins" }, "%.lua$") do
            text = file ~= "lib/sluice/ffi/abi.lua" and text or ""
            local calls = {}
            for call in text:gmatch("%f[%w]abi%.declare[%w_]*%b()") do
                calls[#calls + 1] = call
            end
            if calls[1] then
                local said = said_of(table.concat(calls, " "))
                count = count + 1
                found[#found + 1] = said ~= "declared\n" and file .. ": " .. said or nil
            end
        end
        assert.same({}, found)
        assert.is_true(count >= 15)
    end)

    it("is a plugin's as long as its Lua was written against that", function()
        local calls = [[abi.declare("core/image", "core/text", "core/plugin") ]]
            .. files.read("plugins/jwt/token.lua"):match("abi%.declare_plugin%b()")
        assert.equal("declared\n", said_of(calls .. " " .. calls))
        local other = said_of(calls .. [[ abi.declare_plugin("jwt", 7)]])
        assert.is_truthy(
            other:find("is of another version than its Lua files (plugins/jwt)", 1, true)
        )
        local none = said_of([[abi.declare_plugin("nothere", 7)]])
        assert.is_truthy(none:find("was built without the C of plugin 'nothere'", 1, true), none)
    end)
end)
