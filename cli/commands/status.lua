--- status: whether the gateway runs, what it serves with, and where to look next.

local certificate = require("cli.commands.certificate")
local config = require("gateway.config")
local console = require("cli.terminal.console")
local control = require("cli.instance.control")
local control_worker = require("cli.instance.control_worker")
local file = require("sluice.file")
local hint = require("cli.terminal.hint")
local invocation = require("cli.commands.invocation")
local launch = require("cli.instance.launch")
local prefixes = require("cli.instance.prefix")
local process = require("cli.instance.process")
local pwd = require("posix.pwd")
local report = require("cli.terminal.report")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")
local version = require("gateway.version")

local _M = {}

-- What is running is told also where nobody answers.
local TIMEOUT_S = 2
-- A page: more certificates are counted no further.
local CERTIFICATES = 1000

-- What an upgrade has left to leave.
local function former(instance)
    local pid = instance:former()
    return pid and { pid = pid, workers = instance.workers(pid) }
end

local function ask(instance, target)
    local status, answer = control.ask(instance.control, "GET", target, nil, TIMEOUT_S)
    return status == 200 and answer or nil
end

-- Whether all workers get the events of the others, in a moment.
local function events_of(instance)
    local log = (ask(instance, "/events") or {}).log
    return log
            and {
                slots = log.slots,
                taken = log.attached + log.detached,
                workers_without = log.unattached,
            }
        or nil
end

-- Whether a path is a file that others read alike: no pipe, and not this command's standard input.
local function is_plain(path)
    local info = not path:find("^/dev/") and not path:find("^/proc/") and stat.stat(path)
    return info and stat.S_ISREG(info.st_mode) ~= 0
end

-- Whether POST /config has put something else in the place of the file: what is live is neither
-- what was read of it last nor, after a reload that was killed, what it has now. Else, whether the
-- file has changed since it was read.
local function compare_file(instance, settings, now)
    local live_hash = now and settings.file ~= "" and now.configuration_hash
    local remembered = live_hash and instance:read_remembered()
    if not remembered or not remembered.hash then
        return false, false
    end
    local text = settings.declarative_config_string
    if settings.file:sub(1, 1) == "/" then
        text = is_plain(settings.file) and process.read_file(settings.file) or nil
    end
    local is_live = text and config.hash(text) == live_hash
    if remembered.hash == live_hash then
        -- Who may not read it does not know.
        return false, text ~= nil and not is_live
    end
    return not is_live, false
end

-- The certificates of the configuration, that which expires first before others, and that for all
-- other names; nil where nobody answers.
local function certificates_of(instance, settings)
    local answer = ask(instance, ("/certificates?size=%d&reveal=0"):format(CERTIFICATES))
    if not answer then
        return nil
    end
    local list = {}
    for i, each in ipairs(answer.data) do
        local names = type(each.snis) == "table" and each.snis or {}
        list[i] = {
            names = names,
            id = each.id,
            expires = certificate.expiry(each.cert),
            uncovered = certificate.uncovered(each.cert, names),
        }
    end
    table.sort(list, function(a, b)
        return (a.expires or 0) < (b.expires or 0)
    end)
    local own = (settings.ssl_cert or {})[1]
    return {
        list = list,
        are_more = type(answer.offset) == "string",
        self_signed_expires = not own and certificate.expiry(file.read(instance.tls) or "") or nil,
        default_expires = own and certificate.expiry(file.read(own) or "") or nil,
    }
end

-- Whose a prefix is, where that is another user.
local function other_owner(instance)
    local info = stat.stat(instance.prefix)
    if not info or info.st_uid == unistd.geteuid() then
        return nil
    end
    local account = pwd.getpwuid(info.st_uid)
    return account and account.pw_name or tostring(info.st_uid)
end

-- What the settings say, which another user may not read.
local function configured(instance, settings, is_ours, now)
    local is_replaced, is_changed = false, false
    if is_ours then
        is_replaced, is_changed = compare_file(instance, settings, now)
    end
    return {
        -- Another user's may name any program.
        nginx = is_ours and settings.nginx_binary and launch.version(settings.nginx_binary) or nil,
        file = settings.file,
        database = settings.database,
        file_replaced = is_replaced,
        file_changed = is_changed,
        proxy_listen = settings.proxy_listen or {},
        admin_listen = settings.admin_listen or {},
        admin_token_required = (settings.admin_token or "") ~= ""
            or settings.admin_token_list ~= nil,
        status_listen = settings.status_listen or {},
        logs = is_ours and instance:log_files(settings) or {},
    }
end

local function running(instance, master, context)
    local settings = instance:read_settings()
    local is_ours, reason = prefixes.new(instance):check(context.root)
    local found_control = control_worker.read(master)
    local answers = found_control and found_control.life == "answers"
    -- Whoever answers looks at the store's files first, and may have lost them.
    local now = answers and found_control.state == "live" and ask(instance, "/status")
    if now then
        found_control.state, found_control.error = now.control.state, now.control.message
    end
    local found = settings and configured(instance, settings, is_ours, now) or {}
    found.pid = master
    found.uptime_s = process.age_s(master) or 0
    found.owner = other_owner(instance)
    found.not_trusted = not is_ours and reason or nil
    found.workers = instance.workers(master)
    found.former = former(instance)
    found.control = found_control
    found.events = answers and events_of(instance) or nil
    found.plugin_failures = now and now.plugin_failures or nil
    found.certificates = is_ours and answers and certificates_of(instance, settings or {}) or nil
    return found
end

-- The command that has it run again: with what the last start was given, where there was one.
local function beginning(instance)
    return instance:read_remembered() and "restart" or "start"
end

--- status: whether it runs, and what.
_M.run = invocation.on_instance(function(instance, arguments, context)
    local master = instance:master()
    local found = master and running(instance, master, context) or { orphans = instance:orphans() }
    found.running, found.prefix, found.version = master ~= nil, instance.prefix, version.product
    if arguments.json then
        console.say_json(report.json(found))
    elseif master then
        console.print_lines(report.status(found, os.time()))
    else
        local log = instance.logs .. "/error.log"
        local others = invocation.others(instance)
        local next_command = hint.command(beginning(instance), instance.prefix)
        log = stat.stat(log) and log
        console.print_lines(report.not_running(found, others, next_command, log))
    end
    return master and console.DONE or console.NOT_RUNNING
end)

return _M
