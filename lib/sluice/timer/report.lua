--- What timers did, as tables.
-- @module sluice.timer.report

local _M = {}

local SLICE_SECONDS = 0.001
-- Records between two looks at the clock.
local BATCH = 64

local YIELDING = {
    rewrite = true,
    access = true,
    content = true,
    timer = true,
    ssl_cert = true,
    preread = true,
}

local function pause(since)
    ngx.update_time()
    local now = ngx.now()
    if now - since < SLICE_SECONDS then
        return since
    end
    ngx.sleep(SLICE_SECONDS)
    ngx.update_time()
    return ngx.now()
end

--- For a loop over records: what is called after each, and yields each millisecond of work where
-- the phase allows it.
-- @treturn function
-- @phases all
function _M.turn()
    if not YIELDING[ngx.get_phase()] then
        return function() end
    end
    local since, n = ngx.now(), 0
    return function()
        n = n + 1
        if n % BATCH == 0 then
            since = pause(since)
        end
    end
end

local function places(backend, core)
    local out, i = {}, 0
    while true do
        local text, figures = backend.place(core, i)
        if text == nil then
            return out
        elseif text then
            out[text] = figures
        end
        i = i + 1
    end
end

-- Timers come and go while it yields; one that is there all the time is there once.
local function timers(backend, core)
    local out, at, n, turn = {}, 0, 0, _M.turn()
    while true do
        local record, following = backend.timer(core, at, true)
        if not record then
            return out
        end
        n = n + 1
        out[n] = record
        at = following
        turn()
    end
end

-- Folded stacks: "outer;inner count", a line each, as flame-graph tools read them.
local function fold(all, read)
    local lines = {}
    for text, figures in pairs(all) do
        local value = read(figures)
        if value > 0 then
            lines[#lines + 1] = ("%s %d"):format(text, value)
        end
    end
    table.sort(lines)
    return table.concat(lines, "\n") .. (#lines > 0 and "\n" or "")
end

local function flamegraph(all)
    return {
        running = fold(all, function(figures)
            return figures.running
        end),
        pending = fold(all, function(figures)
            return figures.timers - figures.running
        end),
        -- microseconds
        elapsed = fold(all, function(figures)
            return figures.elapsed.mean * figures.runs * 1e6
        end),
    }
end

--- Gathers statistics; see sluice.timer.stats.
-- @tparam table backend
-- @param core
-- @tparam table opts `timers`, `flamegraph`
-- @treturn table
function _M.make(backend, core, opts)
    local all = places(backend, core)
    local out = { sys = backend.totals(core), places = all }
    if opts.timers == true then
        out.timers = timers(backend, core)
    elseif opts.timers then
        local record = backend.timer(core, opts.timers)
        out.timers = { record }
    end
    if opts.flamegraph then
        out.flamegraph = flamegraph(all)
    end
    return out
end

return _M
