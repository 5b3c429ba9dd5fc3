--- Writes the files of a prefix, and takes back what it wrote when a start fails.
--
-- Files hold secrets, and the one who writes may be root: a folder is used only if it belongs to
-- the user of the command and nobody else may write to it or move it away, and no link, pipe or
-- second name of a file that somebody has left there is written to. In a container of Sluice's
-- image nobody else is, and its platform chooses the user and whose a folder is.

local cjson = require("cjson")
local dirent = require("posix.dirent")
local errno = require("posix.errno")
local fcntl = require("posix.fcntl")
local ffi = require("ffi")
local file = require("sluice.file")
local grp = require("posix.grp")
local pwd = require("posix.pwd")
local saved = require("cli.instance.saved")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local complain = require("cli.terminal.console").complain
local environments = require("cli.options.environment")
local is_equal = require("gateway.schema.equal")
local options = require("cli.options")
local paths = require("cli.instance.paths")
local tls = require("cli.nginx.tls")
local volumes = require("cli.instance.volumes")
local worker_user = require("cli.instance.worker_user")

local _M = {}
local mt = { __index = _M }

ffi.cdef("int fchown(int fd, unsigned user, unsigned group);")

local DIRECTORY_MODE = tonumber("755", 8)
local LOGS_MODE = tonumber("750", 8)
local PRIVATE_MODE = tonumber("700", 8)
local LOG_MODE = tonumber("640", 8)
local STICKY = tonumber("1000", 8)

local OTHERS_WRITE = bit.bor(stat.S_IWGRP, stat.S_IWOTH)

local function name_of(uid)
    local user = pwd.getpwuid(uid)
    return user and user.pw_name or "user " .. uid
end

local function is_kind(info, test)
    return test(info.st_mode) ~= 0
end

local function remove_tree(path)
    local info = stat.lstat(path)
    if not info then
        return
    end
    if not is_kind(info, stat.S_ISDIR) then
        unistd.unlink(path)
        return
    end
    for entry in dirent.files(path) do
        if entry ~= "." and entry ~= ".." then
            remove_tree(path .. "/" .. entry)
        end
    end
    unistd.rmdir(path)
end

--- A writer for one instance's files; does not touch the disk yet.
-- @tparam table instance cli.instance
-- @treturn table
function _M.new(instance)
    return setmetatable({ instance = instance, created = {}, before = {} }, mt)
end

local function flag(name)
    return options.flag(options.by_name[name])
end

-- Whether a folder above that of an option lets others than root, this user and the owner of
-- Sluice's own files put something in the place of what is in it.
local function check_above(path, trusted, name)
    local info, err = stat.stat(path)
    if not info then
        return nil, err
    elseif environments.is_contained() then
        return true
    end
    local is_sticky = bit.band(info.st_mode, STICKY) ~= 0
    local is_open = bit.band(info.st_mode, stat.S_IWOTH) ~= 0 and not is_sticky
    if is_open and not volumes.is_of_container(path, info) then
        return nil, ("%s: all users can write to %s; chmod o-w it"):format(name, path)
    elseif not trusted[info.st_uid] then
        local why = "%s: %s belongs to %s, who could replace what is in it; set %s to another"
        return nil, why:format(name, path, name_of(info.st_uid), flag(name))
    end
    return true
end

-- Whether the folder of an option, or one in it, is one, and its owner's alone.
local function check_own(path, owner, name)
    local info, err = stat.lstat(path)
    if not info then
        return nil, err
    elseif not is_kind(info, stat.S_ISDIR) then
        return nil, ("%s: %s is not a directory; remove it"):format(name, path)
    elseif environments.is_contained() then
        return true
    elseif info.st_uid ~= owner then
        local why = "%s: %s belongs to %s, not to %s; chown it, or set %s to another"
        return nil, why:format(name, path, name_of(info.st_uid), name_of(owner), flag(name))
    elseif bit.band(info.st_mode, OTHERS_WRITE) ~= 0 then
        return nil, ("%s: other users can write to %s; chmod go-w it"):format(name, path)
    end
    return true
end

