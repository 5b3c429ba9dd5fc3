--- What a reload does to the running gateway, and what it says of it.

local cjson = require("cjson")
local console = require("cli.terminal.console")
local control = require("cli.instance.control")
local file = require("sluice.file")
local hint = require("cli.terminal.hint")
local launch = require("cli.instance.launch")
local planning = require("cli.commands.planning")
local process = require("cli.instance.process")
local report = require("cli.terminal.report")
local store = require("cli.instance.store")

local _M = {}

-- More than a control worker takes for what it has begun (gateway.writer.role).
local LEAVE_SECONDS = 20

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

--- Gives a declarative file to the running gateway, whatever that of the settings is; returns when
-- all workers serve it.
-- @tparam table instance cli.instance
-- @tparam string path
-- @tparam[opt] string text of the file, where it has been read
-- @treturn table|nil answer of the gateway
-- @treturn nil|string the reason
-- @treturn nil|boolean whether the gateway did not say
function _M.import(instance, path, text)
    local reason
    if not text then
        text, reason = process.read_file(path)
    end
    if not text then
        return nil, "cannot read " .. reason
    end
    local kind = TYPES[path:lower():match("%.(%w+)$")] or "text/plain"
    local body = { type = kind, text = text, file = path }
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
    local answer, reason, is_silent = _M.import(instance, settings.file, found.text)
    if is_silent and store.held(settings, instance).origin == found.origin then
        return nil, reason .. "; the store has the new configuration, which is live soon", true
    end
    return answer, reason
end

--- Says that a file is live.
-- @tparam table answer of the gateway
-- @treturn number the exit code
function _M.say_live(answer)
    say(
        "live on %d worker%s in %d ms",
        answer.workers,
        answer.workers == 1 and "" or "s",
        math.ceil(answer.ms)
    )
    return DONE
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
    return answer and _M.say_live(answer) or fail(reason)
end

--- Says that nothing has changed, and replaces no worker.
-- @tparam table writer cli.prefix
-- @tparam table given what start.json is to remember
-- @tparam boolean has_own_code whether there is code of a user's own, which is read by new workers
-- @treturn number the exit code
function _M.same(writer, given, has_own_code)
    local written, reason = writer:write_remembered(given)
    if not written then
        return _M.keep(reason)
    end
    local more = has_own_code and ", and loads changed code of plugins" or ""
    say("nothing has changed; no worker was replaced (--new-workers replaces them%s)", more)
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
        local line = "the new configuration is live only on %s; see %s"
        local title = line:format(count_workers(found.fresh), logs)
        local count = #found.old
        if count > 0 then
            local still = "%s; %s (pid %s) still %s the old one and %s not answer: kill -9 ends %s"
            local verbs = count == 1 and { "serves", "does", "it" } or { "serve", "do", "them" }
            local pids = table.concat(found.old, ", ")
            title = still:format(title, count_workers(found.old), pids, unpack(verbs))
        end
        return title, FAILED
    elseif word == "waiting" then
        local line =
            "the new workers do not accept connections yet; the old ones serve until then; see %s"
        return line:format(logs), FAILED
    elseif word == "dead" then
        local line =
            "the gateway is not serving: its new workers exit; see %s, then run `sluice restart`"
        return line:format(logs), NOT_RUNNING
    end
    local line = "nginx is still loading the new configuration; see %s"
    return line:format(logs), FAILED
end

-- Waits until the old control worker has given up the store: until then it finishes requests that
-- it has begun, also of tokens that are none any more. False: it has not in time.
local function has_left(instance)
    return process.poll(LEAVE_SECONDS, function()
        local status, answer = control.ask(instance.control, "GET", "/status", nil, LEAVE_SECONDS)
        local now = status == 200 and answer.control
        return now and now.state ~= "waiting" and (now.state ~= "starting" or now.message ~= nil)
    end) ~= nil
end

local CHANGED_SINCE = {
    "the new settings are live, the declarative file is not: the store was changed after it was "
        .. "compared with the file",
    "  `sluice reload --no-file` returns to the store",
}

