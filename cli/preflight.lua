--- What has to hold before nginx is started, so that a mistake is one clear line and nothing is
-- half-started. Each check adds its lines to an array of errors; none changes anything, save that
-- a listen address is bound for a moment.

local errno = require("posix.errno")
local pwd = require("posix.pwd")
local socket = require("posix.sys.socket")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local built = require("sluice.built")
local config = require("gateway.config")
local launch = require("cli.launch")
local log_folder = require("cli.log_folder")
local logs = require("cli.nginx_logs")
local options = require("cli.options")
local origins = require("gateway.config.origin")
local platform = require("cli.platform")
local process = require("cli.process")
local registry = require("gateway.plugin.registry")
local tls_files = require("cli.tls_files")
local values = require("cli.values")
local vault = require("gateway.config.vault")

local _M = {}

-- The control socket's path stands in 108 bytes of the kernel's.
local PREFIX_MAX = 107 - #"/run/control/socket"

local function add(errors, format, ...)
    errors[#errors + 1] = format:format(...)
end

local function flag(name)
    return options.flag(options.by_name[name])
end

local function install_hint(path, name)
    local package = platform.package_of_file[path]
    if package then
        return "install it: apt-get install " .. package
    end
    return "correct " .. flag(name)
end

-- Returns the version of nginx, nil when it cannot be run.
local function check_programs(settings, errors)
    local binary = settings.nginx_binary
    local version, said
    if unistd.access(binary, "x") then
        version, said = launch.version(binary)
        if not version then
            add(
                errors,
                "nginx_binary: %s is no nginx%s; correct %s",
                binary,
                said ~= "" and (" (it says: %s)"):format(said) or "",
                flag("nginx_binary")
            )
        end
    else
        add(
            errors,
            "nginx_binary: %s is missing or not executable; %s",
            binary,
            install_hint(binary, "nginx_binary")
        )
    end
    for _, module in ipairs(settings.nginx_modules) do
        if not unistd.access(module, "r") then
            add(
                errors,
                "nginx_modules: %s is missing; %s",
                module,
                install_hint(module, "nginx_modules")
            )
        end
    end
    return version
end

-- A package upgrade of nginx leaves a module behind that it no longer loads.
local function check_own_module(settings, version, errors)
    local path = built.module
    local file = io.open(built.nginx_version)
    local built_for = file and file:read("*l")
    if file then
        file:close()
    end
    if not built_for or not unistd.access(path, "r") then
        add(errors, "module: %s is missing; %s", path, built.remedy)
    elseif version and version:match("/(.*)") ~= built_for then
        add(
            errors,
            "module: %s was built for nginx %s, but %s is %s; %s",
            path,
            built_for,
            settings.nginx_binary,
            version,
            built.remedy
        )
    end
end

local function nearest_existing(path)
    while not stat.stat(path) do
        path = path:match("^(.+)/[^/]+$") or "/"
    end
    return path
end

-- Whether a user may pass through a directory, by its mode bits (ACLs are not looked at).
local function may_enter(info, user)
    local mode = info.st_mode
    if info.st_uid == user.pw_uid then
        return bit.band(mode, stat.S_IXUSR) ~= 0
    elseif info.st_gid == user.pw_gid then
        return bit.band(mode, stat.S_IXGRP) ~= 0
    end
    return bit.band(mode, stat.S_IXOTH) ~= 0
end

-- The first folder of a path that a user may not pass through.
local function closed_folder(target, user)
    local path = ""
    for part in target:gmatch("[^/]+") do
        path = path .. "/" .. part
        local info = stat.stat(path)
        if not info or not may_enter(info, user) then
            return info and path
        end
    end
    return nil
end

local function check_worker_user(settings, root, errors)
    if unistd.geteuid() ~= 0 then
        return
    end
    local user = pwd.getpwnam(settings.user)
    if not user then
        add(errors, "user: there is no user '%s'; give %s another", settings.user, flag("user"))
        return
    end
    if user.pw_uid == 0 then
        return
    end
    local path = closed_folder(settings.prefix .. "/tmp", user)
    if path then
        add(
            errors,
            "prefix: the workers' user '%s' may not enter %s; chmod o+x it, or give %s or %s",
            settings.user,
            path,
            flag("user"),
            flag("prefix")
        )
    end
    -- Their threads load Lua files when they need them.
    path = closed_folder(root .. "/gateway/control", user)
    if path then
        add(
            errors,
            "user: the workers' user '%s' may not enter %s, where Sluice is; chmod o+x it, or give "
                .. "%s",
            settings.user,
            path,
            flag("user")
        )
    end
end

local function check_prefix(settings, root, errors)
    if #settings.prefix > PREFIX_MAX then
        add(errors, "prefix: longer than %d bytes; give %s another", PREFIX_MAX, flag("prefix"))
        return
    end
    local existing = nearest_existing(settings.prefix)
    local info = stat.stat(existing)
    if stat.S_ISDIR(info.st_mode) == 0 then
        add(errors, "prefix: %s is not a directory; give %s another", existing, flag("prefix"))
    elseif not unistd.access(existing, "wx") then
        add(
            errors,
            "prefix: %s is not writable for this user; give %s a directory of your own",
            existing,
            flag("prefix")
        )
    else
        check_worker_user(settings, root, errors)
    end
end

local NO_FILE = { off = true, stderr = true, ["/dev/stdout"] = true, ["/dev/stderr"] = true }
local TERMINAL = { stderr = true, ["/dev/stdout"] = true, ["/dev/stderr"] = true }

local function check_logs(settings, foreground, errors)
    for _, name in ipairs(logs.names) do
        local value = settings[name]
        if not foreground and TERMINAL[value] then
            add(errors, "%s: %s needs --foreground; a daemon has no terminal", name, value)
        elseif not (NO_FILE[value] or value:find("^logs/[^/]*$") or value:find("^syslog:")) then
            -- `start` makes the prefix and its logs, and no other folder.
            local path = values.absolute(value, settings.prefix)
            local folder = path:match("^(.*)/[^/]*$")
            local is_made = folder == settings.prefix and not stat.stat(folder)
            local target = stat.stat(path) and path or (folder == "" and "/" or folder)
            if not is_made and not unistd.access(target, "w") then
                add(errors, "%s: cannot write %s; give %s another", name, path, flag(name))
            end
        end
    end
end

local function bind_error(address, listen)
    local passive = { socktype = socket.SOCK_STREAM, flags = socket.AI_PASSIVE }
    local host = listen.host == "*" and "0.0.0.0" or listen.host
    local found = socket.getaddrinfo(host, tostring(listen.port), passive)
    if not found then
        return ("%s has no address on this machine"):format(address)
    end
    for _, candidate in ipairs(found) do
        local fd = socket.socket(candidate.family, socket.SOCK_STREAM, 0)
        if not fd then
            return ("this machine has no %s"):format(
                candidate.family == socket.AF_INET6 and "IPv6" or "IPv4"
            )
        end
        socket.setsockopt(fd, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if candidate.family == socket.AF_INET6 then
            socket.setsockopt(fd, socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        end
        local bound, _, code = socket.bind(fd, candidate)
        -- No listen(): a client that happens to come now would be accepted, and dropped.
        unistd.close(fd)
        if not bound then
            return code
        end
    end
    return nil
end

local BIND_ADVICE = {
    [errno.EADDRINUSE] = "is taken by another program (`ss -ltnp` shows it); stop that, or give "
        .. "%s another port",
    [errno.EACCES] = "is a port that only root may open; give %s a port above 1023",
    [errno.EADDRNOTAVAIL] = "is no address of this machine; give %s one that is",
}

--- Tries to open each listen address, save those that the running instance holds.
-- @tparam table settings resolved settings
-- @tparam table held set of bare addresses ("127.0.0.1:8000") not to try
-- @tparam table errors array that gets one line for each that cannot be opened
function _M.check_listeners(settings, held, errors)
    for _, name in ipairs({ "proxy_listen", "admin_listen" }) do
        for _, address in ipairs(settings[name]) do
            local bare = address:match("^%S+")
            if not held[bare] then
                local problem = bind_error(bare, values.parse_listen(address))
                local advice = BIND_ADVICE[problem]
                if advice then
                    add(errors, "%s: %s " .. advice, name, bare, flag(name))
                elseif problem then
                    add(
                        errors,
                        "%s: cannot listen on %s: %s",
                        name,
                        bare,
                        errno.errno(problem) or problem
                    )
                end
            end
        end
    end
end

--- The bare addresses of some settings, for check_listeners.
-- @tparam table|nil settings
-- @treturn table set of strings
function _M.addresses(settings)
    local set = {}
    for _, name in ipairs({ "proxy_listen", "admin_listen" }) do
        for _, address in ipairs(settings and settings[name] or {}) do
            set[address:match("^%S+")] = true
        end
    end
    return set
end

--- Lowers worker_connections to what the hard limit of open files allows.
-- @tparam table settings changed in place
-- @tparam[opt] number master the nginx whose limit it is; that of this process when absent
-- @treturn string|nil a warning
function _M.fit_connections(settings, master)
    local limits = process.read_file(("/proc/%s/limits"):format(master or "self")) or ""
    local limit = tonumber(limits:match("Max open files +%S+ +(%d+)")) or math.huge
    local beside = platform.files_beside_connections(settings.workers)
    local room = math.max(limit - beside, options.by_name.worker_connections.min)
    local wanted = settings.worker_connections
    if wanted <= room then
        return nil
    end
    settings.worker_connections = room
    local line =
        "worker_connections: lowered from %d to %d, since %d is the hard limit of open files"
    return line:format(wanted, room, limit)
end

--- Loads the plugins that the settings allow, a user's own among them, and their kinds of entities.
-- @tparam table settings resolved settings: plugins, lua_package_path
-- @tparam table errors array that gets a line where that fails
-- @treturn table|nil gateway.plugin.registry
function _M.load_plugins(settings, errors)
    if settings.lua_package_path ~= "" then
        package.path = package.path .. ";" .. settings.lua_package_path
    end
    local plugins, err = registry.load(settings.plugins)
    if not plugins then
        add(errors, "plugins: %s", err)
    end
    return plugins
end

local function read_file(path, errors)
    local text, reason = process.read_file(path)
    if text then
        return text
    end
    local info = stat.stat(path)
    if info and stat.S_ISDIR(info.st_mode) ~= 0 then
        reason = path .. ": it is a directory"
    end
    add(errors, "file: cannot read %s", reason)
    return nil
end

--- Checks the declarative file through the gateway's own loader, unless the store was made from it.
-- @tparam string path the file
-- @tparam table settings resolved settings: plugins, lua_package_path, vault_env
-- @tparam table errors array that gets a line for each
-- @tparam[opt] string loaded origin of what the store has
-- @treturn table|nil `{ hash, origin, snapshot }`; no snapshot where the origin is the store's
function _M.check_file(path, settings, errors, loaded)
    if path == "" then
        add(errors, "file: no declarative configuration; give %s FILE", flag("file"))
        return nil
    end
    local text = read_file(path, errors)
    local plugins = text and _M.load_plugins(settings, errors)
    if not plugins then
        return nil
    end
    local hash = config.hash(text)
    local found = {
        hash = hash,
        origin = origins.of(hash, origins.surroundings(plugins, settings.vault_env)),
    }
    if found.origin == loaded then
        return found
    end
    local wrong
    local opts = {
        vault = vault.new(settings.vault_env),
        source = text,
        max_entities = settings.max_entities,
    }
    found.snapshot, wrong = config.load(path, plugins, opts)
    if not found.snapshot then
        add(errors, "file: %s has %d error%s:", path, #wrong, #wrong == 1 and "" or "s")
        for line in (config.format_errors(wrong) .. "\n"):gmatch("(.-)\n") do
            if line ~= "" then
                add(errors, "  %s", line)
            end
        end
        return nil
    end
    return found
end

-- Without a file the store is the truth. A file does not take the place of what no file has: that
-- would be gone for good.
local function check_configuration(settings, held, errors)
    local is_anew = held.problem and held.is_replaceable and settings.file ~= ""
    if held.problem and not is_anew then
        for _, line in ipairs(held.problem) do
            add(errors, "%s", line)
        end
        return nil
    end
    if settings.file == "" then
        _M.load_plugins(settings, errors)
        return {}
    end
    local found = _M.check_file(settings.file, settings, errors, held.origin)
    if found and is_anew then
        found.replaces = held.reason
    end
    if found and held.is_written then
        local line = "file: the store of this prefix holds what no file has; `sluice export` saves "
            .. "it, `sluice import %s` puts the file in its place, and without %s it is served"
        add(errors, line, settings.file, flag("file"))
        return nil
    end
    return found
end

--- Checks everything that a start needs.
-- @tparam table settings resolved settings
-- @tparam table opts `root`: Sluice's own directory; `foreground`; `held`: addresses that the
--   running instance holds; `store`: what the store has, of cli.store
-- @treturn table array of lines, empty when all is well
-- @treturn table|nil the declarative file as `check_file` has it, if that is right; an empty table
--   where none was given. With `replaces`, a reason, where the store was a copy of a file and is
--   damaged, so that it is made anew
-- @treturn table the files of TLS, of cli.tls_files
function _M.check(settings, opts)
    local errors = {}
    local version = check_programs(settings, errors)
    check_own_module(settings, version, errors)
    check_prefix(settings, opts.root, errors)
    check_logs(settings, opts.foreground, errors)
    log_folder.check(settings, errors)
    local files = tls_files.check(settings, errors)
    _M.check_listeners(settings, opts.held or {}, errors)
    return errors, check_configuration(settings, opts.store, errors), files
end

return _M
