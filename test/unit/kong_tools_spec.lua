-- kong.tools.*: what plugins call of them, and input that is none.

package.path = "./compat/?.lua;./compat/?/init.lua;" .. package.path

local constants = require("kong.constants")
local cpu = require("test.unit.support.cpu")
local rand = require("kong.tools.rand")
local sha256 = require("kong.tools.sha256")
local tables = require("kong.tools.table")
local texts = require("kong.tools.string")
local time = require("kong.tools.time")
local uuid = require("kong.tools.uuid")

describe("kong.tools.string", function()
    it("splits, joins and strips", function()
        assert.same({ "a", "", "b" }, { unpack(texts.split("a,,b", ",")) })
        assert.equal("a,b", texts.join(",", { "a", "b" }))
        local cases = { [" a b\t\n"] = "a b", [""] = "", [" \v\f\r"] = "", ["a"] = "a" }
        for text, wanted in pairs(cases) do
            assert.equal(wanted, texts.strip(text))
        end
        assert.same({ "", "12" }, { texts.strip(nil), texts.strip(12) })
        local seconds = cpu.least(0.5, function()
            texts.strip("a" .. (" "):rep(200000) .. "b")
        end)
        assert.is_true(seconds < 0.5, seconds)
    end)

    it("knows UTF-8", function()
        for _, text in ipairs({
            "",
            "a",
            "\195\164",
            "\226\130\172",
            "\240\159\152\128",
            "\244\143\191\191",
        }) do
            assert.is_true(texts.validate_utf8(text))
        end
        for text, at in pairs({
            ["a\128"] = 2,
            ["\192\128"] = 1, -- too long for its value
            ["\194{"] = 1,
            ["\224\159\191"] = 1,
            ["\237\160\128"] = 1, -- half of a pair
            ["\244\144\128\128"] = 1, -- beyond U+10FFFF
            ["ab\226\130"] = 3,
            ["\255"] = 1,
        }) do
            assert.same({ false, at }, { texts.validate_utf8(text) })
        end
    end)

    it("reads and writes sizes", function()
        assert.equal("5497558", texts.bytes_to_str(5497558))
        assert.equal("5.24 MiB", texts.bytes_to_str(5497558, "m"))
        assert.equal("5.120 GiB", texts.bytes_to_str(5497558138.88, "G", 3))
        assert.has_error(function()
            texts.bytes_to_str(1, "x")
        end, "invalid unit 'x' (expected 'k/K', 'm/M', or 'g/G')")
        assert.same({ 10, 1024, 2 ^ 21, 0 }, {
            texts.parse_ngx_size("10"),
            texts.parse_ngx_size("1k"),
            texts.parse_ngx_size("2M"),
            texts.parse_ngx_size("x"),
        })
    end)

    it("decodes what is base64", function()
        assert.same({ "a?>", "a?>", "*", 1 }, texts.try_decode_base64({ "YT8+", "YT8-", "*", 1 }))
        assert.equal("hi", texts.try_decode_base64("aGk="))
        assert.is_nil(texts.try_decode_base64(nil))
        assert.equal("x_y_Z", texts.replace_dashes("x-y-Z"))
        assert.equal("x_y_z", texts.replace_dashes_lower("x-y-Z"))
    end)
end)