--- Has workers that serve what the store has already take the declarative file. Not where the store
-- had the same, and the gateway of before has accepted a change since.
-- @treturn number the exit code
function _M.post_after(instance, writer, settings, given, found)
    local is_same = not found.same_as
        or (has_left(instance) and planning.is_still_same(instance, settings, found))
    if not is_same then
        return fail({ unpack(CHANGED_SINCE) })
    end
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

-- Has nginx read its files again; what it says where they are not live then. Returns whether they
-- are, and else the exit code. `opts` as of `swap_workers`.
local function hup(instance, writer, settings, opts)
    local _, lack = file.lstat(instance.control)
    if lack then
        writer:undo()
        local line = "%s %s, by which new workers are known"
        line = line:format(instance.control, lack)
        local way = lack == file.MISSING and "; %s recreates it" or ""
        return false, _M.keep(line .. way:format(hint.instead("restart")))
    end
    local log = instance:error_log(opts.old or settings)
    local word, found = launch.hup(instance, settings, opts.master, log)
    if word == "refused" then
        writer:undo()
        table.insert(found.lines, 1, "nginx rejected the configuration:")
        return false, _M.keep(found.lines)
    elseif word ~= "live" then
        local title, code = describe(word, found, instance)
        table.insert(found.lines, 1, title)
        return false, fail(found.lines, code)
    end
    if #found.stopped > 0 then
        local line = "warning: %s of the old configuration stopped by a signal (pid %s); they "
            .. "exit after SIGCONT"
        complain({ line:format(count_workers(found.stopped), table.concat(found.stopped, ", ")) })
    end
    return true, found
end

--- Has nginx take the settings, with new workers, and then the file where it has changed since it
-- was read. What it says, and how it ends, follows from what is live then.
-- @tparam table instance cli.instance
-- @tparam table writer cli.prefix
-- @tparam table settings resolved settings
-- @tparam table given what start.json is to remember
-- @tparam table opts `found`: the file, of cli.preflight; `is_new_file`; `is_of_store`: the file
--   was not the source of truth before, so the store may have been changed since; `hash` of the one
--   that was read last; `root`: Sluice's own directory; `master`: its pid; `old`: the settings that
--   are live
-- @treturn number the exit code
function _M.swap_workers(instance, writer, settings, given, opts)
    local function give_up(lines)
        writer:undo()
        return _M.keep(lines)
    end
    given.hash = opts.hash
    -- Until it is live: who reloads after a failure wants it all the same.
    given.is_unsettled = true
    local made, reason = writer:write_files(settings, given, opts.root)
    if not made then
        return give_up(reason)
    end
    local right, lines = launch.test(instance, settings)
    if not right then
        return give_up(lines)
    end
    local is_live, found = hup(instance, writer, settings, opts)
    if not is_live then
        return found
    end
    given.is_unsettled = nil
    writer:write_remembered(given)
    say(
        "reloaded: %d new worker%s%s",
        #found.fresh,
        #found.fresh == 1 and "" or "s",
        #found.draining > 0 and (", %d old shutting down"):format(#found.draining) or ""
    )
    if opts.is_new_file then
        return _M.post_after(instance, writer, settings, given, opts.found)
    elseif opts.is_of_store and opts.found.hash then
        local is_same = has_left(instance)
            and store.held(settings, instance).origin == opts.found.origin
        return is_same and DONE or fail({ unpack(CHANGED_SINCE) })
    end
    return DONE
end

--- Has nginx take the live settings with other tokens, and nothing else: neither a declarative file
-- nor settings that have changed since they were read.
-- @tparam table instance cli.instance
-- @tparam table writer cli.prefix
-- @tparam {table,...} list of cli.options.tokens
-- @tparam number master its pid
-- @treturn number the exit code
function _M.take_tokens(instance, writer, list, master)
    local settings, old = instance:read_settings(), instance:read_settings()
    settings.admin_token_list = list
    local written, reason = writer:write(instance.settings, cjson.encode(settings) .. "\n")
    if not written then
        writer:undo()
        return _M.keep(reason)
    end
    local is_live, code = hup(instance, writer, settings, { master = master, old = old })
    if is_live and not has_left(instance) then
        return fail("the old tokens may still be used: the control worker of before has not ended")
    end
    return is_live and DONE or code
end

return _M
