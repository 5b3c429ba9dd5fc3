--- How much long regular expressions of routes may take together.

local C = require("sluice.ffi.core").C
local config = require("gateway.config")
local long_patterns = require("gateway.entities.long_patterns")

-- Compiled, some 30 KB.
local function long(n)
    return ("/%04d/(?:%s)$"):format(n, ("word0001|"):rep(400))
end

local function route(n, more)
    local text = '{"name": "r%d", "paths": ["/a", "~%s"]%s}'
    return text:format(n, long(n), more or "")
end

local function parse(routes)
    local text = '{"_format_version": "3.0", "routes": [' .. table.concat(routes, ",") .. "]}"
    return config.parse(text, "json", { get = function() end }, { keeps_items = true })
end

local function routes_of(count, of)
    local list = {}
    for i = 1, count do
        list[i] = of(i)
    end
    return list
end

local EACH = tonumber(C.sluice_core_regex_bytes(long(1), #long(1), 1))
assert(EACH > 0)
local FITS = math.floor(long_patterns.MOST / EACH)

describe("long regular expressions", function()
    it("are as large as their form", function()
        assert.is_true(EACH > 20000 and EACH < 50000, EACH)
        assert.equal(0, tonumber(C.sluice_core_regex_bytes("/(", 2, 1)))
    end)

    it("may take what a worker keeps", function()
        local snapshot = assert(parse(routes_of(FITS - 1, route)))
        local bytes = snapshot.facts.pattern_bytes
        assert.is_true(bytes > (FITS - 2) * EACH and bytes <= long_patterns.MOST, bytes)
    end)

    it("are refused beyond that, by the name of the first that is too much", function()
        local snapshot, errors = parse(routes_of(FITS + 5, route))
        assert.is_nil(snapshot)
        assert.equal(1, #errors)
        assert.matches("^routes%[%d+%]%.paths%[1%]$", errors[1].path)
        assert.matches("r" .. FITS + 1, config.format_error(errors[1]), nil, true)
        assert.matches("^long regular expressions take 24.0 MB with those", errors[1].message)
        assert.matches("a worker keeps 24 MB of them$", errors[1].message)
    end)

    it("count once where they are the same", function()
        assert(parse(routes_of(2 * FITS, function(n)
            return route(n % 10 + 1):gsub('"r%d+"', '"r' .. n .. '"', 1)
        end)))
    end)

    it("count in headers, too", function()
        local _, errors = parse(routes_of(FITS + 5, function(n)
            local text = '{"name": "r%d", "headers": {"x-a": ["~*%s"]}}'
            return text:format(n, long(n))
        end))
        assert.matches("^routes%[%d+%]%.headers%.x%-a$", errors[1].path)
    end)

    it("are those of more than 256 bytes", function()
        local patterns = long_patterns.new()
        local short = "~/" .. ("x"):rep(C.SLUICE_CORE_FREE_BYTES - 1)
        patterns:add({ paths = { short } })
        assert.equal(0, patterns.bytes)
        patterns:add({ paths = { short .. "x" } })
        assert.is_true(patterns.bytes > 257 * 8)
    end)
end)
