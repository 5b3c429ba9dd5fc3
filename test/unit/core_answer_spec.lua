-- Bodies of errors in C: chosen cases, and random ones beside the Lua (support/answer_oracle.lua).
--
-- SEED repeats a run, LONG=1 makes it longer.

local core = require("test.unit.support.core")
local oracle = require("test.unit.support.answer_oracle")
local list_of = require("test.unit.support.words")
local soak = require("test.unit.support.soak")

local ffi, lib = core.ffi, core.lib

local ROUNDS = soak(100000, 1000000)

local seed = require("test.unit.support.seed")("core_answer")

local random = math.random

local GUARD = 0xa5

local function text(value)
    return ffi.new("sluice_core_text_t", value, #value)
end

local function read(of)
    return ffi.string(of.data, of.length)
end

local function type_for(accept)
    return read(lib.sluice_answer_content_type(lib.sluice_answer_accepted(text(accept))))
end

--- The body in the format for an Accept header, written into no more room than the bound says.
local function body_for(accept, message, id)
    local bound = tonumber(lib.sluice_answer_bound(#message, #id))
    local out = ffi.new("uint8_t[?]", bound + 1)
    out[bound] = GUARD
    local format = lib.sluice_answer_accepted(text(accept))
    local length = lib.sluice_answer_body(format, text(message), text(id), out)
    assert(length <= bound and out[bound] == GUARD, "written beyond the bound")
    return ffi.string(out, length)
end

local function words(status)
    local buffer, out = ffi.new("char[64]"), ffi.new("sluice_core_text_t")
    lib.sluice_answer_words(status, buffer, out)
    return read(out)
end

describe("an error's format", function()
    it("is chosen by Accept", function()
        local cases = {
            ["*/*"] = "application/json",
            ["application/json"] = "application/json",
            ["application/*"] = "application/json",
            ["application/xml"] = "application/xml",
            ["text/xml"] = "application/xml",
            ["text/html"] = "text/html",
            ["Text/HTML; charset=utf-8"] = "text/html",
            ["text/plain"] = "text/plain",
            ["text/*"] = "text/plain",
            ["image/png"] = "application/json",
            [""] = "application/json",
            ["garbage;;q=,;"] = "application/json",
            ["application/xml;q=0.3, text/html;q=0.9, text/plain;q=0.5"] = "text/html",
            ["text/plain, text/html"] = "text/plain",
            ["text/html;q=0, application/xml"] = "application/xml",
            ["text/html;q=0"] = "application/json",
            ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"] = "text/html",
        }
        for accept, expected in pairs(cases) do
            assert.equal(expected, type_for(accept):match("^[^;]+"), accept)
        end
    end)

    it("is of one of the known types, else unknown", function()
        local function format_of(name)
            return lib.sluice_answer_format(name, #name)
        end
        assert.equal(lib.SLUICE_ANSWER_XML, format_of("Application/XML"))
        for _, name in ipairs({ "", "text", "text/plainer", "text/plain;q=1", " text/plain" }) do
            assert.equal(lib.SLUICE_ANSWER_UNKNOWN, format_of(name), name)
        end
    end)
end)

describe("an error's words", function()
    it("are Kong's for each status", function()
        for status = -1, 1000 do
            assert.equal(oracle.refusal(status), words(status))
        end
        assert.equal(oracle.refusal(-2 ^ 31), words(-2 ^ 31))
    end)
end)

-- Random ones -----------------------------------------------------------------

local PIECES = list_of(
    [[
    application/json application/xml application/* application/xhtml+xml text/html TEXT/Plain
    text/* text/xml */* image/png , ; ;q= q = . 0.9 0.90 0.123456789012345 1 .5 5. 00.7 1.0.0 9999
    "a,b"
]],
    { ", ", "; Q = ", " ", "\t", "\v", "\0" }
)

local function random_accept()
    local out = {}
    for i = 1, random(0, 12) do
        out[i] = random(20) == 1 and string.char(random(0, 255)) or PIECES[random(#PIECES)]
    end
    return table.concat(out)
end

local function random_text(most)
    local out = {}
    for i = 1, random(0, most) do
        local is_odd = random(4) == 1
        out[i] = string.char(is_odd and random(0, 255) or random(0x20, 0x7f))
    end
    return table.concat(out)
end

describe("errors in C", function()
    it("are those of the Lua, for any header and message", function()
        math.randomseed(seed)
        for _ = 1, ROUNDS do
            local accept, message, id = random_accept(), random_text(40), random_text(8)
            local format = oracle.format_for(accept)
            local hint = ("seed %d, Accept %q, message %q"):format(seed, accept, message)
            if format.content_type ~= type_for(accept) then
                error(hint .. ": another type")
            elseif format.body(message, id) ~= body_for(accept, message, id) then
                error(hint .. ": another body")
            end
        end
    end)

    it("have room for the longest escapes", function()
        for _, byte in ipairs({ "\0", "\127", '"', "&", "<" }) do
            for _, accept in ipairs({ "*/*", "text/xml", "text/html", "text/plain" }) do
                local message, id = byte:rep(1000), byte:rep(32)
                local expected = oracle.format_for(accept).body(message, id)
                assert.equal(expected, body_for(accept, message, id))
            end
        end
    end)
end)
