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
    { "gateway.threads", "gateway.version" },
    { "gateway.schema" },
    { "gateway.entities" },
    { "gateway.config", "gateway.store" },
    { "gateway.image", "gateway.pdk", "gateway.plan" },
    { "gateway.kit" },
    { "gateway.writer" },
    { "gateway.upstream" },
    { "gateway.change" },
    { "gateway.metrics" },
    { "gateway.admin" },
    { "gateway.control" },
    -- Each plugin is a room of its own.
    { "plugins.*" },
    {
        "gateway.plugin.bounded",
        "gateway.plugin.finder",
        "gateway.plugin.load_error",
        "gateway.plugin.schema_check",
    },
    { "gateway.plugin.registry" },
    {
        "gateway.checker",
        "gateway.plugin.chain",
        "gateway.plugin.delivery",
        "gateway.plugin.handshake",
    },
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
        "module.core.chain",
        "module.core.limits",
        "module.core.spool",
        "module.core.text",
    },
    { "module.core.build", "module.core.plugin", "module.core.series" },
    { "module.lib.loop", "module.lib.shm" },
    {
        "module.lib.events",
        "module.lib.header",
        "module.lib.redact",
        "module.lib.timer",
        "module.lib.var",
    },
    { "module.lib.process" },
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
    { "module.gateway.changed" },
    { "module.gateway.proxy" },
    { "plugins.*" },
    { "module.gateway.process" },
}

--- Rooms that the picture shows in their folder.
_M.drawn_in = {
    ["gateway.plugin.chain"] = "gateway.plugin",
    ["gateway.plugin.delivery"] = "gateway.plugin",
    ["gateway.plugin.bounded"] = "gateway.plugin",
    ["gateway.plugin.finder"] = "gateway.plugin",
    ["gateway.plugin.handshake"] = "gateway.plugin",
    ["gateway.plugin.load_error"] = "gateway.plugin",
    ["gateway.plugin.registry"] = "gateway.plugin",
    ["gateway.plugin.schema_check"] = "gateway.plugin",
}

--- What the picture says of each.
_M.what = {
    cli = "the command, nginx.conf",
    ["gateway.checker"] = "checks files beside the event loop",
    compat = "others' module names",
    gateway = "the entry: nginx.conf's functions",
    ["gateway.admin"] = "the Admin API over HTTP",
    ["gateway.change"] = "operations on entities",
    ["gateway.config"] = "text to entities",
    ["gateway.control"] = "what worker 0 runs",
    ["gateway.entities"] = "kinds of entities",
    ["gateway.image"] = "entities as an image has them",
    ["gateway.kit"] = "the global kong",
    ["gateway.metrics"] = "metrics as text",
    ["gateway.pdk"] = "what plugins may use",
    ["gateway.plan"] = "what changes change, for people",
    ["gateway.plugin"] = "registry, chains, log entries",
    ["gateway.proxy"] = "phases, entities as plugins see them",
    ["gateway.schema"] = "the engine of schemas",
    ["gateway.store"] = "entities on the disk",
    ["gateway.threads"] = "what threads hand each other",
    ["gateway.upstream"] = "hosts to addresses",
    ["gateway.version"] = "ours, and Kong's",
    ["gateway.writer"] = "the one writer: queue, thread, files",
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
        out = {
            "compat",
            "gateway.kit.functions",
            "gateway.pdk",
            "gateway.schema.typedefs",
            "lib",
        },
        why = "a plugin uses the plugin interfaces, the field types and the libraries",
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
            "gateway.upstream.resolver",
            "gateway.writer",
            "gateway.entities",
            "gateway.image.limits",
            "gateway.proxy.late_phases",
            "gateway.plugin.registry",
            "gateway.pdk.variables",
            "gateway.plan",
            "gateway.schema.equal",
            "gateway.schema.x509",
            "gateway.store",
            "gateway.version",
            "lib.sluice.address",
            "lib.sluice.base64",
            "lib.sluice.built",
            "lib.sluice.cjson_arrays",
            "lib.sluice.ffi",
            "lib.sluice.file",
            "lib.sluice.http_response",
            "lib.sluice.nearest",
            "lib.sluice.pem",
            "lib.sluice.sha256",
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
    -- What a plugin decides.
    files = { "^plugins%.[^.]+%.sluice_[%w_]+%.[ch]$" },
    not_of = { "^ngx", "^nginx%.h$", "^lua", "^lauxlib%.h$" },
    why = "plain C knows nothing of nginx nor of Lua",
}

