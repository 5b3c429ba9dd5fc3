--- Who may require whom: the rules of the house, as data.
--
-- The house has floors. A room (a folder, or a file of its own) may use rooms
-- on the floors below its own, and whatever is within itself. Rooms that share
-- a floor know nothing of each other. A module belongs to the room with the
-- longest name that leads to it; `gateway` and `gateway.plugin` have rooms in them,
-- so only an init file is the room of that name, and a new file beside it has no
-- floor until it gets one here.

local _M = {}

--- From the ground up.
_M.floors = {
    { "lib" },
    { "compat" },
    { "gateway.version", "gateway.router" },
    { "gateway.schema" },
    { "gateway.entities" },
    { "gateway.config", "gateway.store", "gateway.request" },
    { "gateway.control" },
    { "gateway.plugin.pdk" },
    -- Each plugin is a room of its own.
    { "plugins.*" },
    { "gateway.plugin.registry" },
    { "gateway.plugin.chain" },
    { "gateway.proxy" },
    -- The entry: the only file that sees the whole gateway.
    { "gateway" },
    -- The command line renders nginx.conf and checks files; see the doors.
    { "cli" },
}

--- Rooms that the picture shows in their folder.
_M.drawn_in = {
    ["gateway.plugin.chain"] = "gateway.plugin",
    ["gateway.plugin.registry"] = "gateway.plugin",
}

--- What the picture says of each.
_M.what = {
    cli = "the command, nginx.conf",
    compat = "others' module names",
    gateway = "the entry: nginx.conf's functions",
    ["gateway.config"] = "text to entities",
    ["gateway.control"] = "admin, changes, names",
    ["gateway.entities"] = "kinds of entities",
    ["gateway.plugin"] = "registry, chains",
    ["gateway.plugin.pdk"] = "what plugins may use",
    ["gateway.proxy"] = "phases, plans, peers",
    ["gateway.request"] = "variables, responses, log entries",
    ["gateway.router"] = "request to route",
    ["gateway.schema"] = "the engine of schemas",
    ["gateway.store"] = "entities by id, name, key",
    ["gateway.version"] = "ours, and Kong's",
    lib = "events, timers, variables, ...",
    plugins = "each a room of its own",
}

--- Doors: narrower than the floors. `of` is the folder whose walls they are in;
-- `out` lists what those within may require beyond it, `into` lists who beyond
-- it may require those within.
_M.doors = {
    {
        of = "plugins",
        out = { "gateway.plugin.pdk", "gateway.schema.typedefs", "lib" },
        why = "a plugin uses the plugin interface, the field types and the libraries",
    },
    {
        of = "plugins",
        into = { "gateway.plugin.registry" },
        why = "only the plugin registry loads plugins",
    },
    {
        of = "cli",
        out = {
            "gateway.config",
            "gateway.proxy.late_phases",
            "gateway.plugin.registry",
            "gateway.request.variables",
            "gateway.version",
            "lib.sluice.address",
            "lib.sluice.file",
        },
        why = "the command line knows the gateway's configuration, not how it serves",
    },
    {
        of = "compat",
        out = { "lib" },
        why = "the module names of others stand on the libraries alone",
    },
}

--- Modules that something other than a `require` starts.
_M.entries = {
    ["cli.main"] = "bin/sluice",
    ["cli.reference"] = "make docs",
    gateway = "nginx.conf",
    -- By users' code, under these names.
    ["compat.resty.events"] = "a user's nginx.conf",
    ["compat.resty.events.compat"] = "a user's nginx.conf",
    ["compat.resty.events.debug_lines"] = "compat.resty.events",
    ["compat.resty.events.handlers"] = "compat.resty.events",
    ["compat.resty.events.options"] = "compat.resty.events",
    ["compat.resty.kong.var"] = "a user's nginx.conf",
    ["compat.resty.timerng"] = "a user's nginx.conf",
    ["compat.resty.worker.events"] = "a user's nginx.conf",
}

--- Modules that require names which only the run knows.
_M.computed = {
    ["cli.main"] = "tries whether the packages that cli.platform lists are installed",
}

return _M