-- Makes what is missing of a path, from above; another may be making it at the same time.
local function make_folder(self, path, mode)
    local made, err = stat.mkdir(path, mode)
    if made ~= 0 then
        return stat.lstat(path) and true or nil, "cannot create " .. err
    end
    self.created[#self.created + 1] = path
    -- Root's workers are another user: whatever root's umask, they have to get in.
    if unistd.geteuid() == 0 then
        stat.chmod(path, mode)
    end
    return true
end

-- The folders above that of an option; those that are missing are made by a function, if there is
-- one.
local function check_all_above(path, trusted, name, make)
    if path ~= "/" then
        local right, err = check_all_above(file.parent_of(path), trusted, name, make)
        if not right then
            return nil, err
        end
    end
    if not stat.stat(path) then
        if not make then
            return true
        end
        local made, err = make(path)
        if not made then
            return nil, err
        end
    end
    return check_above(path, trusted, name)
end

-- Who may own the folders above the prefix: Sluice's own owner is trusted anyway.
local function trusted_users(root)
    local code = stat.stat(root)
    return { [0] = true, [unistd.geteuid()] = true, [code and code.st_uid or 0] = true }
end

-- Gives the files in a folder, of workers who had another user, to those of now. A file of somebody
-- else's stays what it is: whoever left it there may have given a name to a file of root's.
local function give_files(path, from, account)
    for _, name in ipairs(dirent.dir(path)) do
        local fd, info = file.open(path .. "/" .. name)
        if fd then
            if info.st_uid == from then
                ffi.C.fchown(fd, account.pw_uid, account.pw_gid)
            end
            unistd.close(fd)
        end
    end
end

-- Gives a folder of root's, or of earlier workers, to the workers, all of it or to their group.
local function give_away(folder, account, from)
    local uid = folder.is_workers and account.pw_uid or -1
    local given, err = unistd.chown(folder[1], uid, account.pw_gid)
    if given and folder.is_workers and from then
        give_files(folder[1], from, account)
    end
    return given, err and "cannot change the owner of " .. err
end

-- The folder of an option, or one in it; those above it are its owner's alone by now.
local function make_own(self, folder, account)
    local path = folder[1]
    local is_workers = account and folder.is_workers
    local found = stat.lstat(path)
    if not found then
        local made, err = make_folder(self, path, folder.mode or DIRECTORY_MODE)
        if not made then
            return nil, err
        end
    end
    -- What is the workers' may be those of an earlier start, who had another user.
    local owner = is_workers and (found and found.st_uid) or unistd.geteuid()
    local right, err = check_own(path, owner, folder.option or "prefix")
    local is_new = right and account and (folder.is_workers or folder.is_group) and not found
    if is_new or (right and is_workers and owner ~= account.pw_uid) then
        right, err = give_away(folder, account, found and found.st_uid)
    end
    return right, err
end

-- What nginx opens, makes or gives to its workers by name, as root: none may be a link, a pipe, or
-- a second name of a file elsewhere.
local function check_left(path, test)
    local info = stat.lstat(path)
    if not info then
        return true
    end
    local is_file = test == stat.S_ISREG
    if not is_kind(info, test) or (is_file and info.st_nlink > 1) then
        local what = is_file and "a file with one name" or "a directory"
        return nil, ("prefix: %s is not %s; remove it"):format(path, what)
    end
    return true
end

-- What a log may be a link to, as in a container of Kong's: nginx's own output and error.
local STANDARD = { ["/dev/stdout"] = true, ["/dev/stderr"] = true }

-- A log that lies elsewhere may be a link or a device, but not a link of anybody's.
local function check_link(path)
    local info = stat.lstat(path)
    if info and is_kind(info, stat.S_ISLNK) then
        if info.st_uid ~= 0 and info.st_uid ~= unistd.geteuid() then
            return nil,
                ("%s is a link that belongs to %s; remove it"):format(path, name_of(info.st_uid))
        end
    end
    return true
end

--- Has `undo` remove a folder that was made elsewhere.
-- @tparam string path
function _M:note(path)
    self.created[#self.created + 1] = path
end

--- Refuses a prefix that somebody else could write to, before anything that stands there is
-- believed: settings name programs.
-- @tparam string root Sluice's own directory
-- @treturn boolean|nil true, or nil and the reason
function _M:check(root)
    local prefix = self.instance.prefix
    local right, err = check_all_above(file.parent_of(prefix), trusted_users(root), "prefix")
    if right and stat.lstat(prefix) then
        right, err = check_own(prefix, unistd.geteuid(), "prefix")
    end
    return right, err
end

--- Makes the folder of what runs for the owner of the prefix, who may not do that in /run. By root;
-- whatever is there already is the owner's to judge.
-- @tparam string path setting `run_dir`
-- @tparam table account posix.pwd's
-- @tparam string root Sluice's own directory
function _M.make_run_dir(path, account, root)
    path = paths.resolve(path)
    -- Root's umask may be any.
    if
        check_all_above(file.parent_of(path), trusted_users(root), "run_dir")
        and stat.mkdir(path, DIRECTORY_MODE) == 0
    then
        stat.chmod(path, DIRECTORY_MODE)
        unistd.chown(path, account.pw_uid, account.pw_gid)
    end
end

-- The folder of what runs: where that is not in the prefix, a link there leads to it, so that
-- commands go by the prefix alone. A link that leads elsewhere may lead to what runs: it is not
-- replaced.
local function make_run(self, setting, root)
    local link = self.instance.run
    local path = setting == "" and link or paths.resolve(setting)
    if path == link then
        return make_own(self, { link })
    end
    local right, err = check_all_above(file.parent_of(path), trusted_users(root), "run_dir")
    if right then
        right, err = make_own(self, { path, option = "run_dir" })
    end
    if right and not stat.lstat(link) then
        right, err = unistd.link(path, link, true)
        self.created[#self.created + 1] = right and link
    end
    if right and unistd.readlink(link) ~= path then
        local why = "run_dir: %s is not a link to %s; stop the gateway, and remove it"
        return nil, why:format(link, path)
    end
    return right, err
end

--- Creates the prefix, takes its lock, and creates its directories where they are missing; refuses
-- those that somebody else could write to.
-- @tparam table settings resolved settings: `user`, whom the workers run as, when root starts them;
-- `run_dir`
-- @tparam string root Sluice's own directory
-- @treturn boolean|nil true, or nil and the reason
function _M:make_directories(settings, root)
    local instance = self.instance
    local account = worker_user.account(settings.user)
    local above = file.parent_of(instance.prefix)
    local right, err = check_all_above(above, trusted_users(root), "prefix", function(path)
        return make_folder(self, path, DIRECTORY_MODE)
    end)
    if right then
        right, err = make_own(self, { instance.prefix }, account)
    end
    if right then
        right, err = self:lock()
    end
    if right then
        right, err = make_run(self, settings.run_dir, root)
    end
    for _, folder in ipairs({
        { instance.logs, mode = LOGS_MODE, is_group = true },
        { instance.tmp },
        { instance.control_folder, mode = PRIVATE_MODE },
        { instance.tls_folder, mode = PRIVATE_MODE },
        -- The one directory that workers write to by themselves.
        { instance.store_folder, mode = PRIVATE_MODE, is_workers = true },
    }) do
        if right then
            right, err = make_own(self, folder, account)
        end
    end
    if right then
        right, err = check_left(instance.pid, stat.S_ISREG)
    end
    for _, entry in ipairs(right and dirent.dir(instance.tmp) or {}) do
        if right and entry ~= ".." then
            right, err = check_left(instance.tmp .. "/" .. entry, stat.S_ISDIR)
        end
    end
    return right, err
end

--- Makes the log files that are missing, for their owner and group alone: nginx would make them
-- readable for everybody.
-- @tparam table settings resolved settings
-- @treturn boolean|nil true, or nil and the reason
function _M:make_logs(settings)
    local instance = self.instance
    for _, path in ipairs(instance:log_files(settings)) do
        local is_ours = paths.holds(instance.prefix, path)
            and not STANDARD[unistd.readlink(path) or ""]
        local right, err
        if is_ours then
            right, err = check_left(path, stat.S_ISREG)
        else
            right, err = check_link(path)
        end
        if right and not stat.lstat(path) then
            right, err = file.create(path, "", LOG_MODE)
            self.created[#self.created + 1] = right and path or nil
        end
        if not right then
            return nil, err
        end
        if is_ours then
            stat.chmod(path, LOG_MODE)
        end
    end
    return true
end

--- Takes the lock of the prefix, so that two commands do not start or reload at once.
-- It goes with this process; a program that replaces the process does not inherit it.
-- @treturn boolean|nil true, or nil and the reason
function _M:lock()
    local path = self.instance.prefix .. "/sluice.lock"
    if not stat.stat(path) then
        self.created[#self.created + 1] = path
    end
    local fd, err = file.open(path, bit.bor(fcntl.O_RDWR, fcntl.O_CREAT))
    if not fd then
        return nil, "cannot open " .. err
    end
    local region = { l_type = fcntl.F_WRLCK, l_whence = fcntl.SEEK_SET, l_start = 0, l_len = 0 }
    if fcntl.fcntl(fd, fcntl.F_SETLK, region) ~= 0 then
        unistd.close(fd)
        -- What this command has made is the other's now, and not this one's to take away.
        self.created = {}
        return nil, "another sluice command is running in " .. self.instance.prefix
    end
    return true
end

function _M:write(path, text)
    self.before[path] = file.read(path) or false
    local written, err = file.replace(path, text)
    return written, err and "cannot write " .. err
end

-- The group of the workers' user when root starts nginx; nil otherwise. nginx by itself would take
-- one with the user's name.
local function group_of(settings)
    local user = unistd.geteuid() == 0 and pwd.getpwnam(settings.user)
    local group = user and grp.getgrgid(user.pw_gid)
    return group and group.gr_name or nil
end

local function render(settings, root)
    return require("cli.nginx.conf").render(settings, root, group_of(settings))
end

--- Whether nginx.conf and settings.json already say what these settings would.
-- @tparam table settings resolved settings
-- @tparam string root Sluice's own directory
-- @treturn boolean
function _M:is_written(settings, root)
    local written = self.instance:read_settings()
    return written ~= nil
        and is_equal(written, cjson.decode(cjson.encode(saved.settings(settings))))
        and file.read(self.instance.conf) == render(settings, root)
end

--- Writes start.json alone.
-- @tparam table remembered what start was given (cli.settings), the `hash` of the file that is
-- live, and the digest of `files` (cli.tls_files)
-- @treturn boolean|nil true, or nil and the reason
function _M:write_remembered(remembered)
    return self:write(self.instance.start, cjson.encode(remembered) .. "\n")
end

-- Once: clients may have been told to trust it.
local function make_certificate(self)
    if stat.lstat(self.instance.tls) then
        return true
    end
    return self:write(self.instance.tls, tls.self_signed(os.time()))
end

--- Writes nginx.conf, settings.json and start.json, and makes the log files and the certificate.
-- @tparam table settings resolved settings
-- @tparam table remembered what start was given (cli.settings), the `hash` of the file that is
-- live, and the digest of `files` (cli.tls_files)
-- @tparam string root Sluice's own directory
-- @treturn boolean|nil true, or nil and the reason
function _M:write_files(settings, remembered, root)
    local files = saved.texts(settings)
    files[#files + 1] = { self.instance.conf, render(settings, root) }
    local text = cjson.encode(saved.settings(settings)) .. "\n"
    files[#files + 1] = { self.instance.settings, text }
    files[#files + 1] = { self.instance.start, cjson.encode(remembered) .. "\n" }
    for _, each in ipairs(files) do
        local written, err = self:write(each[1], each[2])
        if not written then
            return nil, err
        end
    end
    local made, err = make_certificate(self)
    if not made then
        return nil, err
    end
    return self:make_logs(settings)
end

--- Puts back the files that were there before, and removes what was not. Names what it could not.
function _M:undo()
    for path, text in pairs(self.before) do
        -- What could not be written is as it was.
        local undone, err, code = file.read(path) == text
        if text and not undone then
            undone, err = file.replace(path, text)
        elseif not text then
            undone, err, code = os.remove(path)
        end
        if not undone and code ~= errno.ENOENT then
            complain({ ("cannot put back %s: %s"):format(path, err) })
        end
    end
    for i = #self.created, 1, -1 do
        remove_tree(self.created[i])
    end
    self.before, self.created = {}, {}
end

return _M
