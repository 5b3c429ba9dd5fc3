--- token: adds, lists and removes tokens of the admin listener, in the file that the setting
-- `admin_named_tokens` names. A running gateway has the change when the command ends; nothing else
-- of it changes.

local on_disk = require("sluice.file")
local unistd = require("posix.unistd")

local console = require("cli.terminal.console")
local hint = require("cli.terminal.hint")
local invocation = require("cli.commands.invocation")
local options = require("cli.options")
local paths = require("cli.instance.paths")
local reload = require("cli.commands.reload")
local settings_of = require("cli.options.settings")
local sha256 = require("sluice.sha256")
local start = require("cli.commands.start")
local tables = require("cli.terminal.table")
local tokens = require("cli.options.tokens")
local values = require("cli.options.values")

local _M = {}

local DONE, WRONG_USE = console.DONE, console.WRONG_USE
local say, fail = console.say, console.fail

-- Of a new token: 64 hexadecimal digits.
local RANDOM_BYTES = 32

-- What is read from standard input: more than any token has.
local INPUT_BYTES = 4096

local NEEDED = { "admin_named_tokens", "prefix", "run_dir", "user" }

local REQUIRED = "the Admin API now requires a token: clients without one get a 401"
local NO_CLIENT = "no client has a token now, and the Admin API still requires one: `sluice token "
    .. "add <name>` adds one"
local TO_OPEN = "  to require none: rm %s, then `sluice reload`"
local ONLY_READS = "token '%s' can only read; --role write adds one that can write, with --replace "
    .. "in the place of this one"

local function generate()
    local random = assert(io.open("/dev/urandom", "rb"))
    local bytes = assert(random:read(RANDOM_BYTES))
    random:close()
    return (bytes:gsub(".", function(byte)
        return ("%02x"):format(byte:byte())
    end))
end

-- A token that the user has already.
local function read_input()
    local text = (io.read(INPUT_BYTES) or ""):gsub("\r?\n$", "")
    local token, expected = values.read(options.by_name.admin_token, text)
    if not token or token == "" then
        return nil, "standard input is not a token; expected " .. (expected or "one")
    end
    return token
end

local function resolve(instance, arguments)
    local remembered, unknown = instance:read_remembered()
    if unknown then
        return nil, { unknown }
    end
    local settings, errors = settings_of.resolve({
        flags = { admin_named_tokens = arguments.admin_named_tokens, conf = arguments.conf },
        cwd = unistd.getcwd(),
        remembered = remembered,
        only = NEEDED,
    })
    if settings then
        settings.prefix = instance.prefix
    end
    return settings, errors
end

