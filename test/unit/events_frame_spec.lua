--- Frames of the socket transport, and their decoder under random damage.
--
-- Payloads are not decoded from damaged streams: that is LuaJIT's decoder, which
-- believes the sizes of tables.

local buffer = require("string.buffer")
local frame = require("sluice.events.frame")

local MAX_PAYLOAD = 5000
local RUNS = 3000
local SEED = require("test.unit.support.seed")("events_frame")

local KINDS = { frame.ALL, frame.WORKER, frame.UNIQUE }

local function random_text(longest)
    local bytes = {}
    for i = 1, math.random(0, longest) do
        bytes[i] = string.char(math.random(0, 255))
    end
    return table.concat(bytes)
end

local function random_event()
    local kind = KINDS[math.random(#KINDS)]
    return {
        kind = kind,
        sender = math.random(0, 255),
        target = kind == frame.WORKER and math.random(0, 254) or 0,
        timeout_ms = kind == frame.UNIQUE and math.random(0, 2 ^ 31) or 0,
        key = kind == frame.UNIQUE and random_text(40) or "",
        source = random_text(20),
        event = random_text(20),
        data = math.random() < 0.5 and random_text(2000)
            or { math.random(), { x = random_text(9) } },
    }
end

local function write(out, event)
    local encoder = frame.encoder(MAX_PAYLOAD)
    assert(encoder:serialise(event.data))
    local before, size = #out, encoder:size(event.key, event.source, event.event)
    encoder:put(
        out,
        event.kind,
        event.sender,
        event.target,
        event.timeout_ms,
        event.key,
        event.source,
        event.event
    )
    assert.equal(before + size, #out)
end

local function read(decoder)
    local ok, data = decoder:data()
    assert.is_true(ok, data)
    return {
        kind = decoder.kind,
        sender = decoder.sender,
        target = decoder.kind == frame.WORKER and decoder.target or 0,
        timeout_ms = decoder.timeout_ms,
        key = decoder:key(),
        source = decoder:source(),
        event = decoder:event(),
        data = data,
    }
end

-- All but the payload.
local function touch(decoder)
    return { names = { decoder:key(), decoder:source(), decoder:event() } }
end

-- Feeds a stream in random portions; the frames that come out, and what ends them.
local function read_all(stream, take)
    local decoder = frame.decoder(MAX_PAYLOAD)
    local found, at = {}, 1
    while at <= #stream do
        local size = math.random() < 0.3 and math.random(1, 30) or math.random(1, 3000)
        decoder:feed(stream:sub(at, at + size - 1))
        at = at + size
        local kind, problem = decoder:next()
        while kind do
            local taken = take(decoder)
            taken.bytes = decoder:slice(decoder.at, decoder.after)
            found[#found + 1] = taken
            kind, problem = decoder:next()
        end
        if problem then
            return found, problem
        end
    end
    return found, decoder:is_empty() and "end" or "truncated"
end

-- What came out lies within what went in, in this order.
local function check_within(stream, found)
    local at = 1
    for _, taken in ipairs(found) do
        assert.equal(taken.bytes, stream:sub(at, at + #taken.bytes - 1), "seed " .. SEED)
        at = at + #taken.bytes
        local names = table.concat(taken.names)
        assert.equal(names, taken.bytes:sub(21, 20 + #names), "seed " .. SEED)
    end
end

describe("sluice.events.frame", function()
    before_each(function()
        math.randomseed(SEED)
    end)

    it("gives back what went in, however it is cut", function()
        for _ = 1, 200 do
            local out, events = buffer.new(), {}
            for i = 1, math.random(1, 20) do
                events[i] = random_event()
                write(out, events[i])
            end
            local stream = out:tostring()
            local found, problem = read_all(stream, read)
            local bytes = {}
            for i, event in ipairs(found) do
                bytes[i], event.bytes = event.bytes, nil
            end
            assert.equal("end", problem, "seed " .. SEED)
            assert.same(events, found, "seed " .. SEED)
            assert.equal(stream, table.concat(bytes))
        end
    end)

    it("reads in place: an empty frame and the largest", function()
        local encoder = frame.encoder(frame.MAX_PAYLOAD)
        local decoder = frame.decoder(frame.MAX_PAYLOAD)
        for _, data in ipairs({ "", ("x"):rep(frame.MAX_PAYLOAD - 5) }) do
            local out = buffer.new()
            assert(encoder:serialise(data))
            encoder:put(out, frame.ALL, 1, 0, 0, "", "s", "e")
            decoder:feed(out:get())
            assert.equal(frame.ALL, decoder:next())
            local ok, read_back = decoder:data()
            assert.is_true(ok and data == read_back)
            assert.is_nil(decoder:next())
        end
    end)

    it("refuses what it cannot send, and goes on", function()
        local encoder = frame.encoder(100)
        assert.same({ nil, "payload too large" }, { encoder:serialise(("x"):rep(101)) })
        local ok, word, what = encoder:serialise({ 1, { print } })
        assert.same({ nil, "not serialisable" }, { ok, word })
        assert.is_string(what)
        assert.is_true(encoder:serialise("x"))
    end)

    it("never goes beyond what was fed, however it is damaged", function()
        local endings = { malformed = 0, oversized = 0, truncated = 0, ["end"] = 0 }
        for _ = 1, RUNS do
            local out, sent = buffer.new(), {}
            for i = 1, math.random(1, 5) do
                sent[i] = random_event()
                write(out, sent[i])
            end
            local stream = out:get()
            local at, size = math.random(1, #stream), math.random(1, 12)
            local how = math.random(3)
            local middle = how == 1 and random_text(12)
                or how == 2 and ""
                or string.char(math.random(0, 255)):rep(size)
            stream = stream:sub(1, at - 1) .. middle .. stream:sub(at + size)
            local found, problem = read_all(stream, touch)
            check_within(stream, found)
            endings[problem] = endings[problem] + 1
        end
        -- The damage is of all kinds, or this test is none.
        for ending, count in pairs(endings) do
            assert.is_true(count > 0, "no stream ended as " .. ending)
        end
    end)

    it("stands random bytes", function()
        for _ = 1, RUNS do
            local stream = random_text(400)
            -- Most die of their mark; let some go further.
            if #stream > 20 and math.random() < 0.8 then
                local body = string.char(math.random(0, 255), math.random() < 0.5 and 0 or 1, 0, 0)
                local head = body .. "\xd5" .. string.char(math.random(0, 7))
                stream = head .. stream:sub(#head + 1)
            end
            check_within(stream, (read_all(stream, touch)))
        end
    end)

    it("knows its own handshake", function()
        local decoder = frame.decoder(100)
        decoder:feed(frame.control(frame.HELLO, 3, 4711) .. frame.control(frame.WELCOME, 0, 1, 99))
        assert.equal(frame.HELLO, decoder:next())
        assert.is_true(decoder:speaks_ours())
        assert.same({ 3, 4711 }, { decoder.sender, decoder.target })
        assert.equal(frame.WELCOME, decoder:next())
        assert.equal(99, decoder.timeout_ms)
    end)
end)
