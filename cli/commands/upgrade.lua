--- The binary upgrade: an nginx of what is installed now takes the place of the one that runs.
--
-- 1. The old master executes the new one (SIGUSR2), which inherits its listeners and its memory.
-- 2. The new workers serve beside the old ones, and are watched. Where images have another layout
--    they wait until their own are live.
-- 3. The old control worker is told to leave, so that the new one gets the role and makes live what
--    the store holds. The old master starts another one, which waits for the role.
-- 4. The old master is told to leave after its requests (SIGQUIT).
--
-- What goes wrong before 4 ends the new nginx after its requests. The old one serves all the time,
-- so the way back starts nothing.

local control_worker = require("cli.instance.control_worker")
local launch = require("cli.instance.launch")
local process = require("cli.instance.process")
local stat = require("posix.sys.stat")

local _M = {}

-- How long a master may take to act on a signal, and a control worker that cannot make anything
-- live may go on trying.
local SIGNAL_TIMEOUT_S = 5
local ERROR_GRACE_S = 3
-- How long the new one may take for its requests when it has to go; then for its end.
local QUIT_TIMEOUT_S = 30
local STOP_TIMEOUT_S = 10
-- Of those that the new nginx wrote into the error log.
local MAX_LINES = 10

-- Why the new nginx cannot take over. None of its processes ends by itself.
local function find_failure(self)
    if not process.alive(self.old) then
        return ("the running nginx (pid %d) has exited"):format(self.old)
    elseif not process.alive(self.new) then
        return ("the new nginx (pid %d) has exited"):format(self.new)
    end
    for pid in pairs(self.seen) do
        if not process.alive(pid) then
            return ("a worker of the new nginx (pid %d) has died"):format(pid)
        end
    end
    for _, pid in ipairs(process.children(self.new)) do
        self.seen[pid] = true
    end
    return self.failure
end

-- Waits for a condition of the new nginx. Nil when the time is over; why, if there is a reason.
local function await(self, timeout_s, condition)
    local failure
    local is_met = process.poll(timeout_s, function()
        failure = find_failure(self)
        return failure or condition()
    end)
    return not failure and is_met or nil, failure
end

-- Has the running master execute the new one, and waits until that has loaded its configuration: it
-- writes its pid file then.
local function execute(self)
    local instance, old = self.instance, self.old
    local sent, err = process.send(old, "SIGUSR2")
    if not sent then
        return nil, err
    end
    local deadline, was_executed = process.now_s() + SIGNAL_TIMEOUT_S, false
    local failure = process.poll(self.timeout_s, function()
        local master = instance:master()
        if master and master ~= old then
            self.new = master
            return ""
        elseif stat.stat(instance.former_pid) then
            was_executed = true
        elseif was_executed and master then
            return "the new nginx exited before it served"
        elseif not was_executed and process.now_s() > deadline then
            return "the new nginx did not start"
        end
        return nil
    end)
    if self.new then
        return true
    end
    return nil, failure or ("the new nginx did not start within %d seconds"):format(self.timeout_s)
end

-- Waits until all workers are there, and then whether one of them dies.
local function watch(self)
    local are_ready, failure = await(self, self.timeout_s, function()
        return launch.all_ready(self.instance.workers(self.new), self.settings)
    end)
    if not are_ready then
        return nil,
            failure or ("not all new workers were ready within %d seconds"):format(self.timeout_s)
    end
    local _, death = await(self, self.watch_s, function() end)
    return not death, death
end

-- The role goes to the new control worker.
local function hand_over(self)
    local leaving = {}
    for _, pid in ipairs(self.instance.workers(self.old).control) do
        leaving[pid] = process.send(pid, "SIGQUIT")
    end
    local said, since_s
    local is_live, failure = await(self, self.timeout_s, function()
        local found = control_worker.read(self.new)
        if not found or leaving[found.pid] then
            return false
        end
        local is_new = self.seen[found.pid]
        if found.state == "live" then
            self.failure = not is_new and "the store went back to the running nginx" or nil
            return is_new
        elseif is_new and found.error and found.state ~= "waiting" then
            said, since_s = found.error, since_s or process.now_s()
            self.failure = process.now_s() > since_s + ERROR_GRACE_S and said or nil
        end
        return false
    end)
    if not is_live then
        failure = failure or ("no worker was live within %d seconds"):format(self.timeout_s)
        return nil, said and said ~= failure and ("%s: %s"):format(failure, said) or failure
    end
    return true
