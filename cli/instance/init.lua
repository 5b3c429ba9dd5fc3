--- One instance: the nginx that runs in a prefix, and the files there.
--
--   <prefix>/nginx.conf      rendered, never edited
--   <prefix>/settings.json   the resolved settings, read by the gateway
--   <prefix>/start.json      what `start` was given by flag and environment, for reload and restart
--   <prefix>/run             what runs; a link to the setting run_dir, where that is given
--     nginx.pid              written by nginx; .oldbin: of the nginx before a binary upgrade
--     control/socket         the admin listener for this command; only the owner may enter
--   <prefix>/logs, tmp       relative logs, and bodies that do not fit in memory
--   <prefix>/tls             a certificate and its key, for names that nobody has one for
--   <prefix>/store           the entities, of the workers' user (gateway.store.database)
--
-- An nginx counts as this instance's only if its command line names this nginx.conf, or it with -p
-- where somebody has started a prepared one by hand: a stale pid file never leads a signal to a
-- stranger. A pid file that is gone hides nobody: /proc names those that run.

local cjson = require("cjson")
local file = require("sluice.file")
local control_worker = require("cli.instance.control_worker")
local logs = require("cli.nginx.logs")
local paths = require("cli.instance.paths")
local process = require("cli.instance.process")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")
local values = require("cli.options.values")

local _M = {}
local mt = { __index = _M }

local DAMAGED = "is damaged"

-- As nginx calls its processes.
local NGINX = "nginx:"
local MASTER = "nginx: master process"

-- Of a command line, what may name a prefix: anybody's may be as long as memory.
local LINE_MAX = 4 * process.PATH_MAX
local WORKER = "nginx: worker process"
local DRAINING = "nginx: worker process is shutting down"
-- As the module names worker 0 (module/gateway/process/ngx_sluice_control.c).
local CONTROL = "nginx: control process"

--- The instance of a prefix; does not touch the disk.
-- @tparam string prefix absolute directory
-- @treturn table
function _M.new(prefix)
    return setmetatable({
        prefix = prefix,
        conf = prefix .. "/nginx.conf",
        settings = prefix .. "/settings.json",
        start = prefix .. "/start.json",
        run = prefix .. "/run",
        pid = prefix .. "/run/nginx.pid",
        former_pid = prefix .. "/run/nginx.pid.oldbin",
        logs = prefix .. "/logs",
        tmp = prefix .. "/tmp",
        control_folder = prefix .. "/run/control",
        tls_folder = prefix .. "/tls",
        tls = prefix .. "/tls/self-signed.pem",
        control = prefix .. "/run/control/socket",
        store_folder = prefix .. "/store",
        store = prefix .. "/store/store.db",
    }, mt)
end

-- Whether a process is an nginx of this instance, by its command line.
local function is_own(self, pid)
    local line = (process.command_line(pid) or "") .. " "
    local function has(text)
        return line:find(text, 1, true) ~= nil
    end
    local function leads_to(option, path)
        local given = line:match((" %%-%s (/%%S*)"):format(option))
        return given
            and #given <= process.PATH_MAX
            and paths.are_same(values.absolute(given, "/"), path)
    end
    local is_in_prefix = has(" -p " .. self.prefix .. " ")
        or has(" -p " .. self.prefix .. "/ ")
        or leads_to("p", self.prefix)
    return has(" -c " .. self.conf .. " ")
        or (is_in_prefix and (has(" -c nginx.conf ") or leads_to("c", self.conf)))
end

-- The process that a file names, if it is one of this instance.
local function master_of(self, pid_file)
    local pid = tonumber((file.read(pid_file) or ""):match("^(%d+)%s*$"))
    return pid and is_own(self, pid) and pid or nil
end

