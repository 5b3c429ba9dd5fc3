-- The documents name what there is: a suite or a folder that comes later cannot be forgotten.

local openapi = require("test.house.openapi")
local scan = require("test.house.scan")

local function read(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("*a")
    file:close()
    return text
end

describe("docs/testing.md", function()
    it("has every file of tests on a real nginx, and no other", function()
        local text = read("docs/testing.md")
        local missing, there = {}, {}
        for _, path in ipairs(scan.files("test/nginx")) do
            local name = path:match("/(test_[%w_]+%.py)$")
            if name then
                there[name] = true
                if not text:find("`" .. name .. "`", 1, true) then
                    missing[#missing + 1] = name
                end
            end
        end
        assert.same({}, missing)
        for name in text:gmatch("`(test_[%w_]+%.py)`") do
            assert.is_true(there[name], name .. " is no file")
        end
    end)
end)

describe("docs/openapi.json", function()
    it("is what `make docs` writes", function()
        assert.is_true(openapi.text() == read("docs/openapi.json"))
    end)
end)

describe("the tables of folders", function()
    local PARTS = { "bench", "cli", "compat", "gateway", "lib", "module", "plugins" }
    local SUITES = { "bench", "core", "house", "nginx", "ring", "store", "suites", "unit", "wheel" }

    it("have every folder of code", function()
        local contributing, architecture = read("CONTRIBUTING.md"), read("docs/architecture.md")
        for _, folder in ipairs(PARTS) do
            assert.truthy(contributing:find("\n|[^|]*`" .. folder .. "`[^|]*|"), folder)
            assert.truthy(architecture:find("\n| `" .. folder .. "/` |", 1, true), folder)
        end
    end)

    it("have every suite", function()
        local contributing, testing = read("CONTRIBUTING.md"), read("docs/testing.md")
        for _, suite in ipairs(SUITES) do
            assert.truthy(contributing:find("\n|[^|]*`test/" .. suite .. "`[^|]*|"), suite)
            assert.truthy(testing:find("\n###[^\n]*`test/" .. suite .. "`"), suite)
        end
    end)
end)
