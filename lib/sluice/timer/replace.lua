--- Timers in the place of nginx's own.
-- @module sluice.timer.replace

local _M = {}

--- See sluice.timer's `replace_ngx_timer`.
function _M.ngx_timer(timers)
    local place = ngx.timer
    local own_at, own_every = place.at, place.every

    -- Tail calls: errors and creation places are at the line of who calls these.

    local function at(delay, callback, ...)
        return timers:at(delay, callback, ...)
    end

    local function every(interval, callback, ...)
        if type(interval) == "table" then
            return timers:every(interval, callback, ...)
        end
        return timers:every({ interval = interval, overlap = "concurrent" }, callback, ...)
    end

    place.at, place.every = at, every -- luacheck: ignore 122 (that is what it is for)

    return function()
        if place.at ~= at or place.every ~= every then
            return nil, "not in place"
        end
        place.at, place.every = own_at, own_every
        return true
    end
end

return _M
