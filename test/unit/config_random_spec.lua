--- Garbage and size: no text makes the configuration throw or fail without a
-- reason, and it stays linear.
--
-- SEED repeats a run, LONG=1 makes it longer.

local cjson = require("cjson")
local config = require("gateway.config")
local soak = require("test.unit.support.soak")
local support = require("test.unit.support.config")

local ROUNDS = soak(1500, 15000)
local SEED = require("test.unit.support.seed")("config_random")

local GOOD = [[
_format_version: "3.0"
services:
- name: s
  url: http://u:80/x
  tags: [a, b]
  routes:
  - name: r
    hosts: ["*.a.b", c:80]
    paths: [/a, "~/b/\\d+$"]
    headers: {x-a: [v]}
    plugins:
    - name: key-auth
      config: {key_names: [k]}
upstreams:
- &u
  name: u
  targets: [{target: "10.0.0.1:80", weight: 5}]
consumers:
- username: c
  keyauth_credentials: [{key: k}]
plugins:
- name: rate-limiting
  consumer: c
  config: {minute: 5, limit_by: header, header_name: x}
]]

local SEEDLINGS = {
    "\0",
    "\255",
    "[",
    "]",
    "{",
    "}",
    ":",
    "- ",
    "&a ",
    "*a",
    "!!int ",
    "'",
    '"',
    "\n",
    "\t",
    "~",
    "<<: ",
    "#",
    "%",
    "|",
    "0x",
    ".nan",
    "\226\130",
}
local NULL = cjson.null
local VALUES = {
    NULL,
    true,
    false,
    0,
    -1,
    1.5,
    1e308,
    "",
    "x",
    "/",
    "~/(",
    "\255",
    "{vault://a/b}",
    "*",
    "::1",
}

local function pick(list)
    return list[math.random(#list)]
end

local function random_value(depth)
    local kind = math.random(depth > 0 and 12 or 10)
    if kind <= 10 then
        return pick(VALUES)
    end
    local out = {}
    for i = 1, math.random(0, 3) do
        out[kind == 11 and i or pick({ "id", "name", "config", "routes", "x y", "1" })] =
            random_value(depth - 1)
    end
    return out
end

local function check_errors(text, kind, seed)
    local done, snapshot, errors = pcall(config.parse, text, kind, support.registry)
    local label = ("seed %d, text %q"):format(seed, text)
    assert.is_true(done, label .. ": " .. tostring(snapshot))
    if snapshot then
        return true
    end
    assert.is_true(#errors > 0, label)
    for _, err in ipairs(errors) do
        assert.equal("string", type(err.path), label)
        assert.is_true(#err.message > 0, label)
        assert.is_nil(err.message:find("cannot be checked", 1, true), label .. ": " .. err.message)
        assert.is_nil(err.message:find("%.lua:%d"), label .. ": " .. err.message)
    end
    return false, errors
end

-- Replaces one value, at random, somewhere in a tree; returns the key at the top.
local function disturb(tree)
    local path, node = {}, tree
    while true do
        local keys = {}
        for key in pairs(node) do
            keys[#keys + 1] = key
        end
        table.sort(keys, function(a, b)
            return tostring(a) < tostring(b)
        end)
        local key = pick(keys)
        path[#path + 1] = key
        if type(node[key]) ~= "table" or next(node[key]) == nil or math.random(3) == 1 then
            node[key] = random_value(2)
            return path[1]
        end
        node = node[key]
    end
end

describe("gateway.config and garbage", function()
    it("answers texts with random damage", function()
        math.randomseed(SEED)
        local refused = 0
        for _ = 1, ROUNDS do
            local text = GOOD
            for _ = 1, math.random(4) do
                local at = math.random(#text)
                local cut = math.random(0, 3)
                text = text:sub(1, at) .. pick(SEEDLINGS) .. text:sub(at + cut + 1)
            end
            if not check_errors(text, "yaml", SEED) then
                refused = refused + 1
            end
            check_errors(text, "json", SEED)
        end
        assert.is_true(refused > ROUNDS / 4)
    end)

    it("answers random bytes", function()
        math.randomseed(SEED)
        for _ = 1, ROUNDS do
            local bytes = {}
            for i = 1, math.random(0, 60) do
                bytes[i] = string.char(math.random(0, 255))
            end
            check_errors(table.concat(bytes), nil, SEED)
        end
    end)

    it("names a path for every wrong value", function()
        math.randomseed(SEED)
        local good = require("gateway.config.document").decode(GOOD, "yaml")
        local source = cjson.encode(good)
        assert.is_true(check_errors(source, "json", SEED))
        local refused = 0
        for _ = 1, ROUNDS do
            local tree = cjson.decode(source)
            local top = disturb(tree)
            local text = cjson.encode(tree)
            local ok, errors = check_errors(text, "json", SEED)
            if not ok then
                refused = refused + 1
                for _, err in ipairs(errors) do
                    assert.not_equal("", err.path, ("%s changed: %s"):format(top, text))
                end
            end
        end
        assert.is_true(refused > ROUNDS / 4)
    end)
end)

describe("gateway.config and size", function()
    local function seconds(routes)
        local lines = { '_format_version: "3.0"', "services:" }
        for i = 1, routes / 10 do
            lines[#lines + 1] = ("- name: s%d\n  url: http://127.0.0.1:9000/x\n  routes:"):format(i)
            for j = 1, 10 do
                lines[#lines + 1] = ("  - {name: r%d-%d, hosts: [h%d.a], paths: [/p%d]}"):format(
                    i,
                    j,
                    i,
                    j
                )
            end
        end
        local text = table.concat(lines, "\n")
        collectgarbage()
        local start = os.clock()
        local snapshot = assert(config.parse(text, "yaml", support.registry))
        local used = os.clock() - start
        assert.equal(routes, #snapshot.routes)
        return used
    end

    it("loads ten times the routes in about ten times the time", function()
        -- The best of some: what shares a core or a cache with this costs CPU time, too.
        local small, large = seconds(1000), seconds(10000)
        for _ = 1, 4 do
            small, large = math.min(small, seconds(1000)), math.min(large, seconds(10000))
            if large < 3 and large / small < 25 then
                break
            end
        end
        -- 3 s: four times what a quiet machine needs; 25: far from a quadratic 100
        assert.is_true(large < 3, ("10,000 routes took %.2f s"):format(large))
        assert.is_true(large / small < 25, ("%.3f s, %.3f s"):format(small, large))
    end)
end)
