--- What has to hold before nginx is started, so that a mistake is one clear line and nothing is
-- half-started. Each check adds its lines to an array of errors; none changes anything, save that
-- a listen address is bound for a moment.

local pwd = require("posix.pwd")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local built = require("sluice.built")
local config = require("gateway.config")
local document = require("gateway.config.document")
local file = require("sluice.file")
local launch = require("cli.instance.launch")
local listening = require("cli.instance.listening")
local log_folder = require("cli.instance.log_folder")
local logs = require("cli.nginx.logs")
local options = require("cli.options")
local image_limits = require("gateway.image.limits")
local origins = require("gateway.config.origin")
local paths = require("cli.instance.paths")
local platform = require("cli.options.platform")
local plugin_setting = require("cli.instance.plugin_setting")
local prefixes = require("cli.instance.prefix")
local process = require("cli.instance.process")
local tls_files = require("cli.nginx.tls_files")
local tokens = require("cli.options.tokens")
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
    return ("set %s to another"):format(flag(name))
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
                "nginx_binary: %s is not nginx%s; set %s to another",
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
        local can_read, _, code = unistd.access(module, "r")
        if not can_read then
            local hint = install_hint(module, "nginx_modules")
            add(errors, "nginx_modules: %s %s; %s", module, file.lack(code), hint)
        end
    end
    return version
end

-- A package upgrade of nginx leaves a module behind that it no longer loads.
local function check_own_module(settings, version, errors)
    local path = built.module
    local built_for = (process.read_file(built.nginx_version) or ""):match("[^\n]+")
    local can_read, _, code = unistd.access(path, "r")
    if not built_for or not can_read then
        local lack = can_read and file.MISSING or file.lack(code)
        add(errors, "module: %s %s; %s", path, lack, built.remedy)
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
        add(errors, "user: there is no user '%s'; set %s to another", settings.user, flag("user"))
        return
    end
    if user.pw_uid == 0 then
        return
    end
    local path = closed_folder(settings.prefix .. "/tmp", user)
    if path then
        add(
            errors,
            "prefix: the workers' user '%s' has no access to %s; chmod o+x it, or change %s or %s",
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
            "user: the workers' user '%s' has no access to %s, where Sluice is; chmod o+x it, or "
                .. "set %s to another",
            settings.user,
            path,
            flag("user")
        )
    end
end

