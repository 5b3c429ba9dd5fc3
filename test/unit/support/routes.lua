--- Random routes and requests, and the shrinking of a case that fails.
--
-- The alphabets are tiny on purpose: with two letters and three headers nearly
-- every request is wanted by several routes, so that the precedence decides.

local core = require("sluice.ffi.core")
local words = require("test.unit.support.words")

local _M = {}

local random = math.random

local HOSTS = words([[
    a.x b.x A.y a.b.x a.x:1 a.x:2 b.x:1 *.x *.b.x *.y *.x:1 a.* a.b.* b.*:2 [::1] ::1 [::1]:1
]])
local REQUEST_HOSTS =
    { "a.x", "b.x", "a.y", "a.b.x", "b.b.x", "c.y", "c.z", "a.b.z", ".x", "[::1]" }
local REGEX_PIECES = words([[
    a b / /a /b \. \- [ab] [^/]+ a? b* a+ b{2} (a|b) (?<n>a+) (?:/a|/b)? . .* $ |/b |/a (?i)A [(|]
    \w (/a)|
]])
local SNIS = { "a.x", "b.x", "*.x", "a.*", "a.b.*", "*.b.x" }
local METHODS = { "GET", "POST", "PUT" }
local HEADERS = { "X-A", "x-b", "X-c-d" }
local VALUES = { "1", "one", "ONE", "2", "~*^o", "~*\\D$" }
local SENT = { "1", "one", "One", "2", "twO", "" }

local function one(list)
    return list[random(#list)]
end

local function chance(percent)
    return random(100) <= percent
end

local function some(list, most)
    local items = {}
    for i = 1, random(most) do
        items[i] = one(list)
    end
    return items
end

local function plain_path()
    local path = "/"
    for _ = 1, random(0, 4) do
        path = path .. one({ "a", "b", "/", ".", "-" })
    end
    return (path:gsub("//+", "/"))
end

local function regex_path()
    local pattern
    repeat
        pattern = "/"
        for _ = 1, random(0, 4) do
            pattern = pattern .. one(REGEX_PIECES)
        end
    -- Two groups of one name, say, are no pattern.
    until core.check_pattern(pattern, true)
    return "~" .. pattern
end

local function paths()
    local list = {}
    for i = 1, random(3) do
        list[i] = chance(40) and regex_path() or plain_path()
    end
    return list
end

local function headers()
    local map = {}
    for _ = 1, random(2) do
        map[one(HEADERS)] = some(VALUES, 2)
    end
    return map
end

function _M.route()
    local route = {
        hosts = chance(50) and some(HOSTS, 2) or nil,
        paths = chance(75) and paths() or nil,
        methods = chance(30) and some(METHODS, 2) or nil,
        headers = chance(25) and headers() or nil,
        snis = chance(15) and some(SNIS, 2) or nil,
        regex_priority = random(-1, 1),
        created_at = random(3),
    }
    return route
end

function _M.routes(most)
    local list = {}
    for i = 1, random(most) do
        list[i] = _M.route()
    end
    return list
end

function _M.request()
    local sent = {}
    for _, name in ipairs(HEADERS) do
        if chance(50) then
            sent[name:lower()] = chance(20) and some(SENT, 3) or one(SENT)
        end
    end
    return {
        method = one(METHODS),
        host = chance(95) and one(REQUEST_HOSTS) or nil,
        port = random(2),
        path = plain_path(),
        headers = sent,
        is_tls = chance(60),
        sni = chance(80) and one(REQUEST_HOSTS) or nil,
    }
end

local function copy(value)
    if type(value) ~= "table" then
        return value
    end
    local result = {}
    for k, v in pairs(value) do
        result[k] = copy(v)
    end
    return result
end

--- All cases that are one step smaller.
local function smaller(routes)
    local cases = {}
    for i = 1, #routes do
        local case = copy(routes)
        table.remove(case, i)
        cases[#cases + 1] = case
    end
    for i, route in ipairs(routes) do
        for field, value in pairs(route) do
            if type(value) == "table" then
                local case = copy(routes)
                case[i][field] = nil
                cases[#cases + 1] = case
                for j = 1, #value > 1 and #value or 0 do
                    case = copy(routes)
                    table.remove(case[i][field], j)
                    cases[#cases + 1] = case
                end
            end
        end
    end
    return cases
end

--- Make the routes of a failing case as few and as small as will still fail.
-- @tparam table routes
-- @tparam function fails takes routes
function _M.shrink(routes, fails)
    local shrunk = true
    while shrunk do
        shrunk = false
        for _, case in ipairs(smaller(routes)) do
            if fails(case) then
                routes, shrunk = case, true
                break
            end
        end
    end
    return routes
end

--- A value as Lua source, keys in order.
function _M.show(value)
    if type(value) ~= "table" then
        return type(value) == "string" and ("%q"):format(value) or tostring(value)
    end
    local parts = {}
    for i, item in ipairs(value) do
        parts[i] = _M.show(item)
    end
    local keys = {}
    for key in pairs(value) do
        if type(key) == "string" then
            keys[#keys + 1] = key
        end
    end
    table.sort(keys)
    for _, key in ipairs(keys) do
        parts[#parts + 1] = ("[%q] = %s"):format(key, _M.show(value[key]))
    end
    return "{ " .. table.concat(parts, ", ") .. " }"
end

return _M
