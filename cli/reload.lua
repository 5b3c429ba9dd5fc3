--- What a reload does to the running gateway, and what it says of it.

local console = require("cli.console")
local control = require("cli.control")
local launch = require("cli.launch")
local process = require("cli.process")
local report = require("cli.report")
local store = require("cli.store")

local _M = {}

local DONE, FAILED, NOT_RUNNING = console.DONE, console.FAILED, console.NOT_RUNNING
local say, complain, fail = console.say, console.complain, console.fail

--- Complains, and says that nothing has changed.
-- @tparam string|{string,...} lines
-- @tparam[opt] number code FAILED when absent
-- @treturn number the exit code
function _M.keep(lines, code)
    lines = type(lines) == "table" and lines or { lines }
    lines[#lines + 1] = "reload refused: the running configuration is kept"
    return fail(lines, code)
end

local TYPES = { json = "application/json", yaml = "application/yaml", yml = "application/yaml" }

-- Gives a declarative file to the running gateway; returns when all workers serve it.
-- Nil, why not, and whether the gateway did not say.
local function send(instance, path)
    local text, reason = process.read_file(path)
    if not text then
        return nil, "cannot read " .. reason
    end
    local body = { type = TYPES[path:lower():match("%.(%w+)$")] or "text/plain", text = text }
    local status, answer =
        control.ask(instance.control, "POST", "/config?wait=1", body, control.FILE_TIMEOUT_S)
    if status == 201 then
        return answer
    end
    return nil, status and tostring(answer.message) or answer, not status
end

-- The same of the settings' file; the third says that it is live all the same, or soon: the store
-- has it, and who was to say so has died.
local function post(instance, settings, found)
    local answer, reason, is_silent = send(instance, settings.file)
    if is_silent and store.held(settings, instance).origin == found.origin then
        return nil, reason .. "; the store has the new configuration, which is live soon", true
    end
    return answer, reason
end

local function say_live(answer)
    say(
        "live on %d worker%s in %d ms",
        answer.workers,
        answer.workers == 1 and "" or "s",
        math.ceil(answer.ms)
    )
    return DONE
end

--- Has the running workers take a file, whatever that of the settings is.
-- @tparam table instance cli.instance
-- @tparam string path
-- @treturn number the exit code
function _M.import(instance, path)
    local answer, reason = send(instance, path)
    return answer and say_live(answer) or fail(reason)
end

--- Has the running workers take the declarative file: nothing else has changed.
-- @tparam table instance cli.instance
-- @tparam table writer cli.prefix
-- @tparam table settings resolved settings
-- @tparam table given what start.json is to remember
-- @tparam table found the file, of cli.preflight
-- @treturn number the exit code
function _M.post(instance, writer, settings, given, found)
    local answer, reason, is_stored = post(instance, settings, found)
    if not answer and not is_stored then
        return _M.keep(reason)
    end
    given.hash = found.hash
    writer:write_remembered(given)
    return answer and say_live(answer) or fail(reason)
end

local function count_workers(list)
    return ("%d %s"):format(#list, #list == 1 and "worker" or "workers")
end

-- What is live where the master was killed meanwhile.
local function describe_killed(found, prefix)
    local pids = {}
    for _, list in ipairs({ found.fresh, found.old, found.stopped }) do
        for _, pid in ipairs(list) do
            pids[#pids + 1] = pid
        end
    end
    local line = report.stopped(prefix, pids)
    if #pids > 0 then
        line = ("%s; %d of %d have the new configuration"):format(line, #found.fresh, #pids)
    end
    return line, NOT_RUNNING
end

-- What is live where it is not what was to be: a title for what nginx said, and the exit code.
local function describe(word, found, instance)
    local logs = instance.logs
    if word == "killed" then
        return describe_killed(found, instance.prefix)
    elseif word == "partly" then
        local line = "the new configuration is live on %s, which is too few; see %s"
        local title = line:format(count_workers(found.fresh), logs)
        if #found.old > 0 then
            title = ("%s; %s serve the old one"):format(title, count_workers(found.old))
        end
        return title, FAILED
    elseif word == "dead" then
        local line = "the gateway does NOT serve: the new workers die; see %s, and `sluice restart`"
        return line:format(logs), NOT_RUNNING
    end
    local line = "nginx still loads the new configuration, which may go live yet; see %s"
    return line:format(logs), FAILED
end

--- Has workers that serve what the store has already take the declarative file.
-- @treturn number the exit code
function _M.post_after(instance, writer, settings, given, found)
    local answer, reason, is_stored = post(instance, settings, found)
    if answer or is_stored then
        given.hash = found.hash
        writer:write_remembered(given)
    end
    if answer then
        return DONE
    end
    return fail({ "the new settings are live, the declarative file is not: " .. reason })
end

--- Has nginx take the settings, with new workers, and then the file where it has changed since it
-- was read. What it says, and how it ends, follows from what is live then.
-- @tparam table instance cli.instance
-- @tparam table writer cli.prefix
-- @tparam table settings resolved settings
-- @tparam table given what start.json is to remember
-- @tparam table opts `found`: the file, of cli.preflight; `is_new_file`; `hash` of the one that was
--   read last; `root`: Sluice's own directory; `master`: its pid; `old`: the settings that are live
-- @treturn number the exit code
function _M.swap_workers(instance, writer, settings, given, opts)
    local function give_up(lines)
        writer:undo()
        return _M.keep(lines)
    end
    given.hash = opts.hash
    local made, reason = writer:write_files(settings, given, opts.root)
    if not made then
        return give_up(reason)
    end
    local right, lines = launch.test(instance, settings)
    if not right then
        return give_up(lines)
    end
    local log = instance:error_log(opts.old or settings)
    local word, found = launch.hup(instance, settings, opts.master, log)
    if word == "refused" then
        table.insert(found.lines, 1, "nginx did not take the configuration:")
        return give_up(found.lines)
    elseif word ~= "live" then
        local title, code = describe(word, found, instance)
        table.insert(found.lines, 1, title)
        return fail(found.lines, code)
    end
    say(
        "reloaded: %d new worker%s%s",
        #found.fresh,
        #found.fresh == 1 and "" or "s",
        #found.draining > 0 and (", %d old leaving"):format(#found.draining) or ""
    )
    if #found.stopped > 0 then
        local line = "warning: %s of the old configuration stopped (pid %s): leaves when continued"
        complain({ line:format(count_workers(found.stopped), table.concat(found.stopped, ", ")) })
    end
    if opts.is_new_file then
        return _M.post_after(instance, writer, settings, given, opts.found)
    end
    return DONE
end

return _M
