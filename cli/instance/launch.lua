--- Starts and reloads the nginx of one instance, and waits until it is true.

local console = require("cli.terminal.console")
local control = require("cli.instance.control")
local control_worker = require("cli.instance.control_worker")
local process = require("cli.instance.process")
local stat = require("posix.sys.stat")

local _M = {}

local START_TIMEOUT_S = 60
local RELOAD_TIMEOUT_S = 60
-- nginx loads the configuration, and asks for names, before it answers.
local LOAD_TIMEOUT_S = 120
local VERSION_TIMEOUT_S = 10
-- How long a master that complained, or has no worker, may still take to fork one.
local RELOAD_GRACE_S = 1
-- When it is said for which old workers a reload waits.
local WAITING_S = 10
local ASK_TIMEOUT_S = 2
-- Between two questions to the workers, which their access log shows.
local ASK_PAUSE_S = 0.1

local TROUBLE = { emerg = true, alert = true, crit = true, error = true }

-- What a master says of a worker's end, which may have nothing to do with what it was told.
local OF_A_WORKER = "^worker process %d+ exited "

--- What nginx complains of in its error log from now on.
-- @tparam string log its path
-- @tparam function is_wanted `(pid, text)`: whether a line of that process is
-- @treturn function gives the lines so far, without those that continue them
function _M.complaints(log, is_wanted)
    -- What stands on a terminal or in a pipe is there for all to see, and may be nobody's to read.
    if log:find("^/dev/") or log:find("^/proc/") then
        return function()
            return {}
        end
    end
    local info = stat.stat(log)
    local offset = info and info.st_size or 0
    return function()
        local file = io.open(log, "rb")
        if not file then
            return {}
        end
        file:seek("set", offset)
        local lines = {}
        for line in file:lines() do
            local level, pid, text = line:match("^%S+ %S+ %[(%a+)%] (%d+)#%d+: (.*)$")
            if TROUBLE[level] and is_wanted(tonumber(pid), text) then
                lines[#lines + 1] = "  " .. text
            end
        end
        file:close()
        return lines
    end
end

-- What nginx prints when it ends with an error, below a title.
local function refusal(title, text)
    -- What Sluice's module wants of it is missed first.
    if text:find("undefined symbol: lua", 1, true) then
        return { "nginx_modules: nginx has no Lua module; name it with --nginx-modules" }
    end
    local lines = { title }
    for line in text:gmatch("[^\n]+") do
        -- The one setting with variables of the user's.
        local variable = line:match('unknown "([^"]+)" variable')
        line = variable and "access_log_format: nginx has no variable $" .. variable or line
        lines[#lines + 1] = "  " .. line:gsub("^nginx: ", "")
    end
    return lines
end

--- The version of an nginx.
-- @tparam string binary path of the program
-- @treturn string|nil for example "nginx/1.22.1"; nil when it is no nginx
-- @treturn string|nil the first line that it printed instead
function _M.version(binary)
    local _, output = process.run(binary, { "-v" }, VERSION_TIMEOUT_S)
    local version = output:match("nginx version: (%S+/%S+)")
    return version, not version and output:match("[^\n]*") or nil
end

--- Asks nginx whether the rendered configuration is right.
-- @tparam table instance cli.instance
-- @tparam table settings resolved settings
-- @treturn boolean|nil true, or nil and an array of lines that say why
function _M.test(instance, settings)
    local status, output =
        process.run(settings.nginx_binary, instance:arguments(settings, "test"), LOAD_TIMEOUT_S)
    if status == 0 then
        return true
    end
    return nil, refusal("nginx rejected the configuration:", output)
end

--- Whether all workers are there that the settings ask for: between two forks, a master may be put
-- aside.
-- @tparam table workers of cli.instance
-- @tparam table settings resolved settings
-- @treturn boolean
function _M.all_ready(workers, settings)
    return #workers.ready >= settings.workers and #workers.control > 0 and #workers.starting == 0
end

-- Whether the control worker has made an image live: no traffic worker accepts before.
local function is_live(master)
    local found = control_worker.read(master)
    return found and found.state == "live"
end

--- Starts nginx as a daemon; returns when every worker serves.
-- nginx listens before it leaves the foreground, so a connection is taken from then on.
-- @tparam table instance cli.instance
-- @tparam table settings resolved settings
-- @treturn number|nil the master's pid, or nil and an array of lines that say why
function _M.daemon(instance, settings)
    local log = instance:error_log(settings)
    local complaints = _M.complaints(log, function()
        return true
    end)
    local status, output =
        process.run(settings.nginx_binary, instance:arguments(settings, "daemon"), LOAD_TIMEOUT_S)
    if status ~= 0 then
        return nil, refusal("nginx did not start:", output)
    end
    console.write_error(output)
    local master = process.poll(START_TIMEOUT_S, function()
        local found = instance:master()
        -- The workers come last: to find them is a scan of /proc.
        return found
            and is_live(found)
            and _M.all_ready(instance.workers(found), settings)
            and found
    end)
    if master then
        return master
    end
    _M.stop(instance, "SIGTERM", 5)
    local lines = complaints()
    table.insert(
        lines,
        1,
        ("not all workers were ready within %d seconds; see %s"):format(START_TIMEOUT_S, log)
    )
    return nil, lines
end

-- Which configuration of nginx's each worker was forked with, as the events' log knows it: the
-- master counts them, and a worker that it forks anew after a refused one has the number of before.
-- Nil when no worker answers.
local function generations(instance)
    local status, answer = control.ask(instance.control, "GET", "/events", nil, ASK_TIMEOUT_S)
    if status ~= 200 or not answer.log then
        return nil
    end
    local found = { youngest = answer.log.generation, of = {} }
    for _, worker in ipairs(answer.workers) do
        found.of[worker.pid] = worker.generation
    end
    return found
end

-- The ready workers: those of a generation after the `first`, those that go on with what was before
-- it, and those of them that are stopped. Where nobody could tell the first, a worker that was not
-- there then (`pids`) is a new one.
local function sort_workers(workers, found, first, pids)
    local sorted = { fresh = {}, old = {}, stopped = {}, draining = workers.draining }
    for _, pid in ipairs(workers.ready) do
        local is_fresh = not pids[pid] and found and (found.of[pid] or 0) > first.youngest
        local list = is_fresh and "fresh" or process.is_stopped(pid) and "stopped" or "old"
        table.insert(sorted[list], pid)
    end
    return sorted
end

-- Asks for the generations, now and then; what was answered last.
local function asking(instance)
    local asked_s, found = 0, nil
    return function()
        if process.now_s() - asked_s > ASK_PAUSE_S then
            found = generations(instance) or found
            asked_s = process.now_s()
        end
        return found
    end
end

-- Calls a function again and again, and says how long it has been true without a break.
local function lasting(test)
    local since_s
    return function()
        since_s = test() and (since_s or process.now_s()) or nil
        return since_s ~= nil and process.now_s() - since_s > RELOAD_GRACE_S
    end
end

-- What workers have logged since then of plugins that keep them from starting, each line once.
local function stuck_plugins(log)
    local complaints = _M.complaints(log, function(_, text)
        return text:find("plugin '[^']+' [%w ]*init_worker")
    end)
    return function()
        local lines, is_there = {}, {}
        for _, line in ipairs(complaints()) do
            line = line:gsub("%*%d+ %[lua%] %S+: [%w_]+%(%): ", ""):gsub(", context: .*", "")
            lines[#lines + 1] = not is_there[line] and line or nil
            is_there[line] = true
        end
        return lines
    end
end

-- Says once for which workers a reload waits: new ones that do not accept, which a plugin may keep
-- from it, or an old one that Lua keeps busy.
local function saying(settings, stuck)
    local since_s, is_said = process.now_s(), false
    return function(sorted)
        if is_said or process.now_s() - since_s <= WAITING_S then
            return
        end
        local lines
        if #sorted.fresh < settings.workers then
            lines = stuck()
            table.insert(lines, 1, "waiting for new workers to accept connections")
        elseif #sorted.old > 0 then
            local pids = table.concat(sorted.old, ", ")
            lines = { "waiting for old workers that do not answer: pid " .. pids }
        end
        if lines then
            is_said = true
            console.complain(lines)
        end
    end
end

--- Makes the running nginx take its configuration file, and finds out which one is live then: that
-- which its workers were forked with, whatever else happens to them meanwhile.
-- @tparam table instance cli.instance
-- @tparam table settings resolved settings
-- @tparam number master its pid
-- @tparam string log path of its error log
-- @treturn string "live": only new workers accept, save those that are stopped; "partly": new ones
--   accept, but not all that should; "waiting": none accepts yet, and the old ones do; "refused":
--   the old configuration is live; "dead": there is no worker; "killed": there is no master, and
--   these are its workers; "unknown": the master is still loading
-- @treturn table `fresh`, `old`, `stopped`, `draining`: pids; and `lines` of nginx that say why
function _M.hup(instance, settings, master, log)
    local first = generations(instance) or { youngest = 0 }
    local pids = {}
    for _, pid in ipairs(instance.workers(master).ready) do
        pids[pid] = true
    end
    local complaints = _M.complaints(log, function(pid, text)
        return pid == master and not text:find(OF_A_WORKER)
    end)
    local sent, err = process.send(master, "SIGHUP")
    if not sent then
        return "refused", { lines = { err } }
    end
    local stuck = stuck_plugins(log)
    local ask, say_late = asking(instance), saying(settings, stuck)
    local workers, found, sorted
    local is_refused = lasting(function()
        local is_newer = found and first.of and found.youngest > first.youngest
        return not is_newer and #sorted.fresh == 0 and #complaints() > 0
    end)
    local is_without_workers = lasting(function()
        return #workers.ready == 0 and #workers.starting == 0
    end)
    local is_stopped = lasting(function()
        return process.is_stopped(master)
    end)
    local word = process.poll(RELOAD_TIMEOUT_S, function()
        if is_stopped() then
            -- When it goes on it reads the configuration that is there then.
            return "stopped"
        end
        workers = instance.workers(master)
        found = ask()
        sorted = sort_workers(workers, found, first, pids)
        say_late(sorted)
        if is_refused() then
            return "refused"
        elseif is_without_workers() then
            return process.alive(master) and "dead" or "killed"
        end
        return #sorted.fresh >= settings.workers
            and #workers.starting == 0
            and #sorted.old == 0
            and "live"
    end)
    if word == "killed" then
        sorted = sort_workers({ ready = instance:orphans(), draining = {} }, found, first, pids)
    end
    sorted.lines = complaints()
    if word == "stopped" then
        sorted.lines = { ("  its master (pid %d) is stopped"):format(master) }
        return "refused", sorted
    elseif word then
        return word, sorted
    elseif #sorted.fresh > 0 then
        return "partly", sorted
    elseif #sorted.old > 0 and #workers.starting > 0 then
        sorted.lines = stuck()
        return "waiting", sorted
    elseif found and found.youngest > first.youngest then
        return "dead", sorted
    end
    return "unknown", sorted
end

local function have_ended(pids)
    for _, pid in ipairs(pids) do
        if not process.has_ended(pid) then
            return false
        end
    end
    return true
end

-- Those of some processes, and of their children, that are there: a set.
local function family(pids)
    local is_wanted, found = {}, {}
    for _, pid in ipairs(pids) do
        is_wanted[pid] = true
    end
    local all, parents = process.all()
    for _, pid in ipairs(all) do
        found[pid] = is_wanted[pid] or is_wanted[parents[pid]]
    end
    return found
end

local function has_left(before, now)
    for pid in pairs(before) do
        if not now[pid] then
            return true
        end
    end
    return false
end

--- Ends processes of nginx, and waits until they are gone.
-- @tparam {number,...} pids
-- @tparam string name "SIGTERM" (at once) or "SIGQUIT" (after the requests in work)
-- @tparam number timeout_s how long to wait; after SIGTERM how long for one more of them or their
-- children to be gone, each time: five hundred workers take a machine its time
-- @treturn boolean|nil true when they are gone (or were not there); nil and "timeout", or a reason
function _M.end_all(pids, name, timeout_s)
    -- Not their number: a master that reloads forks more before it takes a signal.
    local before = family(pids)
    for _, pid in ipairs(pids) do
        local sent, err = process.send(pid, name)
        if not sent and process.alive(pid) then
            return nil, err
        end
    end
    repeat
        local gone = process.poll(timeout_s, function()
            return have_ended(pids)
        end)
        if gone then
            return true
        end
        local now = family(pids)
        local goes_on = name == "SIGTERM" and has_left(before, now)
        before = now
    until not goes_on
    return nil, "timeout"
end

--- Ends the running nginx, or the workers that a killed one has left; as `end_all`.
-- @tparam table instance cli.instance
function _M.stop(instance, name, timeout_s)
    return _M.end_all(instance:leaders(), name, timeout_s)
end

return _M
