--- What is typed by habit of nginx, Kong and others, and what does the same here.

local entities = require("gateway.entities")
local hint = require("cli.terminal.hint")
local kind_names = require("gateway.config.kind_names")

local _M = {}

local GET = "`sluice get` lists entities, `sluice get KIND NAME` shows one"
local CHECK = "`sluice check FILE` checks a declarative file"
local APPLY = "`sluice apply FILE` creates and updates entities"
local SETTINGS = "`sluice help settings` lists what can be set"
local LOGS = "`sluice status` names error.log and access.log"
local STATUS = "`sluice status` says whether it runs"
local STATISTICS = "GET /metrics of the Admin API; `sluice events` and `sluice timers` show "
    .. "statistics"
local START = "`sluice start` starts it; with --foreground, it runs until Ctrl-C"
local STOP = "`sluice stop` stops it at once, `sluice quit` after its requests"
local DELETE = "`sluice delete KIND NAME` deletes an entity"
local DECK = "`sluice import FILE` is decK's gateway sync of all entities, `sluice diff FILE` "
    .. "gateway diff, `sluice export FILE` gateway dump"

-- Commands that have others' names here; the first four are Kong's.
local COMMANDS = {
    config = "`sluice check FILE` is Kong's config parse, `sluice import FILE` config db_import, "
        .. "`sluice export FILE` config db_export",
    health = STATUS,
    ping = STATUS,
    healthz = STATUS,
    info = STATUS,
    ps = STATUS,
    stat = STATUS,
    migrations = "the store needs none: `sluice start` makes it, and takes an older version's",
    prepare = "`sluice start` makes what it needs",
    run = START,
    serve = START,
    up = START,
    down = STOP,
    drain = STOP,
    kill = STOP,
    shutdown = STOP,
    list = GET,
    ls = GET,
    describe = GET,
    show = GET,
    validate = CHECK,
    configtest = CHECK,
    test = CHECK,
    lint = CHECK,
    create = APPLY,
    add = APPLY,
    update = APPLY,
    edit = APPLY,
    set = APPLY,
    rm = DELETE,
    remove = DELETE,
    undo = "`sluice history` lists the revisions, `sluice help rollback` says how to restore one",
    reset = "`sluice import FILE` makes the store what the file is; `sluice history` lists the "
        .. "revisions to roll back to",
    sync = "`sluice import FILE` makes the store what the file is",
    dump = "`sluice export FILE` writes the store to a file",
    logs = LOGS,
    log = LOGS,
    tail = LOGS,
    metrics = STATISTICS,
    top = STATISTICS,
    settings = SETTINGS,
    env = SETTINGS,
    options = SETTINGS,
    flags = SETTINGS,
    commands = "`sluice help` lists them",
    man = "`sluice help` lists the commands, `sluice help COMMAND` describes one",
    certs = "`sluice get certificates` lists them, and until when they are valid",
    file = "`sluice check FILE` checks a file, as decK's file validate",
    deck = DECK,
    gateway = DECK,
    konnect = DECK,
}

-- Flags of nginx's that are typed here, and what does the same.
local OF_NGINX = {
    c = "--conf names the settings file",
    e = "--error-log names the error log",
    g = SETTINGS,
    p = "--prefix names the directory of the instance",
    s = "its signals are `sluice stop`, `sluice quit`, `sluice reload` and `sluice reopen`",
    t = "`sluice check` checks the settings and the declarative file",
    T = "the configuration of nginx is nginx.conf in the prefix",
    V = "`sluice version` shows the version, `sluice status` that of nginx",
}

-- Flags of others': letter, the argument or flag that a command has to take, and what to type.
local OF_OTHERS = {
    { "f", "path", "-f is not needed; use `sluice %s FILE`" },
    { "f", "declarative", "-f is not needed; use `sluice %s FILE`" },
    { "f", "names", "%s reads no file; use `sluice delete KIND NAME...`" },
    { "f", "--file", "unknown option '-f'; use --file" },
    { "n", "--size", "unknown option '-n'; use --size" },
    { "n", "--top", "unknown option '-n'; use --top" },
    { "o", "--yaml", "-o is not needed; use `sluice %s FILE`" },
    { "o", "--json", "unknown option '-o'; use --json" },
}

