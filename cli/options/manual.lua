--- Writes the manual pages from the parser of the command line and from cli.options:
-- `luajit cli/options/manual.lua sluice` for sluice(1), `... sluice.conf` for sluice.conf(5).

package.path = "./?.lua;./?/init.lua;./lib/?.lua;./lib/?/init.lua;" .. package.path

local arguments_of = require("cli.options.arguments")
local options = require("cli.options")
local version = require("gateway.version")

-- A line of roff: its own characters stand for themselves, and what is code is bold.
local function text(words)
    local line = words
        :gsub("\\", "\\e")
        :gsub("%-", "\\-")
        :gsub("%[([^%]]*)%]%([%w_./]+%)", "%1")
        :gsub("`([^`]*)`", "\\fB%1\\fR")
    return (line:gsub("^([.'])", "\\&%1"))
end

local function title(out, name, section)
    out[#out + 1] = ('.TH "%s" %d "" "Sluice %s"'):format(name:upper(), section, version.product)
end

local function section(out, name)
    out[#out + 1] = ".SH " .. name
end

local function item(out, head, words)
    out[#out + 1] = ".TP"
    out[#out + 1] = head
    out[#out + 1] = text(words)
end

-- `--flag <value>` or `<argument>`, as the help has it.
local function head_of(element, is_argument)
    local value = element._argname
    if type(value) == "table" then
        value = value[1]
    end
    if is_argument then
        return ("\\fI%s\\fR"):format(text(element._name))
    end
    local flags = {}
    for i, alias in ipairs(element._aliases) do
        flags[i] = "\\fB" .. text(alias) .. "\\fR"
    end
    return table.concat(flags, ", ") .. (value and " \\fI" .. text(value) .. "\\fR" or "")
end

-- Settings that are flags of a command are told in one line: sluice.conf(5) has them.
local function settings_line(names)
    if #names > 3 then
        return "All settings of \\fBsluice.conf\\fR(5) are also flags."
    end
    return ("Also %s of \\fBsluice.conf\\fR(5)."):format(table.concat(names, ", "))
end

local function command(out, each)
    out[#out + 1] = ".SS " .. each._name
    out[#out + 1] = text(each._description)
    local settings = {}
    for _, argument in ipairs(each._arguments) do
        item(out, head_of(argument, true), argument._description or "")
    end
    for _, option in ipairs(each._options) do
        local setting = options.by_name[option._target or ""]
        if setting then
            settings[#settings + 1] = "\\fB" .. text(options.flag(setting)) .. "\\fR"
        elseif option._description and option._name ~= "-h" then
            item(out, head_of(option), option._description)
        end
    end
    if #settings > 0 then
        out[#out + 1] = ".PP"
        out[#out + 1] = settings_line(settings)
    end
end

local pages = {}

pages["sluice"] = function(out)
    local parser = arguments_of.parser()
    title(out, "sluice", 1)
    section(out, "NAME")
    out[#out + 1] = "sluice \\- run and change an API gateway on nginx"
    section(out, "SYNOPSIS")
    out[#out + 1] = "\\fBsluice\\fR \\fIcommand\\fR [\\fIarguments\\fR]"
    section(out, "DESCRIPTION")
    out[#out + 1] = text(parser._description)
    out[#out + 1] = text(parser._epilog)
    section(out, "COMMANDS")
    for _, each in ipairs(parser._commands) do
        command(out, each)
    end
    section(out, "FILES")
    for _, name in ipairs({ "conf", "prefix" }) do
        local option = options.by_name[name]
        item(out, ".I " .. text(option.default), option.doc)
    end
    section(out, "SEE ALSO")
    out[#out + 1] = "\\fBsluice.conf\\fR(5), \\fBnginx\\fR(8)"
end

-- What a setting takes, below its text.
local function bounds(option)
    local out = { options.limits(option) }
    local default = option.default == "" and "Empty by default." or nil
    out[#out + 1] = default or ("Default: `%s`."):format(option.default)
    if option.where == "start" then
        out[#out + 1] = "Only changes with `sluice restart`."
    end
    return table.concat(out, " ")
end

pages["sluice.conf"] = function(out)
    title(out, "sluice.conf", 5)
    section(out, "NAME")
    out[#out + 1] = "sluice.conf \\- settings of the Sluice API gateway"
    section(out, "DESCRIPTION")
    out[#out + 1] = text(
        "Lines are `name = value`; `#` starts a comment; values can be in double quotes. "
            .. "Unknown names are errors, `SLUICE_*` variables too. A flag of the command "
            .. "(`--proxy-listen`) overrides the environment (`SLUICE_PROXY_LISTEN`), which "
            .. "overrides this file. Relative paths are relative to this file's directory, "
            .. "relative log files to the prefix. Times and sizes are in nginx's notation "
            .. "(`500ms`, `60s`; `8k`, `1m`), lists are separated by commas, booleans are "
            .. "`on` and `off`."
    )
    for _, name in ipairs(options.sections) do
        section(out, options.titles[name]:upper())
        for _, option in ipairs(options.list) do
            if option.section == name then
                local kind = option.type:gsub("_", " ")
                local unit = option.unit and (", " .. option.unit) or ""
                item(out, ("\\fB%s\\fR (%s%s)"):format(option.name, kind, unit), option.doc)
                out[#out + 1] = text(bounds(option))
            end
        end
    end
    section(out, "SEE ALSO")
    out[#out + 1] = "\\fBsluice\\fR(1)"
end

local out = {}
pages[arg[1]](out)
io.write(table.concat(out, "\n"), "\n")
