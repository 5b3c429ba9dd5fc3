--- What functions of the kit that take headers refuse, in Kong's words.
--
-- Nothing here yields.
-- @module gateway.kit.checks

local error = error
local ipairs = ipairs
local pairs = pairs
local tostring = tostring
local type = type

local _M = {}

-- Values that a header may have besides strings, and lists of these.
local PLAIN = { string = true, number = true, boolean = true }

local ONE =
    "invalid header value for %q: got %s, expected array of string, string, number or boolean"
local SOME =
    "invalid header value for %q: got %s, expected string, number, boolean or array of strings"

local function check(name, value, expected, level)
    if type(name) ~= "string" then
        error(
            ("invalid header name %q: got %s, expected string"):format(tostring(name), type(name)),
            level + 1
        )
    elseif type(value) == "table" then
        for _, item in ipairs(value) do
            if type(item) ~= "string" then
                local text = "invalid header value in array %q: got %s, expected string"
                error(text:format(name, type(item)), level + 1)
            end
        end
    elseif not PLAIN[type(value)] then
        error(expected:format(name, type(value)), level + 1)
    end
end

--- Throws what is wrong with a header, at the caller of the function that asks.
-- @tparam any name
-- @tparam any value
-- @phases any
function _M.header(name, value)
    check(name, value, ONE, 3)
end

--- The same of several.
-- @tparam any headers name -> value
-- @phases any
function _M.headers(headers)
    if type(headers) ~= "table" then
        error("headers must be a table", 3)
    end
    for name, value in pairs(headers) do
        check(name, value, SOME, 3)
    end
end

--- A header's value as it is written: of an empty one, which nginx would take for none, a space.
-- @tparam string|number|boolean|table value of `header`
-- @treturn string|{string,...}
-- @phases any
function _M.text(value)
    if type(value) ~= "table" then
        value = tostring(value)
        return value == "" and " " or value
    end
    local list = {}
    for i, item in ipairs(value) do
        list[i] = item == "" and " " or item
    end
    return list
end

return _M
