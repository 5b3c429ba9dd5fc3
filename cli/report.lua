--- What the commands print for people: lines of text from tables.

local tables = require("cli.table")

local _M = {}

local COLUMNS = {
    { "worker", "worker" },
    { "pid", "pid" },
    { "state", "state" },
    { "published", "published" },
    { "delivered", "delivered" },
    { "bytes", "read_bytes" },
    { "queue", "queue_depth" },
    { "lag", "lag" },
    { "wakeups", "wakeups_sent" },
    { "overruns", "overruns" },
    { "errors", "callback_errors" },
}

local function text_of(value)
    if type(value) == "number" then
        return ("%d"):format(value)
    end
    return value == nil and "" or tostring(value)
end

local function row_of(figures)
    local row = {}
    for i, column in ipairs(COLUMNS) do
        row[i] = text_of(figures[column[2]])
    end
    return row
end

--- The figures of all workers as a table.
-- @tparam table stats the answer of /events
-- @treturn table array of lines
function _M.events(stats)
    local rows = { {} }
    for i, column in ipairs(COLUMNS) do
        rows[1][i] = column[1]
    end
    for _, worker in ipairs(stats.workers) do
        rows[#rows + 1] = row_of(worker)
    end
    local total = row_of(stats.total)
    total[1] = "total"
    rows[#rows + 1] = total
    return tables.lines(rows)
end

local function duration(seconds)
    local days, hours = math.floor(seconds / 86400), math.floor(seconds / 3600) % 24
    local minutes = math.floor(seconds / 60) % 60
    if days > 0 then
        return ("%dd %dh"):format(days, hours)
    elseif hours > 0 then
        return ("%dh %dm"):format(hours, minutes)
    elseif minutes > 0 then
        return ("%dm %ds"):format(minutes, math.floor(seconds % 60))
    end
    return ("%ds"):format(math.floor(seconds))
end

local function plain_addresses(addresses)
    local plain = {}
    for i, address in ipairs(addresses) do
        plain[i] = address:match("^%S+"):gsub("^%*:", "0.0.0.0:")
            .. (address:match(" ssl%f[%s%z]") or "")
    end
    return #plain > 0 and table.concat(plain, ", ") or "off"
end

--- Where a gateway listens.
-- @tparam table settings resolved settings
-- @treturn string
function _M.listeners(settings)
    return ("proxy %s, admin %s"):format(
        plain_addresses(settings.proxy_listen),
        plain_addresses(settings.admin_listen)
    )
end

--- That no gateway runs, or what a killed one has left.
-- @tparam string prefix
-- @tparam table orphans pids of the workers that serve on without a master
-- @treturn string
function _M.stopped(prefix, orphans)
    if #orphans == 0 then
        return "not running in " .. prefix
    end
    return (
        "the master in %s was killed, its workers (pid %s) serve on: `sluice restart` replaces "
        .. "them, `sluice stop` ends them"
    ):format(prefix, table.concat(orphans, ", "))
end

-- What the control worker does, and did.
local function control_lines(control)
    local line = ("control  %s, pid %d"):format(control.state, control.pid)
    if control.life ~= "answers" then
        line = ("control  %s for %d s, pid %d (it was: %s); traffic goes on"):format(
            control.life,
            control.silent_s,
            control.pid,
            control.state
        )
    end
    local out = { ("%s, revision %d"):format(line, control.revision) }
    if control.deaths > 0 then
        out[#out + 1] = ("         died %d time%s; traffic went on"):format(
            control.deaths,
            control.deaths == 1 and "" or "s"
        )
    end
    if control.unmapped > 0 then
        local text = "         %d requests were answered 503: a worker could not map an image"
        out[#out + 1] = text:format(control.unmapped)
    end
    out[#out + 1] = control.error and "         " .. control.error
    return out
end

--- Whether a gateway runs, and what.
-- @tparam table found what `sluice status --json` prints
-- @treturn table array of lines
function _M.status(found)
    if not found.running then
        return { _M.stopped(found.prefix, found.orphans) }
    end
    local draining = #found.workers.draining
    local lines = {
        ("running in %s (pid %d, for %s)"):format(
            found.prefix,
            found.pid,
            duration(found.uptime_s)
        ),
        ("version  %s on %s"):format(found.version, found.nginx or "nginx"),
        ("proxy    %s"):format(plain_addresses(found.proxy_listen)),
        ("admin    %s"):format(plain_addresses(found.admin_listen)),
        ("file     %s"):format(found.file ~= "" and found.file or "none: the store is written"),
        ("workers  %d%s"):format(
            #found.workers.ready,
            draining > 0 and (", and %d leaving"):format(draining) or ""
        ),
    }
    local events = found.events
    if events and events.workers_without > 0 then
        local line = "         %d without events: all %d slots of the log are taken"
        lines[#lines + 1] = line:format(events.workers_without, events.slots)
    end
    if found.former then
        local workers = found.former.workers
        lines[#lines + 1] = ("before   nginx of pid %d, which leaves: %d workers"):format(
            found.former.pid,
            #workers.draining + #workers.ready
        )
    end
    for _, line in ipairs(found.control and control_lines(found.control) or {}) do
        lines[#lines + 1] = line
    end
    return lines
end

return _M
