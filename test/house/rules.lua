--- Who may require whom, and in C call whom: the rules of the house, as data.
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
    { "gateway.config", "gateway.store", "gateway.request", "gateway.plugin.names" },
    { "gateway.image" },
    { "gateway.control" },
    { "gateway.plugin.pdk" },
    -- Each plugin is a room of its own.
    { "plugins.*" },
    { "gateway.plugin.registry" },
    { "gateway.checker", "gateway.plugin.chain" },
    { "gateway.proxy" },
    -- The entry: the only file that sees the whole gateway.
    { "gateway" },
    -- The command line renders nginx.conf and checks files; see the doors.
    { "cli" },
}

--- Those of C. Lua calls C through FFI, whatever its floor.
_M.floors_of_c = {
    { "module.core.image", "module.core.ring", "module.core.wheel" },
    {
        "module.core.router",
        "module.core.path",
        "module.core.balancer",
        "module.core.limits",
        "module.core.text",
    },
    { "module.core.build" },
    { "module.lib.shm" },
    {
        "module.lib.events",
        "module.lib.header",
        "module.lib.redact",
        "module.lib.timer",
        "module.lib.var",
    },
    { "module.gateway.request" },
    { "module.gateway.image" },
    {
        "module.gateway.log",
        "module.gateway.metrics",
        "module.gateway.response",
        "module.gateway.tls",
    },
    { "module.gateway.protocol" },
    { "module.gateway.plugin" },
    { "module.gateway.upstream" },
    { "module.gateway.proxy" },
    { "plugins.*" },
    { "module.gateway.process" },
}

--- What is still to be straightened: who goes upwards, as modules or rooms, and why. A line that
-- nothing needs is reported as well.
_M.debts = {
    -- The two umbrella headers.
    { "module", "module.gateway.process.ngx_sluice.h" },
    { "module", "module.gateway.process.ngx_sluice_abi.h" },
    { "plugins", "module.gateway.process.ngx_sluice_abi.h" },
    -- Functions that stand in the wrong room.
    { "module.core.image.read.c", "module.core.build.body.c" },
    { "module.core.router.match.c", "module.core.build.entries.c" },
    { "module.gateway.image", "module.gateway.tls.ngx_sluice_tickets.h" },
    { "module.gateway.image", "module.gateway.upstream.ngx_http_sluice_destination.h" },
    { "module.gateway.log", "module.gateway.plugin" },
    { "module.gateway.log", "plugins.access-log" },
    { "module.gateway.metrics", "module.gateway.plugin" },
    { "module.gateway.upstream", "module.gateway.proxy" },
    { "module.lib.events", "module.gateway.process.ngx_sluice_grace.c" },
    { "module.lib.header", "module.gateway.upstream.ngx_http_sluice_response.c" },
    { "module.lib.redact", "module.gateway.image.ngx_sluice_page.c" },
}

--- Rooms that the picture shows in their folder.
_M.drawn_in = {
    ["gateway.plugin.chain"] = "gateway.plugin",
    ["gateway.plugin.registry"] = "gateway.plugin",
}

--- What the picture says of each.
_M.what = {
    cli = "the command, nginx.conf",
    ["gateway.checker"] = "checks files beside the event loop",
    compat = "others' module names",
    gateway = "the entry: nginx.conf's functions",
    ["gateway.config"] = "text to entities",
    ["gateway.control"] = "what worker 0 runs: admin, the writer, names",
    ["gateway.entities"] = "kinds of entities",
    ["gateway.image"] = "entities as an image has them",
    ["gateway.plugin"] = "registry, chains",
    ["gateway.plugin.names"] = "addresses of hosts, for plugins",
    ["gateway.plugin.pdk"] = "what plugins may use",
    ["gateway.proxy"] = "phases, plans",
    ["gateway.request"] = "variables, responses, log entries",
    ["gateway.router"] = "paths, trials of patterns",
    ["gateway.schema"] = "the engine of schemas",
    ["gateway.store"] = "entities by id, name, key",
    ["gateway.version"] = "ours, and Kong's",
    lib = "events, timers, variables, ...",
    ["module.core"] = "plain C: images, the router",
    ["module.gateway"] = "the gateway in nginx",
    ["module.lib"] = "the libraries in nginx",
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
            "gateway.control.evidence",
            "gateway.control.resolver",
            "gateway.control.room",
            "gateway.control.writer",
            "gateway.entities",
            "gateway.proxy.late_phases",
            "gateway.plugin.registry",
            "gateway.request.variables",
            "gateway.store",
            "gateway.version",
            "lib.sluice.address",
            "lib.sluice.built",
            "lib.sluice.core",
            "lib.sluice.crl",
            "lib.sluice.file",
            "lib.sluice.http_response",
            "lib.sluice.images",
        },
        why = "the command line knows the gateway's configuration and its store, not how it serves",
    },
    {
        of = "compat",
        out = { "lib" },
        why = "the module names of others stand on the libraries alone",
    },
}

