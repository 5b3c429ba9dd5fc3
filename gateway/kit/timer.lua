--- `kong.timer`: timers by name, as lua-resty-timer-ng has them (docs/timer.md).
--
-- The system behind it starts with the first call of a worker.
-- @module gateway.kit.timer

local _M = {}

-- The system of this worker, and what it was told before.
local system, is_debug

local function started()
    if not system then
        local phase = ngx and ngx.get_phase and ngx.get_phase() or "init"
        if phase == "init" then
            error("the timer module is not started", 3)
        end
        -- It wants nginx.
        system = require("compat.resty.timerng").new()
        assert(system:start())
        if is_debug then
            system:set_debug(true)
        end
    end
    return system
end

--- The functions are those of resty.timerng: `at(delay, callback, ...)`, `every(interval,
-- callback, ...)`, `named_at(name, ...)`, `named_every(name, ...)`, `pause(name)`, `resume(name)`,
-- `cancel(name)`, `is_managed(name)`, `stats(options)`, `set_debug(status)`, `start()`.
-- @table kong.timer
-- @phases init_worker and later

function _M.at(_, ...)
    return started():at(...)
end

function _M.every(_, ...)
    return started():every(...)
end

function _M.named_at(_, ...)
    return started():named_at(...)
end

function _M.named_every(_, ...)
    return started():named_every(...)
end

function _M.pause(_, name)
    return started():pause(name)
end

function _M.resume(_, name)
    return started():resume(name)
end

function _M.cancel(_, name)
    return started():cancel(name)
end

function _M.is_managed(_, name)
    return started():is_managed(name)
end

function _M.stats(_, options)
    return started():stats(options)
end

function _M.start()
    return started():start()
end

function _M.set_debug(_, status)
    is_debug = status
    if system then
        system:set_debug(status)
    end
end

return _M
