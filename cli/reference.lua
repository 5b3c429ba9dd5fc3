--- Writes docs/config.md from cli.options: `make docs`.

package.path = "./?.lua;" .. package.path

local options = require("cli.options")

local INTRODUCTION = [[
# Settings

<!-- Generated from cli/options.lua by `make docs`; changes here are lost. -->

A setting comes from, in this order: the flag of the command (`--proxy-listen`), the environment
(`SLUICE_PROXY_LISTEN`), the settings file (`proxy_listen = ...`), the default. The settings file
is the one of `--conf`, or `/etc/sluice/sluice.conf` if it exists; it has `name = value` lines, and
`#` starts a comment. An unknown name in it is an error.

`sluice reload`, `restart` and `upgrade` read the settings file again and remember what `start`
was given by flag and environment; what they are given themselves wins. Settings marked with *
change only with a restart.

A relative path starts from the settings file's folder when it stands there, else from the current
folder; relative log files start from the prefix. Times are nginx's (`500ms`, `60s`, `1m30s`; a
bare number is seconds), sizes too (`512`, `8k`, `1m`). Lists have commas. Booleans are `on` and
`off`.

Exit codes of `sluice`: 0 done; 1 it failed, and standard error says why; 2 wrong use (an unknown
command or flag, a bad setting); 3 the gateway is not running (`status`, `reload`, `upgrade`,
`reopen`; a `restart` that has ended it and could not start it, a `reload` whose new workers die).
]]

local function cell(text)
    return (text:gsub("|", "\\|"))
end

local function describe(option)
    local parts = { option.doc }
    if option.values then
        parts[#parts + 1] = "Words: `" .. table.concat(option.values, "`, `") .. "`."
    end
    if option.min and option.max then
        parts[#parts + 1] = ("From %d to %d."):format(option.min, option.max)
    elseif option.min and option.min > 1 then
        parts[#parts + 1] = ("At least %d."):format(option.min)
    end
    return cell(table.concat(parts, " "))
end

--- The page.
-- @treturn string Markdown
local function render()
    local out = { INTRODUCTION }
    for _, section in ipairs(options.sections) do
        out[#out + 1] = "## " .. options.titles[section] .. "\n"
        out[#out + 1] = "| setting | type | default | |"
        out[#out + 1] = "|---|---|---|---|"
        for _, option in ipairs(options.list) do
            if option.section == section then
                local kind = option.type:gsub("_", " ")
                if option.unit then
                    kind = kind .. " (" .. option.unit .. ")"
                end
                local default = option.default == "" and "" or ("`%s`"):format(cell(option.default))
                out[#out + 1] = ("| `%s`%s | %s | %s | %s |"):format(
                    option.name,
                    option.where == "start" and " *" or "",
                    kind,
                    default,
                    describe(option)
                )
            end
        end
        out[#out + 1] = ""
    end
    return table.concat(out, "\n")
end

io.write(render())
