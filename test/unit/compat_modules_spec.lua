-- Modules of compat/ that need no nginx: what their users expect of them, and hostile input.

package.path = "./compat/?.lua;./compat/?/init.lua;" .. package.path

local address = require("sluice.address")
local body_of = require("resty.http.body")
local constants = require("lua_system_constants")
local cpu = require("test.unit.support.cpu")
local ipmatcher = require("resty.ipmatcher")
local multipart = require("multipart")
local tablepool = require("tablepool")
local uuid = require("resty.jit-uuid")

describe("resty.jit-uuid", function()
    it("makes random ones, each another", function()
        local seen = {}
        for _ = 1, 1000 do
            local one = uuid()
            assert.is_true(uuid.is_valid(one), one)
            assert.equal("4", one:sub(15, 15))
            assert.is_nil(seen[one])
            seen[one] = true
        end
    end)

    it("does not follow the seed of math.random", function()
        uuid.seed(1)
        local one = uuid.generate_v4()
        assert.equal(1, uuid.seed(1))
        assert.not_equal(one, uuid.generate_v4())
    end)

    it("knows what is none", function()
        local one = "e6ebd542-06ae-11e6-8e82-bba81706b27d"
        assert.is_true(uuid.is_valid(one:upper()))
        for _, text in ipairs({
            "",
            one .. "a",
            one:gsub("8e82", "7e82"),
            one:gsub("-", "a"),
            "g" .. one:sub(2),
        }) do
            assert.is_false(uuid.is_valid(text), text)
        end
        assert.is_false(uuid.is_valid(nil))
        assert.is_false(uuid.is_valid({}))
    end)

    it("names none without nginx", function()
        assert.has_error(function()
            uuid.generate_v5("e6ebd542-06ae-11e6-8e82-bba81706b27d", "a")
        end, "v5 UUID generation only supported in ngx_lua")
    end)
end)

-- Slow and obvious: digits in binary, compared as texts.
local function bits_of(ip)
    return (
        address.digits(ip):gsub("%x", function(digit)
            local n, out = tonumber(digit, 16), ""
            for i = 3, 0, -1 do
                out = out .. math.floor(n / 2 ^ i) % 2
            end
            return out
        end)
    )
end

local function slow_match(ranges, ip)
    local best, value = -1, false
    local bits = bits_of(ip)
    for range, known in pairs(ranges) do
        local base, length = range:match("^([^/]+)/?(%d*)$")
        local own = bits_of(base)
        length = tonumber(length) or #own
        if #own == #bits and own:sub(1, length) == bits:sub(1, length) and length > best then
            best, value = length, known
        end
    end
    return value
end

local function some_ip(random)
    -- Few values, so that many are in a range.
    if random(2) == 1 then
        return ("%d.%d.%d.%d"):format(random(3), random(3), random(0, 255), random(0, 255))
    end
    return ("2001:db8:%x::%x"):format(random(0, 7), random(0, 65535))
end

local function binary(ip)
    return (
        address.digits(ip):gsub("%x%x", function(digits)
            return string.char(tonumber(digits, 16))
        end)
    )
end

