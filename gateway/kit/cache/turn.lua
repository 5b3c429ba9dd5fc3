--- One of all workers at a time for a key: who loads what `kong.cache` lacks. Without the shared
-- dictionary, one of each worker.
--
-- In a worker one request at a time asks for a key's lock in the shared dictionary; the others wait
-- for that one, without polling. A lock says who holds it: that of a worker that has died is taken
-- over at once. One whose holder never comes back (a loader that ended its request) is good for ten
-- seconds.
-- @module gateway.kit.cache.turn

local ffi = require("ffi")
local monotonic = require("sluice.clock").monotonic
local phases = require("gateway.kit.phases")

local bit = require("bit")

local band = bit.band
local min = math.min
local ngx = ngx
local setmetatable = setmetatable

ffi.cdef([[int kit_kill(int pid, int sig) __asm__("kill");]])

local ESRCH = 3

-- How long a lock is good, and how long one waits for it: as in Kong.
local LOCK_SECONDS, WAIT_SECONDS = 10, 5
-- Between two looks at what another worker holds.
local FIRST_STEP, LAST_STEP = 0.001, 0.05

-- Where one can wait.
local WAITING = phases.set("certificate", "rewrite", "access", "response", "timer", "admin_api")

local _M = {}
local methods = {}
local mt = { __index = methods }

--- The turns of a cache.
-- @tparam string dictionary name of a shared dictionary
-- @tparam string name before the keys of this cache
-- @treturn table
-- @phases init
function _M.new(dictionary, name)
    return setmetatable({
        dictionary = dictionary,
        name = name,
        -- key -> {semaphore, waiters, ends_at}
        held = {},
        count = 0,
    }, mt)
end

local function has_exited(token)
    local pid = token and tonumber(token:match("^(%d+)"))
    return pid ~= nil and ffi.C.kit_kill(pid, 0) ~= 0 and ffi.errno() == ESRCH
end

local function finish(self, key, turn)
    if self.held[key] == turn then
        self.held[key] = nil
    end
    if turn.waiters > 0 then
        turn.semaphore:post(turn.waiters)
    end
end

-- Waits for the one of this worker. The word that ends it, or nil: nobody has the turn here.
local function wait_here(self, key, may_wait, deadline, is_done)
    local turn = self.held[key]
    while turn do
        local now = monotonic()
        if not may_wait then
            return "alone"
        elseif now >= deadline then
            return "timeout"
        elseif now >= turn.ends_at then
            finish(self, key, turn)
        else
            turn.waiters = turn.waiters + 1
            turn.semaphore:wait(min(deadline, turn.ends_at) - now)
            turn.waiters = turn.waiters - 1
        end
        if is_done() then
            return "done"
        end
        turn = self.held[key]
    end
    return nil
end

-- Lets whoever notices it first end what a dead worker holds.
local function take_over(dict, name, token)
    if dict:add(name .. ":after:" .. token, true, LOCK_SECONDS) then
        dict:delete(name)
    end
end

-- Waits for the lock that all workers share.
local function wait_for_all(dict, name, token, wait)
    local step = FIRST_STEP
    repeat
        local is_added, err = dict:add(name, token, LOCK_SECONDS)
        if is_added then
            return "held"
        elseif err ~= "exists" then
            return nil, err
        elseif not wait.may then
            return "alone"
        end
        local holder = dict:get(name)
        if has_exited(holder) then
            take_over(dict, name, holder)
        else
            ngx.sleep(step)
            step = min(2 * step, LAST_STEP)
        end
        if wait.is_done() then
            return "done"
        end
    until monotonic() >= wait.deadline
    return "timeout"
end

--- Waits for a key's turn, five seconds at most. Yields where the phase allows it.
-- @tparam string key
-- @tparam function is_done `()`: whether there is no need for a turn any more
-- @treturn string|nil "held": `leave` has to follow; "done": `is_done` has said so; "timeout";
-- "alone": somebody else has it, and this phase cannot wait; nil: the dictionary has no room
-- @treturn nil|string why
-- @phases any
function methods:enter(key, is_done)
    local may_wait = band(phases.bit(), WAITING) ~= 0
    local deadline = monotonic() + WAIT_SECONDS
    local word = wait_here(self, key, may_wait, deadline, is_done)
    if word then
        return word
    end
    local turn = { waiters = 0, ends_at = monotonic() + LOCK_SECONDS }
    turn.semaphore = require("ngx.semaphore").new(0)
    self.held[key] = turn
    self.count = self.count + 1
    turn.token = ("%d:%d"):format(ngx.worker.pid(), self.count)
    local dict, err = ngx.shared[self.dictionary], nil
    word = "held"
    if dict then
        local wait = { may = may_wait, is_done = is_done, deadline = deadline }
        word, err = wait_for_all(dict, self.name .. key, turn.token, wait)
    end
    if word ~= "held" then
        finish(self, key, turn)
        return word, err
    elseif is_done() then
        self:leave(key)
        return "done"
    end
    return "held"
end

--- Gives a turn back.
-- @tparam string key
-- @phases any
function methods:leave(key)
    local turn, dict = self.held[key], ngx.shared[self.dictionary]
    -- Another one may have it since, where this one took too long.
    if turn and dict and dict:get(self.name .. key) == turn.token then
        dict:delete(self.name .. key)
    end
    if turn then
        finish(self, key, turn)
    end
end

return _M