-- Flags of others' that name a port alone: the setting, and the host that its default has.
local OF_PORTS = {
    port = { "--proxy-listen", "0.0.0.0" },
    ["proxy-port"] = { "--proxy-listen", "0.0.0.0" },
    ["admin-port"] = { "--admin-listen", "127.0.0.1" },
}
local MAX_PORT = 65535

local function find_flag(command, name)
    for _, flag in ipairs(command._options) do
        for _, alias in ipairs(flag._aliases) do
            if alias == name then
                return flag
            end
        end
    end
    return nil
end

local function takes(command, name)
    for _, argument in ipairs(command._arguments) do
        if argument._name == name then
            return true
        end
    end
    return find_flag(command, name) ~= nil
end

-- The word behind one of the command line, or behind its `=`.
local function word_after(words, word)
    for i, each in ipairs(words) do
        if each == word then
            return words[i + 1]
        elseif each:sub(1, #word + 1) == word .. "=" then
            return each:sub(#word + 2)
        end
    end
    return nil
end

--- What does here what another program's command does.
-- @tparam string name
-- @treturn string|nil
function _M.of_command(name)
    local kind = kind_names.read(name)
    if kind and entities.has_collection(kind) then
        return ("`sluice get %s` lists them"):format(entities.path_name(kind))
    end
    return COMMANDS[name]
end

--- What does here what a flag of one letter does elsewhere.
-- @tparam table command of argparse
-- @tparam string letter
-- @tparam {string,...} words of the command line
-- @treturn string|nil a line
function _M.of_letter(command, letter, words)
    if letter == "s" and takes(command, "path") then
        return ("-s is not needed; use `sluice %s FILE`"):format(command._name)
    elseif OF_NGINX[letter] then
        local line = ("-%s is a flag of nginx; here, %s"):format(letter, OF_NGINX[letter])
        local value = letter == "c" and word_after(words, "-c") or ""
        if value:find("%f[^/%z]kong%.conf$") then
            line = ("%s; `sluice kong start -c %s` reads Kong's"):format(line, hint.quoted(value))
        end
        return line
    end
    for _, habit in ipairs(OF_OTHERS) do
        if habit[1] == letter and takes(command, habit[2]) then
            return habit[3]:format(command._name)
        end
    end
    return nil
end

--- What does here what a long flag does elsewhere.
-- @tparam table command of argparse
-- @tparam string name without its dashes
-- @tparam {string,...} words of the command line
-- @treturn string|nil a line
function _M.of_flag(command, name, words)
    if name == "config" and find_flag(command, "--conf") then
        local of_file = find_flag(command, "--file")
                and "--file names the declarative file, --conf the settings file"
            or "--conf names the settings file"
        return "unknown option '--config'; " .. of_file
    end
    if name == "worker-processes" and find_flag(command, "--workers") then
        return "unknown option '--worker-processes'; use --workers"
    end
    local habit = OF_PORTS[name]
    if not habit or not find_flag(command, habit[1]) then
        return nil
    end
    local digits = (word_after(words, "--" .. name) or ""):match("^%d%d?%d?%d?%d?$")
    local port = tonumber(digits) or 0
    local shown = port >= 1 and port <= MAX_PORT and port or "PORT"
    return ("unknown option '--%s'; use %s %s:%s"):format(name, habit[1], habit[2], shown)
end

--- The command line with its flags behind the command.
-- @tparam table parser of the command line
-- @tparam string flag that stands before the command
-- @tparam {string,...} words of the command line
-- @treturn string|nil a command; nil where none follows that has this flag
function _M.flags_behind(parser, flag, words)
    for i, word in ipairs(words) do
        for _, command in ipairs(parser._commands) do
            if word == command._name and find_flag(command, flag) then
                local line = { "sluice", word }
                for j, other in ipairs(words) do
                    line[#line + 1] = j ~= i and hint.quoted(other) or nil
                end
                return ("`%s`"):format(table.concat(line, " "))
            end
        end
    end
    return nil
end

--- The file that is given to a command that takes one by --file alone.
-- @tparam table command of argparse
-- @tparam {string,...} words of the command line
-- @treturn string|nil
function _M.stray_file(command, words)
    if #command._arguments > 0 or not find_flag(command, "--file") then
        return nil
    end
    local is_value = false
    for _, word in ipairs(words) do
        local flag = word:find("^%-") and find_flag(command, word)
        if not is_value and not word:find("^%-") and word:find("[./]") then
            return word
        end
        is_value = flag and flag._maxargs > 0
    end
    return nil
end

return _M
