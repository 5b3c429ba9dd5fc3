--- The store of an instance, as the command line deals with it: always as the workers' user
-- (cli.worker_user), whose it is. Reading goes beside a gateway that runs; loading needs that none
-- does.

local cjson = require("cjson")
local damage = require("gateway.store.damage")
local database = require("gateway.store.database")
local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local evidence = require("gateway.writer.evidence")
local file = require("sluice.file")
local layout = require("gateway.store.layout")
local origins = require("gateway.config.origin")
local sources = require("gateway.plan.sources")
local stat = require("posix.sys.stat")
local stdlib = require("posix.stdlib")
local unistd = require("posix.unistd")
local witness = require("gateway.store.witness")

local author = require("cli.instance.author")
local console = require("cli.terminal.console")
local control_worker = require("cli.instance.control_worker")
local recovery = require("cli.instance.recovery")
local worker_user = require("cli.instance.worker_user")
local yaml_text = require("gateway.config.yaml_text")

local _M = {}

-- Plugins that are read at a time.
local PAGE = 1000
local PRIVATE_MODE = tonumber("600", 8)

local function text_of(err, settings)
    if err.field == "revision" then
        return err.message
    end
    local is_images = settings and err.path == settings.image_dir
    return (is_images and "image_dir: " or "store: ") .. (err.message or err.err)
end

-- Opens the store for reading; `verify`: and compares every page.
local function open(instance, verify)
    return database.open(instance.store, {
        layouts = layout.derive(entities.stored()),
        read_only = true,
        check = false,
        verify = verify,
    })
end

-- The store that a gateway serves which runs here; nil where none does.
local function live_store(instance)
    local master = instance:master()
    local found = master and control_worker.read(master)
    return found and found.store and { uuid = found.store, revision = found.revision } or nil
end

