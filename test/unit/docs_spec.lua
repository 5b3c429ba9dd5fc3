-- The documents name what there is: a suite or a folder that comes later cannot be forgotten.

local files = require("test.house.files")
local openapi = require("scripts.docs.openapi")
local rules = require("test.house.rules")
local scan = require("test.house.scan")
local sizes = require("scripts.docs.sizes")
local words = require("test.unit.support.words")

describe("docs/README.md", function()
    it("leads to every page", function()
        local text = files.read("docs/README.md")
        for _, path in ipairs(scan.files("docs")) do
            local name = path:match("^docs/([%w_%-]+%.md)$")
            if name and name ~= "README.md" then
                assert.is_truthy(text:find("](" .. name .. ")", 1, true), name)
            end
        end
    end)
end)

describe("docs/testing.md", function()
    -- Those of a plugin say what they cover themselves: one row has their folders.
    it("has every file of tests on a real nginx, and no other", function()
        local text = files.read("docs/testing.md")
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
        assert.is_truthy(text:find("\n| `test/plugins/<name>/` |", 1, true))
    end)

    it("has the sizes that the tests have", function()
        assert.is_true(sizes.page() == files.read("docs/testing.md"), "run `make docs`")
        local rows = table.concat(sizes.rows())
        for _, kind in ipairs({ "fields: seconds", "test_admin_kills.py", "writer_random_spec" }) do
            assert.is_truthy(rows:find(kind, 1, true), kind)
        end
    end)
end)

