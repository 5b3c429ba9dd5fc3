local address = require("sluice.address")

describe("sluice.address", function()
    for text, want in pairs({
        ["a.b"] = { type = "name", host = "a.b" },
        ["a:0"] = { type = "name", host = "a", port = 0 },
        ["10.0.0.1:65535"] = { type = "ipv4", host = "10.0.0.1", port = 65535 },
        ["::1"] = { type = "ipv6", host = "::1" },
        ["[::]"] = { type = "ipv6", host = "::" },
        ["[fe80::1]:443"] = { type = "ipv6", host = "fe80::1", port = 443 },
    }) do
        it("parses " .. text, function()
            assert.same(want, address.parse(text))
        end)
    end

    it("says what is wrong in fixed words", function()
        for text, want in pairs({
            ["a:65536"] = "invalid port number",
            ["[::1]:65536"] = "invalid port number",
            [""] = "invalid address",
            [":80"] = "invalid address",
            ["a:"] = "invalid address",
            [".a"] = "invalid address",
            ["a-"] = "invalid address",
            ["a-.b"] = "invalid address",
            ["::12345"] = "invalid address",
            ["1:2:3:4:5:6:7:8:9"] = "invalid address",
            ["1:2:3:4:5:6:7:8::"] = "invalid address",
            ["[a]"] = "invalid address",
        }) do
            assert.same({ nil, want }, { address.parse(text) }, text)
        end
    end)

    it("says the digits of an address", function()
        for text, want in pairs({
            ["127.0.0.1"] = "7f000001",
            ["010.1.2.255"] = "0a0102ff",
            ["::"] = ("0"):rep(32),
            ["::1"] = ("0"):rep(31) .. "1",
            ["1::"] = "0001" .. ("0"):rep(28),
            ["2001:DB8::a:1"] = "20010db8" .. ("0"):rep(16) .. "000a0001",
            ["1:2:3:4:5:6:7:8"] = "00010002000300040005000600070008",
            ["::ffff:10.0.0.1"] = ("0"):rep(20) .. "ffff0a000001",
            ["1:2:3:4:5:6:1.2.3.4"] = "00010002000300040005000601020304",
        }) do
            assert.equal(want, address.digits(text), text)
        end
    end)

    it("writes addresses with a port", function()
        assert.equal("a:80", address.format(address.parse("a"), 80))
        assert.equal("[::1]:81", address.format(address.parse("[::1]:81"), 80))
    end)

    it("takes hosts and ports apart, right or wrong", function()
        for text, want in pairs({
            ["a"] = { "a", nil, false },
            ["a:"] = { "a", "", false },
            ["a:8"] = { "a", "8", false },
            [":8"] = { "", "8", false },
            ["a:b"] = { "a:b", nil, false },
            ["::1"] = { "::1", nil, false },
            ["1.2.3.4:5"] = { "1.2.3.4", "5", false },
            ["[::1]"] = { "::1", nil, true },
            ["[::1]:"] = { "::1", "", true },
            ["[::1]:8"] = { "::1", "8", true },
            ["[::1]8"] = {},
            ["[::1]:a"] = {},
            ["[::1"] = { "[::1", nil, false },
            [""] = { "", nil, false },
        }) do
            local host, port, is_bracketed = address.split(text)
            assert.same({ want[1], want[2], want[3] }, { host, port, is_bracketed }, text)
        end
    end)

    it("takes URLs apart", function()
        for url, want in pairs({
            ["http://a"] = { scheme = "http", host = "a", target = "" },
            ["HTTPS://a/"] = { scheme = "https", host = "a", target = "/" },
            ["http://a:81/b?c=d:e@f#g"] = {
                scheme = "http",
                host = "a",
                port = 81,
                target = "/b?c=d:e@f#g",
            },
            ["http://a:/"] = { scheme = "http", host = "a", target = "/" },
            ["http://a?b"] = { scheme = "http", host = "a", target = "?b" },
            ["http://u:p@a:8"] = {
                scheme = "http",
                userinfo = "u:p",
                host = "a",
                port = 8,
                target = "",
            },
            ["http://u@h@a"] = { scheme = "http", userinfo = "u@h", host = "a", target = "" },
            ["http://@a"] = { scheme = "http", userinfo = "", host = "a", target = "" },
            ["h2c+x.y-z://[::1]:9/x"] = {
                scheme = "h2c+x.y-z",
                host = "::1",
                port = 9,
                target = "/x",
            },
        }) do
            assert.same(want, address.parse_url(url), url)
        end
        for url, want in pairs({
            [""] = "missing scheme in url",
            ["a"] = "missing scheme in url",
            ["://a"] = "missing scheme in url",
            ["1x://a"] = "missing scheme in url",
            ["http:/a"] = "missing scheme in url",
            ["http://"] = "missing host in url",
            ["http:///a"] = "missing host in url",
            ["http://:80"] = "missing host in url",
            ["http://u@"] = "missing host in url",
            ["http://[]"] = "missing host in url",
            ["http://a:b"] = "invalid address in url",
            ["http://::1"] = "invalid address in url",
            ["http://[::1]x"] = "invalid address in url",
            ["http://[::1]:x/"] = "invalid address in url",
        }) do
            assert.same({ nil, want }, { address.parse_url(url) }, url)
        end
    end)

    it("knows listeners that only this machine reaches", function()
        for host, want in pairs({
            ["localhost"] = true,
            ["127.0.0.1"] = true,
            ["127.8.9.10"] = true,
            ["::1"] = true,
            ["0:0:0:0:0:0:0:1"] = true,
            ["*"] = false,
            ["0.0.0.0"] = false,
            ["::"] = false,
            ["10.0.0.1"] = false,
            ["1.127.0.1"] = false,
            ["::10"] = false,
            ["fe80::1"] = false,
            ["::ffff:127.0.0.1"] = false,
        }) do
            assert.equal(want, address.is_loopback(host), host)
        end
    end)

    it("writes hosts as headers and nginx have them", function()
        assert.equal("a", address.authority("a", 80, "http"))
        assert.equal("a:80", address.authority("a", 80, "https"))
        assert.equal("[::1]", address.authority("::1", 443, "https"))
        assert.equal("[::1]:8", address.authority("[::1]", 8, "http"))
        assert.equal("a:80", address.authority("a", 80, "grpc"))
        for host, want in pairs({
            ["::1"] = "[::1]",
            ["[::1]"] = "[::1]",
            ["127.0.0.1"] = "127.0.0.1",
            ["127.0.0.256"] = false,
            ["a"] = false,
            ["fe80::1%eth0"] = false,
            ["[a"] = false,
        }) do
            assert.equal(want or nil, address.literal(host), host)
        end
    end)
end)
