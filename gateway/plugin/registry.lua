--- The plugins that this gateway may run: the only place that loads them.
--
-- A plugin is a folder of Kong's shape, `kong/plugins/<name>` or `plugins/<name>` on the package
-- path (gateway.plugin.finder): `handler.lua`, `schema.lua`, `daos.lua` where it brings kinds of
-- entities, and `metrics.lua` where it brings metrics. The bundled ones are found by listing ours;
-- a user's own are named by the setting `plugins` and found by `lua_package_path`.
-- @module gateway.plugin.registry

local bounded = require("gateway.plugin.bounded")
local dirent = require("posix.dirent")
local entities = require("gateway.entities")
local finder = require("gateway.plugin.finder")
local kit = require("gateway.kit")
local load_error = require("gateway.plugin.load_error")
local metaschema = require("gateway.schema.metaschema")
local nearest = require("sluice.nearest")
local plan = require("gateway.schema.plan")
local schema_check = require("gateway.plugin.schema_check")

local _M = {}
local mt = { __index = _M }

--- The phases that a plugin may implement, as Kong names them.
_M.PHASES = {
    "init_worker",
    "configure",
    "certificate",
    "rewrite",
    "access",
    "response",
    "header_filter",
    "body_filter",
    "log",
}

-- Those of Kong that no plugin in Lua has here.
local OTHER_PHASES = {
    "preread",
    "ws_client_frame",
    "ws_close",
    "ws_handshake",
    "ws_upstream_frame",
}

-- An integer, as in Kong.
local function is_priority(value)
    return type(value) == "number" and value % 1 == 0 and math.abs(value) < math.huge
end

-- `x.y.z`, as Kong reads it: fewer numbers are allowed, more are not.
local function clean_version(value)
    local numbers = type(value) == "string" and value:match("^%D*(%d[%d.]*)")
    local _, points = (numbers or "...."):gsub("%.", "")
    return points < 3 and numbers or nil
end

local function implements(handler, phase)
    return type(handler[phase]) == "function"
end

local function check_phases(handler)
    for _, phase in ipairs(_M.PHASES) do
        -- False: of the base class of Kong 2 (compat/kong/plugins/base_plugin.lua).
        if handler[phase] and not implements(handler, phase) then
            return phase .. ": function expected"
        elseif
            handler[phase]
            and handler.native
            and not (phase == "log" and handler.lua_phases)
        then
            return phase .. ": a native plugin has its phases in C"
        end
    end
    local filters = implements(handler, "header_filter") or implements(handler, "body_filter")
    if implements(handler, "response") and filters then
        return "response: not beside header_filter or body_filter"
    end
    return nil
end

local function check_handler(handler)
    if type(handler) ~= "table" then
        return "does not return a table"
    elseif handler.PRIORITY == nil then
        return "lacks PRIORITY, an integer; write PRIORITY = 1000"
    elseif not is_priority(handler.PRIORITY) then
        return "PRIORITY: integer expected"
    elseif handler.VERSION == nil then
        return 'lacks VERSION, a text; write VERSION = "1.0.0"'
    elseif not clean_version(handler.VERSION) then
        return 'VERSION: text of the form "x.y.z" expected'
    end
    local err = check_phases(handler)
    if err then
        return err
    elseif handler.native and type(handler.pack) ~= "function" then
        return "pack: function expected"
    elseif
        handler.deliver ~= nil and not (handler.native and type(handler.deliver) == "function")
    then
        return "deliver: function of a native plugin expected"
    end
    return nil
end

-- A class of Kong 2 becomes an object, of which Kong 2 asked neither for a version.
local function object_of(handler)
    if type(handler) ~= "table" or type(handler.super) ~= "table" then
        return handler
    end
    local object = handler()
    object.PRIORITY, object.VERSION = object.PRIORITY or 0, object.VERSION or "0.0.0"
    return object
end

-- Adds the kinds of entities that a plugin brings; those of one for Kong have Kong's words alone.
local function add_daos(daos, is_kong)
    if type(daos) ~= "table" then
        return "does not return a table"
    end
    local list, err = entities.of_daos(daos)
    for _, schema in ipairs(is_kong and list or {}) do
        local errors = metaschema.check(schema, true)
        if errors then
            return ("'%s': %s"):format(schema.name, metaschema.text(errors))
        end
    end
    for _, schema in ipairs(list or {}) do
        local added
        added, err = entities.add(schema)
        if not added then
            return err
        end
    end
    return err
end

local function check_metrics(rows)
    if type(rows) ~= "table" then
        return "does not return a table"
    end
    for _, row in ipairs(rows) do
        if type(row) ~= "table" or type(row.name) ~= "string" or type(row.help) ~= "string" then
            return "rows with a name and a help expected"
        end
    end
    return nil
end

-- What a part of a plugin returns, where it has nothing wrong.
local function checked(name, base, part, check, ok, found)
    local file = part .. ".lua"
    local err
    if ok then
        err = check(found, name)
        err = err and ("%s: %s"):format(file, err)
    else
        err = load_error.text(file, base .. "." .. part, found)
    end
    if err then
        return nil, ("plugin '%s': %s"):format(name, err)
    end
    return found
