--- Starts and reloads the nginx of one instance, and waits until it is true.

local process = require("cli.process")
local stat = require("posix.sys.stat")

local _M = {}

local START_TIMEOUT_S = 60
local RELOAD_TIMEOUT_S = 60
-- nginx loads the configuration, and asks for names, before it answers.
local LOAD_TIMEOUT_S = 120
local VERSION_TIMEOUT_S = 10
-- How long a master that complained may still take to fork its first new worker.
local RELOAD_GRACE_S = 1

local TROUBLE = { emerg = true, alert = true, crit = true, error = true }

-- Lines of the error log from an offset on with which nginx's master complains (all processes'
-- lines when no master is given), without the lines that continue them.
local function complaints(log, offset, master)
    local file = io.open(log, "rb")
    if not file then
        return {}
    end
    file:seek("set", offset)
    local lines = {}
    for line in file:lines() do
        local level, pid, text = line:match("^%S+ %S+ %[(%a+)%] (%d+)#%d+: (.*)$")
        if TROUBLE[level] and (not master or tonumber(pid) == master) then
            lines[#lines + 1] = "  " .. text
        end
    end
    file:close()
    return lines
end

local function size_of(path)
    local info = stat.stat(path)
    return info and info.st_size or 0
end

-- What nginx prints when it ends with an error, below a title.
local function refusal(title, text)
    -- What Sluice's module wants of it is missed first.
    if text:find("undefined symbol: lua", 1, true) then
        return { "nginx_modules: nginx has no Lua module; name it with --nginx-modules" }
    end
    local lines = { title }
    for line in text:gmatch("[^\n]+") do
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
    return nil, refusal("nginx does not take the configuration:", output)
end

-- Whether all that the settings ask for are there: between two forks, a master may be put aside.
local function all_ready(workers, settings)
    local count = settings.workers == "auto" and process.cpus() or settings.workers
    return #workers.ready >= count and #workers.starting == 0
end

--- Starts nginx as a daemon; returns when every worker serves.
-- nginx listens before it leaves the foreground, so a connection is taken from then on.
-- @tparam table instance cli.instance
-- @tparam table settings resolved settings
-- @treturn number|nil the master's pid, or nil and an array of lines that say why
function _M.daemon(instance, settings)
    local log = instance:error_log(settings)
    local offset = size_of(log)
    local status, output =
        process.run(settings.nginx_binary, instance:arguments(settings, "daemon"), LOAD_TIMEOUT_S)
    if status ~= 0 then
        return nil, refusal("nginx did not start:", output)
    end
    -- The gateway's own warnings, of names that do not resolve for example.
    io.stderr:write(
        (output:gsub("nginx: %[warn%] %[lua%] [^\n]-: warn%(%): ", "sluice: warning: "))
    )
    local master = process.poll(START_TIMEOUT_S, function()
        local found = instance:master()
        return found and all_ready(instance.workers(found), settings) and found
    end)
    if master then
        return master
    end
    _M.stop(instance, "SIGTERM", 5)
    local lines = complaints(log, offset)
    table.insert(
        lines,
        1,
        ("not every worker was ready in %d seconds; see %s"):format(START_TIMEOUT_S, log)
    )
    return nil, lines
end

local function old_among(pids, old)
    for _, pid in ipairs(pids) do
        if old[pid] then
            return true
        end
    end
    return false
end

local function all_among(workers, old)
    for _, pids in pairs(workers) do
        for _, pid in ipairs(pids) do
            if not old[pid] then
                return false
            end
        end
    end
    return true
end

--- Makes the running nginx take its configuration file; returns when only new workers accept.
-- @tparam table instance cli.instance
-- @tparam table settings resolved settings
-- @tparam number master its pid
-- @tparam string log path of its error log
-- @treturn table|nil instance.workers, or nil and an array of lines that say why
function _M.hup(instance, settings, master, log)
    local old = {}
    for _, pids in pairs(instance.workers(master)) do
        for _, pid in ipairs(pids) do
            old[pid] = true
        end
    end
    local offset = size_of(log)
    local sent, err = process.send(master, "SIGHUP")
    if not sent then
        return nil, { err }
    end
    local complained_s
    local workers = process.poll(RELOAD_TIMEOUT_S, function()
        local workers = instance.workers(master)
        if all_ready(workers, settings) and not old_among(workers.ready, old) then
            return workers
        end
        -- A master that cannot load the configuration complains and makes no new worker.
        if all_among(workers, old) and #complaints(log, offset, master) > 0 then
            complained_s = complained_s or process.now_s()
            return process.now_s() - complained_s > RELOAD_GRACE_S and {}
        end
    end)
    if workers and workers.ready then
        return workers
    end
    local lines = complaints(log, offset, master)
    local title = workers and "nginx did not take the configuration:"
        or ("no new workers in %d seconds; see %s"):format(RELOAD_TIMEOUT_S, log)
    table.insert(lines, 1, title)
    return nil, lines
end

local function any_alive(pids)
    for _, pid in ipairs(pids) do
        if process.alive(pid) then
            return true
        end
    end
    return false
end

--- Ends the running nginx, or the workers that a killed one has left, and waits until it is gone.
-- @tparam table instance cli.instance
-- @tparam string name "SIGTERM" (at once) or "SIGQUIT" (after the requests in work)
-- @tparam number timeout_s how long to wait
-- @treturn boolean|nil true when it is gone (or was not there); nil and "timeout", or a reason
function _M.stop(instance, name, timeout_s)
    local pids = instance:leaders()
    for _, pid in ipairs(pids) do
        local sent, err = process.send(pid, name)
        if not sent and process.alive(pid) then
            return nil, err
        end
    end
    local gone = process.poll(timeout_s, function()
        return not any_alive(pids)
    end)
    if not gone then
        return nil, "timeout"
    end
    return true
end

return _M