-- Runs `fn(store)` with the store open for reading; `verify`: and every page compared.
local function reading(settings, instance, fn, verify)
    local _, lack = file.lstat(instance.store)
    local _, other_lack = file.lstat(witness.path(instance.store))
    if lack == file.MISSING and other_lack == file.MISSING then
        local live = live_store(instance)
        local served = live and (", but the gateway serves revision %d"):format(live.revision) or ""
        return nil, ("store: there is none in %s%s"):format(instance.prefix, served)
    end
    local value, err = worker_user.run(settings.user, function()
        local store, why = open(instance, verify)
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
local function examine(instance, live)
    local usable, why = evidence.check_usable(instance.store)
    if not usable then
        return nil, why
    end
    local known, lack = witness.read(instance.store)
    local now, err = evidence.examine(instance.store, layout.derive(entities.stored()), live)
    if now then
        -- One that was restored has none yet.
        local is_missing = not known and not now.is_backup and now.revision > 0
        lack = lack or (is_missing and "missing") or nil
        now.note = lack
            and ("%s is %s and will be recreated"):format(witness.path(instance.store), lack)
        return now
    elseif is_new(instance, err) then
        return {}
    end
    err.is_replaceable = damage.WORDS[err.err] and (not known or known.is_of_file)
    return nil, err
end

-- The names of the plugins that run by what is in the store; nil where that is not read as it is,
-- as an older version's.
local function enabled_plugins(instance)
    local names, seen, offset = {}, {}, nil
    local store = open(instance)
    if not store then
        return nil
    end
    repeat
        local rows, next_offset = store:list("plugins", { size = PAGE, offset = offset })
        for _, row in ipairs(rows or {}) do
            local plugin = entity_text.decode(row.text)
            if plugin.enabled and not seen[plugin.name] then
                seen[plugin.name] = true
                names[#names + 1] = plugin.name
            end
        end
        offset = rows and next_offset
    until not offset
    store:close()
    table.sort(names)
    return names
end

--- Compares the store with what is known of it, page by page.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @treturn table `origin` of the file that its entities are those of (gateway.config.origin), or
-- `is_written` where somebody has changed them since; neither where there is no store; its
-- `revision`. `is_source`: it was the source of truth, so a file in its place may lack what an
-- import has brought. Where it is not what it was, `problem`, lines that say so and what to do, and
-- `reason`, the first of them; `is_replaceable` where the entities are those of a file, as far as
-- is known. `note`: what is no reason to refuse a start. `plugins`: where there is no file, names
-- of those that run
function _M.held(settings, instance)
    local live = live_store(instance)
    local found, err = worker_user.run(settings.user, function()
        local found, err = examine(instance, live)
        if found and found.revision and settings.file == "" then
            found.plugins = enabled_plugins(instance)
        end
        return found, err
    end)
    if not found then
        local reason = text_of(err)
        return {
            reason = reason,
            problem = recovery.lines(instance, err, reason, live ~= nil),
            is_replaceable = err.is_replaceable,
        }
    end
    local is_written = not found.origin and (found.revision or 0) > 0
    local old = instance:read_settings()
    return {
        is_source = old ~= nil and old.file == "" and origins.is_of_store(old),
        origin = found.origin,
        revision = found.revision,
        is_written = is_written,
        note = found.note,
        plugins = found.plugins,
    }
end

--- The revision that the store has now.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @treturn number|nil nil where it cannot be read
function _M.revision(settings, instance)
    local found = reading(settings, instance, function(store)
        return store:revision()
    end)
    return found and found.revision
end

--- Makes the store hold these entities, and no others.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @tparam {table,...} items of gateway.config.items
-- @tparam string origin of gateway.config.origin
-- @tparam string path of the file, for the history
-- @tparam[opt] function again `(store)` -> items in the place of these, with what the store knows
-- @treturn boolean|nil true, or nil and lines that say why not
function _M.load(settings, instance, items, origin, path, again)
    -- Before the child has others' rights.
    local writer = require("gateway.writer")
    local by = author.of_file(path)
    local done, err = worker_user.run(settings.user, function()
        local held = again and open(instance)
        if held then
            items = again(held)
            held:close()
        end
        return writer.load({
            store = instance.store,
            images = settings.image_dir,
            layouts = layout.derive(entities.stored(), entities.of_plugins()),
            history = settings.history,
            begins_history = origins.is_of_store(settings),
        }, items, origin, by)
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

local IS_FULL = "%s; the file is first made beside the store: free space in %s"

-- Has the workers' user make a file beside the store, and takes it from there. Not of a store with
-- damage: nobody could tell it by the copy.
local function copy(settings, instance, verb, take)
    local temporary = evidence.unfinished_of(instance.store, verb)
    local made, err = reading(settings, instance, function(store)
        evidence.clean_copies(instance.store)
        -- Of a process that had the same number.
        os.remove(temporary)
        return store[verb](store, temporary)
    end, true)
    local taken
    if made then
        taken, err = take(temporary)
    elseif type(err) == "string" and (err:find("No space left") or err:find("is full")) then
        err = IS_FULL:format(err, file.parent_of(instance.store))
    end
    worker_user.run(settings.user, function()
        return os.remove(temporary) and true
    end)
    return taken, err
end

-- Whether a file can be made, or be replaced. Neither a folder nor a device is, nor the store.
local function check_target(instance, path, forces)
    local found = path and stat.stat(path)
    if not found and not (path and stat.lstat(path)) then
        return true
    elseif not found or stat.S_ISREG(found.st_mode) == 0 then
        return nil, path .. " exists, and is not a file"
    elseif not forces then
        return nil, path .. " already exists; --force replaces it"
    end
    for _, suffix in ipairs({ "", "-wal", "-shm" }) do
        local own = stat.stat(instance.store .. suffix)
        if own and own.st_dev == found.st_dev and own.st_ino == found.st_ino then
            return nil, path .. " is the store itself"
        end
    end
    return true
end

-- Makes a file by `make(path)`, which has it on the disk; in one step in the place of one that is
-- there, the target of a link.
local function make_at(path, make)
    local target = stdlib.realpath(path)
    if not target then
        return make(path)
    end
    local temporary = ("%s.%d.unfinished"):format(target, unistd.getpid())
    -- Of a process that had the same number.
    os.remove(temporary)
    local made, err = make(temporary)
    if made then
        made, err = os.rename(temporary, target)
    end
    if not made then
        os.remove(temporary)
        return nil, err
    end
    return file.sync_folder(target:match("^(.*)/[^/]*$"))
end

-- Copies a file of the workers' into another, or to standard output; JSON as YAML where that is
-- asked for.
local function take_into(settings, path, is_yaml)
    local owner = worker_user.uid(settings.user)
    return function(temporary)
        if is_yaml or not path then
            local text, err = file.read(temporary, { owner = owner })
            if not text then
                return nil, err
            end
            text = is_yaml and yaml_text.of_json(text) or text
            if not path then
                -- YAML has escapes of its own for those characters.
                console.say_json((text:gsub("\n$", "")))
                return true
            end
            return make_at(path, function(at)
                return file.create(at, text, PRIVATE_MODE)
            end)
        end
        local fd, reason = file.open(temporary, nil, owner)
        if not fd then
            return nil, reason
        end
        local made, err = make_at(path, function(at)
            return file.copy(fd, at, PRIVATE_MODE)
        end)
        unistd.close(fd)
        return made, err
    end
end

--- Writes all entities as a declarative file.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @tparam string|nil path of a new file; nil: standard output
-- @tparam boolean is_yaml in YAML, else in JSON
-- @tparam[opt] boolean forces a file that is there is replaced, in one step
-- @treturn boolean|nil true, or nil and the reason
function _M.export(settings, instance, path, is_yaml, forces)
    local possible, err = check_target(instance, path, forces)
    if not possible then
        return nil, err
    end
    return copy(settings, instance, "export", take_into(settings, path, is_yaml))
end

--- Copies the store as it is now into a file, which is a store.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @tparam string path as of `export`
-- @tparam[opt] boolean forces as of `export`
-- @treturn boolean|nil true, or nil and the reason
function _M.backup(settings, instance, path, forces)
    local possible, err = check_target(instance, path, forces)
    if not possible then
        return nil, err
    end
    return copy(settings, instance, "backup", take_into(settings, path))
end

--- A plan of what is about to be done with the store, or was.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @tparam function make `(store)` -> plan of gateway.plan.sources; in a child, as the workers' user
-- @tparam[opt] boolean is_first there may be no store yet
-- @treturn table|nil the plan, with its `text` in JSON
-- @treturn nil|string the reason
function _M.plan(settings, instance, make, is_first)
    local text, err
    local _, lack = file.lstat(instance.store)
    if is_first and lack == file.MISSING then
        text = make(sources.EMPTY):encode()
    else
        text, err = reading(settings, instance, function(store)
            local plan, why = make(store)
            return plan and plan:encode(), why
        end)
    end
    if not text then
        return nil, err
    end
    local plan = cjson.decode(text)
    plan.text = text
    return plan
end

return _M
