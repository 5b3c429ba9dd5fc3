-- Normal paths, and the path that the upstream is asked for.

local path = require("test.unit.support.lua_path")

describe("path.normalize", function()
    local cases = {
        -- nothing to do
        { "/", "/" },
        { "/a/b/", "/a/b/" },
        { "/a.b/c..d", "/a.b/c..d" },
        -- percent-encoding: decoded, save reserved characters
        { "/%41%7e%2D%2e%5F", "/A~-._" },
        { "/a%2fb%3F%23%25%5b", "/a%2Fb%3F%23%25%5B" },
        { "/a%20b%00%ff", "/a b\0\255" },
        -- stray percent signs never become part of a triplet
        { "/100%", "/100%25" },
        { "/%4", "/%254" },
        { "/%zz", "/%25zz" },
        { "/%%32e%%32e/", "/%252e%252e/" },
        { "/%2541", "/%2541" },
        -- dot segments
        { "/a/./b", "/a/b" },
        { "/a/../b", "/b" },
        { "/a/b/..", "/a/" },
        { "/a/.", "/a/" },
        { "/..", "/" },
        { "/../../a", "/a" },
        { "/a/..", "/" },
        { "/a/b/../../../c", "/c" },
        { "/%2e%2E/a", "/a" },
        { "/a/%2e/b", "/a/b" },
        { "/a/.../b", "/a/.../b" },
        { "/a/.b", "/a/.b" },
        { "/a/..%2Fb", "/a/..%2Fb" },
        -- slashes
        { "//", "/" },
        { "/a//b///c//", "/a/b/c/" },
        { "/a//../b", "/b" },
        -- what no client should send
        { "", "/" },
        { "a/b", "/a/b" },
    }
    for _, case in ipairs(cases) do
        it(("%q is %q"):format(case[1], case[2]), function()
            assert.equal(case[2], path.normalize(case[1]))
        end)
    end

    it("is at rest after one step, and always starts with one slash", function()
        local bytes =
            { "/", ".", "a", "%", "2", "e", "F", "5", " ", "//", "/../", "/./", "%2e", "%2F" }
        for _ = 1, 20000 do
            local raw = "/"
            for _ = 1, math.random(0, 8) do
                raw = raw .. bytes[math.random(#bytes)]
            end
            local once = path.normalize(raw)
            assert.equal(once, path.normalize(once), raw)
            assert.equal("/", once:sub(1, 1), raw)
            assert.is_nil(once:find("//", 1, true), raw)
            assert.is_nil((once .. "/"):find("/../", 1, true), raw)
            assert.is_nil((once .. "/"):find("/./", 1, true), raw)
        end
    end)
end)

describe("path.escape", function()
    it("encodes what may not stand in a request line and nothing else", function()
        assert.equal("/a%20b%00%FF%22%3C%7C", path.escape('/a b\0\255"<|'))
        local plain = "/aZ09-._~!$&'()*+,;=:@/%2F[]?#"
        assert.equal(plain, path.escape(plain))
    end)

    it("undoes what normalize has decoded, for every byte", function()
        for code = 0, 255 do
            local decoded = path.normalize(("/x%%%02X"):format(code))
            assert.equal(decoded, path.normalize(path.escape(decoded)))
        end
    end)
end)

-- For each service path and route path: requests, and the answers of v0 without
-- stripping, v0 with, v1 without, v1 with; "=" is the answer to its left.
local TABLE = {
    { nil, nil, { "/", "/", "=", "=", "=" }, { "/r/q", "/r/q", "=", "=", "=" } },
    { "/", "/", { "/", "/", "=", "=", "=" }, { "/r/", "/r/", "=", "=", "=" } },
    {
        "/",
        "/r",
        { "/r", "/r", "/", "/r", "/" },
        { "/r/", "/r/", "/", "/r/", "/" },
        { "/rq", "/rq", "/q", "/rq", "/q" },
        { "/r/q", "/r/q", "/q", "/r/q", "/q" },
    },
    { "/", "/r/", { "/r/", "/r/", "/", "/r/", "/" }, { "/r/q", "/r/q", "/q", "/r/q", "/q" } },
    { "/s", nil, { "/", "/s", "=", "=", "=" }, { "/r", "/s/r", "=", "/sr", "=" } },
    { "/s", "/", { "/", "/s", "=", "=", "=" }, { "/r/", "/s/r/", "=", "/sr/", "=" } },
    {
        "/s",
        "/r",
        { "/r", "/s/r", "/s", "/sr", "/s" },
        { "/r/", "/s/r/", "/s/", "/sr/", "/s/" },
        { "/rq", "/s/rq", "/s/q", "/srq", "/sq" },
        { "/r/q", "/s/r/q", "/s/q", "/sr/q", "/s/q" },
    },
    {
        "/s",
        "/r/",
        { "/r/", "/s/r/", "/s/", "/sr/", "/s" },
        { "/r/q", "/s/r/q", "/s/q", "/sr/q", "/sq" },
    },
    { "/s/", nil, { "/", "/s/", "=", "=", "=" }, { "/r", "/s/r", "=", "=", "=" } },
    { "/s/", "/", { "/", "/s/", "=", "=", "=" }, { "/r", "/s/r", "=", "=", "=" } },
    {
        "/s/",
        "/r",
        { "/r", "/s/r", "/s", "/s/r", "/s/" },
        { "/r/", "/s/r/", "/s/", "/s/r/", "/s/" },
        { "/rq", "/s/rq", "/s/q", "/s/rq", "/s/q" },
        { "/r/q", "/s/r/q", "/s/q", "/s/r/q", "/s/q" },
    },
    {
        "/s/",
        "/r/",
        { "/r/", "/s/r/", "/s/", "/s/r/", "/s/" },
        { "/r/q", "/s/r/q", "/s/q", "/s/r/q", "/s/q" },
    },
    -- What a prefix leaves of "..", "..." must not climb.
    {
        "/s",
        "/r",
        { "/r..", "/s/r..", "/s", "/sr..", "/s" },
        { "/r./q", "/s/r./q", "/s/q", "/sr./q", "/sq" },
        { "/r../q", "/s/r../q", "/s/q", "/sr../q", "/sq" },
    },
}

describe("path.upstream", function()
    local columns = {
        { strip_path = false, path_handling = "v0" },
        { strip_path = true, path_handling = "v0" },
        { strip_path = false, path_handling = "v1" },
        { strip_path = true, path_handling = "v1" },
    }
    for _, group in ipairs(TABLE) do
        local service_path, prefix = group[1], group[2]
        for i = 3, table.maxn(group) do
            local row = group[i]
            local want
            for c, route in ipairs(columns) do
                want = row[c + 1] == "=" and want or row[c + 1]
                local expected = want
                local name = ("service %s, route %s, %s, %s: %s -> %s"):format(
                    service_path,
                    prefix,
                    route.path_handling,
                    route.strip_path and "strip" or "keep",
                    row[1],
                    expected
                )
                it(name, function()
                    assert.equal(expected, path.upstream(route, service_path, row[1], prefix))
                end)
            end
        end
    end

    it("encodes again what normalize has decoded", function()
        local route = { strip_path = true, path_handling = "v0" }
        assert.equal("/s/%C3%A9%20x", path.upstream(route, "/s", "/r/\195\169 x", "/r"))
        assert.equal("/%C3%A9%20x", path.upstream(route, nil, "/\195\169 x", nil))
    end)

    it("keeps a prefix that matched when the route does not strip", function()
        local route = { strip_path = false, path_handling = "v0" }
        assert.equal("/s/r/q", path.upstream(route, "/s", "/r/q", "/r"))
    end)
end)
