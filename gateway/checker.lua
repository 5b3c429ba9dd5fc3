--- Checks declarative files for the control worker, in a Lua state of its own
-- (gateway.store.lua_state) that one of its threads calls. It needs nothing of nginx, as the
-- command that checks a file.
--
-- What a file makes comes back outside of Lua (gateway.store.blocks), ready for the writer: the
-- control worker touches neither a large body nor what was made of it.
-- @module gateway.checker

local blocks = require("gateway.store.blocks")
local collect = require("gateway.config.collect")
local config = require("gateway.config")
local entities = require("gateway.entities")
local ffi = require("ffi")
local flattened = require("gateway.control.admin.flattened")
local items = require("gateway.config.items")
local layout = require("gateway.store.layout")
local origins = require("gateway.config.origin")
local registry = require("gateway.plugin.registry")
local sent_file = require("gateway.control.sent_file")
local text_rules = require("gateway.schema.text")
local vault = require("gateway.config.vault")
local writer = require("gateway.control.writer")

ffi.cdef("int setpriority(int which, unsigned who, int priority);")

local assert = assert
local collectgarbage = collectgarbage
local error = error
local ipairs = ipairs
local pcall = pcall

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

-- Errors without the values that they are about, of any size.
local function invalid(errors, flattens)
    local list, by_entity, others = {}, nil, errors
    if flattens then
        by_entity, others = flattened.of(errors)
    end
    local places = {}
    for i, err in ipairs(errors) do
        list[i] = {
            path = text_rules.shorten(err.path, MAX_PATH),
            message = err.message,
            entity = err.entity and text_rules.shorten(err.entity, MAX_PATH),
            where = err.where and text_rules.shorten(err.where, MAX_PATH),
            line = err.line,
        }
        places[err] = i
    end
    local rest = {}
    for i, err in ipairs(others) do
        rest[i] = places[err]
    end
    return { word = "invalid", errors = list, flattened = by_entity, others = rest }
end

local function describe(snapshot, plugins, add, pause)
    local by_kind = layout.by_kind(layout.derive(entities.stored(), plugins))
    items.each(snapshot, function(item)
        local described, err = writer.describe(by_kind, item)
        if not described then
            error({ is_stop = true, err = err }, 0)
        end
        add(described)
    end, pause)
end

-- All that the store is to hold, but the addresses of names.
local function replacement(request, text, kind, opts)
    local snapshot, errors = config.parse(text, kind, opts.registry, opts)
    if not snapshot then
        return invalid(errors, request.flattens)
    end
    local made, names = with_blocks(2, function(made, names)
        for _, name in ipairs(items.names(snapshot, opts.pause)) do
            names:add(name)
        end
        describe(snapshot, entities.of_plugins(), function(item)
            made:add(item)
        end, opts.pause)
    end)
    local warnings, more = shortened(snapshot.warnings)
    return {
        hash = snapshot.hash,
        origin = origins.of(snapshot.hash, request.surroundings),
        warnings = warnings,
        more_warnings = more,
        made = made,
        names = names,
    }
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

local VERBS = { replace = replacement, collect = collection }

-- The plugins of the settings, which a state keeps: it has one list of them as long as it lives.
local loaded

local function load_plugins(names)
    loaded = loaded or assert(registry.load(names))
    return loaded
end

local function check(request, pause)
    local text, kind = sent_file.read(request.sent, pause)
    if not text then
        return { word = "media type" }
    elseif request.live and request.live == origins.of(config.hash(text), request.surroundings) then
        return { word = "same" }
    end
    local begins = request.vaults or {}
    return VERBS[request.verb](request, text, kind, {
        at = request.at,
        registry = load_plugins(request.plugins),
        vault = vault.new(request.vault_env),
        begin_of = function(prefix)
            return begins[prefix]
        end,
        list_of = request.list_of,
        max_entities = request.max_entities,
        max_of = request.max_of,
        pause = pause,
    })
end

--- Checks a file. Blocks, for some 10 us an entity.
-- @tparam table request plain data: `verb`, "replace" or "collect" of
-- gateway.control.configuration; `sent` of gateway.control.sent_file; `plugins`, `vault_env` and
-- `max_entities` of the settings; `surroundings` of gateway.config.origin; `at`, a date in seconds;
-- `flags`, the addresses of two int32_t of which one is not 0 once nobody waits; `is_large`, for a
-- thread that checks nothing else; `live`, an origin with which nothing is to be done; `flattens`,
-- whether errors are wanted by entity; `list_of` and `max_of` of gateway.config; `vaults`, prefix
-- -> what the names of its variables begin with
-- @treturn table `made`, a list of gateway.store.blocks, which the caller frees: the items of a
-- replacement as gateway.control.writer describes them, with `names`, another list, of those that
-- it needs, `hash` and `origin`; or items of gateway.config.collect, each with the place of its
-- `parent`, and `size`, the bytes of the text. `warnings`, and how many `more_warnings` there are.
-- Or `word`: "media type", "same", "stopped", "invalid" with `errors` of gateway.config, their
-- `flattened` and the places of `others`; or one of gateway.control.apply with `message`
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
        local message = "to check the file takes more than %d MiB of memory, more than %s: %d"
        local max_of = request.max_of or collect.MAX_OF
        message = message:format(most / 1024, max_of, request.max_entities)
        return invalid({ { path = "", message = message } })
    elseif type(found) == "table" and found.err then
        return { word = found.err.err, message = found.err.message }
    end
    error(found, 0)
end

return _M
