--- What a reload does to the running gateway, and what it says of it.

local console = require("cli.console")
local launch = require("cli.launch")
local posted = require("cli.posted")
local report = require("cli.report")

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

--- Has the running workers take the declarative file: nothing else has changed.
-- @tparam table instance cli.instance
-- @tparam table writer cli.prefix
-- @tparam table settings resolved settings
-- @tparam table given what start.json is to remember
-- @treturn number the exit code
function _M.post(instance, writer, settings, given)
    local answer, reason, is_decided = posted.post(instance, settings.file)
    if not answer and not is_decided then
        return _M.keep(reason)
    end
    writer:write_remembered(given)
    if not answer then
        return fail(reason)
    end
    say(
        "live on %d worker%s in %d ms",
        answer.workers,
        answer.workers == 1 and "" or "s",
        math.ceil(answer.ms)
    )
    return DONE
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

--- Has nginx take the settings, with new workers. What was posted stays live, unless the file has
-- changed since it was read. What it says, and how it ends, follows from what is live then.
-- @tparam table instance cli.instance
-- @tparam table writer cli.prefix
-- @tparam table settings resolved settings
-- @tparam table given what start.json is to remember
-- @tparam table opts `is_new_file`; `root`: Sluice's own directory; `master`: its pid; `old`:
--   the settings that are live
-- @treturn number the exit code
function _M.swap_workers(instance, writer, settings, given, opts)
    local function give_up(lines)
        writer:undo()
        return _M.keep(lines)
    end
    if opts.is_new_file then
        settings.superseded = math.max(settings.superseded or 0, posted.version(instance))
    end
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
    return DONE
end

return _M
