-- What people read is no command to a terminal.

local console = require("cli.terminal.console")
local plain = require("cli.terminal.plain")

describe("plain text", function()
    it("keeps characters, and has a question mark for each control character", function()
        for text, shown in pairs({
            ["a\tb\nc"] = "a\tb\nc",
            ["a\0\27[2Jb\127"] = "a??[2Jb?",
            ["\194\155 \194\160 \226\130\172 \240\159\152\128"] = "? \194\160 \226\130\172 "
                .. "\240\159\152\128",
            -- The same bytes as a part of a character, and alone.
            ["\235\155\155"] = "\235\155\155",
            ["\235\155\155\155x\155"] = "\235\155\155?x?",
            ["\235\155"] = "??",
            ["\193\155"] = "??",
            ["\255\128\128\155"] = "????",
            -- No second byte, overlong, surrogates, beyond U+10FFFF.
            ["a\233b \195z"] = "a?b ?z",
            ["\224\128\155 \237\160\128 \244\159\191\191"] = "??? ??? ????",
            ["\224\160\128\237\159\191\244\143\191\191"] = "\224\160\128\237\159\191"
                .. "\244\143\191\191",
        }) do
            assert.equal(shown, plain.text(text))
        end
    end)

    it("takes a byte alone for the control character that it is to a terminal of 8 bits", function()
        for byte = 0x80, 0x9F do
            for _, before in ipairs({ "", "a", "\195\188", "\255", "\192" }) do
                local last = plain.text(before .. string.char(byte)):sub(-1)
                assert.equal("?", last)
            end
        end
    end)
end)

describe("a complaint", function()
    local real, written = plain.write_error, nil

    before_each(function()
        written = {}
        console.write_error = function(text)
            written[#written + 1] = text
        end
    end)

    after_each(function()
        console.write_error = real
    end)

    it("is one line, whatever a name in it holds", function()
        console.complain({ "service 'a\nsluice: b' is in use" })
        console.complain({ "not found; looked for:\n  a.lua\n  b.lua", "x\n\ny\n" })
        assert.same({
            "sluice: service 'a\\nsluice: b' is in use\n",
            "sluice: not found; looked for:\n  a.lua\n  b.lua\n",
            "sluice: x\\n\\ny\\n\n",
        }, written)
    end)
end)