describe("resty.ipmatcher", function()
    it("finds what a slow one finds, by the longest prefix", function()
        for seed = 1, 200 do
            math.randomseed(seed)
            local ranges, random = {}, math.random
            for i = 1, random(0, 30) do
                local ip = some_ip(random)
                local most = ip:find(":") and 128 or 32
                ranges[random(3) == 1 and ip or ip .. "/" .. random(0, most)] = i
            end
            local matcher = assert(ipmatcher.new_with_value(ranges))
            for _ = 1, 50 do
                local ip = some_ip(random)
                local wanted = slow_match(ranges, ip)
                -- Two ranges may be one, written differently: either value is right.
                local found = matcher:match(ip)
                assert.equal(wanted == false, found == false, seed .. " " .. ip)
                assert.equal(found, matcher:match_bin(binary(ip)), seed .. " " .. ip)
            end
        end
    end)

    it("takes the most specific range", function()
        local matcher = ipmatcher.new_with_value({
            ["0.0.0.0/0"] = "all",
            ["10.0.0.0/8"] = "ten",
            ["10.1.1.1"] = "one",
            ["::/0"] = "six",
            ["2001:db8::/33"] = "doc",
        })
        assert.equal("one", matcher:match("10.1.1.1"))
        assert.equal("ten", matcher:match("10.1.1.2"))
        assert.equal("all", matcher:match("11.1.1.1"))
        assert.equal("doc", matcher:match("[2001:db8::1]"))
        assert.equal("six", matcher:match("2001:db8:8000::1"))
    end)

    it("says what is no address", function()
        for _, text in ipairs({
            "",
            "a",
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.256",
            "1::2::3",
            "1.2.3.4\0",
            ("1"):rep(100),
        }) do
            assert.same({ nil, "invalid ip address: " .. text }, { ipmatcher.new({ text }) })
            local matcher = ipmatcher.new({ "0.0.0.0/0", "::/0" })
            assert.same({ false, "invalid ip address, not ipv4 and ipv6" }, { matcher:match(text) })
        end
        for _, text in ipairs({
            "1.2.3.4/33",
            "1.2.3.4/-1",
            "1.2.3.4/x",
            "1.2.3.4/1.5",
            "::1/129",
            "1.2.3.4/",
        }) do
            assert.same({ nil, "invalid ip address: " .. text }, { ipmatcher.new({ text }) })
        end
        local matcher = ipmatcher.new({ "0.0.0.0/0" })
        assert.is_false((matcher:match_bin("abc")))
        assert.is_false((matcher:match_bin(nil)))
        assert.has_error(function()
            ipmatcher.new("1.2.3.4")
        end, "missing valid ip argument")
    end)

    it("splits, and reads numbers", function()
        assert.same({ "10.0.0.0", 8 }, { ipmatcher.split_ip("10.0.0.0/8") })
        assert.same({ "::1" }, { ipmatcher.split_ip("::1") })
        assert.equal(2 ^ 31 + 1, ipmatcher.parse_ipv4("128.0.0.1"))
        assert.same({ 0, 0, 0, 2 ^ 32 - 1 }, ipmatcher.parse_ipv6("::ffff:ffff"))
        assert.is_false(ipmatcher.parse_ipv4("::1"))
    end)
end)

local TYPE = "multipart/form-data; boundary=AaB"

local function body(...)
    return table.concat({ ... }, "\r\n")
end

describe("multipart", function()
    it("reads parts by name, and writes what it has read", function()
        local text = body(
            "--AaB",
            'Content-Disposition: form-data; name="a"',
            "",
            "1",
            "--AaB",
            'content-disposition: form-data; filename="x; name=no"; name=b',
            "Content-Type: text/plain",
            "",
            "two\r\n--AaBx\nlines\r\n",
            "--AaB",
            'Content-Disposition: form-data; name="a"',
            "",
            "",
            "--AaB--",
            ""
        )
        local data = multipart(text, TYPE)
        assert.same({ a = { "1", "" }, b = "two\r\n--AaBx\nlines\r\n" }, data:get_all_with_arrays())
        assert.equal("1", data:get("a").value)
        assert.equal("text/plain", data:get_with_headers_as_array("b")[1].headers.content_type)
        assert.equal(text, data:tostring())
        data:delete("a")
        assert.same({ b = "two\r\n--AaBx\nlines\r\n" }, data:get_all())
        data:set_simple("c", "3")
        assert.same({ "3" }, multipart(data:tostring(), TYPE):get_as_array("c"))
    end)

    it("deletes a name that comes again and again", function()
        local data = multipart("", TYPE)
        for i = 1, 4 do
            data:set_simple("n" .. i, tostring(i))
        end
        data._data.data[3].name = "n1"
        data._data.indexes = { n1 = { 1, 3 }, n2 = { 2 }, n4 = { 4 } }
        data:delete("n1")
        assert.same({ n2 = "2", n4 = "4" }, data:get_all())
    end)

    it("lets no name or file end a field", function()
        local data = multipart("", TYPE)
        data:set_simple('a"\r\nX: y', "1", 'f"\r\n', "text/plain\r\nX: z")
        local lines = data:get('a"\r\nX: y').headers
        assert.same({
            'Content-Disposition: form-data; name="a%22%0D%0AX: y"; filename="f%22%0D%0A"',
            "content-type: text/plain  X: z",
        }, lines)
    end)

    it("makes of broken bodies what there is, in the time of their length", function()
        assert.same({}, multipart(nil, nil):get_all())
        assert.same({}, multipart("--AaB", "text/plain"):get_all())
        assert.same({}, multipart("--AaB\r\nno field", TYPE):get_all())
        assert.same({}, multipart("--AaB--\r\n--AaB\r\nname", TYPE):get_all())
        local cut = 'x\r\n--AaB\r\nContent-Disposition: form-data; name="a"\r\n\r\ncut'
        assert.same({ a = "cut" }, multipart(cut, TYPE):get_all())
        assert.equal("", multipart("", TYPE):tostring())
        local seconds = cpu.least(5, function()
            for _, text in ipairs({
                "--AaB",
                "--AaB\n",
                "--AaBx\n",
                "\r\n",
                "--AaB\r\na:b\r\n\r\n",
                "a; name=",
            }) do
                multipart(text:rep(200000), TYPE)
            end
        end)
        assert.is_true(seconds < 5, seconds)
    end)
end)