local function has_title(pid, title)
    return (process.command_line(pid) or ""):sub(1, #title) == title
end

-- Whether a process finds the same prefix under this name; one of another container may not.
local function shares(self, pid)
    local here, there =
        stat.stat(self.prefix), stat.stat(("/proc/%d/root%s"):format(pid, self.prefix))
    return here and there and here.st_dev == there.st_dev and here.st_ino == there.st_ino
end

-- Whether a user may run this instance.
local function is_of_ours(self, user)
    local prefix = stat.stat(self.prefix)
    return user == 0 or user == unistd.geteuid() or (prefix ~= nil and user == prefix.st_uid)
end

-- The sockets that were bound to a path, as process.open_files names them; a socket file outlives
-- its socket. By the text: whoever has bound another may put a link into that one's way.
local function sockets_at(path)
    local found = {}
    for line in (process.read_file("/proc/net/unix") or ""):gmatch("[^\n]+") do
        local inode, name = line:match(" (%d+) (/.*)$")
        if name == path then
            found[("socket:[%s]"):format(inode)] = true
        end
    end
    return found
end

-- Whether a process has one of some sockets open, or a file of a folder: /proc names that without
-- symbolic links.
local function holds(pid, sockets, folder)
    local beginning = paths.resolve(folder) .. "/"
    for name in process.open_files(pid) do
        if sockets[name] or name:sub(1, #beginning) == beginning then
            return true
        end
    end
    return false
end

-- Whether a process is one that only a master can be, or a worker that it is just forking: anybody
-- may choose a title, so it has to hold the control socket or a log. Another user's is none: in
-- namespaces of its own a process has what it likes under this prefix.
local function is_master(self, pid)
    return has_title(pid, MASTER)
        and is_of_ours(self, process.user(pid))
        and is_own(self, pid)
        and shares(self, pid)
        and holds(pid, sockets_at(self.control), self.logs)
end

-- The master, by a scan of /proc: somebody may have removed its pid file.
local function find_master(self)
    for _, pid in ipairs(process.beginning_with(NGINX)) do
        local parent = is_master(self, pid) and process.parent(pid)
        if parent and not is_master(self, parent) then
            return pid
        end
    end
    return nil
end

-- The prefix that a process names in its title, as a master does.
local function named_prefix(pid)
    local line = (process.command_line(pid) or ""):sub(1, LINE_MAX)
    return line:match("^" .. MASTER .. ".- %-p (/[%w@%%+=:,./_-]+)/ %-c ")
end

-- The same, if it is the master there. Another user's may name what it likes, and a path may read
-- as words of ours.
local function prefix_of(pid)
    local prefix = named_prefix(pid)
    local instance = prefix and _M.new(prefix)
    local is_its = instance
        and is_of_ours(instance, process.user(pid))
        and shares(instance, pid)
        and (master_of(instance, instance.pid) == pid or is_master(instance, pid))
    return is_its and prefix or nil
end

--- The gateway that a process belongs to, as its master or a child of that.
-- @tparam number pid
-- @treturn string|nil its prefix; nil: there is none, or this user may not see it
-- @treturn number|nil pid of its master
function _M.gateway_of(pid)
    for _, one in ipairs({ pid, process.parent(pid) }) do
        local prefix = prefix_of(one)
        if prefix then
            return prefix, one
        end
    end
    return nil
end

--- The removed prefix of a gateway that a process of this user belongs to, as its master or a child
-- of that.
-- @tparam number pid
-- @treturn string|nil the prefix; nil: it is there, or the process is no such one
-- @treturn number|nil pid of the master
function _M.removed_of(pid)
    for _, one in ipairs({ pid, process.parent(pid) }) do
        local prefix = process.user(one) == unistd.geteuid() and named_prefix(one)
        local _, lack = file.lstat(prefix or "/")
        if prefix and lack == file.MISSING then
            return prefix, one
        end
    end
    return nil
end

--- The prefixes that gateways run in on this machine, as far as this user may see. Costs a scan of
-- /proc.
-- @treturn {string,...} in alphabetical order
function _M.running()
    local found, seen = {}, {}
    for _, pid in ipairs(process.beginning_with(NGINX)) do
        local prefix = prefix_of(pid)
        if prefix and not seen[prefix] then
            seen[prefix] = true
            found[#found + 1] = prefix
        end
    end
    table.sort(found)
    return found
end

--- The running master; while a binary upgrade is under way the new one, once it has written its pid
-- file. Costs a scan of /proc where there is none and no upgrade is under way.
-- @treturn number|nil its pid
function _M:master()
    local master = master_of(self, self.pid)
    -- A killed upgrade leaves the file of a former one that is gone.
    if not master and not self:former() then
        master = find_master(self)
    end
    return master
end

--- The master before the running one, after a binary upgrade, until its last worker has left.
-- @treturn number|nil its pid
function _M:former()
    return master_of(self, self.former_pid)
end

-- The workers that a killed master has left, where there is no master: those that serve, and all.
-- One is known by nginx's title, by a parent that is no nginx, and by the control socket or a log
-- of this prefix, which it holds open. Costs a scan of /proc; another user's are not seen.
local function left(self)
    local serving, all = {}, {}
    local sockets = sockets_at(self.control)
    for _, pid in ipairs(process.beginning_with(NGINX)) do
        local serves = has_title(pid, WORKER)
        local parent = (serves or has_title(pid, CONTROL)) and process.parent(pid)
        if parent and not has_title(parent, MASTER) and holds(pid, sockets, self.logs) then
            serving[#serving + 1] = serves and pid or nil
            all[#all + 1] = pid
        end
    end
    return serving, all
end

--- The workers that a killed master has left: they serve on, and nobody looks after them.
-- @treturn table array of pids, empty while the master runs; without the control worker
function _M:orphans()
    return self:master() and {} or (left(self))
end

--- The processes that a signal has to reach to end the instance: its masters (two after a binary
-- upgrade), or the workers that a killed one has left.
-- @treturn table array of pids, empty when it does not run
-- @treturn number|nil pid of the running master
function _M:leaders()
    local master, former = self:master(), self:former()
    if not master then
        local pids = select(2, left(self))
        pids[#pids + 1] = former
        return pids
    end
    return { master, former }, master
end

--- The workers of a master: those that serve traffic, and the control worker.
-- nginx names a worker once its init_worker phase is over, so a child that still has the master's
-- name is one that is not ready.
-- A control worker that leaves is none of them: it has no requests to finish.
-- @tparam number master pid
-- @treturn table { ready = {pids}, draining = {pids}, starting = {pids}, control = {pids} }
function _M.workers(master)
    local found = { ready = {}, draining = {}, starting = {}, control = {} }
    local lines, pids = {}, process.children(master)
    for i, pid in ipairs(pids) do
        lines[i] = process.command_line(pid) or ""
    end
    -- The control worker has any worker's title first. It takes its slot before that: whose title
    -- has been read has a slot by now.
    local slots = control_worker.pids(master)
    for i, pid in ipairs(pids) do
        local line, state = lines[i], nil
        if line:sub(1, #DRAINING) == DRAINING then
            state = not slots[pid] and "draining" or nil
        elseif
            line:sub(1, #CONTROL) == CONTROL or (slots[pid] and line:sub(1, #WORKER) == WORKER)
        then
            state = "control"
        elseif line:sub(1, #WORKER) == WORKER then
            state = "ready"
        elseif line:sub(1, #MASTER) == MASTER or line:find(" -c ", 1, true) then
            state = "starting"
        end
        if state then
            table.insert(found[state], pid)
        end
    end
    return found
end

local function read_json(path)
    local text = file.read(path)
    local ok, value = pcall(cjson.decode, text or "")
    return ok and type(value) == "table" and value or nil
end

--- The settings that the last start or reload wrote.
-- @treturn table|nil name -> typed value
function _M:read_settings()
    return read_json(self.settings)
end

-- Whether each of a file's settings has a text, as start has written it; a default is one.
local function have_texts(given, are_defaults)
    for _, one in pairs(type(given) == "table" and given or { false }) do
        local text = are_defaults and one or type(one) == "table" and one.text
        if type(text) ~= "string" then
            return false
        end
    end
    return true
end

--- What start was given, for cli.settings.
-- @treturn table|nil { flags, environment }
-- @treturn nil|string the reason where it has been started, and nobody knows how
function _M:read_remembered()
    local found = read_json(self.start)
    local is_whole = found and have_texts(found.flags) and have_texts(found.environment)
    if is_whole and (found.defaults == nil or have_texts(found.defaults, true)) then
        if not self:read_settings() and self:master() then
            local reason = "%s %s, so the settings of the running gateway are unknown; run "
                .. "`sluice stop`, then `sluice restart`"
            local _, lack = file.lstat(self.settings)
            return nil, reason:format(self.settings, lack or DAMAGED)
        end
        return found
    end
    local _, lack = file.lstat(self.start)
    if lack ~= file.MISSING or self:read_settings() then
        local reason = "%s %s, so the flags given to start are unknown; run `sluice stop`, "
            .. "then `sluice start` with these flags"
        return nil, reason:format(self.start, lack or DAMAGED)
    end
    return nil
end

--- The command line that nginx gets.
-- @tparam table settings resolved settings
-- @tparam string mode "daemon", "foreground" or "test"
-- @treturn table array of strings
function _M:arguments(settings, mode)
    local arguments = { "-p", self.prefix .. "/", "-c", self.conf, "-e", self:error_log(settings) }
    if mode == "test" then
        arguments[#arguments + 1] = "-t"
        arguments[#arguments + 1] = "-q"
    elseif mode == "foreground" and settings.daemon then
        -- Otherwise nginx.conf says so.
        arguments[#arguments + 1] = "-g"
        arguments[#arguments + 1] = "daemon off;"
    end
    return arguments
end

--- Where the error log goes.
-- @tparam table settings resolved settings
-- @treturn string an absolute path, or "stderr"
function _M:error_log(settings)
    return logs.target(settings.error_log, self.prefix)
end

--- The log files.
-- @tparam table settings resolved settings
-- @treturn table array of absolute paths, each once
function _M:log_files(settings)
    local found, seen = {}, {}
    for _, name in ipairs(logs.names) do
        -- Another version may have written them.
        local path = settings[name] and logs.target(settings[name], self.prefix)
        if path and path:sub(1, 1) == "/" and not seen[path] then
            found[#found + 1], seen[path] = path, true
        end
    end
    return found
end

return _M
