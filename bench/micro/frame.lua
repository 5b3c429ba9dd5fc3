--- What an event's payload costs before and behind the log: the encoding and the decoding.
--
-- The scenario `micro` runs it. Cases: `encode_<bytes>`, `decode_<bytes>`, of a table with a number
-- and a string of so many bytes.

local buffer = require("string.buffer")
local timed = require("bench.micro.timed")

local function event(bytes)
    return { number = 1, text = ("x"):rep(bytes) }
end

local cases = {}
for _, bytes in ipairs({ 64, 1024, 16384 }) do
    cases["encode_" .. bytes] = function()
        local out, value = buffer.new(), event(bytes)
        return function(count)
            for i = 1, count do
                value.number = i
                out:reset():encode(value)
            end
        end
    end
    cases["decode_" .. bytes] = function()
        local text, reader = buffer.encode(event(bytes)), buffer.new()
        return function(count)
            local sum = 0
            for _ = 1, count do
                sum = sum + reader:set(text):decode().number
            end
            assert(sum == count)
        end
    end
end

timed(cases, arg)