describe("resty.http.body", function()
    it("reads pieces of any size that is asked for", function()
        local function nothing() end
        local source = { max_bytes = 100, start = nothing, ended = nothing }
        source.response = {
            read_piece = function(_, count)
                return ("x"):rep(count > 3 and 3 or count)
            end,
        }
        for size, wanted in pairs({ [0.5] = 9, [1.5] = 1, [-1] = 9, [4] = 4, [1 / 0] = 9 }) do
            local read = body_of.of_length(source, 9)
            assert.equal(wanted, #read(size), size)
        end
        local read = body_of.of_length(source, 9)
        assert.equal(9, #read(0 / 0))
        assert.is_nil((read()))
        assert.same({ nil, "the body of the response is too long" }, {
            body_of.of_length(source, 101)(),
        })
    end)

    it("keeps a body of one byte a chunk in little more than its length", function()
        local count = 2 ^ 20
        local left, before, used = count, nil, nil
        local function live_bytes()
            collectgarbage()
            return collectgarbage("count") * 1024
        end
        local text = body_of.whole(function()
            left = left - 1
            if left == count - 1 then
                before = live_bytes()
            elseif left < 0 then
                used = live_bytes() - before
                return nil
            end
            return left % 2 == 0 and "a" or "b"
        end, count)
        assert.equal(("ba"):rep(count / 2), text)
        assert.is_true(used < 2 * count, used)
    end)
end)

describe("tablepool", function()
    it("gives back empty tables, and only so many", function()
        local one = tablepool.fetch("a", 4, 4)
        one.x, one[1] = 1, 2
        setmetatable(one, { __index = { y = 1 } })
        tablepool.release("a", one)
        local again = tablepool.fetch("a", 0, 0)
        assert.is_true(again == one)
        assert.is_nil(next(again))
        assert.is_nil(again.y)
        assert.is_false(tablepool.fetch("a", 0, 0) == one)
        assert.has_error(function()
            tablepool.release("a", nil)
        end, "object empty")
        local released, kept = {}, 0
        for _ = 1, 500 do
            local other = {}
            released[other] = true
            tablepool.release("b", other)
        end
        for _ = 1, 500 do
            kept = kept + (released[tablepool.fetch("b", 0, 0)] and 1 or 0)
        end
        assert.equal(200, kept)
    end)

    it("keeps what is in a table that was cleared already", function()
        local one = { a = 1 }
        tablepool.release("c", one, true)
        assert.equal(1, tablepool.fetch("c", 0, 0).a)
    end)

    it("lets large tables go in time", function()
        local one = {}
        for i = 1, 20000 do
            tablepool.release("d", one, true)
            assert.is_true(i == 20000 or tablepool.fetch("d", 0, 0) == one)
        end
        assert.is_false(tablepool.fetch("d", 0, 0) == one)
    end)
end)

describe("lua_system_constants", function()
    it("has open's numbers", function()
        assert.equal(
            tonumber("2102", 8),
            constants.O_CREAT() + constants.O_APPEND() + constants.O_RDWR()
        )
        assert.equal(
            tonumber("644", 8),
            constants.S_IRUSR() + constants.S_IWUSR() + constants.S_IRGRP() + constants.S_IROTH()
        )
    end)
end)
