--- The writer's verbs for `ngx.run_worker_thread`, which keeps the control worker's loop free.
--
-- A thread's Lua VM is not always the same one: the writer is known by a *handle*
-- (gateway.store.handles).
-- @module gateway.control.writer_thread

local handles = require("gateway.store.handles")
local pieces = require("gateway.store.pieces")
local writer = require("gateway.control.writer")

local ipairs = ipairs

local _M = {}

local writers = handles.new(writer.attach)

--- Opens the store and with it the role.
-- @tparam table opts of gateway.control.writer
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
local function unpacked(member)
    local changes = pieces.decode(member.pieces)
    changes.by, changes.at_revision = member.by, member.at_revision
    return changes
end

--- Makes many transactions with one commit.
-- @tparam table handle
-- @tparam {table,...} members of the writer's `batch`; or `pieces` of gateway.store.pieces in the
-- place of a member's changes, whose `dates` then come back as pieces
-- @return what `batch` of the writer returns
function _M.batch(handle, members)
    local all = {}
    for i, member in ipairs(members) do
        all[i] = member.pieces and unpacked(member) or member
    end
    local results, err = writers:find(handle):batch(all)
    for i, result in ipairs(results or {}) do
        if members[i].pieces and result.dates then
            result.dates = pieces.encode(result.dates)
        end
    end
    return results, err
end

--- Makes the store hold these entities and no others.
-- @tparam table handle
-- @tparam {string,...} items of gateway.store.pieces
-- @tparam[opt] string origin
-- @tparam[opt] string by
-- @return what `replace` of the writer returns
function _M.replace(handle, items, origin, by)
    local done, err = writers:find(handle):replace(pieces.decode(items), origin, by)
    -- The thread's VM stays, and would keep what was a configuration.
    collectgarbage()
    return done, err
end

--- Gives the role up; no other call of the handle may be under way, or come after.
-- @tparam table handle
-- @treturn boolean true
function _M.close(handle)
    writers:take(handle):close()
    return true
end

return _M
