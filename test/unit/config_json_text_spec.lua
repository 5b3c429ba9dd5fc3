--- JSON that is decoded piece by piece says what cjson says of the whole.

local cjson = require("cjson")
local json_text = require("gateway.config.json_text")
local soak = require("test.unit.support.soak")

local SEED = require("test.unit.support.seed")("config_json_text")
local TEXTS = soak(3000, 30000)
-- So small that every text has many.
local PIECE = 8

local WORDS = { "1", "-2.5e3", "true", "null", '""', '"a"', '"[,]{}"', '"\\\\\\""', '"\\u00e9"' }
local MARKS = { "{", "}", "[", "]", ",", ":", '"', "\\", " ", "1", "x", "\n", "" }

local function any(list)
    return list[math.random(#list)]
end

local function blank()
    return math.random(4) == 1 and (" "):rep(math.random(12)) or ""
end

local function text_of(depth)
    if depth == 0 or math.random(5) == 1 then
        return blank() .. any(WORDS) .. blank()
    end
    local is_list, parts = math.random(2) == 1, {}
    for i = 1, math.random(0, 6) do
        local key = is_list and "" or ('%s"k%d"%s:'):format(blank(), i, blank())
        parts[i] = key .. text_of(depth - 1)
    end
    local inner = #parts == 0 and blank() or table.concat(parts, ",")
    return blank() .. (is_list and "[" .. inner .. "]" or "{" .. inner .. "}") .. blank()
end

-- One byte is another, is lacking, or is one more.
local function spoilt(text)
    local at = math.random(#text)
    return text:sub(1, at - math.random(0, 1)) .. any(MARKS) .. text:sub(at + 1)
end

local function must_agree(text)
    local ok, value = pcall(cjson.decode, text)
    local found, err = json_text.decode(text, nil, PIECE)
    if err and err.key then
        -- cjson takes the last one.
        return
    end
    assert.equal(ok, err == nil, ("%s: %s"):format(text, err and err.message or tostring(value)))
    if ok then
        assert.same(value, found, text)
    end
end

describe("gateway.config.json_text (seed " .. SEED .. ")", function()
    math.randomseed(SEED)

    it("reads what cjson reads", function()
        for _ = 1, TEXTS do
            must_agree(text_of(math.random(0, 4)))
        end
    end)

    it("refuses what cjson refuses", function()
        for _ = 1, TEXTS do
            must_agree(spoilt(text_of(math.random(1, 4))))
        end
    end)

    it("says where something is wrong", function()
        for text, offset in pairs({
            ['{"a": [1, 2, 3, 4, 5, x]}'] = 23,
            ['{"a": [[1, 2, 3, 4], [5, 6, 7, 8] 1]}'] = 35,
            ['{"a": [[1, 2, 3, 4], [5, 6, 7, 8]}'] = 34,
            ['{"a": [[1, 2, 3, 4]], b: [5, 6, 7, 8]}'] = 23,
            ["[1, 2, 3, 4, 5, 6, 7,, 8]"] = 22,
            ["[1, 2, 3, 4, 5, 6, 7] 8"] = 23,
            ['[1, 2, 3, 4, 5, "6]'] = 17,
            ["[1, 2, 3, 4, 5, 6"] = 18,
        }) do
            local value, err = json_text.decode(text, nil, PIECE)
            assert.is_nil(value)
            assert.equal(offset, err.offset, text .. ": " .. err.message)
        end
    end)

    it("finds a duplicate key, in whatever piece", function()
        local members = {}
        for i = 1, 1000 do
            members[i] = ('"k%d": [%d]'):format(i, i)
        end
        members[1001] = '"k7": 1'
        local value, err = json_text.decode("{" .. table.concat(members, ",") .. "}", nil, PIECE)
        assert.is_nil(value)
        assert.equal("duplicate key 'k7'", err.message)
    end)

    it("bounds depth, also of what is long", function()
        local function nested(depth)
            return ("[1, "):rep(depth) .. "1" .. ("]"):rep(depth)
        end
        assert.is_truthy(json_text.decode(nested(100), nil, PIECE))
        assert.matches("^Found too many nested", select(2, json_text.decode(nested(101))).message)
        local _, err = json_text.decode(nested(101), nil, PIECE)
        assert.equal("Found too many nested data structures (101)", err.message)
    end)

    it("takes little more memory than what it makes", function()
        local text = "[" .. ("[],"):rep(200000) .. "[]]"
        local function grown(decode)
            collectgarbage()
            collectgarbage("stop")
            local before = collectgarbage("count")
            decode(text)
            local kilobytes = collectgarbage("count") - before
            collectgarbage("restart")
            return kilobytes
        end
        assert.is_true(grown(json_text.decode) < 1.6 * grown(cjson.decode))
    end)

    it("pauses at least once in 64 KB", function()
        local pauses = 0
        local text = '{"a": [' .. ("[],"):rep(350000) .. "[]]}"
        local value = json_text.decode(text, function()
            pauses = pauses + 1
        end)
        assert.equal(350001, #value.a)
        assert.is_true(pauses > 2 * #text / 2 ^ 16 - 4, pauses)
    end)
end)