end

-- What loads a part of a plugin of ours, by name; of others the name of the module is computed.
local OURS = {
    handler = function(name)
        return require("plugins." .. name .. ".handler")
    end,
    schema = function(name)
        return require("plugins." .. name .. ".schema")
    end,
    daos = function(name)
        return require("plugins." .. name .. ".daos")
    end,
    metrics = function(name)
        return require("plugins." .. name .. ".metrics")
    end,
}

local function load_part(name, base, part)
    if base == "plugins." .. name then
        return bounded.call(OURS[part], name)
    end
    return bounded.call(require, base .. "." .. part)
end

local function load_handler(name, base)
    return object_of(load_part(name, base, "handler"))
end

-- The same of a file that most plugins do not have; `otherwise` where it is not there.
local function checked_if_there(name, part, check, otherwise, base)
    if not finder.has(base, part) then
        return otherwise
    end
    return checked(name, base, part, check, pcall(load_part, name, base, part))
end

local NO_SCHEMA = "plugin '%s': schema.lua: not found; it belongs beside handler.lua: %s "
    .. "(docs/plugin-development.md shows one)"

-- That of a plugin written for Kong has Kong's rules.
local function load_schema(name, found)
    local base = found.base
    if not finder.has(base, "schema") then
        return nil, NO_SCHEMA:format(name, (found.file:gsub("handler%.lua$", "schema.lua")))
    end
    local function check(schema)
        return schema_check.check(schema, name, found.is_bundled)
    end
    local schema, err = checked(name, base, "schema", check, pcall(load_part, name, base, "schema"))
    return schema and base:find("^kong%.") and plan.adopt(schema) or schema, err
end

local function load_daos(name, base)
    return checked_if_there(name, "daos", function(daos)
        return add_daos(daos, base:find("^kong%.") ~= nil)
    end, {}, base)
end

local function load_parts(name, found, settings)
    local schema, metrics
    local base = found.base
    local handler, err =
        checked(name, base, "handler", check_handler, pcall(load_handler, name, base))
    if handler then
        schema, err = load_schema(name, found)
    end
    if schema and schema.use_prefix then
        schema.use_prefix(settings.prefix, settings)
    end
    if schema then
        metrics, err = checked_if_there(name, "metrics", check_metrics, false, base)
    end
    return metrics ~= nil and {
        name = name,
        base = base,
        priority = handler.PRIORITY,
        version = clean_version(handler.VERSION),
        native = handler.native,
        -- Of those with Kong's interface alone this is a name like any other.
        has_phases = base == "plugins." .. name and handler.lua_phases ~= nil,
        schema = schema,
        entities = found.daos,
        metrics = metrics,
        handler = handler,
    } or nil,
        err
end

local HIDES = "plugin '%s': %s is used in the place of the bundled one"
local MIGRATIONS = "plugin '%s': its migrations are not run: entities of daos.lua need none, and "
    .. "there is no SQL"

