-- JSON strings in C: whatever the bytes are, what is written is UTF-8, and reads as the text.
--
-- SEED repeats a run, LONG=1 makes it longer.

local cjson = require("cjson")
local core = require("test.unit.support.core")
local text = require("gateway.schema.text")
local soak = require("test.unit.support.soak")

local ffi, lib = core.ffi, core.lib

local ROUNDS = soak(5000, 50000)

local seed = require("test.unit.support.seed")("core_json")

local random = math.random

local GUARD = 0xa5

local REPLACEMENT = "\239\191\189"

local function write(bytes, writer)
    local bound = 6 * #bytes + 18
    local out = ffi.new("char[?]", bound + 1)
    out[bound] = GUARD - 256
    local length = tonumber(lib[writer or "sluice_json_utf8"](out, bytes, #bytes) - out)
    assert(length <= bound and out[bound] == GUARD - 256, "written beyond the bound")
    return ffi.string(out, length)
end

--- The text with U+FFFD for each byte that is part of no character, found the slow way.
local function clean(bytes)
    local out, at = {}, 1
    while at <= #bytes do
        local found = REPLACEMENT
        local length = 1
        for n = 1, 4 do
            local piece = bytes:sub(at, at + n - 1)
            if #piece == n and text.utf8(piece) then
                found, length = piece, n
                break
            end
        end
        out[#out + 1] = found
        at = at + length
    end
    return table.concat(out)
end

-- Beginnings and ends of what is allowed, each beside what is not.
local PIECES = {
    '"',
    "\\",
    "/",
    "\0",
    "\31",
    "\127",
    "abcdefgh",
    "\194\128",
    "\192\175",
    "\193\191",
    "\223\191",
    "\224\160\128",
    "\224\159\191",
    "\237\159\191",
    "\237\160\128",
    "\239\191\191",
    "\240\144\128\128",
    "\240\143\191\191",
    "\244\143\191\191",
    "\244\144\128\128",
    "\245\128\128\128",
    "\255",
    "\226\130",
}

local function some_bytes()
    local out = {}
    for i = 1, random(0, 12) do
        local piece = PIECES[random(#PIECES)]
        local kind = random(4)
        if kind == 1 then
            piece = string.char(random(0, 255))
        elseif kind == 2 then
            piece = piece:sub(1, random(#piece))
        end
        out[i] = piece
    end
    return table.concat(out)
end

describe("a JSON string", function()
    it("is as lua-cjson writes it, with any byte at any place", function()
        for length = 0, 24 do
            for place = 1, length do
                for byte = 0, 255 do
                    local bytes = ("\1x"):rep(length):sub(-length)
                    bytes = bytes:sub(1, place - 1) .. string.char(byte) .. bytes:sub(place + 1)
                    assert.equal(cjson.encode(bytes), write(bytes, "sluice_json_string"))
                end
            end
        end
    end)

    it("is as lua-cjson writes it, for any bytes", function()
        math.randomseed(seed)
        for _ = 1, ROUNDS do
            local bytes = some_bytes() .. ("a"):rep(random(0, 30)) .. some_bytes()
            if write(bytes, "sluice_json_string") ~= cjson.encode(bytes) then
                error(("%q; seed %d"):format(bytes, seed))
            end
        end
    end)
end)

describe("a JSON string in UTF-8", function()
    it("escapes what JSON forbids, and nothing else", function()
        assert.equal('""', write(""))
        assert.equal('"/a/b"', write("/a/b"))
        assert.equal([["\"\\\n\u0000\u007f"]], write('"\\\n\0\127'))
        assert.equal('"\195\164\226\130\172"', write("\195\164\226\130\172"))
        assert.equal('"a' .. REPLACEMENT .. 'b"', write("a\255b"))
    end)

    it("is the text, cleaned, for any bytes", function()
        math.randomseed(seed)
        for _ = 1, ROUNDS do
            local bytes = some_bytes()
            local written = write(bytes)
            assert(text.utf8(written), "not UTF-8; seed " .. seed)
            if cjson.decode("[" .. written .. "]")[1] ~= clean(bytes) then
                error(("%q of %q; seed %d"):format(written, bytes, seed))
            end
        end
    end)
end)
