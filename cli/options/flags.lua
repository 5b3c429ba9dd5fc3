--- The flags of settings, and the page of help that has all of them.

local argparse = require("argparse")

local options = require("cli.options")

local _M = {}

--- Columns of all help.
_M.WIDTH = 80

-- What the help of a command shows of all settings; `sluice help settings` has the others.
local MAIN = { prefix = true, conf = true, file = true, proxy_listen = true, admin_listen = true }

--- What leads from the help of a command to the other settings.
_M.MORE = "Each setting without secrets is a flag, too, such as --workers: sluice help settings"

-- What a value is called, where its type alone says little.
local ARGNAMES = {
    boolean = "<on|off>",
    buffers = "<number size>",
    cidr_list = "<network,...>",
    host_list = "<host,...>",
    integer = "<number>",
    listen = "<address,...>",
    log = "<file>",
    log_format = "<format>",
    module_list = "<name,...>",
    name_list = "<name,...>",
    path_list = "<path,...>",
    word_list = "<word,...>",
    words = "<word ...>",
}

--- What a terminal shows of a text of Markdown: without backticks, and a link as the page's path.
-- @tparam string text
-- @treturn string
function _M.plain(text)
    return (text:gsub("%[[^%]]*%]%(([%w_./-]+)[^)]*%)", "docs/%1"):gsub("`", ""))
end

-- The name of a setting's value, such as "<on|off>".
local function argname(option)
    if option.type == "enum" then
        return "<" .. table.concat(option.values, "|") .. ">"
    end
    return ARGNAMES[option.type] or ("<%s>"):format(option.type)
end

-- What a setting does and takes.
local function describe(option)
    local parts = { option.doc }
    parts[#parts + 1] = options.limits(option)
    parts[#parts + 1] = option.default ~= "" and ("Default: %s."):format(option.default) or nil
    return _M.plain(table.concat(parts, " "))
end

local function add_setting(command, option)
    local flag = command
        :option(options.flag(option))
        :target(option.name)
        :argname(argname(option))
        :description(describe(option))
    if options.is_list(option) then
        flag:overwrite(false)
    end
    if option.name ~= "file" then
        return flag
    end
    local none = command:flag("--no-file", "Use the store, and no file.")
    none:action(function(arguments)
        arguments.file = ""
    end)
    command:mutex(flag, none)
    return flag, none
end

--- Adds the settings to the flags of a command, after its own.
-- @tparam table command of argparse
-- @tparam[opt] {[string]=boolean,...} names of settings; all, of which the help shows the main ones
function _M.add(command, names)
    command:group("Flags", unpack(command._options))
    local titles, groups = {}, {}
    for _, option in ipairs(options.list) do
        if not options.is_secret(option) and (not names or names[option.name]) then
            local title = names and "Settings" or options.titles[option.section]
            if not groups[title] then
                titles[#titles + 1], groups[title] = title, {}
            end
            for _, flag in ipairs({ add_setting(command, option) }) do
                flag:hidden(not names and not MAIN[option.name])
                table.insert(groups[title], flag)
            end
        end
    end
    for _, title in ipairs(titles) do
        command:group(title, unpack(groups[title]))
    end
end

--- Whether the help of a command shows some of its settings only.
-- @tparam table command of argparse
-- @treturn boolean
function _M.is_short(command)
    for _, flag in ipairs(command._options) do
        if flag._hidden then
            return true
        end
    end
    return false
end

-- A page of help that begins with a line.
local function new_page(line)
    return argparse("settings"):add_help(false):help_max_width(_M.WIDTH):usage(line)
end

-- A page of flags: all, or those of the settings with these names.
local function page_of(line, names)
    local page = new_page(line)
    _M.add(page, names)
    for _, flag in ipairs(page._options) do
        flag:hidden(false)
    end
    return page:get_help() .. "\n"
end

--- What `sluice help settings` shows: each setting that has a flag, in its group.
-- @treturn string
function _M.help()
    return page_of("Flags of sluice start, restart, reload, upgrade and import, a setting each:")
end

--- What there is to say of a setting without a flag.
-- @tparam table option a secret
-- @treturn string a line
function _M.no_flag(option)
    local line = "%s has no flag, since everybody can see flags%s; use %s in the environment, or a "
        .. "line of the settings file"
    local why = option.type == "pem_list" and " and it may contain the text of a key" or ""
    return line:format(option.name, why, options.variable(option))
end

--- What `sluice help log_level` shows: one setting.
-- @tparam table option
-- @treturn string
function _M.help_of(option)
    local line = ("The setting %s, in the environment %s"):format(
        option.name,
        options.variable(option)
    )
    if not options.is_secret(option) then
        return page_of(line .. ":", { [option.name] = true })
    end
    local page = new_page(line .. ":")
    page:description(_M.no_flag(option) .. ".\n\n" .. describe(option))
    return page:get_help() .. "\n"
end

return _M