describe("kong.tools.table", function()
    it("copies and merges", function()
        local mt = {}
        local from = setmetatable({ a = { 1, 2 }, [{}] = 1 }, mt)
        local copy = tables.deep_copy(from)
        assert.is_false(copy == from or copy.a == from.a)
        assert.same(from.a, copy.a)
        assert.is_nil(getmetatable(tables.deep_copy(from, false)))
        assert.is_true(tables.shallow_copy(from).a == from.a)
        assert.same({ a = 1, b = 3, c = 4 }, tables.table_merge({ a = 1, b = 2 }, { b = 3, c = 4 }))
        assert.same({ a = 1 }, tables.table_merge(nil, { a = 1 }))
        assert.same(
            { a = { b = 1, c = 2 }, d = 4 },
            tables.deep_merge({ a = { b = 1 }, d = 3 }, { a = { c = 2 }, d = 4 })
        )
    end)

    it("copies what contains itself", function()
        local mt = {}
        local from = setmetatable({ name = "x" }, mt)
        from.self, from.list = from, { from, from }
        local copy = tables.cycle_aware_deep_copy(from)
        assert.is_true(copy.self == copy and copy.list[1] == copy and copy ~= from)
        assert.is_true(getmetatable(copy) == mt)
        assert.is_nil(getmetatable(tables.cycle_aware_deep_copy(from, true)))
        local key = {}
        local keyed = tables.cycle_aware_deep_copy({ [key] = key }, false, true)
        assert.is_true(next(keyed) ~= key and next(keyed) == keyed[next(keyed)])
        local merged = tables.cycle_aware_deep_merge(
            { a = { 1 }, b = 1 },
            { a = { x = from }, b = 2 }
        )
        assert.is_true(merged.a[1] == 1 and merged.a.x.self == merged.a.x and merged.b == 2)
    end)

    it("tells arrays", function()
        assert.is_true(tables.is_array({ 1, 2 }) and tables.is_array({}))
        for _, t in ipairs({ { 1, nil, 3 }, { a = 1 }, { [1.5] = 1 }, { [0] = 1 } }) do
            assert.is_false(tables.is_array(t))
        end
        assert.is_false(tables.is_array("x"))
        assert.is_true(tables.is_array({ ["1"] = 1, ["2"] = 2 }, "lapis"))
        assert.is_false(tables.is_array({ ["1"] = 1, ["3"] = 2 }, "lapis"))
        assert.is_true(tables.is_array({ 1 }, "fast"))
    end)

    it("does the rest", function()
        local packed = tables.pack(nil, 2, nil)
        assert.equal(3, packed.n)
        assert.equal(3, select("#", tables.unpack(packed)))
        assert.is_true(tables.table_contains({ 1, "a" }, "a"))
        assert.is_false(tables.table_contains(nil, "a"))
        assert.same({ 1, 2, 3 }, tables.concat({ 1 }, {}, { 2, 3 }))
        local errors = tables.add_error(tables.add_error(nil, "a", 1), "a", 2)
        assert.same(
            { a = { 1, 2, 3 }, b = 1 },
            tables.add_error(tables.add_error(errors, "a", 3), "b", 1)
        )
        assert.equal(1, tables.table_path({ a = { b = 1 } }, { "a", "b" }))
        assert.is_nil(tables.table_path({ a = {} }, { "a", "b", "c" }))
        assert.has_error(function()
            tables.EMPTY.x = 1
        end)
    end)
end)

