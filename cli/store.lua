--- The store of an instance, as the command line deals with it: always as the workers' user
-- (cli.worker_user), whose it is. Reading goes beside a gateway that runs; loading needs that none
-- does.

local damage = require("gateway.store.damage")
local database = require("gateway.store.database")
local entities = require("gateway.entities")
local evidence = require("gateway.control.evidence")
local entity_text = require("gateway.store.entity_text")
local file = require("sluice.file")
local layout = require("gateway.store.layout")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")
local witness = require("gateway.store.witness")

local console = require("cli.console")
local is_equal = require("cli.equal")
local recovery = require("cli.recovery")
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

-- Runs `fn(store)` with the store open for reading; `verify`: and every page compared.
local function reading(settings, instance, fn, verify)
    if not stat.lstat(instance.store) and not stat.lstat(witness.path(instance.store)) then
        return nil, "store: there is none in " .. instance.prefix
    end
    local value, err = worker_user.run(settings.user, function()
        local store, why = database.open(instance.store, {
            layouts = layout.derive(entities.stored()),
            read_only = true,
            check = false,
            verify = verify,
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

-- Whether there is nothing yet, nor anything that says that there was.
local function is_new(instance, err)
    return err.err == "empty" or (err.err == "cannot open" and not stat.lstat(instance.store))
end

-- What is in the store, and whether that is what was answered: by a child with the workers' rights.
local function examine(instance)
    local known, lack = witness.read(instance.store)
    local now, err = evidence.examine(instance.store, layout.derive(entities.stored()))
    if now then
        now.note = lack and ("%s is %s: it is made anew"):format(witness.path(instance.store), lack)
        return now
    elseif is_new(instance, err) then
        return {}
    end
    err.is_replaceable = damage.WORDS[err.err] and (not known or known.is_of_file)
    return nil, err
end

--- Compares the store with what is known of it, page by page.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @treturn table `origin` of the file that its entities are those of (gateway.config.origin), or
-- `is_written` where somebody has changed them since; neither where there is no store. Where it is
-- not what it was, `problem`, lines that say so and what to do, and `reason`, the first of them;
-- `is_replaceable` where the entities are those of a file, as far as is known. `note`: what is no
-- reason to refuse a start
function _M.held(settings, instance)
    local found, err = worker_user.run(settings.user, function()
        return examine(instance)
    end)
    if not found then
        local reason = text_of(err)
        return {
            reason = reason,
            problem = recovery.lines(instance, err, reason),
            is_replaceable = err.is_replaceable,
        }
    end
    local is_written = not found.origin and (found.revision or 0) > 0
    return { origin = found.origin, is_written = is_written, note = found.note }
end

--- Makes the store hold these entities, and no others.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @tparam {table,...} items of gateway.config.items
-- @tparam string origin of gateway.config.origin
-- @treturn boolean|nil true, or nil and lines that say why not
function _M.load(settings, instance, items, origin)
    -- Before the child has others' rights.
    local writer = require("gateway.control.writer")
    local done, err = worker_user.run(settings.user, function()
        return writer.load({
            store = instance.store,
            images = settings.image_dir,
            layouts = layout.derive(entities.stored(), entities.of_plugins()),
            history = settings.file == "" and settings.history or 0,
        }, items, origin, "sluice import")
    end)
    if not done then
        return nil, recovery.lines(instance, err, text_of(err, settings))
    end
    return true
end

--- Reads every page and index of the store, and compares the pages with their digests.
-- @treturn table|nil `{ uuid, revision }`
-- @treturn nil|{string,...} what is damaged
function _M.check(settings, instance)
    local found, err = reading(settings, instance, function(store)
        local right, why = store:check()
        if not right then
            return { details = why.details or {}, message = why.message }
        end
        return store:revision()
    end, true)
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

-- Has the workers' user make a file beside the store, and takes it from there. Not of a store with
-- damage: nobody could tell it by the copy.
local function copy(settings, instance, verb, take)
    local temporary = ("%s.%s.%d"):format(instance.store, verb, unistd.getpid())
    local made, err = reading(settings, instance, function(store)
        return store[verb](store, temporary)
    end, true)
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
    local owner = worker_user.uid(settings.user)
    return function(temporary)
        if not path then
            local text, err = file.read(temporary, { owner = owner })
            if text then
                console.write(text)
            end
            return text and true, err
        end
        local fd, reason = file.open(temporary, nil, owner)
        if not fd then
            return nil, reason
        end
        local made, err = file.copy(fd, path, PRIVATE_MODE)
        unistd.close(fd)
        return made, err
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
