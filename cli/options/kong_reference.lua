--- Writes docs/kong-settings.md from cli.options.kong: `make docs`.

package.path = "./?.lua;./?/init.lua;./lib/?.lua;" .. package.path

local kong = require("cli.options.kong")

local INTRODUCTION = [[
# Kong's settings

<!-- Generated from cli/options/kong.lua by `make docs`; changes here are lost. -->

Sluice reads Kong's environment (`KONG_PROXY_LISTEN=...`) and a `kong.conf` given by `--conf`. Each
of the %d settings of Kong 3.9.3 is *taken* by a setting of Sluice ([config.md](config.md));
*warned* of: `start`, `restart` and `check` print a line that names it and what is the case instead;
or *refused*: the command ends with a sentence that says what to do. Values that say what is the
case anyway are accepted silently. `enforce_rbac`, which is Kong Enterprise's, is refused unless it
is `off`; other names that Kong does not have are warned of.

A flag beats `SLUICE_*`, which beats `KONG_*`, which beats the file. Empty values are none.
References to vaults (`{vault://env/...}`) are refused in settings that are taken. Relative paths
start at the current directory, in a file at the file's. `KONG_<NAME>_FILE` names a file that has
the value of a setting, as Kong's image takes it.

`sluice` does not look for a `kong.conf`: `/etc/kong/kong.conf` and `/etc/kong.conf`, which Kong
reads by itself, need `--conf` (or `SLUICE_CONF`). The command `kong` of
[the container](container.md) reads them as Kong does.

A file with a name that only Kong has is a `kong.conf`: `#` begins a comment anywhere (`\#` is the
character), a `\` at the end of a line continues it, Sluice's own settings may stand beside Kong's,
and a name that is neither's gets a warning.

| setting | | here |
|---|---|---|
]]

local INJECTED = [[

## Injected directives

`KONG_NGINX_<BLOCK>_<DIRECTIVE>` sets what is a setting here; %s.

| directive | setting |
|---|---|
]]

local MORE = [[

`KONG_NGINX_HTTP_LOG_FORMAT` is read where `KONG_PROXY_ACCESS_LOG`, `KONG_ADMIN_ACCESS_LOG` or
`KONG_STATUS_ACCESS_LOG` names that format.
]]

local function describe(row)
    local same = {}
    for word in (row.same or ""):gmatch("%S+") do
        same[#same + 1] = ("`%s`"):format(word)
    end
    local silent = #same > 0 and (" Accepted: %s."):format(table.concat(same, ", ")) or ""
    if row.takes then
        return "taken", ("`%s`"):format(row.takes)
    elseif row.warns then
        return "warned", row.warns .. "." .. silent
    end
    return "refused", row.refuses .. "." .. silent
end

local function render()
    local out = { INTRODUCTION:format(#kong.list) }
    for _, name in ipairs(kong.list) do
        out[#out + 1] = ("| `%s` | %s | %s |\n"):format(name, describe(kong.by_name[name]))
    end
    out[#out + 1] = INJECTED:format("for others " .. kong.INJECTED)
    local lines = {}
    for block, directives in pairs(kong.injected) do
        for directive, setting in pairs(directives) do
            lines[#lines + 1] = ("| `nginx_%s_%s` | `%s` |\n"):format(block, directive, setting)
        end
    end
    table.sort(lines)
    return table.concat(out) .. table.concat(lines) .. MORE
end

io.write(render())
