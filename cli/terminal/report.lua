--- What the commands print for people: lines of text from tables.

local hint = require("cli.terminal.hint")
local json = require("sluice.cjson_arrays").new()
local tables = require("cli.terminal.table")

json.encode_empty_table_as_object(false)
json.encode_escape_forward_slash(false)

local _M = {}

local DAY_S = 86400
-- Those that expire first.
local CERTIFICATES_SHOWN = 5
-- Of workers; --json has all.
local PIDS_SHOWN = 8

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
            .. (address:match(" http2%f[%s%z]") or "")
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
        "the master in %s was killed; its workers (pid %s) still serve: `sluice restart` "
        .. "replaces them, `sluice stop` ends them"
    ):format(prefix, table.concat(orphans, ", "))
end

-- What the control worker does, and did.
local function control_lines(control)
    local line = ("control  %s, pid %d"):format(control.state, control.pid)
    if control.life ~= "answers" then
        line = ("control  %s for %d s, pid %d (it was: %s); traffic continues"):format(
            control.life,
            control.silent_s,
            control.pid,
            control.state
        )
    end
    local out = { ("%s, revision %d"):format(line, control.revision) }
    if control.deaths > 0 then
        out[#out + 1] = ("         died %d time%s; traffic continued"):format(
            control.deaths,
            control.deaths == 1 and "" or "s"
        )
    end
    if (control.crashes or 0) > 0 then
        local text = "         workers killed by signals since the start: %d; see error.log"
        out[#out + 1] = text:format(control.crashes)
    end
    if control.unmapped > 0 then
        local text = "         %d requests were answered 503: a worker could not map the image"
        out[#out + 1] = text:format(control.unmapped)
    end
    out[#out + 1] = control.error and "         " .. control.error
    return out
end

-- When something expires, and in how long.
local function expiry_text(at, now)
    if not at then
        return "with an unreadable expiry date"
    end
    local day, left = os.date("!%Y-%m-%d", at), at - now
    if left <= 0 then
        return ("EXPIRED on %s"):format(day)
    end
    local days = math.floor(left / DAY_S)
    return ("until %s (%d day%s)"):format(day, days, days == 1 and "" or "s")
end

-- The certificates that clients get, that which expires first before others.
local function certificate_lines(certificates, now)
    local lines, list = {}, certificates.list
    for i = 1, math.min(#list, CERTIFICATES_SHOWN) do
        local each = list[i]
        local names = #each.names > 0 and table.concat(each.names, ", ") or each.id
        local uncovered = table.concat(each.uncovered, ", ")
        uncovered = uncovered ~= "" and "; does not cover " .. uncovered or ""
        lines[i] = ("%s %s%s"):format(names, expiry_text(each.expires, now), uncovered)
    end
    if #list > CERTIFICATES_SHOWN then
        local more = certificates.are_more and "more than %d others" or "%d others"
        lines[#lines + 1] = (more .. ": sluice get certificates"):format(#list - CERTIFICATES_SHOWN)
    end
    local others = #list > 0 and "other names" or "all names"
    if certificates.default_expires then
        local expires = expiry_text(certificates.default_expires, now)
        lines[#lines + 1] = ("%s: ssl_cert, %s"):format(others, expires)
        return lines
    end
    lines[#lines + 1] = certificates.self_signed_expires
        and ("%s: self-signed, %s"):format(
            others,
            expiry_text(certificates.self_signed_expires, now)
        )
    return lines
end

-- What plugins have thrown.
local function failure_lines(failures)
    local lines = {}
    for i, each in ipairs(failures) do
        local line = "%s: %d error%s in %s since the last start or reload; see error.log"
        local plural = each.count == 1 and "" or "s"
        lines[i] = line:format(each.plugin, each.count, plural, each.phase)
    end
    return lines
end

-- Lines under one title.
local function block(lines, title, texts)
    for i, text in ipairs(texts) do
        lines[#lines + 1] = ("%-8s %s"):format(i == 1 and title or "", text)
    end
end

--- That no gateway runs, and what to do then.
-- @tparam table found what `sluice status --json` prints
-- @tparam[opt] string others where gateways run
-- @tparam string beginning command that has it run
-- @tparam[opt] string log that the one before has left
-- @treturn table array of lines
function _M.not_running(found, others, beginning, log)
    local lines = { _M.stopped(found.prefix, found.orphans) }
    lines[#lines + 1] = others
    if not others and #found.orphans == 0 then
        block(lines, "next", { beginning, log and "see " .. log })
    end
    return lines
end

--- What was found, for programs. Every empty table of it is a list; slashes need no escape.
-- @tparam table found what runs, or does not
-- @treturn string JSON
function _M.json(found)
    return json.encode(found)
end

-- What the configuration comes from.
local function file_text(found)
    if found.file == "" and found.database == "off" then
        return "none: the last POST /config is the configuration (database = off)"
    elseif found.file == "" then
        return "none: the store is the source of truth"
    end
    local differs = found.file_replaced and " (replaced by POST /config)"
        or (found.file_changed and " (changed since it was loaded; `sluice reload` loads it)")
        or ""
    return ("%s%s"):format(found.file, differs)
end

-- Whether clients get certificates at all.
local function has_tls(found)
    for _, list in ipairs({ found.proxy_listen, found.admin_listen, found.status_listen }) do
        for _, address in ipairs(list) do
            if address:find(" ssl%f[%s%z]") then
                return true
            end
        end
    end
    return false
end

-- The pids of workers, where these are few.
local function pids_text(pids)
    local are_shown = #pids > 0 and #pids <= PIDS_SHOWN
    return are_shown and (" (pid %s)"):format(table.concat(pids, ", ")) or ""
end

-- The workers, and those that an upgrade has left.
local function worker_lines(found)
    local draining = #found.workers.draining
    local lines = {
        ("workers  %d%s%s"):format(
            #found.workers.ready,
            pids_text(found.workers.ready),
            draining > 0 and (", %d shutting down"):format(draining) or ""
        ),
    }
    local events = found.events
    if events and events.workers_without > 0 then
        local line = "         %d without events: all %d slots of the event log are in use"
        lines[#lines + 1] = line:format(events.workers_without, events.slots)
    end
    if found.former then
        local count = #found.former.workers.draining + #found.former.workers.ready
        lines[#lines + 1] = ("old      nginx (pid %d) is finishing requests: %d worker%s"):format(
            found.former.pid,
            count,
            count == 1 and "" or "s"
        )
    end
    return lines
end

-- What is not shown, and why.
local function note(found)
    local why = found.owner and ("%s belongs to %s: "):format(found.prefix, found.owner) or ""
    if not found.proxy_listen then
        return ("note     %sits settings cannot be read"):format(why)
    elseif found.not_trusted then
        why = found.owner and why or found.not_trusted .. ": "
        return ("note     %sthe version of nginx, logs and certificates are not read"):format(why)
    end
    return nil
end

local function add_all(lines, more)
    for _, line in ipairs(more) do
        lines[#lines + 1] = line
    end
end

--- What runs, and where to look next.
-- @tparam table found what `sluice status --json` prints; without `proxy_listen` where this user
-- may not read the settings
-- @tparam number now seconds since 1970
-- @treturn table array of lines
function _M.status(found, now)
    local age = duration(found.uptime_s)
    local lines = { ("running in %s (pid %d, for %s)"):format(found.prefix, found.pid, age) }
    if not found.proxy_listen then
        add_all(lines, worker_lines(found))
        add_all(lines, found.control and control_lines(found.control) or {})
        lines[#lines + 1] = note(found)
        return lines
    end
    local required = found.admin_token_required and #found.admin_listen > 0
    add_all(lines, {
        ("version  %s on %s"):format(found.version, found.nginx or "nginx"),
        ("proxy    %s"):format(plain_addresses(found.proxy_listen)),
        ("admin    %s%s"):format(
            plain_addresses(found.admin_listen),
            required and ", token required" or ""
        ),
    })
    if #found.status_listen > 0 then
        lines[#lines + 1] = ("status   %s"):format(plain_addresses(found.status_listen))
    end
    lines[#lines + 1] = ("file     %s"):format(file_text(found))
    add_all(lines, worker_lines(found))
    add_all(lines, found.control and control_lines(found.control) or {})
    block(lines, "plugins", failure_lines(found.plugin_failures or {}))
    block(lines, "logs", found.logs)
    local shown = has_tls(found) and found.certificates
    block(lines, "tls", shown and certificate_lines(shown, now) or {})
    lines[#lines + 1] = note(found)
    block(lines, "next", {
        hint.command("get routes", found.prefix),
        hint.command("help") .. "; docs/operations.md",
    })
    return lines
end

return _M
