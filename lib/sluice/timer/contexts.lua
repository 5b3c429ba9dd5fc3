--- The contexts of timers: long-lived timers of nginx that run callbacks one after the other.
--
-- A context takes runs until none is due or its slice is over, then waits for the semaphore that
-- all share. When a callback waits, nginx's loop goes on, and the module
-- (module/lib/timer/ngx_sluice_timer.c) wakes another context. So each run has an nginx
-- context of its own for as long as it needs one, and one that does not wait costs a function call.
-- @module sluice.timer.contexts

local _M = {}

-- As long as a semaphore can wait, 23 days; then it waits again.
local FOREVER_SECONDS = 2000000

-- nginx's own: a set of timers may take that name over (sluice.timer's replace_ngx_timer).
local timer_at, timer_every = ngx.timer.at, ngx.timer.every

-- How often to look whether a context is left, once nginx has had no room for one.
local LOOK_SECONDS = 1

-- What claim says.
local RUN = 1
local END = 2

local add, watch

-- Callbacks are called from interpreted code: a compiled loop pays for each callback that is not
-- the one that it was compiled with, five times what this loop costs.
local function drain(step, context)
    for _, callback in step, context do
        callback(false)
    end
end
jit.off(drain)

local function apply(callback, ...)
    return callback(...)
end
jit.off(apply)

-- What step hands over in the place of a callback that is given more than false.
local function make_apply(args)
    local function with_arguments()
        return apply(args())
    end
    jit.off(with_arguments)
    return with_arguments
end

-- Any value can be an error, and one whose text cannot be had, too.
local function describe(err)
    local ok, text = pcall(tostring, err)
    if not ok then
        text = "an error without a text"
    end
    if type(err) == "table" and text:find("^table: ") then
        text = "a table as the error"
    end
    local traced, trace = pcall(debug.traceback, text, 2)
    return traced and trace or text
end

local function serve(_, self)
    local backend, core, semaphore = self.backend, self.core, self.semaphore
    local id = backend.enter(core)
    if not id then
        return
    end
    local claim, step, failed = backend.claim, backend.step, backend.failed
    local context = backend.runner(core, id)
    while true do
        local role, more = claim(core, id)
        if more > 0 then
            add(self, more)
        end
        if role == RUN then
            if more > 0 then
                watch(self)
            end
            local ok, err
            repeat
                ok, err = xpcall(drain, describe, step, context)
                if not ok then
                    failed(core, id, tostring(err))
                end
            until ok
        elseif role == END then
            break
        else
            -- "timeout" after weeks: it claims, and waits again
            semaphore:wait(FOREVER_SECONDS)
        end
    end
    backend.leave(core, id)
end

function add(self, count)
    for i = 1, count do
        local ok, err = timer_at(0, serve, self)
        if not ok then
            self.backend.gave_up(self.core, count - i + 1)
            if err ~= "process exiting" then
                ngx.log(ngx.ERR, "sluice: no context for timers: ", err)
            end
            return nil, err
        end
    end
    return true
end

-- A context may be about to run callbacks while nginx has no room for another: if one ends it
-- (ngx.exit), none is left. nginx runs recurrent timers of its own whatever it has dropped.
function watch(self)
    if self.is_watched then
        return
    end
    self.is_watched = timer_every(LOOK_SECONDS, function(premature)
        if not premature and self.backend.totals(self.core).contexts == 0 then
            serve(premature, self)
        end
    end) ~= nil
end

--- Makes the first context.
-- @tparam table self of sluice.timer
-- @treturn true|nil
-- @treturn string|nil why not, for people
-- @phases init_worker and later
function _M.start(self)
    -- A start that got no context has all else.
    if not self.semaphore then
        local semaphore, err = require("ngx.semaphore").new(0)
        if not semaphore then
            return nil, err
        end
        local function more(count)
            local ok = add(self, count)
            return ok
        end
        if not self.backend.start(self.core, semaphore, more, make_apply(self.backend.args)) then
            return nil, "no timerfd, connection or memory"
        end
        self.semaphore = semaphore
    end
    return add(self, 1)
end

return _M
