-- Style is a test: long functions and files, loose ends, tabs, machine paths.

local scan = require("test.house.scan")
local tidy = require("test.house.tidy")

-- All that is written by hand.
local FOLDERS = {
    ".ci",
    ".github",
    "bench",
    "bin",
    "cli",
    "compat",
    "docs",
    "examples",
    "gateway",
    "lib",
    "module",
    "plugins",
    "scripts",
    "test",
}
local FILES = { "CHANGELOG.md", "CONTRIBUTING.md", "README.md" }

local function read(path)
    local file = io.open(path, "rb")
    local text = file and file:read("*a")
    if file then
        file:close()
    end
    return text
end

local function all_files()
    local list = {}
    for _, folder in ipairs(FOLDERS) do
        for _, path in ipairs(scan.files(folder)) do
            list[#list + 1] = path
        end
    end
    for _, path in ipairs(FILES) do
        list[#list + 1] = path
    end
    return list
end

describe("style", function()
    it("is kept by every file", function()
        local complaints, checked = {}, 0
        for _, path in ipairs(all_files()) do
            local text = read(path)
            if text and tidy.language(path, text) then
                checked = checked + 1
                for _, complaint in ipairs(tidy.complaints(path, text)) do
                    complaints[#complaints + 1] = complaint
                end
            end
        end
        assert.same({}, complaints)
        assert.is_true(checked > 50, ("only %d files were found"):format(checked))
    end)
end)

describe("the style test", function()
    local function complaints(text, path)
        local found = tidy.complaints(path or "a.lua", text)
        for i, complaint in ipairs(found) do
            found[i] = complaint:match("^[^:]+:(.*)$")
        end
        return found
    end
    local function lines(count)
        return ("    x = 1\n"):rep(count)
    end

    it("finds long functions, wherever they are", function()
        local fits = "function f()\n" .. lines(68) .. "end\n"
        assert.same({}, complaints(fits))
        local found = complaints("local x\n\nlocal f = function()\n" .. lines(69) .. "end\n")
        assert.same({ "3: a function of 71 lines, and no comment 'Long on purpose: ...'" }, found)
        assert.equal(1, #complaints("t = {\nf = function()\n" .. lines(69) .. "end }\n"))
    end)

    it("counts blocks and strings right", function()
        local body = "if a then for i = 1, 2 do while b do repeat until c end end end\n"
            .. "local s = 'end' -- end\nlocal t = [[ function ]]\n"
        local source = "function f()\n"
            .. body
            .. lines(40)
            .. "end\nfunction g()\n"
            .. lines(40)
            .. "end\n"
        assert.same({}, complaints(source))
    end)

    it("does not count the functions within", function()
        local inner = "it(function()\n" .. lines(30) .. "end)\n"
        assert.same({}, complaints("describe(function()\n" .. inner:rep(5) .. "end)\n"))
        assert.equal(1, #complaints("describe(function()\n" .. inner .. lines(70) .. "end)\n"))
    end)

    it("accepts a reason", function()
        local long = "function f()\n" .. lines(100) .. "end\n"
        assert.same({}, complaints("-- Long on purpose: one step after the other.\n" .. long))
        assert.equal(1, #complaints("-- Long on purpose:\n" .. long))
    end)

    it("finds long files, not long documents", function()
        assert.same({}, complaints(lines(500)))
        local found = complaints(lines(501))
        assert.same({ "1: 501 lines, and no comment 'Long on purpose: ...'" }, found)
        assert.equal(1, #complaints(lines(501), "a.py"))
        assert.same({}, complaints(lines(501), "a.md"))
        assert.same({}, complaints("-- Long on purpose: a table.\n" .. lines(501)))
    end)

    it("finds long lines of C", function()
        local fits = ("x"):rep(79) .. "\n"
        assert.same({}, complaints(fits, "a.c"))
        assert.same({ "1: 80 columns" }, complaints("x" .. fits, "a.h"))
        assert.same({}, complaints("x" .. fits))
    end)

    it("finds loose ends", function()
        assert.same({ "1: a loose end: TODO" }, complaints("-- TODO: later\n"))
        assert.same({ "1: a loose end: FIXME" }, complaints("# FIXME\n", "a.py"))
        assert.same({}, complaints("-- TODOS fixme\n"))
    end)

    it("finds tabs, spaces at the end, what is not ASCII, no last newline", function()
        assert.same({ "1: a tab" }, complaints("x\ty\n"))
        assert.same({ "2: space at the end of the line" }, complaints("x\ny \n"))
        assert.same({ "1: a character beyond ASCII" }, complaints("-- \195\169\n"))
        assert.same({ "1: a character beyond ASCII" }, complaints("# \195\169\n", "a.py"))
        assert.same({}, complaints("x = '\195\169'\n"))
        assert.same({}, complaints("\195\169\n", "a.md"))
        assert.same({ "1: no newline at the end of the file" }, complaints("x"))
    end)

    it("finds paths of the platform beyond their one place", function()
        local line = "nginx=/usr/sbin/nginx\n"
        assert.same(
            { "1: /usr/sbin/nginx belongs into cli/platform.lua" },
            complaints(line, "scripts/x.sh")
        )
        assert.same({}, complaints(line, "cli/platform.lua"))
    end)

    it("finds paths of one machine", function()
        assert.same(
            { "1: a path of one machine: /home/me/x.lua" },
            complaints('f("/home/me/x.lua")\n')
        )
        assert.same(
            { "1: a path of one machine: /work/main" },
            complaints("see /work/main\n", "a.md")
        )
        assert.same({}, complaints("GET /api/home/me and /homes/x\n", "a.md"))
    end)

    it("knows its files by extension or first line", function()
        assert.equal(1, #complaints("#!/bin/sh\n# TODO\n", "bin/x"))
        assert.same({}, complaints("a\tb\n", "data.bin"))
        assert.same({}, complaints("a:\n\tb\n", "Makefile"))
    end)
end)
