--- How much the regular expressions of a file's routes may take.

local C = require("sluice.ffi.core").C
local config = require("gateway.config")
local patterns = require("gateway.entities.patterns")
local support = require("test.unit.support.config")

-- Compiled, some 30 KB.
local function long(n)
    return ("/%04d/(?:%s)$"):format(n, ("word0001|"):rep(400))
end

local function route(n)
    return ('{"name": "r%d", "paths": ["/a", "~%s"]}'):format(n, long(n))
end

local function parse(count, of)
    local list = {}
    for i = 1, count do
        list[i] = of(i)
    end
    local text = '{"_format_version": "3.0", "routes": [' .. table.concat(list, ",") .. "]}"
    return config.parse(text, "json", { get = function() end }, {})
end

local EACH = patterns.bytes({ paths = { "~" .. long(1) } })
local FITS = math.floor(patterns.MOST / EACH)

describe("regular expressions", function()
    it("are as large as their form", function()
        assert.is_true(EACH > 20000 and EACH < 50000, EACH)
        local short = patterns.bytes({ paths = { "/plain", "~/users/(?<id>\\d+)$" } })
        assert.is_true(short > 300 and short < 1000, short)
        assert.equal(0, short % patterns.UNIT)
        assert.equal(0, patterns.bytes({ paths = { "/~" }, headers = { a = { "~b" } } }))
        assert.equal(0, tonumber(C.sluice_core_regex_bytes("/(", 2, 1)))
    end)

    it("of all routes may take what a worker keeps", function()
        assert(parse(FITS, route))
    end)

    it("are refused beyond that, by the name of the first that is too much", function()
        local snapshot, errors = parse(FITS + 5, route)
        assert.is_nil(snapshot)
        assert.equal(1, #errors)
        assert.equal(("routes[%d]"):format(FITS), errors[1].path)
        assert.matches('"r' .. FITS + 1 .. '"', config.format_error(errors[1]), nil, true)
        local words = "^the regular expressions of all routes and plugins take (64.%d) MB "
            .. "compiled with these; a worker keeps 64 MB of them$"
        assert.is_true(tonumber(errors[1].message:match(words)) > 64)
    end)

    it("of a disabled service do not count, which serves nothing", function()
        local list = {}
        for i = 1, FITS + 5 do
            list[i] = route(i)
        end
        local text = '{"_format_version": "3.0", "services": [{"name": "s", "host": "h", '
            .. '"enabled": %s, "routes": [%s]}]}'
        local function read(enabled)
            local filled = text:format(enabled, table.concat(list, ","))
            return config.parse(filled, "json", { get = function() end }, {})
        end
        assert(read("false"))
        assert.is_nil((read("true")))
    end)

    it("of plugins count, too, unless they are disabled", function()
        local routes, many = {}, {}
        for i = 1, FITS do
            routes[i] = route(i)
            many[i % 10 + 1] = '"' .. long(i) .. '"'
        end
        local text = '{"_format_version": "3.0", "routes": [%s], "plugins": ['
            .. '{"name": "cors", "config": {"origins": [%s]}}, '
            .. '{"name": "bot-detection", "enabled": %s, '
            .. '"config": {"allow": ["a"], "deny": [%s]}}]}'
        local all, ten = table.concat(routes, ","), table.concat(many, ",")
        local function read(origins, enabled)
            local filled = text:format(all, origins, enabled, ten)
            return config.parse(filled, "json", support.registry, {})
        end
        assert(read('"https://b.com"', "false"))
        local _, errors = read('"https://b.com"', "true")
        assert.equal(1, #errors)
        assert.equal("plugins[1].config.deny", errors[1].path)
        assert.matches("of all routes and plugins take 64.%d MB", errors[1].message)
        _, errors = read(ten, "true")
        assert.equal(1, #errors)
        assert.equal("plugins[0].config.origins", errors[1].path)
        assert(read('"*",' .. ten, "false"))
    end)

    it("count in headers, too", function()
        local _, errors = parse(FITS + 5, function(n)
            return ('{"name": "r%d", "headers": {"x-a": ["~*%s"]}}'):format(n, long(n))
        end)
        assert.matches("^routes%[%d+%]$", errors[1].path)
    end)
end)
