-- Ranges of addresses: the radix tree beside a walk over all of them, at random, and its steps.

local tree = require("plugins.ip-restriction.tree")
local judge = require("test.unit.support.judge").judge

local SEED = require("test.unit.support.seed")("ip_restriction")
local LISTS = 60
local ADDRESSES = 60

-- Few bytes, so that ranges meet.
local BYTES = { 0, 1, 15, 16, 17, 127, 128, 254, 255 }

local function bits_of(digits)
    return (
        digits:gsub("%x", function(digit)
            local value, bits = tonumber(digit, 16), ""
            for power = 3, 0, -1 do
                bits = bits .. math.floor(value / 2 ^ power) % 2
            end
            return bits
        end)
    )
end

local function random_digits(is_ipv6)
    local out = {}
    for i = 1, is_ipv6 and 16 or 4 do
        out[i] = ("%02x"):format(BYTES[math.random(#BYTES)])
    end
    return table.concat(out)
end

local function text_of(digits)
    if #digits == 8 then
        return (
            digits
                :gsub("%x%x", function(byte)
                    return tonumber(byte, 16) .. "."
                end)
                :sub(1, -2)
        )
    end
    return (digits:gsub("%x%x%x%x", "%0:"):sub(1, -2))
end

local function random_list()
    local list, ranges = {}, {}
    for i = 1, math.random(40) do
        local digits = random_digits(math.random(2) == 1)
        local most = #digits * 4
        local bits = math.random(3) == 1 and most or math.random(0, most)
        list[i] = text_of(digits) .. "/" .. bits
        ranges[i] = { width = most, prefix = bits_of(digits):sub(1, bits) }
    end
    return list, ranges
end

local function is_in(ranges, digits)
    local bits = bits_of(digits)
    for _, range in ipairs(ranges) do
        if range.width == #bits and bits:sub(1, #range.prefix) == range.prefix then
            return true
        end
    end
    return false
end

local LEAF = 2 ^ 31

local function words_of(bytes)
    local words = require("ffi").cast("const uint32_t *", bytes)
    return function(place)
        assert(place * 4 < #bytes)
        return tonumber(words[place])
    end
end

-- The nodes that the way of an address has, as sluice_ip_restriction_has() walks them.
local function steps_of(bytes, digits)
    local word, steps, least = words_of(bytes), 0, 0
    local entry = word(0)
    while entry < LEAF do
        local node = word(entry)
        local depth = math.floor(node / 2 ^ 16)
        assert(depth >= least and depth < #digits, "a node that is no deeper than the one before")
        steps, least = steps + 1, depth + 1
        local value = tonumber(digits:sub(depth + 1, depth + 1), 16)
        if math.floor(node / 2 ^ value) % 2 == 0 then
            break
        end
        local below = 0
        for i = 0, value - 1 do
            below = below + math.floor(node / 2 ^ i) % 2
        end
        entry = word(entry + 1 + below)
    end
    return steps
end

local function most_steps(list, addresses)
    local ranges, most = {}, 0
    for i, digits in ipairs(list) do
        ranges[i] = { digits = digits, bits = #digits * 4 }
    end
    local bytes = tree.bytes(ranges)
    for _, digits in ipairs(addresses) do
        most = math.max(most, steps_of(bytes, digits))
    end
    return most
end

-- So many addresses of IPv4 or IPv6, `between` numbers from one to the next.
local function spread(count, format, between)
    local list = {}
    for i = 1, count do
        list[i] = format:format((i - 1) * between)
    end
    return list
end

describe("ranges of ip-restriction", function()
    it("cost no more steps the more they are", function()
        local MANY = 10000
        -- Next to each other, so that four digits differ, or all over the addresses.
        local dense = spread(MANY, "0a00%04x", 1)
        assert.equal(4, most_steps(dense, dense))
        local wide = spread(MANY, "%08x", math.floor(2 ^ 32 / MANY))
        assert.is_true(most_steps(wide, wide) <= 8)
        local long = spread(MANY, ("20010db8"):rep(3) .. "%08x", math.floor(2 ^ 32 / MANY))
        assert.is_true(most_steps(long, long) <= 8)
        -- One that stands as deep as any can: each digit has a node, and there is no more.
        local deep, ones = {}, ("1"):rep(32)
        for i = 1, 32 do
            deep[i] = ones:sub(1, i - 1) .. "2" .. ("0"):rep(32 - i)
        end
        deep[33] = ones
        assert.equal(32, most_steps(deep, { ones }))
        -- To the ways of ten addresses thousands of others add one step, where they part.
        local few, many = { unpack(deep, 24) }, spread(MANY, "f0" .. ("0"):rep(26) .. "%04x", 1)
        assert.equal(9, most_steps(few, { ones }))
        for i = 1, MANY do
            few[#few + 1] = many[i]
        end
        assert.equal(10, most_steps(few, { ones }))
        assert.equal(5, most_steps(few, many))
    end)

    it("are as many as there may be, and each is found", function()
        local list = {}
        for i, digits in ipairs(spread(10000, "%08x", 429496)) do
            list[i] = text_of(digits)
        end
        local config = require("plugins.ip-restriction.handler").pack({ deny = list })
        for i = 1, #list, 7 do
            local found = judge("ip-restriction", config, { address = list[i] })
            assert.equal("respond", found, list[i])
        end
        assert.equal("pass", (judge("ip-restriction", config, { address = "0.0.0.1" })))
    end)

    it("are those that a walk over all of them finds", function()
        math.randomseed(SEED)
        for _ = 1, LISTS do
            local list, ranges = random_list()
            for _ = 1, ADDRESSES do
                local digits = random_digits(math.random(2) == 1)
                local address = text_of(digits)
                local found = judge("ip-restriction", { deny = list }, { address = address })
                local expected = is_in(ranges, digits) and "respond" or "pass"
                local case = ("SEED=%d %s in %s"):format(SEED, address, table.concat(list, " "))
                assert.equal(expected, found, case)
            end
        end
    end)

    it("say what is refused", function()
        local config = { allow = { "10.0.0.0/8" }, deny = { "::1" }, status = 451 }
        local function ask(address)
            return judge("ip-restriction", config, { address = address })
        end
        assert.equal("pass", (ask("10.255.0.1")))
        local _, result = ask("11.0.0.1")
        assert.equal(451, result.status)
        assert.equal("IP address not allowed: 11.0.0.1", result.message)
        for _, address in ipairs({ "unix:", "", "10.0.0", "10.0.0.1x", ("1"):rep(100) }) do
            _, result = ask(address)
            assert.equal(403, result.status)
        end
        assert.equal("unknown", (ask(nil)))
    end)
end)
