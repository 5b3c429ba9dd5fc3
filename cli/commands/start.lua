--- From checked settings to a running nginx: the folders, the files, the store, nginx itself.

local complain, say = require("cli.terminal.console").complain, require("cli.terminal.console").say

local control = require("cli.instance.control")
local images = require("cli.instance.images")
local items = require("gateway.config.items")
local launch = require("cli.instance.launch")
local preflight = require("cli.instance.preflight")
local prefixes = require("cli.instance.prefix")
local process = require("cli.instance.process")
local recovery = require("cli.instance.recovery")
local report = require("cli.terminal.report")
local resolver = require("gateway.upstream.resolver")
local store = require("cli.instance.store")
local version = require("gateway.version")

-- How long a start waits for the names of its file. The control worker asks for the rest.
local NAMES_SECONDS = 10

local _M = {}

--- Lowers worker_connections to what the limit of open files allows, with a warning.
-- @tparam table settings resolved settings, changed in place
-- @tparam[opt] number master pid of the running nginx, whose limit it is then
function _M.fit_connections(settings, master)
    local warning = preflight.fit_connections(settings, master)
    complain({ warning and "warning: " .. warning })
end

--- Makes and locks the prefix of an instance.
-- @tparam table context `root`: Sluice's own directory
-- @tparam table instance cli.instance
-- @tparam table settings resolved settings
-- @treturn table|nil cli.prefix; nil and the reason
function _M.open_prefix(context, instance, settings)
    local writer = prefixes.new(instance)
    local made, err = writer:make_directories(settings, context.root)
    if not made then
        writer:undo()
        return nil, err
    end
    return writer
end

--- The same for one that is to start, with the folder of its images: `image_dir` of the settings
-- becomes its path.
-- @treturn table|nil cli.prefix; nil and the reason
function _M.open(context, instance, settings)
    local writer, err = _M.open_prefix(context, instance, settings)
    if not writer then
        return nil, err
    end
    local said, is_fatal = images.choose(settings)
    local made, is_new = not is_fatal, said
    if made then
        complain({ said and "warning: " .. said })
        made, is_new = images.make(settings)
    end
    if not made then
        writer:undo()
        return nil, is_new
    elseif is_new then
        writer:note(settings.image_dir)
    end
    return writer
end

--- Parses a declarative file to what the store is to hold: asks for its names, and warns of those
-- without an address.
-- @tparam string path
-- @tparam table file of cli.instance.preflight's check_file
-- @treturn {table,...} items of gateway.config.items
-- @treturn table addresses of its names
function _M.items(path, file)
    local snapshot = file.snapshot
    local found = resolver.resolve_all(items.names(snapshot), NAMES_SECONDS)
    local list, unresolved = items.of(snapshot, found)
    for _, warning in ipairs(unresolved) do
        complain({ ("warning: %s: %s"):format(path, warning) })
    end
    return list, found
end

-- The store is a copy of the file, and damaged: another one takes its place.
local function make_room(settings, instance, reason)
    local kept, err = recovery.put_aside(settings, instance)
    if err then
        return nil, { err }
    end
    local line = "warning: %s; it is recreated from %s, and the previous store is in %s"
    complain({ line:format(reason, settings.file, kept) })
    return true
end

--- Loads the store where that is to be, and runs nginx. Returns only when that fails, where it is
-- to run in the foreground; before it runs, where all is only to be prepared.
-- @tparam table instance cli.instance
-- @tparam table settings resolved settings
-- @tparam table found the file, of cli.preflight
-- @tparam boolean foreground
-- @tparam[opt] boolean prepares
-- @treturn boolean|nil true; nil and lines that say why not
function _M.run(instance, settings, found, foreground, prepares)
    local ready, lines = true, nil
    if found.replaces then
        ready, lines = make_room(settings, instance, found.replaces)
    end
    if ready and found.snapshot then
        local list = _M.items(settings.file, found)
        ready, lines = store.load(settings, instance, list, found.origin, settings.file)
    end
    if ready then
        local err
        ready, err = control.clear(instance.control)
        lines = { err }
    end
    if not ready then
        return nil, lines
    end
    if foreground or prepares then
        local right, said = launch.test(instance, settings)
        if not right or prepares then
            return right, said
        end
        say("sluice %s: %s; Ctrl-C stops it", version.product, report.listeners(settings))
        local _, failure =
            process.exec(settings.nginx_binary, instance:arguments(settings, "foreground"))
        return nil, { failure }
    end
    local master, said = launch.daemon(instance, settings)
    if not master then
        return nil, said
    end
    say("sluice %s started (pid %d): %s", version.product, master, report.listeners(settings))
    return true
end

return _M
