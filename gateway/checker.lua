--- Checks declarative files for the control worker, in a Lua state of its own
-- (gateway.threads.lua_state) that one of its threads calls. It needs nothing of nginx, as the
-- command that checks a file.
--
-- What a file makes comes back outside of Lua (gateway.threads.blocks), ready for the writer: the
-- control worker touches neither a large body nor what was made of it.
-- @module gateway.checker

local blocks = require("gateway.threads.blocks")
local collect = require("gateway.config.collect")
local config = require("gateway.config")
local database = require("gateway.store.database")
local entities = require("gateway.entities")
local ffi = require("ffi")
local flattened = require("gateway.config.flattened")
local items = require("gateway.config.items")
local json_split = require("gateway.config.json_split")
local known_ids = require("gateway.plan.known_ids")
local layout = require("gateway.store.layout")
local limits = require("gateway.image.limits")
local origins = require("gateway.config.origin")
local registry = require("gateway.plugin.registry")
local remembered = require("gateway.config.remembered")
local reuse = require("gateway.config.reuse")
local sent_file = require("gateway.config.sent_file")
local sources = require("gateway.plan.sources")
local text_rules = require("gateway.schema.text")
local vault = require("gateway.config.vault")
local writer = require("gateway.writer")

ffi.cdef("int setpriority(int which, unsigned who, int priority);")

-- Linux has a priority for each thread: who serves traffic goes before one that checks large files.
local PROCESS, NICE = 0, 5
-- What a check may have of memory: for each entity that a file may have, and at least.
local KB_AN_ENTITY = 4
local LEAST_KB = 256 * 1024
-- Of that, what may be left after a collection; else it would be followed by another at once.
local FULL = 0.9
-- Pauses between two looks at the flags and the memory.
local STRIDE = 16
-- Warnings that are handed over, and bytes of one.
local MAX_WARNINGS = 100
local MAX_WARNING = 300
-- Errors that are listed one by one, and those that are looked for where they are wanted by entity:
-- a controller leaves the entities out that are named, so all of them have to be.
local MAX_LISTED = 100
local MAX_BY_ENTITY = 10000
-- Bytes of a path, in which names of fields stand that there are not, of any size.
local MAX_PATH = 1000

-- Thrown by pauses.
local STOPPED = { is_stop = true }
local TOO_MUCH = { is_stop = true }

local _M = {}

local function flag_at(address)
    return ffi.cast("volatile int32_t *", ffi.cast("uintptr_t", address))
end

-- What ends the check where nobody waits for it any more, or where it takes too much memory.
local function pauses(request)
    local first, second = flag_at(request.flags[1]), flag_at(request.flags[2])
    local most, count = math.max(LEAST_KB, KB_AN_ENTITY * request.max_entities), 0
    return function()
        count = count + 1
        if count % STRIDE > 0 then
            return
        elseif first[0] ~= 0 or second[0] ~= 0 then
            error(STOPPED, 0)
        elseif collectgarbage("count") > most then
            collectgarbage()
            if collectgarbage("count") > most * FULL then
                error(TOO_MUCH, 0)
            end
        end
    end,
        most
end

-- Makes lists outside of Lua: `fn` adds to them. None is left where it throws, or where one cannot
-- be ended.
local function with_blocks(count, fn)
    local lists, finished = {}, {}
    local ok, thrown = pcall(function()
        for i = 1, count do
            lists[i] = blocks.new()
        end
        fn(unpack(lists))
        for i, list in ipairs(lists) do
            finished[i] = list:finish()
        end
    end)
    if ok then
        return unpack(finished)
    end
    for _, list in ipairs(lists) do
        list:drop()
    end
    error(thrown, 0)
end

