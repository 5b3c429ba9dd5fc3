--- Writes docs/config.md from cli.options: `make docs`.

package.path = "./?.lua;" .. package.path

local options = require("cli.options")

local INTRODUCTION = [[
# Settings

<!-- Generated from cli/options/init.lua by `make docs`; changes here are lost. -->

Settings are read from, in order of precedence: the flag of the command (`--proxy-listen`), the
environment (`SLUICE_PROXY_LISTEN`), Kong's environment (`KONG_PROXY_LISTEN`), the settings file
(`proxy_listen = ...`), the default. The settings file is given by `--conf`; the default is
`/etc/sluice/sluice.conf`, if it exists. It has `name = value` lines, and `#` starts a comment.
Unknown names are errors, in the environment too: every `SLUICE_*` variable must be a setting or
listed in `vault_env`. `status`, `get`, `history`, `events`, `timers`, `reopen`, `quit` and `stop`
only warn of one, if they know the prefix.

`KONG_*` variables and a `kong.conf` in place of the settings file are read as Kong 3.9.3 reads
them: [kong-settings.md](kong-settings.md) has what becomes of each.

`sluice reload`, `restart` and `upgrade` read the settings file again and keep the flags and
environment variables that were given to `start`, unless they are given again. Settings marked with
* only change with a restart; a reload that would change one is refused.

Relative paths are relative to the settings file's directory if set there, otherwise to the current
directory; relative log files are relative to the prefix. Times are in nginx's notation (`500ms`,
`60s`, `1m30s`; a plain number is seconds), sizes too (`512`, `8k`, `1m`). Lists are separated by
commas. Booleans are `on` and `off`.

[commands.md](commands.md#exit-codes) has the exit codes of the commands.
]]

local function cell(text)
    return (text:gsub("|", "\\|"))
end

local function describe(option)
    local limits = options.limits(option)
    return cell(limits and option.doc .. " " .. limits or option.doc)
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
