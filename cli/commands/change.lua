--- The commands that change what the running gateway serves with: settings, file, nginx itself.

local console = require("cli.terminal.console")
local hint = require("cli.terminal.hint")
local invocation = require("cli.commands.invocation")
local launch = require("cli.instance.launch")
local options = require("cli.options")
local origins = require("gateway.config.origin")
local paths = require("cli.instance.paths")
local planning = require("cli.commands.planning")
local preflight = require("cli.instance.preflight")
local prefixes = require("cli.instance.prefix")
local reload = require("cli.commands.reload")
local start = require("cli.commands.start")
local store = require("cli.instance.store")
local upgrade = require("cli.commands.upgrade")
local values = require("cli.options.values")
local version = require("gateway.version")

local _M = {}

local DONE, WRONG_USE = console.DONE, console.WRONG_USE
local say, complain, fail = console.say, console.complain, console.fail

-- Folders, whose names may be links.
local IS_FOLDER = { image_dir = true, run_dir = true }

local function differs(name, old, new)
    if IS_FOLDER[name] and old ~= "" and new ~= "" then
        return not paths.are_same(old, new)
    end
    return old ~= new
end

-- What only a new start changes: a line for each setting that differs. They stay as they are, as
-- do, without a line, those of which an upgrade has said so; `waiting` has all of them then.
local function keep_start_only(old, settings, reported)
    local lines, waiting = {}, {}
    for _, option in ipairs(options.list) do
        local name = option.name
        local is_kept = option.where == "start" and old and old[name] ~= nil
        if is_kept and not differs(name, old[name], settings[name]) then
            settings[name] = old[name]
        elseif is_kept then
            if reported[name] ~= settings[name] then
                local line = "%s: %s -> %s changes only with %s"
                local before = values.text(option, old[name])
                local after = values.text(option, settings[name])
                lines[#lines + 1] = line:format(name, before, after, hint.instead("restart"))
            end
            waiting[name], settings[name] = settings[name], old[name]
        end
    end
    return lines, waiting
end

-- The settings as the running gateway is to take them, checked, with its prefix locked; nil and the
-- exit code of `keep` where something is wrong. `on_kept` gets the lines of what only a new start
-- changes, and returns an exit code where that is wrong.
local function prepare_change(instance, arguments, context, keep, on_kept)
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
    local held = store.held(settings, instance)
    local reported = remembered and remembered.waiting or {}
    local kept
    kept, given.waiting = keep_start_only(old, settings, reported)
    local code = #kept > 0 and on_kept(kept)
    if code then
        return nil, code
    end
    local found, files
    problems, found, files = preflight.check(settings, {
        root = context.root,
        foreground = true,
        old = old,
        store = held,
        difference = planning.comparer(instance),
    })
    if #problems > 0 then
        return nil, keep(invocation.as_typed(problems, given))
    end
    complain(files.warnings)
    local anew = "warning: %s; `sluice restart` recreates it from %s"
    complain({ found.replaces and anew:format(found.replaces, settings.file) })
    complain(preflight.warnings(found, settings.file))
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
        -- Of a file that the store was made from, no other has been read since.
        hash = found.hash and not found.snapshot and found.hash
            or (found.hash and remembered and remembered.hash),
        live_hash = origins.hash(held.origin),
        are_new_files = not remembered or remembered.files ~= files.digest,
        is_unsettled = not remembered or remembered.is_unsettled,
    }
end

-- Whether the file is to be posted: it has changed since it was read, or POST /config has put
-- something else in its place. One that the store was made from is not, as at a start: an import
-- has kept ids that another load would replace.
local function has_new_file(change)
    local hash, live_hash = change.found.hash, change.live_hash
    local is_replaced = live_hash ~= nil and live_hash ~= hash
    return change.found.snapshot ~= nil and (hash ~= change.hash or is_replaced)
end

-- Where only the file has changed, the workers take it, where nothing has they stay; otherwise
-- renders, tests, and swaps them.
local function take(instance, master, arguments, context, change)
    local settings, writer, given = change.settings, change.writer, change.given
    local is_new_file = change.is_new_file
    local is_swap = arguments.new_workers or change.are_new_files or change.is_unsettled
    if not is_swap and writer:is_written(settings, context.root) then
        given.hash = change.hash
        if is_new_file then
            return reload.post(instance, writer, settings, given, change.found)
        end
        return reload.same(writer, given, settings.lua_package_path ~= "")
    end
    return reload.swap_workers(instance, writer, settings, given, {
        found = change.found,
        is_new_file = is_new_file,
        is_of_store = change.old ~= nil and change.old.file ~= settings.file,
        hash = change.hash,
        root = context.root,
        master = master,
        old = change.old,
    })
end

--- reload: checks the file, the settings and the files of TLS, shows what changes, and has the
-- gateway take it.
_M.reload = invocation.on_running(function(instance, master, arguments, context)
    if arguments.json then
        console.silence()
    end
    local change, refused = prepare_change(instance, arguments, context, reload.keep, reload.keep)
    if not change then
        return refused
    end
    change.is_new_file = has_new_file(change)
    local file = change.is_new_file and change.found or {}
    local plan, code = planning.before_load(instance, change.settings, file, change.old, arguments)
    if code then
        change.writer:undo()
        return code
    end
    code = take(instance, master, arguments, context, change)
    if code == DONE then
        planning.report_load(plan, arguments)
    end
    return code
end)

local function keep_old(lines, code)
    lines = type(lines) == "table" and lines or { lines }
    lines[#lines + 1] = "upgrade refused: the running gateway is kept"
    return fail(lines, code)
end

local function warn_of_kept(lines)
    for _, line in ipairs(lines) do
        complain({ "warning: " .. line })
    end
end

-- Whether POST /config has put something in the place of the file as it was read, and as it is. One
-- that the command names is loaded all the same.
local function is_posted(change)
    local live_hash = change.found.snapshot and change.hash and change.live_hash
    local is_named = change.old and change.old.file ~= change.settings.file
    return live_hash
        and not is_named
        and live_hash ~= change.hash
        and live_hash ~= change.found.hash
end

-- What an upgrade does with the file: nobody has asked for it, so what was posted stays, also what
-- came meanwhile.
local function load_file(instance, change, plan)
    change.live_hash = origins.hash(store.held(change.settings, instance).origin)
    if is_posted(change) then
        local line = "warning: %s was replaced by POST /config, which stays; `sluice reload` loads "
            .. "the file"
        complain({ line:format(change.settings.file) })
        return DONE
    elseif not change.found.snapshot then
        return DONE
    end
    -- What another version makes of the file may be something else.
    local code =
        reload.post_after(instance, change.writer, change.settings, change.given, change.found)
    if code == DONE then
        planning.report_load(plan, {})
    end
    return code
end

--- upgrade: checks like reload, and has what is installed now take the place of what runs.
_M.upgrade = invocation.on_running(function(instance, master, arguments, context)
    local change, code = prepare_change(instance, arguments, context, keep_old, warn_of_kept)
    if not change then
        return code
    end
    local settings, writer, given = change.settings, change.writer, change.given
    given.hash = change.hash
    local right, lines = nil, change.found.replaces
    if not lines then
        right, lines = upgrade.check(instance, master, given)
    end
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
    local file = has_new_file(change) and not is_posted(change) and change.found or {}
    local plan = planning.before_load(instance, settings, file, change.old, { yes = true })
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
    say(
        "upgraded to sluice %s (pid %d); pid %d finishes its requests",
        version.product,
        new,
        master
    )
    return load_file(instance, change, plan)
end)

return _M
