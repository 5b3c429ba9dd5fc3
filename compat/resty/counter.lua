--- lua-resty-counter's counters: a worker counts by itself, and adds to a shared dictionary now and
-- then.
-- @module resty.counter
-- @usage
-- local counter = require("resty.counter").new("counters", 1)
-- counter:incr("requests")

local error = error
local ngx = ngx
local pairs = pairs
local setmetatable = setmetatable
local tonumber = tonumber
local tostring = tostring

-- As many as nginx gives who names no number.
local MAX_KEYS = 1024

local _M = { _VERSION = "0.2.1" }
local mt = { __index = _M }

-- By dictionary: what has been counted and not added yet; whether a timer adds it.
local increments, has_timer = {}, {}

--- Makes a counter; all of one dictionary count together.
-- @tparam string dictionary name of a lua_shared_dict
-- @tparam[opt] number interval seconds between two additions; without one `sync` makes them
-- @treturn table
-- @phases init_worker and later
function _M.new(dictionary, interval)
    local dict = ngx.shared[dictionary]
    if not dict then
        error(('shared dict "%s" not defined'):format(tostring(dictionary)), 2)
    end
    increments[dictionary] = increments[dictionary] or {}
    local self = setmetatable({ dict = dict, increments = increments[dictionary] }, mt)
    if interval then
        interval = tonumber(interval)
        if not interval or interval < 0 then
            error("expect sync_interval to be a positive number", 2)
        end
        if not has_timer[dictionary] then
            -- The last call, of a worker that ends, adds as well.
            local _, err = ngx.timer.every(interval, function()
                self:sync()
            end)
            if err then
                error("no timer: " .. err, 2)
            end
            has_timer[dictionary] = true
        end
    end
    return self
end

--- Adds what was counted. What the dictionary has no room for is kept for the next time.
-- @treturn boolean whether all was added
-- @phases any
function _M:sync()
    local is_all = true
    for key, step in pairs(self.increments) do
        local value, err = self.dict:incr(key, step, 0)
        if value then
            self.increments[key] = nil
        else
            ngx.log(ngx.WARN, "error increasing counter in shdict key: ", key, ", err: ", err)
            is_all = false
        end
    end
    return is_all
end

--- Counts.
-- @tparam string key
-- @tparam[opt=1] number step
-- @treturn true
-- @phases any
function _M:incr(key, step)
    self.increments[key] = (self.increments[key] or 0) + (step or 1)
    return true
end

--- Takes a number from the dictionary's value.
-- @tparam string key
-- @tparam number number
-- @treturn number|nil
-- @treturn string|nil "expect a number at #2", or the dictionary's reason
-- @phases any
function _M:reset(key, number)
    if not number then
        return nil, "expect a number at #2"
    end
    return self.dict:incr(key, -number, number)
end

--- The dictionary's value, without what no worker has added yet.
-- @phases any
function _M:get(key)
    return self.dict:get(key)
end

--- The dictionary's keys.
-- @phases any
function _M:get_keys(max_count)
    return self.dict:get_keys(max_count or MAX_KEYS)
end

return _M
