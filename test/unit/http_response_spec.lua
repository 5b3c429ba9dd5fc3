--- sluice.http_response: what a server may send, in any portions, and what it may not.

local cpu = require("test.unit.support.cpu")
local http_response = require("sluice.http_response")

local BODY_BYTES = 1000

-- A reader of pieces; then the stream has ended. It counts what it gave.
local function reader(pieces)
    local given = { bytes = 0 }
    local i, at = 1, 1
    return http_response.new(function(max_bytes)
        local piece = pieces[i]
        if not piece then
            return nil, "closed"
        end
        local part = piece:sub(at, at + max_bytes - 1)
        at = at + #part
        if at > #piece then
            i, at = i + 1, 1
        end
        given.bytes = given.bytes + #part
        return part
    end),
        given
end

-- A reader of what a function gives, without end.
local function endless(begin, more)
    local given, begun = { bytes = 0 }, false
    return http_response.new(function(max_bytes)
        local part = (begun and more or begin):sub(1, max_bytes)
        begun = true
        given.bytes = given.bytes + #part
        return part
    end),
        given
end

local function read(response)
    local head, err = response:read_head()
    if not head then
        return { err = err }
    end
    local parts = {}
    local done
    done, err = response:read_body(head, BODY_BYTES, function(part)
        parts[#parts + 1] = part
    end)
    return {
        status = head.status,
        keeps_alive = http_response.keeps_alive(head),
        body = done and table.concat(parts) or nil,
        err = err,
        rest = response:rest(),
    }
end

local function text(...)
    return table.concat({ ... }, "\r\n")
end

local function answer(status, body, keeps_alive, rest)
    return { status = status, body = body, keeps_alive = keeps_alive, rest = rest or "" }
end

local OK, LENGTH, CHUNKS = "HTTP/1.1 200 OK", "Content-Length: 2", "Transfer-Encoding: chunked"
local TWO_INTERIM = text("HTTP/1.1 100 Continue", "A: b", "", "HTTP/1.1 103 Early", "", "")

local WHOLE = {
    [text(OK, LENGTH, "", "hi")] = answer(200, "hi", true),
    [text("HTTP/1.1 200", "Content-Length:2", "", "hi")] = answer(200, "hi", true),
    ["HTTP/1.1 500 no\ncontent-length: 2\n\nhi"] = answer(500, "hi", true),
    [text("HTTP/1.1 204 none", "", "")] = answer(204, "", true),
    [text("HTTP/1.1 304 none", "Content-Length: 9", "", "")] = answer(304, "", true),
    [text(OK, "", "to the end")] = answer(200, "to the end", false),
    [text(OK, "", "")] = answer(200, "", false),
    [text(OK, LENGTH, "", "hi!")] = answer(200, "hi", true, "!"),
    [text(OK, LENGTH, "Connection: Close", "", "hi")] = answer(200, "hi", false),
    [text("HTTP/1.0 200 OK", LENGTH, "", "hi")] = answer(200, "hi", false),
    [text("HTTP/1.0 200 OK", LENGTH, "Connection: keep-alive", "", "hi")] = answer(200, "hi", true),
    [TWO_INTERIM .. text("HTTP/1.1 204 x", "", "")] = answer(204, "", true),
    [text("HTTP/1.1 101 Go", "Upgrade: other", "", "other")] = answer(101, "", true, "other"),
    [text(OK, CHUNKS, "", "3;a=b", "abc", "0A ", "0123456789", "0", "Trailer: x", "", "")] = answer(
        200,
        "abc0123456789",
        true
    ),
    -- One of them is a lie.
    [text(OK, CHUNKS, LENGTH, "", "0", "", "")] = answer(200, "", false),
}

-- Responses to which there is no body, by what is said of them.
local BAD = {
    ["not an HTTP response"] = {
        "SSH-2.0-OpenSSH\r\n",
        "\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 99 OK\r\n\r\n",
    },
    ["closed"] = {
        "",
        "HTTP/1.1 200",
        "HTTP/1.1 200 OK\r\nA: b\r\n",
        text(OK, "Content-Length: 3", "", "hi"),
        text(OK, CHUNKS, "", "5", "hi"),
        text(OK, CHUNKS, "", "2", "hi", ""),
        text(OK, CHUNKS, "", "0", ""),
        "HTTP/1.1 100 Continue\r\n\r\n",
    },
    ["invalid Content-Length"] = {
        text(OK, "Content-Length: -1", "", ""),
        text(OK, "Content-Length: 0x1", "", "a"),
        text(OK, "Content-Length: 1", "Content-Length: 1", "", "a"),
    },
    ["unknown Transfer-Encoding"] = {
        text(OK, "Transfer-Encoding: gzip, chunked", "", ""),
    },
    ["a chunk has no size"] = {
        text(OK, CHUNKS, "", "x", ""),
        text(OK, CHUNKS, "", "-1", ""),
        text(OK, CHUNKS, "", "000000001", ""),
    },
    ["a chunk has no end"] = {
        text(OK, CHUNKS, "", "2", "hi.\n0", "", ""),
    },
    ["the end of a chunk is too long"] = {
        text(OK, CHUNKS, "", "2", "hi..", "0", "", ""),
    },
    ["the body of the response is too long"] = {
        text(OK, "Content-Length: 1001", "", ""),
        text(OK, "Content-Length: " .. ("9"):rep(400), "", ""),
        text(OK, CHUNKS, "", "ffffffff", ""),
    },
}

local HEAD = "HTTP/1.1 200 OK\r\n"
local CHUNKED = HEAD .. "Transfer-Encoding: chunked\r\n\r\n"

-- What never ends: how it begins, how it goes on, what is said.
local ENDLESS = {
    ["status line"] = { "HTTP/1.1 200 ", "a", "the head of the response is too long" },
    ["header line"] = { HEAD .. "A: ", ("a"):rep(4096), "the head of the response is too long" },
    ["slow header line"] = { HEAD .. "A: ", "a", "the head of the response is too long" },
    ["lines"] = { HEAD, "a: b\r\n", "the head of the response has too many lines" },
    ["interim responses"] = { HEAD:gsub("200", "100") .. "\r\n", "HTTP/1.1 102 x\r\n\r\n" },
    ["long interim responses"] = {
        "HTTP/1.1 100 x\r\nA: " .. ("a"):rep(8000) .. "\r\n\r\n",
        "HTTP/1.1 100 x\r\nA: " .. ("a"):rep(8000) .. "\r\n\r\n",
        "the head of the response is too long",
    },
    ["body"] = { HEAD .. "\r\n", "body", "the body of the response is too long" },
    ["chunk size"] = { CHUNKED, "0", "the size of a chunk is too long" },
    ["chunk extension"] = { CHUNKED .. "1;", "a", "the size of a chunk is too long" },
    ["chunks"] = { CHUNKED, "1\r\na\r\n", "the body of the response is too long" },
    ["trailer"] = { CHUNKED .. "0\r\nA: ", "a", "the trailer of the response is too long" },
    ["trailers"] = {
        CHUNKED .. "0\r\n",
        "a: b\r\n",
        "the trailer of the response has too many lines",
    },
}
ENDLESS["interim responses"][3] = "too many interim responses"

describe("sluice.http_response", function()
    it("reads a response in any portions", function()
        for whole, wanted in pairs(WHOLE) do
            assert.same(wanted.status, read(reader({ whole })).status)
            for cut = 1, #whole - 1 do
                local found = read(reader({ whole:sub(1, cut), whole:sub(cut + 1) }))
                -- What has not come yet is not what was read beyond.
                found.rest = wanted.rest:sub(1, #found.rest) == found.rest and wanted.rest or false
                assert.same(wanted, found, ("%q cut at %d"):format(whole, cut))
            end
            local bytes = {}
            for byte in whole:gmatch(".") do
                bytes[#bytes + 1] = byte
            end
            assert.equal(wanted.body, read(reader(bytes)).body)
        end
    end)

    it("says what is wrong with others", function()
        for err, wholes in pairs(BAD) do
            for _, whole in ipairs(wholes) do
                assert.equal(err, read(reader({ whole })).err, ("%q"):format(whole))
                local bytes = {}
                for byte in whole:gmatch(".") do
                    bytes[#bytes + 1] = byte
                end
                assert.equal(err, read(reader(bytes)).err, ("%q, byte by byte"):format(whole))
            end
        end
    end)

    it("reads nothing without bound", function()
        for name, case in pairs(ENDLESS) do
            local response, given = endless(case[1], case[2])
            assert.equal(case[3], read(response).err, name)
            assert.is_true(given.bytes <= 2 * 65536, name .. ": " .. given.bytes)
        end
    end)

    it("takes no longer for fields of many spaces", function()
        local spaces = (" "):rep(60000)
        local fields =
            { "A: b" .. spaces .. "c", "A:" .. spaces .. "c", "A: c" .. spaces, "A:" .. spaces }
        local wanted = { "b" .. spaces .. "c", "c", "c", "" }
        local seconds = cpu.least(0.5, function()
            for i, field in ipairs(fields) do
                local response = reader({ HEAD .. field .. "\r\n\r\n" })
                assert.equal(wanted[i], response:read_head().headers.a)
            end
        end)
        assert.is_true(seconds < 0.5, seconds)
    end)

    it("hands over each line of the final head, and what was left to the next response", function()
        local early = "HTTP/1.1 103 Hints\r\nX-Early: 1\r\n\r\n"
        local whole = early .. HEAD .. "X-A: 1\r\nx-a: 2\r\nContent-Length: 2\r\n\r\nokrest"
        local lines, interim = {}, {}
        local response = reader({ whole })
        local head = response:read_head(function(name, value)
            lines[#lines + 1] = name .. "=" .. value
        end, function(status)
            interim[#interim + 1] = status
            return true
        end)
        assert.same({ "X-A=1", "x-a=2", "Content-Length=2" }, lines)
        assert.same({ 103 }, interim)
        assert.same({ "OK", "1, 2" }, { head.reason, head.headers["x-a"] })
        assert.equal("ok", response:read_piece(2))
        local next_one = http_response.new(function()
            return nil, "closed"
        end, response:rest())
        assert.equal("rest", next_one:read_piece(100))
        assert.same({ nil, "closed" }, { next_one:read_piece(100) })
    end)

    it("goes no further than who hears of interim responses lets it", function()
        local response = reader({ "HTTP/1.1 100 Go\r\n\r\n" .. HEAD .. "\r\n" })
        local head, err = response:read_head(nil, function()
            return nil, "no"
        end)
        assert.same({ nil, "no" }, { head, err })
    end)

    it("fails with the reader's words, wherever it stops", function()
        local whole = CHUNKED .. "2\r\nhi\r\n0\r\n\r\n"
        for cut = 0, #whole - 1 do
            local sent = cut == 0
            local response = http_response.new(function()
                if sent then
                    return nil, "timeout"
                end
                sent = true
                return whole:sub(1, cut)
            end)
            assert.equal("timeout", read(response).err, cut)
        end
    end)
end)
