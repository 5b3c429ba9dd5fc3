--- Changes of a log entry in C beside those in Lua (gateway.kit.log.serialize), at random.
--
-- SEED repeats a run, LONG=1 makes it longer.

local cjson = require("cjson")
local core = require("test.unit.support.core")
local serialize = require("gateway.kit.log.serialize")
local soak = require("test.unit.support.soak")

local ffi, lib = core.ffi, core.lib

local ROUNDS = soak(20000, 200000)

local seed = require("test.unit.support.seed")("core_json_edit")

local random = math.random

local MODES =
    { set = lib.SLUICE_JSON_SET, add = lib.SLUICE_JSON_ADD, replace = lib.SLUICE_JSON_REPLACE }
local GUARD = 0x5a

local edit = ffi.new("sluice_json_edit_t")

-- Edits a text in memory of just the size that it asks for. The text then, and how much of the key
-- was refused.
local function change(text, key, mode, value)
    edit.key, edit.key_length, edit.mode = key, #key, MODES[mode]
    edit.value, edit.value_length = value, value and #value or 0
    local size = #text
    local memory = ffi.new("char[?]", size + 1, text)
    memory[size] = GUARD
    local length = tonumber(lib.sluice_json_edit(memory, size, size, edit))
    if length > size then
        assert.equal(text, ffi.string(memory, size))
        memory = ffi.new("char[?]", length + 1)
        ffi.copy(memory, text, size)
        size, memory[length] = length, GUARD
        assert.equal(length, tonumber(lib.sluice_json_edit(memory, #text, size, edit)))
    end
    assert.equal(GUARD, memory[size])
    return ffi.string(memory, length), edit.refused
end

local NAMES =
    { "a", "b", "c", "a/b", '"', "\\", "\n", "\127", "é", "\240\159\152\128", "", ".", "ab" }

local function draw_name()
    return NAMES[random(#NAMES)]
end

local LEAVES = { 1, -2.5, "x", "", 'a"b\\/{}[],:', true, false, cjson.null, "é" }

local function draw_value(depth)
    if depth == 0 or random(3) > 1 then
        return LEAVES[random(#LEAVES)]
    end
    local out = {}
    for _ = 1, random(0, 3) do
        out[draw_name()] = draw_value(depth - 1)
    end
    return out
end

local function draw_entry()
    local entry = { list = { { ip = "x" }, "]" } }
    for _ = 1, random(0, 4) do
        entry[draw_name()] = draw_value(3)
    end
    return entry
end

local function draw_key()
    local parts = {}
    for i = 1, random(4) do
        parts[i] = draw_name()
    end
    return table.concat(parts, ".")
end

-- Names that cjson writes as they are, or by their numbers.
local function escaped(text)
    return (text:gsub("é", random(2) == 1 and "\\u00e9" or "é")):gsub(
        "\240\159\152\128",
        random(2) == 1 and "\\ud83d\\ude00" or "\240\159\152\128"
    )
end

describe("a change of an object in JSON", function()
    it(("does what it does to a table, seed %d"):format(seed), function()
        math.randomseed(seed)
        local made, refused = 0, 0
        for round = 1, ROUNDS do
            local entry = draw_entry()
            local text = cjson.encode(entry)
            entry, text = cjson.decode(text), escaped(text)
            local items = {}
            for i = 1, random(4) do
                local mode = ({ "set", "add", "replace" })[random(3)]
                items[i] = { key = draw_key(), mode = mode }
                if random(4) > 1 then
                    items[i].value = draw_value(2)
                end
            end
            for i, item in ipairs(items) do
                local value = item.value ~= nil and cjson.encode(item.value) or nil
                local before = cjson.decode(text)
                local after, is_refused = change(text, item.key, item.mode, value)
                text = after
                local plain = { key = item.key, mode = item.mode }
                if value then
                    plain.value = cjson.decode("[" .. value .. "]")[1]
                end
                local ok, err = pcall(serialize.apply, entry, { plain })
                local what = ("seed %d, round %d, %d: %s"):format(seed, round, i, item.key)
                assert.equal(ok, is_refused == 0, what)
                if ok then
                    made = made + 1
                    assert.same(entry, cjson.decode(text), what)
                else
                    refused = refused + 1
                    local name = item.key:sub(1, is_refused)
                    assert.is_truthy(err:find("is not a table", 1, true), err)
                    assert.is_true(item.key:sub(#name + 1, #name + 1) == ".", what)
                    assert.same(before, cjson.decode(text), what)
                    -- Lua has made the tables on the way
                    entry = before
                end
            end
        end
        assert.is_true(made > ROUNDS and refused > ROUNDS / 20, made .. " " .. refused)
    end)

    it("writes without blanks, behind what is there", function()
        local function changed(text, ...)
            return (change(text, ...))
        end
        assert.equal('{"a":1}', changed("{}", "a", "set", "1"))
        assert.equal('{"a":1,"b":{"c":{"d":2}}}', changed('{"a":1}', "b.c.d", "set", "2"))
        assert.equal('{"a":{"b":{}}}', changed("{}", "a.b.c", "set"))
        assert.equal('{"b":2}', changed('{"a":[1,"}"],"b":2}', "a", "set"))
        assert.equal('{"a":1}', changed('{"a":1,"b":2}', "b", "replace"))
        assert.equal('{"a":{}}', changed('{"a":{"b":2}}', "a.b", "set"))
        assert.equal('{".a":{"":1}}', changed("{}", ".a.", "set", "1"))
        assert.equal('{"a":[1]}', changed('{"a":[1]}', "a.x", "replace", "1"))
    end)

    it("leaves what is no such object", function()
        local broken = { "", "{", "[]", '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"\\', "1" }
        for _, text in ipairs(broken) do
            assert.equal(text, (change(text, "a.b", "set", "1")))
            assert.equal(text, (change(text, "b", "set", "1")))
        end
    end)
end)
