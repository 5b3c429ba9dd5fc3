--- Changes of the configuration, as the control worker sees them: one queue, one writer, one answer
-- when a change is on the disk and live on every worker.
--
-- Whoever has a change waits in the queue of gateway.control.loop; the transactions that wait
-- together share a commit.
--
-- States, as `state` tells them:
--
--   starting    the store is not open yet: why, is the message
--   waiting     another process has the role of the writer
--   building    what the store holds is made live
--   live        changes are taken
--   checking    the same; a worker has died by a signal, and what is live is being checked
--   damaged     the same; a worker cannot map what is live, and answers 503
--   stopped     three control workers have died within a minute: what is live is served, changes
--               are refused. Who asks after a minute lets it try again; a reload does at once
--   left        the role was given up
--
-- Errors are tables with `err` and `message`: the store's words (docs/store.md), "full",
-- "unbuildable", and "not ready" (every state in which no changes are taken).
-- @module gateway.control.apply

local ffi = require("ffi")
local garbage_collector = require("gateway.control.garbage_collector")
local images = require("sluice.images")
local layout = require("gateway.store.layout")
local loop = require("gateway.control.loop")
local pieces = require("gateway.store.pieces")
local writer = require("gateway.control.writer")

local error = error
local ipairs = ipairs
local ngx = ngx
local tonumber = tonumber
local tostring = tostring

-- Changes that are made into texts without giving others a turn, and are handed to a thread as they
-- are; and those that make so much garbage that it is collected later.
local FEW, MANY = 20, 10000
-- Entities between two looks at the clock.
local STRIDE = 16

local READS = {
    backup = true,
    changes_back = true,
    changes_made = true,
    changes_since = true,
    check = true,
    export = true,
    find = true,
    get = true,
    list = true,
    revision = true,
    tags = true,
    unused = true,
}

local _M = {}

-- kind -> layout
local by_kind

--- Makes this worker the one that writes, as soon as no other does. Does not yield, never throws.
-- @tparam table opts
-- @tparam string opts.store path
-- @tparam string opts.images folder
-- @tparam {table,...} opts.layouts of gateway.store.layout
-- @tparam number opts.history revisions to keep (gateway.store.database)
-- @tparam function opts.on_files is called, without arguments, when other files are live
-- @phases init_worker
function _M.start(opts)
    local page = images.page()
    by_kind = layout.by_kind(opts.layouts)
    loop.start({
        store = opts.store,
        images = opts.images,
        layouts = opts.layouts,
        history = opts.history,
        page = page and tonumber(ffi.cast("uintptr_t", page)),
    }, opts.on_files)
end

--- Has the files of images looked after now, of the worker that writes; does not yield.
-- @phases any
_M.look = loop.look

-- The changes as the writer takes them.
local function describe(changes, keep, pause)
    for i, change in ipairs(changes) do
        local described, err = writer.describe(by_kind, change)
        if not described then
            return nil, err
        end
        keep(described, i)
        if pause and i % STRIDE == 0 then
            pause()
        end
    end
    return true
end

-- The same in turns, where they are many.
local function describe_in_turns(changes, keep)
    if #changes <= FEW then
        return describe(changes, keep)
    end
    if #changes < MANY then
        return describe(changes, keep, garbage_collector.turns())
    end
    return garbage_collector.hold(describe, changes, keep, garbage_collector.pauses())
end

--- Makes changes, all or none. Yields; what they make is live on every worker when it returns.
-- @tparam {table,...} changes `{ kind =, put = entity }` or `{ kind =, delete = id }`, each entity
-- once; with `if_revision`, that at which it was read (0: there was none), "changed" where it has
-- another by now; with `lenient` it is no error that one is there already, or none
-- @tparam[opt] table opts `by`: who, for the history; `at_revision`: "changed" where the store has
-- another by now
-- @treturn table|nil `{ uuid =, revision =, dates = }` of gateway.store.database's `batch`
-- @treturn nil|table error
-- @phases content, timer
function _M.transaction(changes, opts)
    if not loop.is_open() then
        return loop.not_ready()
    end
    local member = { by = opts and opts.by, at_revision = opts and opts.at_revision }
    local many = #changes > FEW and pieces.new() or nil
    local ok, err = describe_in_turns(changes, function(described, i)
        if many then
            many:add(described)
        else
            member[i] = described
        end
    end)
    if not ok then
        return nil, err
    end
    member.pieces = many and many:finish()
    local done
    done, err = loop.enqueue({ changes = member })
    if many and done and done.dates then
        done.dates = pieces.decode(done.dates, garbage_collector.turns())
    end
    return done, err
end

--- Makes the store hold these entities and no others. Yields.
-- @tparam {table,...} items `{ kind =, put = entity }`, in their order
-- @tparam[opt] string origin what they were made from
-- @tparam[opt] string by who, for the history
-- @tparam[opt] table made a list of gateway.store.blocks, of gateway.checker: what stands before
-- the items. It stays the caller's
-- @treturn table|nil `{ uuid =, revision =, changed = boolean }`
-- @treturn nil|table error
-- @phases content, timer
function _M.replace(items, origin, by, made)
    if not loop.is_open() then
        return loop.not_ready()
    end
    local all = pieces.new()
    local ok, err = describe_in_turns(items, function(described)
        all:add(described)
    end)
    if not ok then
        return nil, err
    end
    return loop.enqueue({
        pieces = all:finish(),
        made = made,
        origin = origin,
        by = by,
        count = #items + (made and made.count or 0),
    })
end

--- Asks the store; never waits for one who writes. Yields.
-- @tparam string verb get, find, list, tags, unused, revision, changes_since, check, backup or
-- export
-- @param ... its arguments (gateway.store.database)
-- @return what it returns
-- @phases content, timer
function _M.read(verb, ...)
    if not READS[verb] then
        error(("bad argument #1 to 'read' (no such verb: %s)"):format(tostring(verb)), 2)
    end
    return loop.read(verb, ...)
end

--- What it does at the moment.
-- @treturn table `state`, `message`, `revision`, `uuid`, `origin`, `waiting` (changes), `deaths`,
-- `writing` (a configuration: `entities`, and `since`, seconds), and `base`, `delta` (numbers of
-- files), `base_bytes`, `delta_used`
-- @phases any
function _M.state()
    local at = loop.state()
    local files = at.maintenance and at.maintenance.files or {}
    local block = images.C.sluice_control_block()
    local damage, why
    if block ~= nil and at.state == "live" then
        damage, why = images.damage(block, ngx.now() * 1000)
    end
    return {
        state = damage or at.state,
        message = why or at.message,
        revision = at.revision,
        uuid = at.uuid,
        origin = at.origin,
        waiting = at.queue and #at.queue,
        writing = at.writing,
        deaths = block ~= nil and block.deaths or 0,
        base = files.base,
        delta = files.delta,
        base_bytes = files.bytes,
        delta_used = files.used,
    }
end

--- Closes the store of a worker that ends at once. Blocks on the disk.
-- @phases exit_worker
_M.exit = loop.exit

--- Finishes what waits, and gives the role up. Yields, ten seconds at most.
-- @phases timer
_M.leave = loop.leave

return _M