--- Plain C: rooms that can be built and tested without nginx and Lua.
_M.plain = {
    rooms = { "module.core" },
    not_of = { "^ngx", "^nginx%.h$", "^lua", "^lauxlib%.h$" },
    why = "plain C knows nothing of nginx nor of Lua",
}

--- Modules that something other than a `require` starts.
_M.entries = {
    ["cli.main"] = "bin/sluice",
    ["cli.manual"] = "scripts/install",
    ["cli.reference"] = "make docs",
    ["gateway.control.metrics.reference"] = "make docs",
    gateway = "nginx.conf",
    ["gateway.control.apply"] = "the entry, in worker 0",
    ["gateway.control.writer_thread"] = "ngx.run_worker_thread",
    ["gateway.checker"] = "gateway.store.lua_state, by name",
    ["gateway.store.lua_state"] = "ngx.run_worker_thread",
    ["gateway.store.thread"] = "ngx.run_worker_thread",
    -- By users' code, under these names.
    ["compat.resty.events"] = "a user's nginx.conf",
    ["compat.resty.events.compat"] = "a user's nginx.conf",
    ["compat.resty.events.debug_lines"] = "compat.resty.events",
    ["compat.resty.events.handlers"] = "compat.resty.events",
    ["compat.resty.events.options"] = "compat.resty.events",
    ["compat.resty.kong.var"] = "a user's nginx.conf",
    ["compat.resty.timerng"] = "a user's nginx.conf",
    ["compat.resty.worker.events"] = "a user's nginx.conf",
    ["lib.sluice.header"] = "users' plugins",
    ["lib.sluice.redact"] = "users' plugins",
}

--- Modules that require names which only the run knows.
_M.computed = {
    ["cli.main"] = "tries whether the packages that cli.platform lists are installed",
    ["gateway.image.entities"] = "loads the plugins that pack, whose names layouts hand down",
}

--- Modules whose functions users' code calls, as patterns.
_M.public = {
    "^compat%.",
    "^lib%.sluice%.[^.]+$",
    "^gateway%.plugin%.pdk$",
    -- By name, from the schemas of plugins.
    "^gateway%.schema%.entity_checks$",
}

--- Headers of libraries: what they declare, others may use.
_M.libraries = {
    "module.core.balancer.balance.h",
    "module.core.image.delta.h",
    "module.core.image.core.h",
    "module.core.limits.meter.h",
    "module.core.path.path.h",
    "module.gateway.plugin.ngx_http_sluice_packed.h",
}

--- Functions that nothing of the house uses.
_M.alive = {
    -- Called by name, in a thread.
    ["gateway.control.writer.finish_merge"] = "gateway.control.maintenance",
    ["gateway.control.writer.is_sound"] = "gateway.control.maintenance",
    ["gateway.control.writer.start_merge"] = "gateway.control.maintenance",
    ["gateway.store.database.unused"] = "gateway.control.addresses",
    ["gateway.store.thread.call"] = "ngx.run_worker_thread",
    sluice_core_scratch_take = "test/core/make.c makes entities as decoding does",
    sluice_ring_close = "who creates a log can free it; nginx's ends with the process",
    sluice_ring_frame_check = "test/ring/pairs.c counts how many changes it misses",
    sluice_ring_set_clock = "test/ring has a clock of its own",
}

return _M
