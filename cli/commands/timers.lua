--- `sluice timers`: what the timers of all workers do, as a table or as a flame graph.

local console = require("cli.terminal.console")
local flame = require("cli.commands.flame")
local signal = require("posix.signal")
local tables = require("cli.terminal.table")
local time = require("posix.time")

local _M = {}

--- What is asked of the gateway.
_M.TARGET = "/timers?workers=all"

local WATCH_SECONDS = 2

-- Clears the screen of a terminal.
local CLEAR = "\27[H\27[2J"

local KINDS = {
    elapsed = { stacks = "elapsed_time", title = "Timers: time in callbacks", unit = "ms" },
    running = { stacks = "running", title = "Timers: callbacks that run now", unit = "timers" },
    pending = { stacks = "pending", title = "Timers: that wait for their time", unit = "timers" },
}

local function seconds(value)
    if not value or value == 0 then
        return "0"
    elseif value < 0.001 then
        return ("%.1fus"):format(value * 1e6)
    elseif value < 1 then
        return ("%.1fms"):format(value * 1e3)
    end
    return ("%.1fs"):format(value)
end

local function whole(value)
    return ("%d"):format(value)
end

local COLUMNS = {
    {
        "timers",
        function(timer)
            return timer.count, whole
        end,
    },
    {
        "running",
        function(timer)
            return timer.running, whole
        end,
    },
    {
        "runs",
        function(timer)
            return timer.stats.runs, whole
        end,
    },
    {
        "failures",
        function(timer)
            return timer.stats.runs - timer.stats.finish, whole
        end,
    },
    {
        "skipped",
        function(timer)
            return timer.stats.skipped, whole
        end,
    },
    {
        "time",
        function(timer)
            return timer.stats.runs * timer.stats.elapsed_time.avg, seconds
        end,
    },
    {
        "mean",
        function(timer)
            return timer.stats.elapsed_time.avg, seconds
        end,
    },
    {
        "p99",
        function(timer)
            return timer.stats.elapsed_time.p99, seconds
        end,
    },
    {
        "max",
        function(timer)
            return timer.stats.elapsed_time.max, seconds
        end,
    },
    {
        "late",
        function(timer)
            return timer.stats.lateness.p99, seconds
        end,
    },
}

--- Columns that a table can be sorted by.
_M.sort_keys = {}
for i, column in ipairs(COLUMNS) do
    _M.sort_keys[i] = column[1]
end

local function column_of(name)
    for _, column in ipairs(COLUMNS) do
        if column[1] == name then
            return column[2]
        end
    end
end

local function sorted(timers, key)
    local read, list = column_of(key), {}
    for _, timer in pairs(timers) do
        list[#list + 1] = timer
    end
    table.sort(list, function(a, b)
        local of_a, of_b = read(a), read(b)
        if of_a ~= of_b then
            return of_a > of_b
        end
        return a.name < b.name
    end)
    return list
end

local function row_of(timer)
    local row = {}
    for i, column in ipairs(COLUMNS) do
        local value, format = column[2](timer)
        row[i] = format(value)
    end
    return row
end

local function totals(answer)
    local sys = answer.stats.sys
    local count = #answer.workers
    local silent = #answer.silent
    return {
        ("%d worker%s%s: %d timers, of them %d waiting, %d pending, %d running, %d paused"):format(
            count,
            count == 1 and "" or "s",
            silent > 0 and (" (%d silent)"):format(silent) or "",
            sys.total,
            sys.waiting,
            sys.pending,
            sys.running,
            sys.paused
        ),
        ("%d runs, %d failures, %d skipped; backlog %s; %d contexts of at most %d"):format(
            sys.runs,
            sys.failures,
            sys.skipped,
            seconds(sys.backlog_age),
            sys.contexts,
            sys.contexts_max
        ),
    }
end

--- The table: a row for each place where timers were created.
-- @tparam table answer of /timers?workers=all
-- @tparam string key of the column to sort by, greatest first
-- @tparam number|nil top rows at most
-- @treturn table array of lines
function _M.lines(answer, key, top)
    local list = sorted(answer.stats.timers, key)
    local shown = math.min(#list, top or #list)
    local rows = { {} }
    for i, column in ipairs(COLUMNS) do
        rows[1][i] = column[1]
    end
    rows[1][#COLUMNS + 1] = "created at"
    for i = 1, shown do
        rows[i + 1] = row_of(list[i])
        rows[i + 1][#COLUMNS + 1] = list[i].name
    end
    local lines = totals(answer)
    if #list == 0 then
        return lines
    end
    lines[#lines + 1] = ""
    for _, line in ipairs(tables.lines(rows, { left = { [#COLUMNS + 1] = true } })) do
        lines[#lines + 1] = line
    end
    if shown < #list then
        lines[#lines + 1] = ("... and %d places more"):format(#list - shown)
    end
    return lines
end

--- The kinds of flame graphs.
_M.kinds = { "elapsed", "running", "pending" }

local function draw(answer, path, kind)
    local of = KINDS[kind]
    local file, err = io.open(path, "w")
    if not file then
        return nil, err
    end
    file:write(flame.svg(answer.stats.flamegraph[of.stacks], of.title, of.unit))
    file:close()
    return true
end

--- Shows it as the arguments say: once, or until it is interrupted.
-- @tparam table arguments `sort`, `top`, `watch` ({seconds} or {}), `flame` (file), `of`, `json`
-- @tparam function ask the gateway for TARGET: its answer and the text of that; or nil and why
-- there is none
-- @treturn true|nil
-- @treturn string|nil what went wrong
function _M.show(arguments, ask)
    -- Ctrl-C ends a watch without a stack trace.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    -- argparse gives a table for an option whose value may be left out.
    local interval = arguments.watch and (arguments.watch[1] or WATCH_SECONDS)
    while true do
        local answer, text = ask()
        if not answer then
            return nil, text
        elseif arguments.flame then
            return draw(answer, arguments.flame, arguments.of)
        elseif arguments.json then
            console.say_json(text)
            return true
        end
        console.write(interval and CLEAR or "")
        console.print_lines(_M.lines(answer, arguments.sort, arguments.top))
        if not interval or not console.flush() then
            return true
        end
        local whole_seconds, fraction = math.modf(interval)
        time.nanosleep({ tv_sec = whole_seconds, tv_nsec = fraction * 1e9 })
    end
end

return _M
