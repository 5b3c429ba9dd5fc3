--- plugins: which of Kong's there are here, what the others are waiting for, and a user's own.

local cjson = require("cjson")
local console = require("cli.terminal.console")
local index = require("cli.plugins.index")
local invocation = require("cli.commands.invocation")
local preflight = require("cli.instance.preflight")
local prefixes = require("cli.instance.prefix")
local tables = require("cli.terminal.table")

local _M = {}

local NULL = cjson.null
local KEYS =
    { "cost", "is_on", "is_ours", "is_own", "kong", "language", "name", "priority", "remark" }

local function or_null(value)
    return value == nil and NULL or value
end

local function print_json(list)
    local out = {}
    for i, each in ipairs(list) do
        local fields = {}
        for k, key in ipairs(KEYS) do
            fields[k] = ('"%s":%s'):format(key, cjson.encode(or_null(each[key])))
        end
        out[i] = "{" .. table.concat(fields, ",") .. "}"
    end
    console.say_json(("[%s]"):format((table.concat(out, ","):gsub("\\/", "/"))))
end

local function print_table(list)
    local rows = { { "name", "Kong", "here", "order", "cost", "purpose or status" } }
    for i, each in ipairs(list) do
        rows[i + 1] = {
            each.name,
            each.kong or "-",
            each.language and each.language .. (each.is_on and "" or ", off") or "-",
            each.priority and ("%d"):format(each.priority) or "-",
            each.cost and ("%.2f"):format(each.cost) or "-",
            each.remark or "",
        }
    end
    local left = { true, true, true, false, false, true }
    console.print_lines(tables.lines(rows, { left = left, width = tables.terminal_width() }))
end

local function show(instance, arguments, context)
    local remembered
    if instance then
        local ours, reason = prefixes.new(instance):check(context.root)
        if ours then
            remembered, reason = instance:read_remembered()
        end
        if reason then
            return console.fail(reason)
        end
    end
    local settings, problems = invocation.settings(arguments, instance, remembered)
    if not settings then
        return console.fail(problems, console.WRONG_USE)
    elseif not preflight.load_plugins(settings, problems) then
        return console.fail(problems)
    end
    local list, err = index.list(settings)
    if not list then
        return console.fail(err)
    end
    local shown = {}
    for _, each in ipairs(list) do
        local is_here = each.is_ours or each.is_own
        shown[#shown + 1] = (is_here or not arguments.ours) and each or nil
    end
    if arguments.json then
        print_json(shown)
    else
        print_table(shown)
    end
    return console.DONE
end

local show_of_instance = invocation.on_instance(show)

--- Shows every plugin of Kong, of ours, and those of the setting `plugins`: of this command, or
-- with a prefix of the instance there.
-- @tparam table arguments `ours`: only those that are here; `json`; settings
-- @tparam table context `root`: Sluice's own directory
-- @treturn number exit code
function _M.run(arguments, context)
    if invocation.names_prefix(arguments) then
        return show_of_instance(arguments, context)
    end
    return show(nil, arguments, context)
end

return _M