describe("test/nginx", function()
    it("has what its files share in support, as has test/plugins", function()
        local found = {}
        for path, text in scan.sources({ "test/nginx", "test/plugins" }, "%.py$") do
            for line in ("\n" .. text):gmatch("\n(%w+ test_[^\n]*)") do
                if line:find("^from ") or line:find("^import ") then
                    found[#found + 1] = path .. ": " .. line
                end
            end
        end
        assert.same({}, found)
    end)
end)

describe("docs/openapi.json", function()
    it("is what `make docs` writes", function()
        assert.is_true(openapi.text() == files.read("docs/openapi.json"))
    end)
end)

describe("the tables of folders", function()
    local PARTS = { "bench", "cli", "compat", "gateway", "lib", "module", "plugins" }
    local SUITES = words("bench core house nginx plugins ring store suites unit wheel")

    it("have every folder of code", function()
        local contributing, architecture =
            files.read("CONTRIBUTING.md"), files.read("docs/architecture.md")
        for _, folder in ipairs(PARTS) do
            assert.truthy(contributing:find("\n|[^|]*`" .. folder .. "`[^|]*|"), folder)
            assert.truthy(architecture:find("\n| `" .. folder .. "/` |", 1, true), folder)
        end
    end)

    it("have what the command may use of the gateway", function()
        local row = files.read("docs/architecture.md"):match("\n| `cli/` |([^\n]*)")
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
        local contributing, testing = files.read("CONTRIBUTING.md"), files.read("docs/testing.md")
        for _, suite in ipairs(SUITES) do
            assert.truthy(contributing:find("\n|[^|]*`test/" .. suite .. "`[^|]*|"), suite)
            assert.truthy(testing:find("\n###[^\n]*`test/" .. suite .. "`"), suite)
        end
    end)
end)

local function takes_in_c(code, name, count)
    local list = code:match("\n" .. name .. "(%b())\n{")
    return list ~= nil and select(2, list:gsub(",", "")) == count - 1
end

-- What a text names has to be there: files, functions, headings. docs/notes and CHANGELOG.md say
-- what was; plugins that an example invents are none of ours.
describe("what the docs name", function()
    local FOLDERS = words([[
        bench bin cli compat docs examples gateway lib module packaging plugins scripts test
    ]])
    local PAGES = { "README.md", "CONTRIBUTING.md" }
    for _, path in ipairs(scan.files("docs")) do
        local is_text = path:match("%.md$") and not path:match("^docs/notes/")
        PAGES[#PAGES + 1] = is_text and path or nil
    end
    -- Files that the reader makes, that others have, or that are built.
    local OTHERS =
        { ["handler.lua"] = true, ["daos.lua"] = true, ["api.lua"] = true, ["log.sh"] = true }
    local INVENTED = { "method[-_]limit", "hello", "my[-_]" }

    local exists, names, code, lua, ours = {}, {}, {}, {}, {}
    for _, folder in ipairs(FOLDERS) do
        exists[folder], ours[folder] = true, true
        for _, path in ipairs(scan.files(folder)) do
            local at = path
            repeat
                exists[at] = true
                at = at:match("^(.+)/[^/]+$")
            until not at or exists[at]
            names[path:match("[^/]+$")] = true
            if path:match("%.[ch]$") or path:match("%.lua$") or path:match("%.py$") then
                code[#code + 1] = files.read(path)
                lua[#lua + 1] = path:match("%.lua$") and code[#code] or nil
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

    -- Asserts that of all that `look(text, report, path)` finds in texts nothing is missing.
    local function is_all_there(texts, look)
        local missing = {}
        for path, text in texts do
            look(text, function(what)
                missing[#missing + 1] = path .. ": " .. what
            end, path)
        end
        assert.same({}, missing)
    end

    local function pages()
        return coroutine.wrap(function()
            for _, page in ipairs(PAGES) do
                coroutine.yield(page, files.read(page))
            end
        end)
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
        is_all_there(pages(), function(text, report)
            each_path(text, function(path)
                local is_module = path:match("%.[%w]+$") == nil and exists[path .. ".lua"]
                if not (exists[path] or is_module or is_invented(path)) then
                    report(path)
                end
            end)
            for name in text:gmatch("`([%w_%-]+%.%a+)[`:]") do
                local is_source = name:match("%.lua$")
                    or name:match("%.[ch]$")
                    or name:match("%.py$")
                    or name:match("%.sh$")
                if is_source and not (names[name] or OTHERS[name] or is_invented(name)) then
                    report(name)
                end
            end
        end)
    end)

    it("is in the tree: functions", function()
        is_all_there(pages(), function(text, report)
            for name in text:gmatch("`([%a_][%w_]+)%(") do
                if not (code:find(name, 1, true) or is_invented(name)) then
                    report(name)
                end
            end
        end)
    end)

    local bare = code:gsub("%-%-[^\n]*", "")
    local bare_lua = table.concat(lua):gsub("%-%-[^\n]*", "")
    -- Called by their phases' names; those of the tests' Python are not looked at.
    local PHASES = { rewrite = true, header_filter = true, body_filter = true }

    -- Whether some function of the name, or some call of one, has so many arguments.
    local function takes(name, count)
        for at in bare_lua:gmatch("%f[%w_]" .. name .. "%f[^%w_]()") do
            local list = bare_lua:match("^%s*(%b())", at)
                or bare_lua:match("^%s*=%s*function%s*(%b())", at)
            local commas = list and select(2, list:gsub(",", "")) or -1
            if commas >= count - 1 then
                return true
            end
        end
        return false
    end

    local function is_python(name)
        return code:find("def " .. name .. "(", 1, true) ~= nil
    end

    it("is in the tree: functions with as many arguments", function()
        is_all_there(pages(), function(text, report)
            for name, list in text:gmatch("`([%a_][%w_]+)%(([%a_][%w_]*, [%w_, ]+)%)") do
                local _, commas = list:gsub(",", "")
                local is_right = PHASES[name]
                    or is_invented(name)
                    or is_python(name)
                    or takes(name, commas + 1)
                    or takes_in_c(code, name, commas + 1)
                if not is_right then
                    report(("%s(%s)"):format(name, list))
                end
            end
        end)
    end)

    local LUA = { "cli", "compat", "gateway", "lib", "plugins" }

    it("is in the tree: functions and fields that comments name", function()
        is_all_there(scan.sources(LUA, "%.lua$"), function(text, report)
            for comment in text:gmatch("%-%-[^\n]*") do
                for name in comment:gmatch("`(%l[%w]*_[%w_]+)`") do
                    if not bare:find("%f[%w_]" .. name .. "%f[^%w_]") then
                        report(name)
                    end
                end
            end
        end)
    end)

    it("is in the tree: pages and headings that links lead to", function()
        local function anchors(page)
            local found = {}
            for heading in ("\n" .. files.read(page)):gmatch("\n#+ ([^\n]+)") do
                local anchor = heading:gsub("[^%w%s_-]", ""):gsub("%s", "-"):lower()
                found[anchor] = true
            end
            return found
        end
        is_all_there(pages(), function(text, report, page)
            local folder = page:match("^(.+)/[^/]+$")
            for link in text:gmatch("%]%(([^)%s]+)%)") do
                local path, anchor = link:match("^([^#]*)#?(.*)$")
                local target = path == "" and page or (folder and folder .. "/" or "") .. path
                target = target:gsub("[^/]+/%.%./", "")
                local is_right = link:find("^%a+:")
                    or files.exists(target) and (anchor == "" or anchors(target)[anchor])
                if not is_right then
                    report(link)
                end
            end
        end)
    end)

    it("is in the tree: files that comments name", function()
        local folders = { "module", unpack(LUA) }
        is_all_there(scan.sources(folders, "%.lua$", "%.[ch]$"), function(text, report, source)
            local comment = source:match("%.lua$") and "%-%-[^\n]*" or "/%*.-%*/"
            for said in text:gmatch(comment) do
                each_path(said, function(path)
                    if path:match("%.%a+$") and not (exists[path] or is_invented(path)) then
                        report(path)
                    end
                end)
            end
        end)
    end)
end)

describe("the quick start", function()
    it("is what the demo prints, and what scripts/platforms looks for", function()
        local lines = {}
        local _, at = files.read("README.md"):find("\nWhile `make run` runs[^\n]*\n")
        for line in files.read("README.md"):sub(at):gmatch("\n(curl [^\n]+)") do
            lines[#lines + 1] = #lines < 4 and line or nil
        end
        local run = files.read("scripts/run")
        local values = {}
        for name, value in run:gmatch("\n(%l+)=([%d.:]+)") do
            values[name] = value
        end
        local printed = run:match("\nTry it in another terminal:\n(.-)\n\n%${tls:")
        printed = printed:gsub("%$tls", (run:match('tls="(\n  curl [^"]+)"')))
        local found = {}
        for line in printed:gmatch("  (curl [^\n]+)") do
            found[#found + 1] = line:gsub("%$(%l+)", values)
        end
        assert.same(lines, found)
        assert.equal(4, #found)
        assert.is_truthy(files.read("scripts/platforms"):find("/^While .make run. runs/d", 1, true))
    end)
end)