local function check_prefix(settings, root, errors)
    if #settings.prefix > PREFIX_MAX then
        add(errors, "prefix: longer than %d bytes; set %s to another", PREFIX_MAX, flag("prefix"))
        return
    end
    local existing = nearest_existing(settings.prefix)
    local info = stat.stat(existing)
    if stat.S_ISDIR(info.st_mode) == 0 then
        add(errors, "prefix: %s is not a directory; set %s to another", existing, flag("prefix"))
    elseif not unistd.access(existing, "wx") then
        add(
            errors,
            "prefix: %s is not writable for this user; set %s to a directory that you own",
            existing,
            flag("prefix")
        )
    else
        check_worker_user(settings, root, errors)
    end
    if existing == settings.prefix then
        local _, reason = prefixes.new({ prefix = existing }):check(root)
        errors[#errors + 1] = reason
    end
end

local NO_FILE = { off = true, stderr = true, ["/dev/stdout"] = true, ["/dev/stderr"] = true }
local TERMINAL = { stderr = true, ["/dev/stdout"] = true, ["/dev/stderr"] = true }

local function check_logs(settings, foreground, errors)
    for _, name in ipairs(logs.names) do
        local value = settings[name]
        if not foreground and TERMINAL[value] then
            add(errors, "%s: %s needs --foreground; a daemon has no terminal", name, value)
        elseif not (NO_FILE[value] or value:find("^syslog:")) then
            -- `start` makes the prefix and its logs, and no other folder.
            local path = logs.target(value, settings.prefix)
            local folder = paths.resolve(file.parent_of(path))
            local is_made = folder == settings.prefix .. "/logs"
                or (folder == settings.prefix and not stat.stat(folder))
            local target = stat.stat(path) and path or folder
            if not is_made and not unistd.access(target, "w") then
                add(errors, "%s: cannot write %s; set %s to another", name, path, flag(name))
            end
        end
    end
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

--- As cli.instance.plugin_setting has it.
_M.load_plugins = plugin_setting.load

-- The text of the declarative file; where the settings hold it, its path says where that is from.
local function read_file(path, settings, errors)
    if path == settings.file and path:sub(1, 1) ~= "/" then
        return settings.declarative_config_string
    end
    local text, reason = process.read_file(path)
    if text then
        return text
    end
    local info = stat.stat(path)
    if info and stat.S_ISDIR(info.st_mode) ~= 0 then
        reason = path .. ": is a directory"
    end
    add(errors, "file: cannot read %s", reason)
    return nil
end

local function parse_options(text, settings)
    return {
        vault = vault.new(settings.vault_env),
        source = text,
        max_entities = settings.max_entities,
        limit = image_limits.checker(),
        doubts = function(plugin)
            return plugin.handler.lacks and plugin.handler.lacks(settings)
        end,
    }
end

-- Adds the lines of what is wrong with a file.
local function add_wrong(errors, path, wrong)
    local said, count = config.format_errors(wrong)
    add(errors, "file: %s has %s:", path, count)
    for line in (said .. "\n"):gmatch("(.-)\n") do
        if line ~= "" then
            add(errors, "  %s", line)
        end
    end
    for _, warning in ipairs(wrong.warnings or {}) do
        add(errors, "  warning: %s", warning)
    end
end

--- What the check of a file says of one that the gateway has not applied: in the same words, and
-- all of it. Where references lead is left out, as apply finds entities of the store.
-- @tparam string path to name
-- @tparam string text of the file
-- @tparam table settings resolved settings
-- @tparam string at path in the file of what the gateway has found wrong
-- @treturn {string,...}|nil lines; nil where the check does not find the same
function _M.explain(path, text, settings, at)
    local errors = {}
    -- The gateway's environment and its vaults are others.
    local plugins = not text:find("{vault://", 1, true) and _M.load_plugins(settings, errors)
    if not plugins then
        return nil
    end
    local opts = parse_options(text, settings)
    local _, wrong = config.parse(text, document.format_of(path), plugins, opts)
    local kept, is_found = { warnings = wrong and wrong.warnings }, false
    for _, err in ipairs(wrong or {}) do
        kept[#kept + 1] = not err.is_reference and err or nil
        -- At it, or below it: services[1] is not services[10].
        local is_there = err.path:sub(1, #at) == at and err.path:find("^[.[]", #at + 1)
        is_found = is_found or (not err.is_reference and (err.path == at or is_there ~= nil))
    end
    if not is_found then
        return nil
    end
    add_wrong(errors, path, kept)
    return errors
end

--- Checks the declarative file through the gateway's own loader, unless the store was made from it.
-- @tparam string path the file
-- @tparam table settings resolved settings: plugins, lua_package_path, vault_env
-- @tparam table errors array that gets a line for each
-- @tparam[opt] string loaded origin of what the store has
-- @treturn table|nil `{ hash, origin, text, snapshot, plugins = registry, parse = (known_id) ->
-- another snapshot }`; no snapshot where the origin is the store's
function _M.check_file(path, settings, errors, loaded)
    if path == "" then
        local line = "file: no file to check; name one (- for standard input), or set %s"
        add(errors, line, flag("file"))
        return nil
    end
    local text = read_file(path, settings, errors)
    local plugins = text and _M.load_plugins(settings, errors)
    if not plugins then
        return nil
    end
    local hash = config.hash(text)
    local found = {
        hash = hash,
        text = text,
        plugins = plugins,
        origin = origins.of(hash, origins.surroundings(plugins, settings.vault_env)),
    }
    if found.origin == loaded then
        return found
    end
    local wrong
    local opts = parse_options(text, settings)
    --- The same with ids that are known already (gateway.plan.known_ids).
    function found.parse(known_id)
        -- What is doubtful has been looked for.
        opts.known_id, opts.doubts = known_id, not known_id and opts.doubts or nil
        return config.load(path, plugins, opts)
    end
    found.snapshot, wrong = found.parse()
    if not found.snapshot then
        errors.coverage = config.coverage(text, document.format_of(path), plugins, opts)
        add_wrong(errors, path, wrong)
        return nil
    end
    return found
end

-- Without a file the store is the truth. A file does not take the place of what it lacks: that
-- would be gone for good.
local function check_configuration(settings, held, difference, errors)
    local is_anew = held.problem and held.is_replaceable and settings.file ~= ""
    if held.problem and not is_anew then
        for _, line in ipairs(held.problem) do
            add(errors, "%s", line)
        end
        return nil
    end
    if settings.file == "" then
        local plugins = _M.load_plugins(settings, errors)
        plugin_setting.check_in_use(plugins, held.plugins, errors)
        return { plugins = plugins }
    end
    local found = _M.check_file(settings.file, settings, errors, held.origin)
    if found and is_anew then
        found.replaces = held.reason
    end
    local is_other = held.is_source and held.origin and found and found.origin ~= held.origin
    local is_own = held.is_written or is_other
    local reason = found and is_own and difference(settings, found)
    if reason then
        add(errors, "file: %s", reason)
        local line = "  `sluice import %s` replaces the store with the file (`sluice export` saves "
            .. "it first), --no-file serves the store"
        add(errors, line, settings.file)
        return nil
    elseif found and is_own then
        found.same_as = held.revision
    end
    return found
end

--- What is valid in plugins and a declarative file, and probably not meant, as each command that
-- loads them shows it.
-- @tparam table found of `check` or `check_file`; of a file that is the store's already nothing is
-- said
-- @tparam[opt] string path of the file, to be named in each line about it
-- @treturn {string,...} lines
function _M.warnings(found, path)
    local lines = {}
    for _, warning in ipairs(found.snapshot and found.snapshot.warnings or {}) do
        lines[#lines + 1] = ("warning: %s%s"):format(path and path .. ": " or "", warning)
    end
    for _, warning in ipairs(found.plugins and found.plugins:warnings() or {}) do
        lines[#lines + 1] = "warning: " .. warning
    end
    return lines
end

--- Checks settings alone, without what only a start looks at: addresses, folders and users.
-- @tparam table settings resolved settings
-- @tparam table errors array that gets a line for each
-- @treturn table `plugins`
function _M.check_settings(settings, errors)
    check_programs(settings, errors)
    tokens.list(settings, errors)
    return { plugins = _M.load_plugins(settings, errors) }
end

--- Checks everything that a start needs.
-- @tparam table settings resolved settings; `admin_token_list` becomes what the file of
-- `admin_named_tokens` has
-- @tparam table opts `root`: Sluice's own directory; `foreground`; `old`: settings of the
--   running instance; `is_left`: it leaves its addresses before; `store`: what the store has, of
--   cli.store; `difference(settings, found)`: how the file differs from that (cli.planning)
-- @treturn table array of lines, empty when all is well
-- @treturn table|nil the declarative file as `check_file` has it, if that is right; its plugins
--   alone where none was given. With `replaces`, a reason, where the store was a copy of a file and
--   is damaged, so that it is recreated; with `same_as`, a revision of the store, which was written
--   and has the same
-- @treturn table the files of TLS, of cli.tls_files
function _M.check(settings, opts)
    local errors = {}
    local version = check_programs(settings, errors)
    check_own_module(settings, version, errors)
    check_prefix(settings, opts.root, errors)
    check_logs(settings, opts.foreground, errors)
    log_folder.check(settings, errors)
    settings.admin_token_list = tokens.list(settings, errors)
    local files = tls_files.check(settings, errors)
    listening.check(settings, opts.old, errors, opts.is_left)
    return errors, check_configuration(settings, opts.store, opts.difference, errors), files
end

return _M
