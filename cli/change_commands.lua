--- The commands that change what the running gateway serves with: settings, file, nginx itself.

local console = require("cli.console")
local invocation = require("cli.invocation")
local launch = require("cli.launch")
local options = require("cli.options")
local preflight = require("cli.preflight")
local prefixes = require("cli.prefix")
local reload = require("cli.reload")
local start = require("cli.start")
local store = require("cli.store")
local upgrade = require("cli.upgrade")
local version = require("gateway.version")

local _M = {}

local DONE, WRONG_USE = console.DONE, console.WRONG_USE
local say, complain, fail = console.say, console.complain, console.fail

-- Options that a reload cannot change: says so where they differ.
local function note_start_only(old, settings)
    for _, option in ipairs(options.list) do
        local name = option.name
        if option.where == "start" and old and old[name] ~= nil and old[name] ~= settings[name] then
            complain({ ("warning: %s changes only with `sluice restart`"):format(name) })
            settings[name] = old[name]
        end
    end
end

-- The settings as the running gateway is to take them, checked, with its prefix locked; nil and the
-- exit code of `keep` where something is wrong.
local function prepare_change(instance, arguments, context, keep)
    local ours, foreign = prefixes.new(instance):check(context.root)
    if not ours then
        return nil, keep(foreign)
    end
    local old = instance:read_settings()
    local remembered, unknown = instance:read_remembered()
    if unknown then
        return nil, keep(unknown)
    end
    local settings, problems, given = invocation.settings(arguments, instance, remembered)
    if not settings then
        return nil, keep(problems, WRONG_USE)
    end
    if old and settings.image_dir == "" then
        settings.image_dir = old.image_dir
    end
    note_start_only(old, settings)
    local found, files
    problems, found, files = preflight.check(settings, {
        root = context.root,
        foreground = true,
        held = preflight.addresses(old),
        store = store.held(settings, instance),
    })
    if #problems > 0 then
        return nil, keep(problems)
    end
    complain(files.warnings)
    local anew = "warning: %s; `sluice restart` makes it anew from %s"
    complain({ found.replaces and anew:format(found.replaces, settings.file) })
    given.files = files.digest
    start.fit_connections(settings, instance:master())
    local writer, err = start.open_prefix(context, instance, settings)
    if not writer then
        return nil, keep(err)
    end
    return {
        settings = settings,
        given = given,
        found = found,
        old = old,
        writer = writer,
        hash = remembered and remembered.hash,
        are_new_files = not remembered or remembered.files ~= files.digest,
    }
end

--- reload: checks the file, the settings and the files of TLS; where only the first has changed,
-- the workers take it, otherwise renders, tests, and swaps the workers.
_M.reload = invocation.on_running(function(instance, master, arguments, context)
    local change, code = prepare_change(instance, arguments, context, reload.keep)
    if not change then
        return code
    end
    local settings, writer, given = change.settings, change.writer, change.given
    local is_new_file = change.found.hash ~= change.hash
    local is_all = is_new_file and not arguments.new_workers and not change.are_new_files
    if is_all and writer:is_written(settings, context.root) then
        return reload.post(instance, writer, settings, given, change.found)
    end
    return reload.swap_workers(instance, writer, settings, given, {
        found = change.found,
        is_new_file = is_new_file,
        hash = change.hash,
        root = context.root,
        master = master,
        old = change.old,
    })
end)

local function keep_old(lines, code)
    lines = type(lines) == "table" and lines or { lines }
    lines[#lines + 1] = "upgrade refused: the running gateway is kept"
    return fail(lines, code)
end

--- upgrade: checks like reload, and has what is installed now take the place of what runs.
_M.upgrade = invocation.on_running(function(instance, master, arguments, context)
    local change, code = prepare_change(instance, arguments, context, keep_old)
    if not change then
        return code
    end
    local settings, writer, given = change.settings, change.writer, change.given
    given.hash = change.hash
    local right, lines = upgrade.check(instance, master, given)
    if right then
        right, lines = writer:write_files(settings, given, context.root)
    end
    if right then
        right, lines = launch.test(instance, settings)
    end
    if not right then
        writer:undo()
        return keep_old(lines)
    end
    local new, failure = upgrade.run(instance, settings, master, {
        timeout = arguments.timeout,
        watch = arguments.watch,
        log = instance:error_log(change.old or settings),
        undo = function()
            writer:undo()
        end,
    })
    if not new then
        return fail(failure)
    end
    say("upgraded to sluice %s (pid %d); pid %d leaves", version.product, new, master)
    -- What another version makes of the file may be something else.
    if change.found.snapshot then
        return reload.post_after(instance, writer, settings, given, change.found)
    end
    return DONE
end)

return _M
