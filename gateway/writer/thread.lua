--- The writer's verbs for `ngx.run_worker_thread`, which keeps the control worker's loop free.
--
-- A thread's Lua VM is not always the same one: the writer is known by a *handle*
-- (gateway.store.handles).
-- @module gateway.writer.thread

local blocks = require("gateway.threads.blocks")
local handles = require("gateway.store.handles")
local pieces = require("gateway.threads.pieces")
local writer = require("gateway.writer")

local _M = {}

local writers = handles.new(writer.attach)

--- Opens the store and with it the role.
-- @tparam table opts of gateway.writer
-- @treturn table|nil handle
-- @treturn nil|table error
function _M.open(opts)
    local opened, err = writer.open(opts)
    if not opened then
        return nil, err
    end
    return writers:add(opened)
end

--- Calls a verb.
-- @tparam table handle of `open`
-- @tparam string verb such as "batch"
-- @param ... its arguments
-- @return what the verb returns
function _M.call(handle, verb, ...)
    local found = writers:find(handle)
    return found[verb](found, ...)
end

-- The changes of a transaction that came as pieces.
local function unpacked(transaction)
    local changes = pieces.decode(transaction.pieces)
    changes.by, changes.at_revision = transaction.by, transaction.at_revision
    changes.keeps_origin, changes.is_dry_run = transaction.keeps_origin, transaction.is_dry_run
    return changes
end

--- Makes many transactions with one commit.
-- @tparam table handle
-- @tparam {table,...} transactions of the writer's `batch`; or `pieces` of gateway.threads.pieces
-- in the place of one's changes, whose `dates` then come back as pieces
-- @return what `batch` of the writer returns
function _M.batch(handle, transactions)
    local all = {}
    for i, transaction in ipairs(transactions) do
        all[i] = transaction.pieces and unpacked(transaction) or transaction
    end
    local results, err = writers:find(handle):batch(all)
    for i, result in ipairs(results or {}) do
        if transactions[i].pieces and result.dates then
            result.dates = pieces.encode(result.dates)
        end
    end
    return results, err
end

--- Makes the store hold these entities and no others.
-- @tparam table handle
-- @tparam table sent `made`, a list of gateway.threads.blocks, or none; `pieces` of
-- gateway.threads.pieces: the items, one behind the other
-- @tparam[opt] string origin
-- @tparam[opt] string by
-- @return what `replace` of the writer returns
function _M.replace(handle, sent, origin, by)
    local found, items = writers:find(handle), {}
    local function add(item)
        items[#items + 1] = item
    end
    if sent.made then
        blocks.each(sent.made, add)
    end
    for _, item in ipairs(pieces.decode(sent.pieces)) do
        add(item)
    end
    return found:replace(items, origin, by)
end

--- Makes the changes that lead from the file that is live to the next one.
-- @tparam table handle
-- @tparam table sent `made`, a list of gateway.threads.blocks with the changes; `before`,
-- `revision` and `origin` of that
-- @tparam[opt] string by
-- @return what `patch` of the writer returns
function _M.patch(handle, sent, by)
    local changes = {}
    blocks.each(sent.made, function(change)
        changes[#changes + 1] = change
    end)
    local patch = { before = sent.before, origin = sent.origin, changes = changes }
    patch.revision = sent.revision
    return writers:find(handle):patch(patch, by)
end

--- `replace` in a VM that ends then (gateway.threads.lua_state): its statements end with it.
function _M.replace_alone(handle, ...)
    local ok, done, err = pcall(_M.replace, handle, ...)
    writers:find(handle).store:detach()
    if not ok then
        error(done, 0)
    end
    return done, err
end

--- Gives the role up; no other call of the handle may be under way, or come after.
-- @tparam table handle
-- @tparam[opt] boolean is_saved of the writer's `close`
-- @return what that returns
function _M.close(handle, is_saved)
    return writers:take(handle):close(is_saved)
end

return _M
