--- The store of an instance, as the command line deals with it: always as the workers' user
-- (cli.worker_user), whose it is. Reading goes beside a gateway that runs; loading needs that none
-- does.

local database = require("gateway.store.database")
local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local file = require("sluice.file")
local layout = require("gateway.store.layout")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local console = require("cli.console")
local is_equal = require("cli.equal")
local worker_user = require("cli.worker_user")

local _M = {}

local PAGE = 10000
local PRIVATE_MODE = tonumber("600", 8)

-- What an entity of a file may leave to the store: compared only where the file has it.
local STAMPS = { created_at = true, updated_at = true }

local function text_of(err, settings)
    local is_images = settings and err.path == settings.image_dir
    return (is_images and "image_dir: " or "store: ") .. (err.message or err.err)
end

-- Runs `fn(store)` with the store open for reading.
local function reading(settings, instance, fn)
    if not stat.lstat(instance.store) then
        return nil, "store: there is none in " .. instance.prefix
    end
    local value, err = worker_user.run(settings.user, function()
        local store, why = database.open(instance.store, {
            layouts = layout.derive(entities.stored()),
            read_only = true,
            check = false,
        })
        if not store then
            return nil, why
        end
        return fn(store)
    end)
    if value == nil then
        return nil, text_of(err)
    end
    return value
end

--- What the store's entities were made from.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @treturn table `origin` of the file that they are those of (gateway.config.origin), or
-- `is_written` where somebody has changed them since; neither where there is no store, or none that
-- can be read
function _M.held(settings, instance)
    local found = reading(settings, instance, function(store)
        return store:revision()
    end)
    if not found then
        return {}
    end
    return { origin = found.origin, is_written = not found.origin and found.revision > 0 }
end

--- Makes the store hold these entities, and no others.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @tparam {table,...} items of gateway.config.items
-- @tparam string origin of gateway.config.origin
-- @treturn boolean|nil true, or nil and the reason
function _M.load(settings, instance, items, origin)
    -- Before the child has others' rights; the other commands do without the core's library.
    local writer = require("gateway.control.writer")
    local done, err = worker_user.run(settings.user, function()
        return writer.load({
            store = instance.store,
            images = settings.image_dir,
            layouts = layout.derive(entities.stored(), entities.of_plugins()),
            history = settings.file == "" and settings.history or 0,
        }, items, origin, "sluice import")
    end)
    return done and true, err and text_of(err, settings)
end

--- Reads every page and index of the store.
-- @treturn table|nil `{ uuid, revision }`
-- @treturn nil|{string,...} what is damaged
function _M.check(settings, instance)
    local found, err = reading(settings, instance, function(store)
        local right, why = store:check()
        if not right then
            return { details = why.details or {}, message = why.message }
        end
        return store:revision()
    end)
    if not found then
        return nil, { err }
    elseif found.message then
        local lines = { "store: " .. found.message }
        for _, detail in ipairs(found.details) do
            lines[#lines + 1] = "  " .. detail
        end
        return nil, lines
    end
    return found
end

-- Has the workers' user make a file beside the store, and takes it from there.
local function copy(settings, instance, verb, take)
    local temporary = ("%s.%s.%d"):format(instance.store, verb, unistd.getpid())
    local made, err = reading(settings, instance, function(store)
        return store[verb](store, temporary)
    end)
    local taken
    if made then
        taken, err = take(temporary)
    end
    worker_user.run(settings.user, function()
        return os.remove(temporary) and true
    end)
    return taken, err
end

-- Copies a file of the workers' into a new one, or to standard output.
local function take_into(settings, path)
    return function(temporary)
        local opts = { max = math.huge, owner = worker_user.uid(settings.user) }
        local text, err = file.read(temporary, opts)
        if not text then
            return nil, err
        elseif not path then
            console.write(text)
            return true
        end
        return file.create(path, text, PRIVATE_MODE)
    end
end

--- Writes all entities as a declarative file in JSON.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @tparam string|nil path of a new file; nil: standard output
-- @treturn boolean|nil true, or nil and the reason
function _M.export(settings, instance, path)
    return copy(settings, instance, "export", take_into(settings, path))
end

--- Copies the store as it is now into a new file, which is a store.
-- @treturn boolean|nil true, or nil and the reason
function _M.backup(settings, instance, path)
    return copy(settings, instance, "backup", take_into(settings, path))
end

-- The fields that differ, in alphabetical order.
local function differing(before, now)
    local names, seen = {}, {}
    for _, entity in ipairs({ before, now }) do
        for name in pairs(entity) do
            local is_given = not STAMPS[name]
            if is_given and not seen[name] and not is_equal(before[name], now[name]) then
                seen[name] = true
                names[#names + 1] = name
            end
        end
    end
    table.sort(names)
    return names
end

-- Never an endpoint key that is secret.
local function label(kind, entity)
    local definition = entities.get(kind)
    local name = not definition.has_secret_name and entity[definition.endpoint_key]
    return name and ("%s %s"):format(kind, name) or ("%s %s"):format(kind, entity.id)
end

-- The entities of a kind in the store, by id.
local function stored(store, kind)
    local found, offset = {}, nil
    repeat
        local rows, next_offset = store:list(kind, { size = PAGE, offset = offset })
        if not rows then
            return nil, next_offset
        end
        for _, row in ipairs(rows) do
            found[row.id] = entity_text.decode(row.text)
        end
        offset = next_offset
    until not offset
    return found
end

local function compare_kind(lines, kind, before, items)
    for _, item in ipairs(items) do
        if item.kind == kind then
            -- By way of a text, as the store has it: JSON knows fewer differences than Lua.
            local now = entity_text.decode(entity_text.encode(item.put))
            local old = before[now.id]
            local names = old and differing(old, now)
            if not old then
                lines[#lines + 1] = "+ " .. label(kind, now)
            elseif #names > 0 then
                lines[#lines + 1] = ("~ %s: %s"):format(label(kind, now), table.concat(names, ", "))
            end
            before[now.id] = nil
        end
    end
    local gone = {}
    for _, entity in pairs(before) do
        gone[#gone + 1] = "- " .. label(kind, entity)
    end
    table.sort(gone)
    for _, line in ipairs(gone) do
        lines[#lines + 1] = line
    end
end

--- What a file would change.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @tparam {table,...} items of the file (gateway.config.items)
-- @treturn {string,...}|nil a line for each difference: `+`, `-` or `~`, the kind, name or id
-- @treturn nil|string the reason
function _M.diff(settings, instance, items)
    return reading(settings, instance, function(store)
        local lines = {}
        for _, kind in ipairs(entities.kinds) do
            local before, err = stored(store, kind)
            if not before then
                return nil, err
            end
            compare_kind(lines, kind, before, items)
        end
        return lines
    end)
end

return _M
