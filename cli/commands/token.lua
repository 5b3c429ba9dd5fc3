--- token: adds, lists and removes tokens of the admin listener, in the file that the setting
-- `admin_named_tokens` names. A running gateway has the change when the command ends; nothing else
-- of it changes.

local on_disk = require("sluice.file")
local unistd = require("posix.unistd")

local console = require("cli.terminal.console")
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

-- Has the running gateway take the file, where it runs.
local function make_live(instance, writer, path)
    local master = instance:master()
    local live = master and instance:read_settings()
    if not live then
        return DONE
    elseif not paths.are_same(tokens.path(live), path) then
        console.complain({ "warning: the gateway reads another file until `sluice reload`" })
        return DONE
    end
    local errors = {}
    local found = tokens.list(live, errors)
    if #errors > 0 then
        writer:undo()
        return fail(errors)
    end
    return reload.take_tokens(instance, writer, found, master)
end

-- Reads the file, has it changed, and writes it, while no other command may.
local function change(instance, context, settings, edit)
    local writer, err = start.open_prefix(context, instance, settings)
    if not writer then
        return fail(err)
    end
    local file, wrong = read_file(settings)
    local done = file ~= nil
    if file then
        done, wrong = edit(file)
    end
    if done then
        done, wrong = writer:write(file.path, table.concat(file.lines, "\n") .. "\n")
    end
    if not done then
        writer:undo()
        return fail(wrong)
    end
    return make_live(instance, writer, file.path)
end

local function run_add(instance, arguments, context, settings)
    local text, err = generate(), nil
    if arguments.stdin then
        text, err = read_input()
    end
    if not text then
        return fail(err)
    end
    local code = change(instance, context, settings, function(file)
        return add(file, arguments, text)
    end)
    if code == DONE and not arguments.stdin then
        say("%s", text)
    end
    return code
end

local function run_remove(instance, arguments, context, settings)
    return change(instance, context, settings, function(file)
        return remove(file, arguments)
    end)
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
        say("no tokens in %s", file.path)
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