local function shortened(warnings)
    local list = {}
    for i = 1, math.min(#warnings, MAX_WARNINGS) do
        list[i] = text_rules.shorten(warnings[i], MAX_WARNING)
    end
    return list, #warnings - #list
end

-- An error without the value that it is about, of any size.
local function listed(err)
    return {
        path = text_rules.shorten(err.path, MAX_PATH),
        message = err.message,
        entity = err.entity and text_rules.shorten(err.entity, MAX_PATH),
        where = err.where and text_rules.shorten(err.where, MAX_PATH),
        line = err.line,
        column = err.column,
        excerpt = err.excerpt,
        hint = err.hint,
        said = err.said,
    }
end

local function invalid(errors, flattens)
    local list, by_entity, others = {}, nil, errors
    if flattens then
        by_entity, others = flattened.of(errors)
    end
    local is_other, places = {}, {}
    for _, err in ipairs(others) do
        is_other[err] = true
    end
    for i, err in ipairs(errors) do
        if i <= MAX_LISTED or is_other[err] then
            list[#list + 1] = listed(err)
            places[#places + 1] = is_other[err] and #list or nil
        end
    end
    return {
        word = "invalid",
        errors = list,
        count = #errors,
        flattened = by_entity,
        others = places,
    }
end

-- What completes changes; it throws.
local function completing()
    local by_kind = layout.by_kind(layout.derive(entities.stored(), entities.of_plugins()))
    return function(item)
        local change, err = writer.complete(by_kind, item)
        return change or error({ is_stop = true, err = err }, 0)
    end
end

-- What is to be remembered of a file, nothing where it is none to be.
local function to_remember(text, snapshot, more, pause)
    local memory = ffi.cast("const uint8_t *", text)
    local is_kept = #snapshot.warnings == 0 or reuse.keeps_warnings(memory, #text)
    local split = is_kept and json_split.split(memory, #text, remembered.kinds(), pause)
    if not split then
        return {}
    end
    json_split.digest(memory, split, pause)
    return remembered.of(split, snapshot, more) or {}
end

local function add_all(list, items_)
    for _, item in ipairs(items_) do
        list:add(item)
    end
end

-- All that the store is to hold, but the addresses of names.
local function replacement(request, text, kind, opts)
    local snapshot, errors = config.parse(text, kind, opts.registry, opts)
    if not snapshot then
        return invalid(errors, request.flattens)
    end
    local warnings, more = shortened(snapshot.warnings)
    local found = {
        hash = snapshot.hash,
        origin = origins.of(snapshot.hash, request.surroundings),
        warnings = warnings,
        more_warnings = more,
    }
    local complete = completing()
    local lists = opts.keeps_items and 3 or 2
    found.made, found.names, found.remembered = with_blocks(lists, function(made, names, kept)
        add_all(names, items.names(snapshot, opts.pause))
        if kept then
            add_all(kept, to_remember(text, snapshot, found, opts.pause))
        end
        items.each(snapshot, function(item)
            made:add(complete(item))
        end, opts.pause)
    end)
    return found
end

-- The entities one by one; each knows the number of that in which it stands.
local function collection(_, text, kind, opts)
    local state, errors = config.collect(text, kind, opts.registry, opts)
    if not state then
        return invalid(errors)
    end
    local numbers, count = {}, 0
    for _, of in ipairs(entities.kinds) do
        for _, item in ipairs(state.items[of]) do
            count = count + 1
            numbers[item] = count
        end
    end
    local made = with_blocks(1, function(made)
        for _, of in ipairs(entities.kinds) do
            for _, item in ipairs(state.items[of]) do
                item.raw, item.parent = nil, numbers[item.parent]
                made:add(item)
                opts.pause()
            end
        end
    end)
    local warnings, more = shortened(state.warnings)
    return { warnings = warnings, more_warnings = more, made = made, size = #text }
end

-- What a replacement would change.
local function plan(request, text, kind, opts)
    local snapshot, errors = config.parse(text, kind, opts.registry, opts)
    if not snapshot then
        return invalid(errors, request.flattens)
    end
    local list = {}
    items.each(snapshot, function(item)
        list[#list + 1] = item
    end, opts.pause)
    local store, err = opts.open()
    local made = store
    if store then
        made, err = sources.replacement(store, opts.registry, list)
    end
    if not made then
        error({ is_stop = true, err = err }, 0)
    end
    return { plan = made:encode(), warnings = {}, more_warnings = 0 }
end

-- What opens the store that a request names, once, and what closes it.
local function store_of(request)
    local store, err
    local function open()
        if store == nil then
            local opts = { layouts = layout.derive(entities.stored()), read_only = true }
            opts.check = false
            store, err = database.open(request.store, opts)
            store = store or false
        end
        return store, err
    end
    return open, function()
        if store then
            store:close()
        end
    end
end

local VERBS = { replace = replacement, collect = collection, plan = plan }

-- The plugins of the settings, which a state keeps: it has one list of them as long as it lives.
local loaded

local function load_plugins(names, settings)
    loaded = loaded or assert(registry.load(names, settings))
    return loaded
end

-- What all checks are told of the settings.
local function options(request, pause)
    return {
        at = request.at,
        registry = load_plugins(request.plugins, request.settings),
        vault = vault.new(request.vault_env),
        max_entities = request.max_entities,
        limit = limits.checker(),
        pause = pause,
    }
end

-- What a body changes of the file that is live, where that can be told without checking all of it.
local function differences(request, memory, size, pause)
    local last = {}
    local split = json_split.split(memory, size, remembered.kinds(), pause)
    if not split then
        return nil
    end
    blocks.each(request.remembered, function(item)
        last[#last + 1] = item
    end)
    local opts = options(request, pause)
    local open, close = store_of(request)
    local since
    opts.open = function()
        local store = open()
        since = since or (store and store:revision())
        return store
    end
    opts.complete = completing()
    local ok, made = pcall(reuse.run, memory, size, split, last, opts.registry, opts)
    close()
    if not ok and made.err then
        return nil
    elseif not ok then
        error(made, 0)
    end
    return made, last[1], since and since.revision
end

-- Whether a body is the text that is live; or what it changes of that. In the place of a check it
-- takes little memory.
local function compare(request, pause)
    local hash = sent_file.hash(request.sent, pause)
    local origin = hash and origins.of(hash, request.surroundings)
    if origin and origin == request.live then
        return { word = "same" }
    elseif not (origin and request.remembered) then
        return {}
    end
    local found = { hash = hash, origin = origin }
    sent_file.with_memory(request.sent, function(memory, size)
        local changed, head, revision = differences(request, memory, size, pause)
        if not changed then
            return
        end
        found.revision = revision
        found.made, found.remembered = with_blocks(2, function(made, kept)
            add_all(made, changed.changes)
            add_all(kept, changed.remembered)
        end)
        found.warnings, found.more_warnings = head.warnings, head.more_warnings
    end)
    return found
end

local function check(request, pause)
    if request.verb == "compare" then
        return compare(request, pause)
    end
    local text, kind = sent_file.read(request.sent, pause)
    if not text then
        return { word = "media type" }
    elseif request.live and request.live == origins.of(config.hash(text), request.surroundings) then
        return { word = "same" }
    end
    local begins = request.vaults or {}
    local open, close = store_of(request)
    local function known_id(of, entity)
        -- Where it cannot be read, nothing can be written either.
        local store = open()
        return store and known_ids.finder(store)(of, entity)
    end
    local opts = options(request, pause)
    opts.begin_of = function(prefix)
        return begins[prefix]
    end
    opts.list_of, opts.max_of = request.list_of, request.max_of
    opts.max_errors = request.flattens and MAX_BY_ENTITY or nil
    opts.known_id = request.keeps_ids and known_id
    opts.keeps_items = request.remembers and kind == "json"
    opts.open = open
    local ok, found = pcall(VERBS[request.verb], request, text, kind, opts)
    close()
    if not ok then
        error(found, 0)
    end
    return found
end

--- Checks a file. Blocks, for some 10 us an entity.
-- @tparam table request plain data: `verb`, "replace", "plan" or "collect" of
-- gateway.change.configuration, or "compare", whose only results are the word "same", and what is
-- `made` of a file beside the last one, of which is `remembered` what the last check gave; `sent`
-- of gateway.config.sent_file; `plugins`, the names of those that are loaded, and `settings`, the
-- instance's; `vault_env` and `max_entities` of these; `surroundings` of gateway.config.origin;
-- `at`, a date in seconds; `flags`, the addresses of two int32_t of which one is not 0 once nobody
-- waits; `is_large`, for a thread that checks nothing else; `live`, an origin with which nothing is
-- to be done; `flattens`, whether errors are wanted by entity; `list_of` and `max_of` of
-- gateway.config; `vaults`, prefix -> what the names of its variables begin with; `store`, its
-- path; `keeps_ids`, whether its entities keep their ids; `remembers`, whether the result of a
-- replacement is to have what is `remembered` of the file
-- @treturn table `made`, a list of gateway.threads.blocks, which the caller frees: the items of a
-- replacement as gateway.writer describes them, with `names`, another list, of those that
-- it needs, `hash` and `origin`; of "compare" the changes of its `patch`, and the `revision` at
-- which the store was read for them, if it was; with both `remembered`, a
-- list, empty where nothing is; or items of gateway.config.collect, each with the place of its
-- `parent`, and `size`, the bytes of the text; or a `plan` as JSON. `warnings`, and how many
-- `more_warnings` there are. Or `word`: "media type", "same", "stopped", "invalid" with the
-- first `errors` of gateway.config of how many (`count`), all that are `flattened`, and the places
-- of `others` in the list; or one of gateway.writer.queue with `message`
function _M.run(request)
    if request.is_large then
        ffi.C.setpriority(PROCESS, 0, NICE)
    end
    local pause, most = pauses(request)
    local ok, found = pcall(check, request, pause)
    if ok then
        return found
    elseif found == STOPPED then
        return { word = "stopped" }
    elseif found == TOO_MUCH then
        local message = "checking the file takes more than %d MiB of memory, which is the limit "
            .. "for the number of entities that %s: %d"
        local max_of = request.max_of or collect.MAX_OF
        message = message:format(most / 1024, max_of, request.max_entities)
        return invalid({ { path = "", message = message } })
    elseif type(found) == "table" and found.err then
        return { word = found.err.err, message = found.err.message }
    end
    error(found, 0)
end

return _M
