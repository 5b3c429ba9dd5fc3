-- Samples of metrics in C, beside a slow model of them.

local exposition = require("sluice.ffi.exposition")
local ffi = require("ffi")
local string_buffer = require("string.buffer")

local MOST = 0xffffffffffffffffULL

-- The digits of a number of 64 bits.
local function digits(number)
    local text = ""
    repeat
        text = tonumber(number % 10) .. text
        number = number / 10
    until number == 0
    return text
end

local MODEL = {
    [exposition.NUMBER] = function(number, buckets)
        return digits(number), buckets
    end,
    [exposition.SEEN] = function(number, buckets)
        return number ~= 0 and digits(number) or nil, buckets
    end,
    [exposition.BUCKET] = function(number, buckets)
        return digits(buckets + number), buckets + number
    end,
    [exposition.BUCKETS] = function(_, buckets)
        return digits(buckets), buckets
    end,
    [exposition.SECONDS] = function(number, buckets)
        local rest = tonumber(number % 1000)
        return digits(number / 1000) .. (rest == 0 and "" or (".%03d"):format(rest)), buckets
    end,
}

local function model(samples, labels, numbers)
    local out, buckets = {}, 0ULL
    for _, sample in ipairs(samples) do
        local text
        text, buckets = MODEL[sample.form](numbers[sample.number], buckets)
        if text then
            out[#out + 1] = sample.before .. labels .. sample.after .. text .. "\n"
        end
    end
    return table.concat(out)
end

local function written(samples, labels, numbers)
    local out = string_buffer.new()
    exposition.write(out, exposition.row(samples), labels, numbers)
    return out:get()
end

describe("a sample", function()
    local function one(form, number)
        local sample = { before = "a{", after = "} ", number = 0, form = form }
        return written({ sample }, 'r="x"', ffi.new("uint64_t[1]", number))
    end

    it("has its number in full", function()
        assert.equal('a{r="x"} 0\n', one(exposition.NUMBER, 0))
        assert.equal('a{r="x"} 10\n', one(exposition.NUMBER, 10))
        assert.equal('a{r="x"} 18446744073709551615\n', one(exposition.NUMBER, MOST))
    end)

    it("is left out where only what was seen is wanted", function()
        assert.equal("", one(exposition.SEEN, 0))
        assert.equal('a{r="x"} 1\n', one(exposition.SEEN, 1))
    end)

    it("has milliseconds as seconds, with decimals where there are some", function()
        assert.equal('a{r="x"} 0\n', one(exposition.SECONDS, 0))
        assert.equal('a{r="x"} 0.001\n', one(exposition.SECONDS, 1))
        assert.equal('a{r="x"} 1.020\n', one(exposition.SECONDS, 1020))
        assert.equal('a{r="x"} 12\n', one(exposition.SECONDS, 12000))
        assert.equal('a{r="x"} 18446744073709551.615\n', one(exposition.SECONDS, MOST))
    end)
end)

describe("rows", function()
    it("are what a slow model writes", function()
        for seed = 1, 300 do
            math.randomseed(seed)
            local numbers, samples = ffi.new("uint64_t[8]"), {}
            for i = 0, 7 do
                numbers[i] = math.random(0, 3) == 0 and 0
                    or MOST / (2ULL ^ math.random(0, 63)) + math.random(0, 9)
            end
            for i = 1, math.random(1, 20) do
                samples[i] = {
                    before = ("b"):rep(math.random(0, 40)),
                    after = ("a"):rep(math.random(0, 40)),
                    number = math.random(0, 7),
                    form = math.random(exposition.NUMBER, exposition.SECONDS),
                }
            end
            local labels = ("l"):rep(math.random(0, 100))
            local expected = model(samples, labels, numbers)
            assert.equal(expected, written(samples, labels, numbers), "seed " .. seed)
        end
    end)
end)
