--- Several variables in one call, for what logs or exports a request.
-- @module sluice.var.bulk

local ffi = require("ffi")
local base = require("resty.core.base")
local module = require("sluice.var.module")
local unroll = require("sluice.unroll")

local MAX_NAMES = 100

-- As in sluice.var, where it is explained.
local KEPT_LENGTH = 256

-- Straight code, as sluice.unroll explains. A value's Lua string stays in `kept`, so that the
-- pointer to it in `values` is good for as long as it stands there.
local TEMPLATE = [==[
local names, values, kept, count, call, get_request, to_string, SAME, KEPT_LENGTH = ...
return function(into)
    local r = get_request()
    if not r or call(r, count, values) ~= 0 then
        return false
    end
    {{do
        local value = values[$i - 1]
        local length = value.length
        if length == SAME then
            into[names[$i]] = kept[$i]
        elseif length < 0 then
            into[names[$i]] = nil
        else
            local text = to_string(value.data, length)
            if length <= KEPT_LENGTH then
                kept[$i] = text
                value.last = text
                value.last_length = length
            end
            into[names[$i]] = text
        end
    end
    }}
    return true
end
]==]

local Bulk = {}
Bulk.__index = Bulk

local _M = {}

--- What is wrong with a list of names.
-- @treturn string|nil for people; nil if nothing is
function _M.wrong(names)
    if type(names) ~= "table" then
        return "table expected, got " .. type(names)
    end
    if #names > MAX_NAMES then
        return "up to " .. MAX_NAMES .. " names expected, got " .. #names
    end
    for i = 1, #names do
        if type(names[i]) ~= "string" then
            return "names that are strings expected, got " .. type(names[i])
        end
    end
end

--- Makes a reader.
-- @tparam table names a list of strings
-- @tparam table handles those of sluice.var that have numbers, by name
-- @tparam function original_get of ngx.var: reads the others, and finds words for what fails
-- @treturn Bulk
function _M.new(names, handles, original_get)
    local indexed, others = {}, {}
    for _, name in ipairs(names) do
        local list = handles[name] and indexed or others
        list[#list + 1] = name
    end
    local values, kept = ffi.new("sluice_var_value_t[?]", #indexed), {}
    for i, name in ipairs(indexed) do
        kept[i] = ""
        values[i - 1].last = kept[i]
        values[i - 1].number = handles[name].number
    end
    local make = unroll.compile(TEMPLATE, #indexed)
    local read = make(
        indexed,
        values,
        kept,
        #indexed,
        ffi.C.sluice_var_get_bulk,
        base.get_request,
        ffi.string,
        module.SAME,
        KEPT_LENGTH
    )
    return setmetatable({
        first = names[1],
        others = others,
        read = read,
        original_get = original_get,
    }, Bulk)
end

--- Reads all of them. Does not yield.
-- @tparam[opt] table into a table to fill; without one, a new one
-- @treturn table name -> value; variables without a value are nil in it
-- @raise as `ngx.var`
-- @phases wherever `ngx.var` works
function Bulk:get(into)
    into = into or {}
    if not self.read(into) then
        return self.original_get(ngx.var, self.first)
    end
    for i = 1, #self.others do
        local name = self.others[i]
        into[name] = self.original_get(ngx.var, name)
    end
    return into
end

return _M