--- What each plugin has (test/house/plugin_folders.lua): files, of which tests of all plugins read
-- facts.json (test/nginx/support/plugin_facts.py), and in test/plugins a folder with a test, whose
-- name one of the runners finds: pytest, busted, test/core/Makefile.
_M.plugin = {
    files = {
        "plugins/%s/handler.lua",
        "plugins/%s/schema.lua",
        "docs/plugins/%s.md",
        "test/plugins/%s/facts.json",
    },
    runners = { "^test_[%w_]+%.py$", "_spec%.lua$", "^[%w_]+%.c$" },
}

--- Where code says a plugin's name (test/house/plugin_folders.lua). Pages, tests, the lab
-- (bench/), examples and packaging are not looked at: they are about what users have, and plugins
-- are part of that.
_M.plugin_names = {
    folders = { "bin", "cli", "compat", "gateway", "lib", "module", "plugins", "scripts" },
    files = { "Makefile" },
    -- Names that with `_` are something else.
    other_meanings = {
        access_log = "a directive of nginx, and the settings that render it",
        http_log = "nginx's phase, and its directive log_format in the http subsystem",
    },
    -- What may be said, token by token, or anything: a path that ends in `/` is a folder.
    may = {
        { path = "cli/plugins/costs.txt", why = "generated from docs/figures.md" },
        { path = "cli/plugins/kong.txt", why = "what Kong has: it does not say which are here" },
        {
            path = "cli/options/init.lua",
            says = { "mtls-auth", "pre-function", "rate-limiting", "rate_limiting_memory" },
            why = "settings whose help says which plugin they are for",
        },
        {
            path = "cli/nginx/conf.lua",
            says = { "rate_limiting_memory" },
            why = "renders that setting: shared memory is made with nginx's configuration",
        },
        {
            path = "cli/options/arguments.lua",
            says = { "key-auths" },
            why = "help for users: a kind that has several spellings",
        },
        {
            path = "cli/nginx/dictionaries.lua",
            says = { "kong_rate_limiting_counters", "prometheus_metrics" },
            why = "Kong's dictionaries: others' plugins take them by these names",
        },
        {
            path = "compat/kong/constants.lua",
            says = { "kong_rate_limiting_counters" },
            why = "the same, as Kong lists them",
        },
        {
            path = "gateway/kit/outside.lua",
            says = { "redirect" },
            why = "nginx's function ngx.redirect",
        },
        {
            path = "gateway/metrics/init.lua",
            says = { "prometheus", "prometheus_metrics" },
            why = "one of Kong's dictionaries, and the module of Kong's that fills it",
        },
        {
            path = "gateway/config/deck.lua",
            says = { "skip_hash_for_basic_auth" },
            why = "decK's format: a field of the file, not of a plugin",
        },
        {
            path = "gateway/entities/init.lua",
            says = { "acls", "jwt_secrets", "mtls_auth_credentials" },
            why = "Kong's collections, which a file may hold where no plugin adds them",
        },
        {
            path = "gateway/entities/consumer_groups.lua",
            says = { "rate-limiting" },
            why = "an example for users",
        },
        {
            path = "gateway/entities/plugins.lua",
            says = { "http-log", "key-auth", "rate-limiting" },
            why = "an example for users",
        },
        {
            path = "gateway/entities/vaults.lua",
            says = { "http-log" },
            why = "an example for users",
        },
        {
            path = "scripts/platforms",
            says = { "test_key_auth" },
            why = "a subset of tests: one of a native plugin",
        },
    },
}

