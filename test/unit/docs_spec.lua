-- The documents name what there is: a suite or a folder that comes later cannot be forgotten.

local openapi = require("test.house.openapi")
local rules = require("test.house.rules")
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

    it("have what the command may use of the gateway", function()
        local row = read("docs/architecture.md"):match("\n| `cli/` |([^\n]*)")
        for _, door in ipairs(rules.doors) do
            for _, room in ipairs(door.of == "cli" and door.out or {}) do
                local path = room:gsub("%.", "/")
                local is_there = row:find("`" .. path .. "`", 1, true)
                    or row:find("`" .. path .. ".lua`", 1, true)
                assert.truthy(is_there or path:match("^lib/"), room)
            end
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

-- What a text names has to be there: files, functions, headings. docs/notes and CHANGELOG.md say
-- what was; plugins that an example invents are none of ours.
describe("what the docs name", function()
    local FOLDERS = {
        "bench",
        "bin",
        "cli",
        "compat",
        "docs",
        "examples",
        "gateway",
        "lib",
        "module",
        "packaging",
        "plugins",
        "scripts",
        "test",
    }
    local PAGES = { "README.md", "CONTRIBUTING.md" }
    for _, path in ipairs(scan.files("docs")) do
        local is_text = path:match("%.md$") and not path:match("^docs/notes/")
        PAGES[#PAGES + 1] = is_text and path or nil
    end
    -- Files that the reader makes, that others have, or that are built.
    local OTHERS = {
        ["handler.lua"] = true,
        ["daos.lua"] = true,
        ["log.sh"] = true,
    }
    local INVENTED = { "method[-_]limit", "hello", "my[-_]" }

    local exists, names, code = {}, {}, {}
    for _, folder in ipairs(FOLDERS) do
        exists[folder] = true
        for _, path in ipairs(scan.files(folder)) do
            local at = path
            repeat
                exists[at] = true
                at = at:match("^(.+)/[^/]+$")
            until not at or exists[at]
            names[path:match("[^/]+$")] = true
            if path:match("%.[ch]$") or path:match("%.lua$") or path:match("%.py$") then
                code[#code + 1] = read(path)
            end
        end
    end
    code = table.concat(code)

    local function is_invented(text)
        for _, pattern in ipairs(INVENTED) do
            if text:find(pattern) then
                return true
            end
        end
        return false
    end

    local ours = {}
    for _, folder in ipairs(FOLDERS) do
        ours[folder] = true
    end

    -- Calls back with each path from the root that a text has, save those of links, which start at
    -- their page, and patterns.
    local function each_path(text, callback)
        text = (" " .. text):gsub("%]%s*%(.-%)", "]")
        for path, after in text:gmatch("[^%w_%-%./<>{}*$]([%w_%-]+/[%w_%-%./]*[%w_%-])([^\n]?)") do
            if ours[path:match("^[^/]+")] and not after:find("[*<{]") then
                callback(path)
            end
        end
    end

    it("is in the tree: files", function()
        local missing = {}
        for _, page in ipairs(PAGES) do
            local text = read(page)
            each_path(text, function(path)
                local is_module = path:match("%.[%w]+$") == nil and exists[path .. ".lua"]
                if not (exists[path] or is_module or is_invented(path)) then
                    missing[#missing + 1] = page .. ": " .. path
                end
            end)
            for name in text:gmatch("`([%w_%-]+%.%a+)[`:]") do
                local is_source = name:match("%.lua$")
                    or name:match("%.[ch]$")
                    or name:match("%.py$")
                    or name:match("%.sh$")
                if is_source and not (names[name] or OTHERS[name] or is_invented(name)) then
                    missing[#missing + 1] = page .. ": " .. name
                end
            end
        end
        assert.same({}, missing)
    end)

    it("is in the tree: functions", function()
        local missing = {}
        for _, page in ipairs(PAGES) do
            for name in read(page):gmatch("`([%a_][%w_]+)%(") do
                if not (code:find(name, 1, true) or is_invented(name)) then
                    missing[#missing + 1] = page .. ": " .. name
                end
            end
        end
        assert.same({}, missing)
    end)

    it("is in the tree: pages and headings that links lead to", function()
        local function anchors(page)
            local found = {}
            for heading in ("\n" .. read(page)):gmatch("\n#+ ([^\n]+)") do
                local anchor = heading:gsub("[^%w%s_-]", ""):gsub("%s", "-"):lower()
                found[anchor] = true
            end
            return found
        end
        local missing = {}
        for _, page in ipairs(PAGES) do
            local folder = page:match("^(.+)/[^/]+$")
            for link in read(page):gmatch("%]%(([^)%s]+)%)") do
                local path, anchor = link:match("^([^#]*)#?(.*)$")
                local target = path == "" and page or (folder and folder .. "/" or "") .. path
                target = target:gsub("[^/]+/%.%./", "")
                local is_ours = not link:find("^%a+:")
                local file = is_ours and io.open(target)
                if is_ours and not file then
                    missing[#missing + 1] = page .. ": " .. link
                elseif is_ours and anchor ~= "" and not anchors(target)[anchor] then
                    missing[#missing + 1] = page .. ": " .. link
                end
                if file then
                    file:close()
                end
            end
        end
        assert.same({}, missing)
    end)

    it("is in the tree: files that comments name", function()
        local missing = {}
        for _, folder in ipairs({ "cli", "compat", "gateway", "lib", "module", "plugins" }) do
            for _, source in ipairs(scan.files(folder)) do
                local comment = source:match("%.lua$") and "%-%-[^\n]*" or "/%*.-%*/"
                if source:match("%.lua$") or source:match("%.[ch]$") then
                    for text in read(source):gmatch(comment) do
                        each_path(text, function(path)
                            local is_file = path:match("%.%a+$")
                            if is_file and not (exists[path] or is_invented(path)) then
                                missing[#missing + 1] = source .. ": " .. path
                            end
                        end)
                    end
                end
            end
        end
        assert.same({}, missing)
    end)
end)
