--- Statistics of timers without the C module; module/ngx_sluice_timer_stats.c in Lua.
-- @module sluice.timer.plain_stats

local spread = require("sluice.timer.spread")

local floor, max = math.floor, math.max

local _M = {}

-- Levels of a call stack.
local DEPTH = 40

-- Places ------------------------------------------------------------------------------------------

local function describe(info)
    local text = info.source:sub(1, 1) == "@" and info.source:sub(2) or info.short_src
    if info.currentline > 0 then
        text = text .. ":" .. info.currentline
    end
    return (text:gsub("[; \n]", "_"))
end

--- The text of a creation place, so many levels above the caller.
function _M.describe_place(core, level)
    local info = debug.getinfo(level + 1, "Sl")
    if not info then
        return "?"
    elseif not core.debug then
        return describe(info)
    end
    local frames = {}
    for depth = level + 1, level + DEPTH do
        info = debug.getinfo(depth, "Sl")
        if not info then
            break
        end
        table.insert(frames, 1, describe(info))
    end
    return table.concat(frames, ";")
end

--- @treturn table of nothing yet
function _M.new_account()
    return {
        created = 0,
        timers = 0,
        running = 0,
        failures = 0,
        skipped = 0,
        elapsed = spread.new(),
        lateness = spread.new(),
        quiet_until = 0,
        unlogged = 0,
    }
end

--- The account of a place.
function _M.place_of(core, text)
    local place = core.by_text[text]
    if not place then
        place = _M.new_account()
        place.text = text
        core.by_text[text] = place
        core.places[#core.places + 1] = place
    end
    return place
end

-- Statistics -------------------------------------------------------------------------------------

local function backlog(core, now)
    local n, oldest = 0, nil
    for _, head in ipairs({ core.current, core.wheel.ready }) do
        local node = head.next
        while node ~= head do
            n = n + 1
            oldest = oldest or node.due
            node = node.next
        end
    end
    return n, oldest and max(0, now - oldest) or 0
end

function _M.totals(core, now)
    local pending, age = backlog(core, now)
    return {
        total = core.count,
        waiting = max(0, core.count - pending - core.paused - core.running),
        pending = pending,
        running = core.running,
        paused = core.paused,
        created = core.created,
        runs = core.runs,
        failures = core.failures,
        skipped = core.skipped,
        contexts = core.total,
        contexts_parked = core.parked,
        contexts_max = core.max,
        backlog_age = age,
    }
end

local function figures(account)
    return {
        runs = account.elapsed.count,
        successes = account.elapsed.count - account.failures,
        failures = account.failures,
        skipped = account.skipped,
        elapsed = account.elapsed:figures(),
        lateness = account.lateness:figures(),
    }
end

function _M.place(core, i)
    local place = core.places[i + 1]
    if not place then
        return nil
    end
    local out = figures(place)
    out.created, out.timers, out.running = place.created, place.timers, place.running
    out.last_err = place.last_err
    return place.text, out
end

local function state(t, now)
    if t.running > 0 then
        return "running"
    elseif t.paused then
        return "paused"
    end
    return t.expires <= floor(now * 1000) and "pending" or "waiting"
end

--- A timer's figures.
function _M.record(t, now)
    local out = t.own and figures(t.own)
        or {
            runs = t.runs,
            successes = t.runs - t.failures,
            failures = t.failures,
            elapsed = {
                min = t.elapsed.min,
                max = t.elapsed.max,
                mean = t.elapsed.mean,
                variance = t.elapsed.variance,
            },
        }
    out.handle, out.name, out.place = t.handle, t.name, t.place.text
    out.interval, out.state, out.last_err = t.interval, state(t, now), t.last_err
    out.next_due = t.paused and t.left or t.due - now
    return out
end

return _M
