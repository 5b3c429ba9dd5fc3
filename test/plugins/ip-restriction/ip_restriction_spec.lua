-- Ranges of addresses: the radix tree beside a walk over all of them, at random.

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

describe("ranges of ip-restriction", function()
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