describe("kong.tools", function()
    it("have UUIDs of any version", function()
        assert.is_true(uuid.is_valid_uuid(uuid.uuid()))
        assert.is_true(uuid.is_valid_uuid("00000000-0000-0000-0000-000000000000"))
        assert.is_false(uuid.is_valid_uuid("00000000-0000-0000-0000-00000000000g"))
        assert.is_false(uuid.is_valid_uuid(nil))
    end)

    it("have random texts of letters and digits", function()
        local seen = {}
        for _ = 1, 500 do
            local text = rand.random_string()
            assert.matches("^%w+$", text)
            assert.equal(32, #text)
            assert.is_nil(seen[text])
            seen[text] = true
        end
        assert.equal(24, #rand.get_rand_bytes(24, true))
    end)

    it("have SHA-256", function()
        local hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        assert.equal(hex, sha256.sha256_hex("abc"))
        assert.equal(32, #sha256.sha256_bin("abc"))
        assert.equal("ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", sha256.sha256_base64("abc"))
        assert.equal("ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0", sha256.sha256_base64url("abc"))
    end)
end)

describe("kong.tools.time", function()
    it("reads times as nginx does", function()
        for text, wanted in pairs({
            ["10"] = 10,
            ["10s"] = 10,
            ["1h30m"] = 5400,
            ["1h 30m 5"] = 5405,
            ["1y1M1w1d1h1m1s"] = 365 * 86400 + 30 * 86400 + 8 * 86400 + 3661,
            ["0"] = 0,
        }) do
            assert.equal(wanted, time.nginx_conf_time_to_seconds(text), text)
        end
        for _, text in ipairs({ "", " ", "x", "10x", "1m1h", "-1", "1.5s", "1s1s", "10ms" }) do
            assert.has_error(function()
                time.nginx_conf_time_to_seconds(text)
            end, "bad argument #1 'str'")
        end
        assert.has_error(function()
            time.nginx_conf_time_to_seconds(nil)
        end, "bad argument #1 'str'")
    end)

    it("has clocks", function()
        local from, now, to = os.time(), time.time_ns() / 1e9, os.time()
        assert.is_true(from - 1 <= now and now <= to + 1)
        local before = time.get_updated_monotonic_ms()
        assert.is_true(time.get_updated_monotonic_ms() >= before)
        assert.equal(0, before % 1)
    end)
end)

describe("kong.constants", function()
    it("has headers, protocols and levels", function()
        assert.equal("X-Consumer-ID", constants.HEADERS.CONSUMER_ID)
        local count = 0
        for protocol in pairs(constants.PROTOCOLS_WITH_SUBSYSTEM) do
            count = count + 1
            assert.is_true(
                require("kong.tools.table").table_contains(constants.PROTOCOLS, protocol)
            )
        end
        assert.equal(count, #constants.PROTOCOLS)
        assert.equal("error", constants.LOG_LEVELS[constants.LOG_LEVELS.error])
    end)
end)

describe("kong.tools.uri", function()
    local uri = require("kong.tools.uri")

    it("decodes, and resolves dots", function()
        for given, wanted in pairs({
            [""] = "",
            ["/"] = "/",
            ["/a/../b"] = "/b",
            ["a/../b"] = "/b",
            ["../a"] = "a",
            ["./a"] = "a",
            [".."] = "",
            ["/.."] = "/",
            ["/a/b/.."] = "/a/",
            ["/a/./b/."] = "/a/b/",
            ["/a//b"] = "/a//b",
            ["/a//../b"] = "/a/b",
            ["/%7Efoo%2fbar"] = "/~foo%2Fbar",
            ["/%2e%2e/a"] = "/a",
            ["/a%"] = "/a%",
        }) do
            assert.equal(wanted, uri.normalize(given))
        end
        assert.equal("/a/b/", uri.normalize("//a///b//", true))
        assert.equal("/b", uri.normalize("/a//../b", true))
    end)

    it("escapes what may not stand in a path", function()
        assert.equal("/a%20b%25?c=%C3%BC", uri.escape("/a b%25?c=\195\188"))
    end)
end)

describe("kong.tools.gzip", function()
    local gzip = require("kong.tools.gzip")

    it("gives back what it was given", function()
        for _, text in ipairs({ "", "a", ("hello"):rep(100000), ("\0\255"):rep(70000) }) do
            local packed = gzip.deflate_gzip(text)
            assert.equal("\31\139", packed:sub(1, 2))
            assert.equal(text, gzip.inflate_gzip(packed))
        end
    end)

    it("refuses what is damaged, cut off or too much", function()
        local packed = gzip.deflate_gzip(("hello"):rep(1000))
        assert.same({ nil, "the data end too early" }, { gzip.inflate_gzip(packed:sub(1, -10)) })
        assert.same({ nil, "data error" }, { gzip.inflate_gzip("no gzip at all") })
        assert.same({ nil, "the data end too early" }, { gzip.inflate_gzip("") })
        local large = gzip.deflate_gzip(("a"):rep(64 * 1024 * 1024 + 1))
        assert.same({ nil, "more than 64 MiB" }, { gzip.inflate_gzip(large) })
    end)
end)

describe("kong.tools.timestamp", function()
    local timestamp = require("kong.tools.timestamp")

    it("finds where periods begin", function()
        local seconds = os.time({ year = 2024, month = 2, day = 29, hour = 12 })
        seconds = seconds - os.time(os.date("!*t", seconds)) + os.time(os.date("*t", seconds))
        local found = timestamp.get_timestamps(seconds + 0.5)
        assert.same(found, timestamp.get_timestamps((seconds + 0.5) * 1000))
        assert.equal(seconds * 1000, found.second)
        local function text(ms)
            return os.date("!%Y-%m-%d %H:%M:%S", ms / 1000)
        end
        assert.equal("2024-02-29 00:00:00", text(found.day))
        assert.equal("2024-02-01 00:00:00", text(found.month))
        assert.equal("2024-01-01 00:00:00", text(found.year))
        for day = 0, 800, 13 do
            local parts = timestamp.get_timetable(day * 86400 + 5)
            assert.equal(day * 86400 + 5, parts:timestamp())
        end
    end)
end)

describe("kong.tools.mime_type", function()
    local mime_type = require("kong.tools.mime_type")

    it("reads types and their parameters", function()
        local kind, subtype, parameters =
            mime_type.parse_mime_type('Application/JSON; Charset=utf-8; q="1 \\" 2"')
        assert.same({ "application", "json" }, { kind, subtype })
        assert.same({ charset = "utf-8", q = '1 \\" 2' }, parameters)
        assert.same({ "*", "*", {} }, { mime_type.parse_mime_type("*") })
        local broken = { "", "a", "a/", "/b", "a/b c", "a/b;", "a/b; c", 'a/b; c="', "\228/b" }
        for _, text in ipairs(broken) do
            assert.is_nil(mime_type.parse_mime_type(text))
        end
    end)

    it("knows what stands for what", function()
        local function includes(a, b, c, d)
            return mime_type.includes({ type = a, subtype = b }, { type = c, subtype = d })
        end
        assert.is_true(includes("*", "*", "a", "b"))
        assert.is_true(includes("a", "*", "a", "b"))
        assert.is_true(includes("a", "json", "a", "problem+json"))
        assert.is_false(includes("a", "json", "a", "json5"))
        assert.is_false(includes("a", "x+json", "a", "y+x+json"))
        assert.has_error(function()
            mime_type.includes(1, {})
        end, "this must be a table")
    end)
end)

describe("kong.tools.ip", function()
    local ip = require("kong.tools.ip")

    it("knows addresses and ranges", function()
        for text, is_range in pairs({
            ["1.2.3.4/32"] = true,
            ["1.2.3.4/33"] = false,
            ["1.2.3.4/01"] = false,
            ["1.2.3.4"] = false,
            ["::/128"] = true,
            ["::1/129"] = false,
            ["x/8"] = false,
        }) do
            assert.equal(is_range, ip.is_valid_cidr(text), text)
        end
        assert.is_true(ip.is_valid_ip("fe80::1"))
        assert.is_false(ip.is_valid_ipv4("fe80::1"))
        assert.is_true(ip.is_valid_ip_or_cidr("10.0.0.0/8"))
        assert.is_false(ip.is_valid_ip(12))
    end)

    it("brings addresses and names into one spelling", function()
        assert.same({ "1.2.3.4", 80 }, { ip.normalize_ipv4("001.2.3.04:80") })
        assert.same({ nil, "invalid ipv4 address: 1.2.3.256" }, { ip.normalize_ipv4("1.2.3.256") })
        local zeros = ("0000:"):rep(7)
        assert.same({ zeros .. "0001", 80 }, { ip.normalize_ipv6("[::1]:80") })
        assert.same({ nil, "invalid port number" }, { ip.normalize_ipv6("[::1]:65536") })
        assert.same({ nil, "invalid ipv6 address: ::g" }, { ip.normalize_ipv6("::g") })
        assert.same({ "a.b.", 80 }, { ip.check_hostname("a.b.:80") })
        for _, name in ipairs({ "a..b", "a-.b", "", "a b" }) do
            assert.same({ nil, "invalid hostname: " .. name }, { ip.check_hostname(name) })
        end
        assert.equal("[" .. zeros .. "0001]:80", ip.format_host("::1", 80))
        assert.equal("1.2.3.4:5", ip.format_host(ip.normalize_ip("1.2.3.4:5")))
        assert.same({ nil, "invalid hostname: a..b" }, { ip.format_host(ip.normalize_ip("a..b")) })
    end)
end)

describe("kong.tools.http", function()
    local http = require("kong.tools.http")
    local null = require("cjson").null

    it("encodes and decodes arguments", function()
        local args = { a = { 1, { b = 3 } }, c = "x y", d = true, e = null, f = "" }
        assert.equal("a%5b1%5d=1&a%5b2%5d%2eb=3&c=x%20y&d=true&e=&f", http.encode_args(args))
        assert.equal("a[]=1&a[].b=3&c=x y&d=true&e=&f", http.encode_args(args, true, true))
        local decoded = http.decode_args({ a = { ["1"] = "x", ["2"] = "y" }, b = "", c = "true" })
        assert.same({ a = { "x", "y" }, b = null, c = true }, decoded)
    end)

    it("chooses what to answer in", function()
        for accept, wanted in pairs({
            ["text/html;q=0.5, application/xml"] = "application/xml; charset=utf-8",
            ["*/*"] = "application/json; charset=utf-8",
            ["text/*;q=0.2, foo/bar;q=0.1"] = "text/plain; charset=utf-8",
            [""] = "application/json; charset=utf-8",
            ["text/html;q=0"] = "application/json; charset=utf-8",
        }) do
            assert.equal(wanted, http.get_response_type(accept))
        end
        assert.same({ nil, "could not find MIME type" }, { http.get_mime_type("a/b", false) })
        assert.matches("<h1>", http.get_error_template("text/html"))
        assert.same(
            { nil, "no template found for MIME type a/b" },
            { http.get_error_template("a/b") }
        )
    end)

    it("has bodies for a status", function()
        assert.is_nil(http.get_default_exit_body(204, "x"))
        assert.same({ message = "Bad gateway" }, http.get_default_exit_body(502, "x"))
        assert.same({ message = "x" }, http.get_default_exit_body(200, "x"))
        assert.same({ message = "Not found" }, http.get_default_exit_body(404))
        assert.has_error(function()
            http.get_default_exit_body(600)
        end, "code must be a number between 100 and 599")
    end)

    it("checks names and reads directives", function()
        assert.equal("a-b", http.validate_header_name("a-b"))
        assert.is_nil(http.validate_header_name("a b"))
        assert.is_nil(http.validate_http_token("a;b"))
        assert.equal("a!b", http.validate_cookie_name("a!b"))
        local found = http.parse_directive_header({ "public, Max-Age=60", "x=y" })
        assert.same({ public = true, ["max-age"] = 60, x = "y" }, found)
        assert.same({}, http.parse_directive_header(nil))
    end)
end)

describe("kong.tools.sandbox", function()
    local sandbox = require("kong.tools.sandbox")

    local function use(word)
        rawset(_G, "kong", {
            configuration = {
                untrusted_lua = word,
                untrusted_lua_sandbox_requires = { "cjson" },
                untrusted_lua_sandbox_environment = { "kong.configuration" },
            },
        })
        sandbox.configuration:clear()
    end

    after_each(function()
        rawset(_G, "kong", nil)
    end)

    it("has little, and nothing that can be changed", function()
        use("sandbox")
        local parse = sandbox.parse
        assert.is_nil(parse("return function() return io or load or getmetatable or debug end")())
        assert.equal("table", type(parse("return function() return require('cjson') end")()))
        assert.has_error(parse("return function() require('io') end"))
        assert.has_error(parse("return function() string.rep = 1 end"))
        assert.equal(
            "sandbox",
            parse([[return function()
            kong.configuration.other = 1
            return kong.configuration.untrusted_lua
        end]])()
        )
        assert.is_nil(rawget(_G, "kong").configuration.other)
        assert.equal(3, parse("return function() x = 3 return _G.x end")())
        assert.is_nil(rawget(_G, "x"))
        assert.is_false(sandbox.validate("return 1"))
        assert.is_false(sandbox.validate_safe("x y"))
        assert.is_true(sandbox.validate_safe("error('not run')"))
        assert.is_false(sandbox.validate_safe("\27LJ"))
    end)

    it("has everything where it is off, and nothing where code is", function()
        use("on")
        assert.equal(io, sandbox.parse("return function() return io end")())
        use("off")
        assert.has_error(function()
            sandbox.parse("return print")
        end)
    end)
end)

describe("kong.tools.utils", function()
    it("has the functions of the others", function()
        local utils = require("kong.tools.utils")
        for _, name in ipairs({ "uuid", "split", "encode_args", "is_valid_ip", "deep_copy" }) do
            assert.equal("function", type(utils[name]), name)
        end
    end)
end)