-- What the owner is to know of how a plugin was found, once at start.
local function notes_on(name, found)
    local notes = {}
    if found.hides then
        notes[1] = HIDES:format(name, found.file)
    end
    if finder.has(found.base, "migrations") or finder.has(found.base, "migrations.init") then
        notes[#notes + 1] = MIGRATIONS:format(name)
    end
    return notes
end

local function find(name, settings)
    local found, files = finder.find(name, settings.lua_package_path)
    if not found then
        local list = #files > 0 and "; these files were looked for:\n  " or ""
        local err = ("plugin '%s': not found%s%s"):format(name, list, table.concat(files, "\n  "))
        return nil, err, name
    end
    return found
end

-- Where each is, with its kinds of entities, which are there before the first handler is loaded:
-- handlers take `kong.db.<kind>` at their `require`, also that of another plugin.
local function find_all(names, settings)
    local all = {}
    for i, name in ipairs(names) do
        local found, err, absent = find(name, settings)
        if found then
            found.daos, err = load_daos(name, found.base)
        end
        if not (found and found.daos) then
            return nil, err, absent
        end
        all[i] = found
    end
    return all
end

local function load(name, found, settings)
    local plugin, err = load_parts(name, found, settings)
    if plugin then
        plugin.notes, plugin.is_bundled = notes_on(name, found), found.is_bundled
    end
    return plugin, err
end

--- The names of the plugins that come with Sluice: each folder of plugins/ with a handler.
-- @treturn {string,...} in order
function _M.bundled()
    local names, root = {}, finder.bundled_folder()
    for name in dirent.files(root) do
        -- What has another name is somebody's copy.
        local is_name = name:find("^%l[%l%d-]*$")
        local file = is_name and io.open(("%s/%s/handler.lua"):format(root, name))
        if file then
            file:close()
            names[#names + 1] = name
        end
    end
    table.sort(names)
    return names
end

local function expand(names)
    local out, seen = {}, {}
    local function add(name)
        if not seen[name] then
            seen[name] = true
            out[#out + 1] = name
        end
    end
    for _, name in ipairs(names) do
        if name == "bundled" then
            for _, bundled in ipairs(_M.bundled()) do
                add(bundled)
            end
        else
            add(name)
        end
    end
    return out
end

--- Whether any plugin is not Sluice's own: gateway.plugin.finder, of names as `load` has them.
function _M.has_others(names, owners)
    return finder.has_others(expand(names), owners)
end

--- Loads plugins by name. Does not yield.
-- @tparam {string,...} names plugin names; "bundled" stands for all that come
--   with Sluice
-- @tparam[opt] table settings of the instance: what `kong.configuration` says; `prefix`, which some
-- schemas ask for; `lua_package_path`, where owners have what hides bundled ones
-- @treturn table|nil the registry, of plugins `{ name =, base = (of the names of its modules),
-- priority =, version =, native =, has_phases =, schema =, entities =, metrics = (rows, or false),
-- handler =, notes = }`; `api` comes with `load_apis`
-- @treturn string what is wrong with which plugin, for a human
-- @treturn string|nil its name, where no file of it is there
function _M.load(names, settings)
    local self = setmetatable({ plugins = {}, by_priority = {}, loaded = expand(names) }, mt)
    kit.install(settings, self.loaded)
    settings = settings or {}
    local all, wrong, absent = find_all(self.loaded, settings)
    if not all then
        return nil, wrong, absent
    end
    for i, name in ipairs(self.loaded) do
        local plugin, err = load(name, all[i], settings)
        if not plugin then
            return nil, err
        end
        entities.note_plugin(name, plugin, plugin.base)
        self.plugins[name] = plugin
        table.insert(self.by_priority, plugin)
    end
    -- Kong's order: higher priority first, equal ones by name, backwards.
    table.sort(self.by_priority, function(a, b)
        if a.priority ~= b.priority then
            return a.priority > b.priority
        end
        return a.name > b.name
    end)
    return self
end

-- What is wrong with an `api.lua`.
local function load_api(plugin)
    if plugin.native or not finder.has(plugin.base, "api") then
        return nil
    end
    local ok, found = pcall(bounded.call, require, plugin.base .. ".api")
    if not ok then
        return load_error.text("api.lua", plugin.base .. ".api", found)
    elseif type(found) ~= "table" then
        return "api.lua: does not return a table"
    end
    plugin.api = found
    return nil
end

--- Loads what plugins bring to the Admin API: their `api.lua`, as `api` of each. One that fails
-- hurts nobody else.
-- @treturn {string,...} what is wrong with which
-- @phases init
function _M:load_apis()
    local failed = {}
    for _, plugin in ipairs(self.by_priority) do
        local err = load_api(plugin)
        failed[#failed + 1] = err and ("plugin '%s': %s"):format(plugin.name, err)
    end
    return failed
end

--- One plugin by name.
-- @treturn table|nil
function _M:get(name)
    return self.plugins[name]
end

--- What to say of a plugin that is not there.
-- @tparam string name
-- @treturn string to follow a message
function _M:hint(name)
    local names = { unpack(self.loaded) }
    table.sort(names)
    local near = nearest.guess(name, names)
    return near and ("; did you mean %s?"):format(near)
        or ("; the setting `plugins` has %s"):format(table.concat(names, ", "))
end

-- What in a handler looks like a phase, and never runs.
local function add_warnings(list, name, handler)
    local function warn(text, ...)
        list[#list + 1] = ("plugin '%s': handler.lua: " .. text):format(name, ...)
    end
    local others = {}
    for _, phase in ipairs(OTHER_PHASES) do
        others[phase] = true
        if type(handler[phase]) == "function" then
            warn("the phase %s is not available to plugins in Lua; it never runs", phase)
        end
    end
    local names = {}
    for key, value in pairs(handler) do
        local is_method = type(key) == "string" and type(value) == "function"
        names[#names + 1] = is_method and not others[key] and key or nil
    end
    table.sort(names)
    for _, key in ipairs(names) do
        local near = nearest.find(key, _M.PHASES)
        if near and near ~= key then
            warn("%s is no phase and never runs; did you mean %s?", key, near)
        end
    end
end

--- What the owner is to know of how plugins and modules were found, for the log of a start.
-- @treturn {string,...}
function _M:notes()
    local list = {}
    for _, one in ipairs(finder.hidden()) do
        local text = "module '%s': %s is used in the place of Sluice's"
        list[#list + 1] = text:format(one.module, one.file)
    end
    for _, plugin in ipairs(self.by_priority) do
        for _, note in ipairs(plugin.notes) do
            list[#list + 1] = note
        end
    end
    return list
end

--- What is valid in handlers and probably not meant, and the notes.
-- @treturn {string,...}
function _M:warnings()
    local list = self:notes()
    for _, plugin in ipairs(self.by_priority) do
        if not plugin.native then
            add_warnings(list, plugin.name, plugin.handler)
        end
    end
    return list
end

--- The names of all plugins, for `load` in a thread, which lists nothing then: as they were loaded,
-- since a kind of entities may refer to one before it.
-- @treturn {string,...}
function _M:names()
    return { unpack(self.loaded) }
end

--- All plugins in the order in which they run.
-- @treturn {table,...}
function _M:list()
    return self.by_priority
end

return _M