end

-- What the running master has executed, where that is no master yet: it has neither workers nor
-- nginx's title.
local function unborn(self)
    for _, pid in ipairs(process.children(self.old)) do
        local line = process.command_line(pid) or ""
        if not line:find("^nginx: ") and (line .. " "):find(self.instance.conf .. " ", 1, true) then
            return pid
        end
    end
    return nil
end

-- Ends the new nginx: after its requests, where it can do that.
local function go_back(self)
    local new, lines = self.new, {}
    if not new then
        launch.end_all({ unborn(self) }, "SIGKILL", STOP_TIMEOUT_S)
    elseif process.alive(new) and process.alive(self.old) then
        if launch.end_all({ new }, "SIGQUIT", QUIT_TIMEOUT_S) ~= true then
            launch.end_all({ new }, "SIGTERM", STOP_TIMEOUT_S)
            lines[1] = ("  its requests were aborted after %d seconds"):format(QUIT_TIMEOUT_S)
        end
    end
    local is_back = process.poll(SIGNAL_TIMEOUT_S, function()
        return self.instance:master() == self.old
    end)
    lines[#lines + 1] = is_back and "upgrade undone: the running gateway continues to serve"
        or "the upgrade could not be undone; see `sluice status`"
    return lines
end

-- Why there is no upgrade while the nginx before lives: nginx takes no third one (SIGUSR2) then.
local function occupied(former, workers)
    if #workers.ready > 0 then
        local line = "the previous nginx (pid %d) is still serving, as after an interrupted "
            .. "upgrade; `kill -QUIT %d` stops it gracefully"
        return line:format(former, former)
    end
    local line = "the previous nginx (pid %d) is still finishing requests (see `sluice status`); "
        .. "wait, or abort them with `kill -TERM %d`"
    return line:format(former, former)
end

--- Whether the running nginx can be upgraded now.
-- @tparam table instance cli.instance
-- @tparam number master its pid
-- @tparam table given what start.json remembers
-- @treturn boolean|nil true, or nil and the reason
function _M.check(instance, master, given)
    local former = instance:former()
    if former then
        return nil, occupied(former, instance.workers(former))
    elseif master == 1 or given.is_contained then
        return nil,
            "it runs in a container, which would end with this nginx; start a new container "
                .. "instead"
    elseif process.is_stopped(master) then
        return nil, ("its master (pid %d) is stopped"):format(master)
    elseif not control_worker.read(master) then
        -- With more rights than this user has: such as that to listen on low ports.
        return nil,
            ("this user cannot inspect its master (pid %d); run the command as root"):format(master)
    end
    return true
end

--- Has a new nginx take the place of the running one, whose files are written and tested.
-- @tparam table instance cli.instance
-- @tparam table settings resolved settings
-- @tparam number master pid of the running one
-- @tparam table opts `timeout`, `watch`: seconds, of each step and of the watch; `undo`: called
-- before the way back; `log`: path of the running one's error log
-- @treturn number|nil pid of the new master, where the old one leaves
-- @treturn nil|{string,...} why it goes back, and that it is
function _M.run(instance, settings, master, opts)
    local self = {
        instance = instance,
        settings = settings,
        timeout_s = opts.timeout,
        watch_s = opts.watch,
        old = master,
        -- pids of the new workers
        seen = {},
    }
    local others = {}
    for _, pid in ipairs(process.children(master)) do
        others[pid] = true
    end
    local complaints = launch.complaints(opts.log, function(pid)
        return not others[pid]
    end)
    local is_done, failure = execute(self)
    for _, step in ipairs({ watch, hand_over }) do
        if is_done then
            is_done, failure = step(self)
        end
    end
    if is_done then
        process.send(master, "SIGQUIT")
        return self.new
    end
    opts.undo()
    local lines = { "the new nginx did not take over: " .. failure }
    for i, line in ipairs(complaints()) do
        lines[#lines + 1] = i <= MAX_LINES and line or nil
    end
    for _, line in ipairs(go_back(self)) do
        lines[#lines + 1] = line
    end
    return nil, lines
end

return _M
