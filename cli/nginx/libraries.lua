--- What any nginx needs to be told for Sluice's libraries: events, timers, variables. The gateway's
-- own nginx.conf has the same first lines (cli.nginx_conf).
-- @module cli.nginx.libraries

local built = require("sluice.built")
local quote = require("cli.nginx.logs").quote

local _M = {}

--- The parts of an nginx.conf that lines go into.
_M.parts = { "main", "http" }

local WHERE = {
    main = "Outside of all blocks, above `events`.",
    http = "In the block `http`.",
}

--- The directives outside of all blocks, each with what it is for.
-- @tparam table settings resolved settings
-- @treturn {table,...} `{ line, why }`; `why` is nil where the line above says it
function _M.main(settings)
    local out = {}
    for i, path in ipairs(settings.nginx_modules) do
        local why = i == 1
            and "Lua for nginx, and what it needs; leave out what this nginx.conf loads already."
        out[i] = { ("load_module %s;"):format(quote(path)), why or nil }
    end
    out[#out + 1] = {
        ("load_module %s;"):format(quote(built.module)),
        "The libraries' part in C. Behind the Lua module, whose functions it calls.",
    }
    out[#out + 1] = {
        ("sluice_events_size %s;"):format(settings.events_size),
        "Shared memory of sluice.events: how much may be under way while a worker is busy.",
    }
    out[#out + 1] = {
        ("sluice_events_stall %s;"):format(settings.events_stall),
        "How long a worker that is stuck may hold up the others when that memory is full.",
    }
    return out
end

--- The directives in `http`, each with what it is for.
-- @tparam table settings resolved settings
-- @tparam string root Sluice's own directory
-- @treturn {table,...} `{ line, why }`
function _M.http(settings, root)
    local path = ("%s/lib/?.lua;%s/lib/?/init.lua;%s;;"):format(
        root,
        root,
        settings.lua_package_path
    )
    return {
        {
            ("lua_package_path %s;"):format(quote((path:gsub(";;+", ";;")))),
            "Where Lua finds the libraries; one that is here already takes these two places in.",
        },
        {
            "sluice_var_index default;",
            "Variables that sluice.var reads by number: name here your own, such as $tenant, and "
                .. "$http_x_tenant.",
        },
        {
            "# lua_shared_dict sluice_events 16m;",
            'For sluice.events with transport = "poll" alone: events else, timers and variables '
                .. "need no shared dictionary.",
        },
    }
end

--- Writes a part, each directive below a comment that says what it is for.
-- @tparam string part one of `parts`
-- @tparam table settings resolved settings
-- @tparam string root Sluice's own directory
-- @treturn string lines of nginx.conf
function _M.text(part, settings, root)
    local out = { "# " .. WHERE[part] }
    for _, directive in ipairs(_M[part](settings, root)) do
        local line, why = directive[1], directive[2]
        if why then
            out[#out + 1] = "# " .. why
        end
        out[#out + 1] = line
    end
    return table.concat(out, "\n")
end

return _M
