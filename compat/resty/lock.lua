--- lua-resty-lock's locks over all workers, in a shared dictionary.
--
-- Interface and words are those of lua-resty-lock 0.09. A lock has its holder's mark: whoever held
-- one that has expired does not take it from its next holder.
-- @module resty.lock
-- @usage
-- local lock = assert(require("resty.lock"):new("locks"))
-- local elapsed, err = lock:lock("key")

local getmetatable = getmetatable
local max = math.max
local min = math.min
local newproxy = newproxy
local ngx = ngx
local setmetatable = setmetatable

local EXPIRES_SECONDS, TIMEOUT_SECONDS = 30, 5
local STEP_SECONDS, MAX_STEP_SECONDS, RATIO = 0.001, 0.5, 2

local _M = { _VERSION = "0.09" }
local mt = { __index = _M }

-- Locks that this worker has made, for their marks.
local count = 0

--- Makes a lock, which nobody holds yet.
-- @tparam string dictionary name of a lua_shared_dict
-- @tparam[opt] table options seconds: exptime (30), timeout (5), step (0.001), max_step (0.5); and
--   ratio (2), by which the step grows
-- @treturn table|nil
-- @treturn string|nil "dictionary not found"
-- @phases any
function _M.new(_, dictionary, options)
    local dict = ngx.shared[dictionary]
    if not dict then
        return nil, "dictionary not found"
    end
    options = options or {}
    local exptime = options.exptime or EXPIRES_SECONDS
    local timeout = min(options.timeout or TIMEOUT_SECONDS, exptime)
    count = count + 1
    local self = setmetatable({
        dict = dict,
        exptime = exptime,
        timeout = timeout,
        step = max(STEP_SECONDS, min(options.step or STEP_SECONDS, timeout)),
        max_step = options.max_step or MAX_STEP_SECONDS,
        ratio = options.ratio or RATIO,
        count = count,
        -- What is held, for who collects the lock.
        held = {},
    }, mt)
    -- Tables have no destructor, this has.
    local guard, held = newproxy(true), self.held
    getmetatable(guard).__gc = function()
        if held.key ~= nil and dict:get(held.key) == held.mark then
            dict:delete(held.key)
        end
    end
    self.guard = guard
    return self
end

local function try(self, key)
    -- Not when the lock was made: that may have been before a fork.
    local mark = ngx.worker.pid() .. ":" .. self.count
    local added, err = self.dict:add(key, mark, self.exptime)
    if added then
        self.held.key, self.held.mark = key, mark
    end
    return added, err
end

--- Waits for the lock of a key. Yields if somebody has it.
-- @tparam string key
-- @treturn number|nil seconds it took
-- @treturn string|nil "locked" (this one holds a lock already), "nil key", "timeout", or the
--   dictionary's reason
-- @phases rewrite, access, content, timers, where it may have to wait
function _M:lock(key)
    if not key then
        return nil, "nil key"
    elseif self.held.key ~= nil then
        return nil, "locked"
    end
    local elapsed, step = 0, self.step
    while true do
        local added, err = try(self, key)
        if added then
            return elapsed
        elseif err ~= "exists" then
            return nil, err
        end
        local left = self.timeout - elapsed
        if left <= 0 then
            return nil, "timeout"
        end
        step = min(step, left)
        ngx.sleep(step)
        elapsed = elapsed + step
        step = min(max(STEP_SECONDS, step * self.ratio), self.max_step)
    end
end

-- The key that this one still holds; nil: it has expired, and somebody else may hold it.
local function held_key(self)
    local held = self.held
    return held.key ~= nil and self.dict:get(held.key) == held.mark and held.key or nil
end

--- Gives the lock back.
-- @treturn number|nil 1, also of a lock that has expired
-- @treturn string|nil "unlocked", or the dictionary's reason
-- @phases any
function _M:unlock()
    if self.held.key == nil then
        return nil, "unlocked"
    end
    local key = held_key(self)
    self.held.key = nil
    if key ~= nil then
        local done, err = self.dict:delete(key)
        if not done then
            return nil, err
        end
    end
    return 1
end

--- Lets the lock live from now on for a time.
-- @tparam[opt] number seconds default: exptime
-- @treturn true|nil
-- @treturn string|nil "unlocked", "not found" (it has expired), or the dictionary's reason
-- @phases any
function _M:expire(seconds)
    if self.held.key == nil then
        return nil, "unlocked"
    end
    local key = held_key(self)
    if key == nil then
        return nil, "not found"
    end
    local done, err = self.dict:replace(key, self.held.mark, seconds or self.exptime)
    return done and true or nil, err
end

return _M
