-- Style is a test: long functions and files, loose ends, tabs, machine paths.

local files = require("test.house.files")
local scan = require("test.house.scan")
local tidy = require("test.house.tidy")
local words = require("test.unit.support.words")

-- All that is written by hand.
local FOLDERS = words([[
    .ci .github bench bin cli compat docs examples gateway lib module plugins scripts test
]])
-- Of a folder.
local MAX_FILES, MAX_LINES = 32, 6500
local FILES = { "CHANGELOG.md", "CONTRIBUTING.md", "README.md" }

describe("style", function()
    it("is kept by every file", function()
        local complaints, checked = {}, 0
        local function check(path, text)
            if tidy.language(path, text) then
                checked = checked + 1
                for _, complaint in ipairs(tidy.complaints(path, text)) do
                    complaints[#complaints + 1] = complaint
                end
            end
        end
        for path, text in scan.sources(FOLDERS) do
            check(path, text)
        end
        for _, path in ipairs(FILES) do
            check(path, files.read(path))
        end
        assert.same({}, complaints)
        assert.is_true(checked > 50, ("only %d files were found"):format(checked))
    end)

    it("is kept by every room: a folder that a reader can take in", function()
        local rooms, complaints = {}, {}
        for path, text in scan.sources(words("cli compat gateway lib module plugins")) do
            local folder = path:match("^(.*)/")
            local room = rooms[folder] or { files = 0, lines = 0 }
            local _, lines = text:gsub("\n", "")
            rooms[folder] = { files = room.files + 1, lines = room.lines + lines }
        end
        for folder, room in pairs(rooms) do
            if room.files > MAX_FILES or room.lines > MAX_LINES then
                complaints[#complaints + 1] = folder
            end
        end
        assert.same({}, complaints)
        assert.is_true(rooms["module/gateway/upstream"].files > 20)
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

    it("finds long functions of C", function()
        local c = "int\nf(int a,\n    int b)\n{\n%s}\n"
        assert.same({}, complaints(c:format(("    a++;\n"):rep(66)), "a.c"))
        local found = complaints(c:format(("    a++;\n"):rep(67)), "a.c")
        assert.same({ "2: a function of 71 lines, and no comment 'Long on purpose: ...'" }, found)
    end)

    it("finds functions of many arguments", function()
        assert.same({}, complaints("local function f(a, b, c, d, e, f, g, h) end\n"))
        local nine = "(a, b, c, d, e, f, g, h, i)"
        assert.same(
            { "1: _M.f takes 9 arguments" },
            complaints("function _M.f" .. nine .. " end\n")
        )
        local c =
            "int\nf(int a, int b, int c, int d,\n    int e, int f, int g, int h, int i)\n{\n}\n"
        assert.same({ "2: f takes 9 arguments" }, complaints(c, "a.c"))
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
            { "1: /usr/sbin/nginx belongs into cli/options/platform.lua" },
            complaints(line, "scripts/x.sh")
        )
        assert.same({}, complaints(line, "cli/options/platform.lua"))
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