-- The file as it is: `{ path =, lines =, list = }`; nil and lines that say what is wrong.
local function read_file(settings)
    local path = tokens.path(settings)
    local _, lack = on_disk.lstat(path)
    if lack == on_disk.MISSING then
        return { path = path, lines = {}, list = {} }
    end
    local list, text = tokens.load(path)
    if not list then
        return nil, text
    end
    local lines = {}
    for line in text:gsub("\n$", ""):gmatch("([^\n]*)\n?") do
        lines[#lines + 1] = line
    end
    -- The pattern finds the end once more.
    lines[#lines] = nil
    return { path = path, lines = lines, list = list }
end

local function find(file, name)
    for _, token in ipairs(file.list) do
        if token.name == name then
            return token
        end
    end
    return nil
end

-- Gives a name to a token, in the lines of the file; true, or nil and why not.
local function add(file, arguments, text)
    local name = arguments.name
    local known = find(file, name)
    local wrong = tokens.check_name(name)
    if not wrong and known and not arguments.replace then
        wrong = ("there is a token '%s'; --replace replaces it"):format(name)
    end
    if wrong then
        return nil, wrong
    end
    local role = arguments.role or (known and known.role) or "read"
    local line = ("%s %s sha256:%s"):format(name, role, sha256.hex(text))
    file.lines[known and known.line or #file.lines + 1] = line
    local _, errors = tokens.parse(table.concat(file.lines, "\n"))
    return #errors == 0 or nil,
        errors[1] and ("admin_named_tokens: %s:%s"):format(file.path, errors[1])
end

local function remove(file, arguments)
    local token = find(file, arguments.name)
    if not token then
        return nil, ("there is no token '%s' in %s"):format(arguments.name, file.path)
    end
    table.remove(file.lines, token.line)
    return true
end

-- Has the running gateway take the file, where it runs. The second: that it reads another one.
local function make_live(instance, writer, path)
    local master = instance:master()
    local live = master and instance:read_settings()
    if not live then
        return DONE
    elseif not paths.are_same(tokens.path(live), path) then
        console.complain({ "warning: the gateway reads another file until `sluice reload`" })
        return DONE, true
    end
    local errors = {}
    local found = tokens.list(live, errors)
    if #errors > 0 then
        writer:undo()
        return fail(errors)
    end
    return reload.take_tokens(instance, writer, found, master)
end

-- Whether all addresses of the Admin API may be without tokens.
local function may_be_open(live)
    for _, text in ipairs(live.admin_listen) do
        local is_local = text:find("^127%.") or text:find("^localhost:") or text:find("^%[::1%]:")
        if not is_local and not live.admin_insecure then
            return false
        end
    end
    return true
end

-- Says whom a change of the running gateway lets in or shuts out, where that is not what was typed.
-- `live`: its settings before; `path`: of the file; `count`: of its tokens; `added`: the new one.
local function say_access(live, path, count, added)
    local has_admin_token, lines = live.admin_token ~= "", {}
    if added and not has_admin_token and not live.admin_token_list then
        lines[1] = REQUIRED
    elseif count == 0 and not has_admin_token and live.admin_read_token == "" then
        -- A file that the settings name is needed.
        local is_own = live.admin_named_tokens == ""
        lines = { NO_CLIENT, is_own and may_be_open(live) and TO_OPEN:format(hint.quoted(path)) }
        lines[2] = lines[2] or nil
    end
    console.complain(lines)
end

-- Reads the file, has it changed, and writes it, while no other command may.
local function change(instance, context, settings, arguments, edit)
    local writer, err = start.open_prefix(context, instance, settings)
    if not writer then
        return fail(err)
    end
    local file, wrong = read_file(settings)
    local done, text = file ~= nil, nil
    if file then
        done, wrong = edit(file)
    end
    if done then
        text = table.concat(file.lines, "\n") .. "\n"
        done, wrong = writer:write(file.path, text)
    end
    if not done then
        writer:undo()
        return fail(wrong)
    end
    local list = tokens.parse(text)
    local added = find({ list = arguments.action == "add" and list or {} }, arguments.name)
    local live = instance:master() and instance:read_settings()
    local code, is_other = make_live(instance, writer, file.path)
    if code == DONE and added and added.role == "read" and not arguments.role then
        console.complain({ ONLY_READS:format(added.name) })
    end
    if code == DONE and live and not is_other and #(live.admin_listen or {}) > 0 then
        say_access(live, file.path, #list, added)
    end
    return code
end

local function run_add(instance, arguments, context, settings)
    local text, err = generate(), nil
    if arguments.stdin then
        text, err = read_input()
    end
    if not text then
        return fail(err)
    end
    local code = change(instance, context, settings, arguments, function(file)
        return add(file, arguments, text)
    end)
    if code == DONE and not arguments.stdin then
        say("%s", text)
    end
    return code
end

local function run_remove(instance, arguments, context, settings)
    local code = change(instance, context, settings, arguments, function(file)
        return remove(file, arguments)
    end)
    if code == DONE then
        say("token '%s' removed", arguments.name)
    end
    return code
end

local function run_list(_, arguments, _, settings)
    local file, wrong = read_file(settings)
    if not file then
        return fail(wrong)
    end
    if arguments.json then
        local out = {}
        for i, token in ipairs(file.list) do
            out[i] = ('{"name":"%s","role":"%s"}'):format(token.name, token.role)
        end
        console.say_json("[" .. table.concat(out, ",") .. "]")
        return DONE
    end
    if #file.list == 0 then
        local is_there = on_disk.lstat(file.path)
        local required = is_there and "; the Admin API requires one" or ""
        say("no tokens in %s%s", file.path, required)
        return DONE
    end
    local rows = { { "name", "role" } }
    for i, token in ipairs(file.list) do
        rows[i + 1] = { token.name, token.role }
    end
    console.print_lines(tables.lines(rows, { left = { true, true } }))
    return DONE
end

local ACTIONS = { add = run_add, list = run_list, remove = run_remove }

--- Adds, lists or removes. A new token is printed, and nothing else, once.
_M.run = invocation.on_meant(function(instance, arguments, context)
    local action = arguments.action
    if action ~= "list" and not arguments.name then
        return fail({
            "missing argument 'name'",
            ("  usage: sluice token %s <name> [flags]"):format(action),
            "  more:  sluice help token",
        }, WRONG_USE)
    end
    local settings, errors = resolve(instance, arguments)
    if not settings then
        return fail(errors, WRONG_USE)
    end
    return ACTIONS[action](instance, arguments, context, settings)
end)

return _M
