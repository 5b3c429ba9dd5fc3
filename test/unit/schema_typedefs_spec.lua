--- The shared types of fields, as far as no entity of ours uses them.

local schema = require("gateway.schema")
local typedefs = require("gateway.schema.typedefs")

local CASES = {
    wildcard_host = {
        good = { "a.b", "*.a.b", "a.*" },
        bad = {
            ["a.*.b"] = "wildcard must be leftmost or rightmost character",
            ["*.a.*"] = "only one wildcard must be specified",
            ["10.0.0.1"] = "must not be an IP",
            ["a:1"] = "must not have a port",
            ["a b"] = "invalid value: a b",
        },
    },
    sni = {
        good = { "a.b", "a.b." },
        bad = { ["::1"] = "must not be an IP", ["a:1"] = "must not have a port" },
    },
    redis_host = { good = { "10.0.0.1", "a" }, bad = { ["a:1"] = "must not have a port" } },
    ip = {
        good = { "10.0.0.1", "::1" },
        bad = { ["a"] = "not an ip address: a", ["10.0.0.0/8"] = "not an ip address: 10.0.0.0/8" },
    },
    ip_or_cidr = {
        good = { "10.0.0.1", "::1", "0.0.0.0/0", "10.0.0.0/32", "::/128", "fe80::/10" },
        bad = {
            ["10.0.0.0/33"] = "invalid ip or cidr range: '10.0.0.0/33'",
            ["::/129"] = "invalid ip or cidr range: '::/129'",
            ["10.0.0.0/"] = "invalid ip or cidr range: '10.0.0.0/'",
            ["a/8"] = "invalid ip or cidr range: 'a/8'",
        },
    },
    url = {
        good = { "http://a", "redis://a:1" },
        bad = { ["a"] = "missing host in url", ["http:///x"] = "missing host in url" },
    },
    cookie_name = {
        good = { "a!#$%&'*+-.^_`|~1" },
        bad = { ["a b"] = "bad cookie name 'a b', it must be an HTTP token" },
    },
    timeout = {
        good = { 0, 2147483646 },
        bad = { [2147483647] = "value should be between 0 and 2147483646" },
    },
    ttl = {
        good = { 0, 100000000 },
        bad = { [-1] = "value should be between 0 and 100000000", [0.5] = "expected an integer" },
    },
}

describe("gateway.schema.typedefs", function()
    for name, cases in pairs(CASES) do
        it(name, function()
            for _, value in ipairs(cases.good) do
                assert.is_nil(schema.first_error(typedefs[name], value), tostring(value))
            end
            for value, message in pairs(cases.bad) do
                assert.equal(message, schema.first_error(typedefs[name], value))
            end
        end)
    end

    it("hosts have one wildcard, and it is the whole label at one of the ends", function()
        local function refusal(host)
            local message = schema.first_error(typedefs.hosts.elements, host)
            return message
        end
        for _, host in ipairs({ "a.b", "*.a", "*.a.b:81", "a.*", "a.b.*", "::1", "[::1]:81" }) do
            assert.is_nil(refusal(host), host)
        end
        local place = "invalid wildcard: must be placed at leftmost or rightmost label"
        local hosts = { "*", "*a.b", "a*.b", "a.*.b", "a.b*", "a.*b", "a.*:81", "a.b:*", "[*]" }
        for _, host in ipairs(hosts) do
            assert.equal(place, refusal(host), host)
        end
        for _, host in ipairs({ "*.*", "*.a.*", "**.a" }) do
            assert.equal("invalid wildcard: must have at most one wildcard", refusal(host), host)
        end
    end)

    it("are copied when called", function()
        local port = typedefs.port({ default = 6379 })
        assert.equal(6379, port.default)
        assert.same({ 0, 65535 }, port.between)
        assert.is_nil(typedefs.port.default)
        assert.equal(1, port({ default = 1 }).default)
    end)

    it("throws at a name that does not exist, in the caller's line", function()
        local ok, err = pcall(function()
            return typedefs.prot
        end)
        assert.is_false(ok)
        assert.matches(
            "schema_typedefs_spec.lua:%d+: schema typedef error: definition prot does not exist$",
            err
        )
    end)
end)