--- Modules that something other than a `require` starts.
_M.entries = {
    ["cli.main"] = "bin/sluice",
    ["cli.options.manual"] = "scripts/install",
    ["cli.options.reference"] = "make docs",
    ["cli.options.kong_reference"] = "make docs",
    ["gateway.metrics.reference"] = "make docs",
    gateway = "nginx.conf",
    ["gateway.writer.thread"] = "ngx.run_worker_thread",
    ["gateway.checker"] = "gateway.threads.lua_state, by name",
    ["gateway.threads.lua_state"] = "ngx.run_worker_thread",
    ["gateway.store.thread"] = "ngx.run_worker_thread",
    -- By users' code.
    ["lib.sluice.header"] = "users' plugins",
    ["lib.sluice.redact"] = "users' plugins",
}

--- Modules that users' code requires, as patterns: docs/modules.md has each, or the plugin's page,
-- and a test compares.
_M.required_elsewhere = { "^compat%.", "^plugins%.[^.]+%.kong%." }

--- Modules that require names which only the run knows.
_M.computed = {
    ["gateway.kit.db.dao"] = "loads the class that a plugin's kind of entities has of its own",
    ["cli.main"] = "tries whether the packages that cli.platform lists are installed",
    ["gateway.plugin.registry"] = "loads owners' plugins, by the names that the finder has found",
    ["compat.kong.tools.module"] = "loads what its caller names",
    ["compat.kong.tools.sandbox"] = "loads what a setting lists",
    ["gateway.image.of_plugins"] = "loads the plugins that pack, whose names layouts hand down",
}

--- Modules whose functions users' code calls, as patterns.
_M.public = {
    "^compat%.",
    "^plugins%.[^.]+%.kong%.",
    "^lib%.sluice%.[^.]+$",
    "^gateway%.kit%.",
    "^gateway%.pdk$",
    -- By name, from the schemas of plugins.
    "^gateway%.schema%.entity_checks$",
    "^gateway%.schema%.metaschema$",
    -- kong.db.schema and its kin.
    "^gateway%.schema%.class",
}

--- Headers of libraries: what they declare, others may use.
_M.libraries = {
    "module.core.balancer.balancer.h",
    "module.core.image.delta.h",
    "module.core.image.core.h",
    "module.core.limits.meter.h",
    "module.core.path.path.h",
    "module.core.plugin.decision.h",
    "module.core.plugin.judge.h",
    "module.gateway.plugin.ngx_http_sluice_plugin.h",
}

--- What public functions of C begin with, before a word of their file's name.
_M.prefixes = { "ngx_http_sluice_", "ngx_sluice_", "sluice_core_", "sluice_timers_", "sluice_" }

--- Prefixes that are a whole library's.
_M.rooms_prefix = { sluice_core_ = "module/core", sluice_timers_ = "module/core/wheel" }

--- Public functions of C whose names others have given.
_M.misnamed = {
    luaopen_sluice_timer = "Lua's name for what a library opens with",
    luaopen_sluice_turn = "the same",
}

--- Functions that nothing of the house uses.
_M.alive = {
    -- Called by name, in a thread.
    ["gateway.writer.finish_merge"] = "gateway.writer.maintenance",
    ["gateway.writer.is_sound"] = "gateway.writer.maintenance",
    ["gateway.writer.start_merge"] = "gateway.writer.maintenance",
    ["gateway.store.database.unused"] = "gateway.upstream.hosts",
    ["gateway.store.thread.call"] = "ngx.run_worker_thread",
    sluice_core_scratch_take = "test/core/make.c makes entities as decoding does",
    sluice_ring_close = "who creates a log can free it; nginx's ends with the process",
    sluice_ring_frame_check = "test/ring/pairs.c counts how many changes it misses",
    sluice_ring_set_clock = "test/ring has a clock of its own",
}

return _M
