-- docs/modules.md has each module of compat/, and no other, and a plugin's page those that it has
-- for others; Lua's search path leads to compat/ last.

local files = require("test.house.files")
local package_path = require("cli.nginx.package_path")
local scan = require("test.house.scan")

describe("docs/modules.md", function()
    it("has each module of compat, and no other", function()
        local listed, there, missing = {}, {}, {}
        for row in files.read("docs/modules.md"):match("^(.-)\n## "):gmatch("\n| (`[^|]*) |") do
            for name in row:gmatch("`([%w_.-]+)`") do
                listed[name] = true
            end
        end
        for _, path in ipairs(scan.files("compat")) do
            local name = path:match("^compat/(.+)%.lua$"):gsub("/init$", ""):gsub("/", ".")
            there[name] = true
            missing[#missing + 1] = not listed[name] and name or nil
        end
        assert.same({}, missing)
        for name in pairs(listed) do
            assert.is_true(there[name], name .. " is no module of compat")
        end
    end)
end)

describe("a plugin's page", function()
    it("has the modules that the plugin has for others", function()
        local missing, count = {}, 0
        for _, path in ipairs(scan.files("plugins")) do
            local plugin, module = path:match("^plugins/([^/]+)/kong/([^/]+)%.lua$")
            if plugin then
                local name = ("`kong.plugins.%s.%s`"):format(plugin, module)
                local page = files.read("docs/plugins/" .. plugin .. ".md")
                missing[#missing + 1] = not page:find(name, 1, true) and name or nil
                count = count + 1
            end
        end
        assert.same({}, missing)
        assert.is_true(count >= 3)
    end)
end)

describe("Lua's search path", function()
    local OWN = "/s/?.lua;/s/?/init.lua;/s/lib/?.lua;/s/lib/?/init.lua"
    local COMPAT = ";/s/compat/?.lua;/s/compat/?/init.lua"

    it("has Sluice's own first, and other libraries' names last", function()
        assert.equal(OWN .. ";;" .. COMPAT:sub(2), package_path.text("/s", ";;"))
        assert.equal(OWN .. ";/u/?.lua;;" .. COMPAT:sub(2), package_path.text("/s", "/u/?.lua;;"))
        assert.equal(OWN .. ";/m/?.lua" .. COMPAT, package_path.text("/s", "/m/?.lua"))
    end)

    it("takes the user's in before them", function()
        local path = package_path.text("/s", "/m/?.lua")
        assert.equal(path, package_path.add(path, ""))
        assert.equal(OWN .. ";/m/?.lua;/u/?.lua" .. COMPAT, package_path.add(path, ";/u/?.lua;;"))
    end)
end)
