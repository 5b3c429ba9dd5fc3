--- The store's verbs for `ngx.run_worker_thread`, which keeps a worker's event loop free.
--
-- Each thread has a Lua VM that is not always the same, so that a store is known by a *handle*
-- (gateway.store.handles), and SQLite's connection is shared by the VMs. Calls of one handle wait
-- for each other.
-- @module gateway.store.thread
-- @usage
-- local function call(...)
--     local ok, first, second = ngx.run_worker_thread("sluice_store", "gateway.store.thread", ...)
--     ...
-- end
-- local handle = call("open", path, { layouts = layouts })
-- local done, err = call("call", handle, "transaction", changes)

local database = require("gateway.store.database")
local handles = require("gateway.store.handles")
local pieces = require("gateway.threads.pieces")

local _M = {}

local stores = handles.new(database.attach)

--- Opens a store.
-- @tparam string path
-- @tparam table opts of gateway.store.database
-- @treturn table|nil handle
-- @treturn nil|table error
function _M.open(path, opts)
    local store, err = database.open(path, opts)
    if not store then
        return nil, err
    end
    return stores:add(store)
end

--- Calls a verb of an open store.
-- @tparam table handle of `open`
-- @tparam string verb such as "transaction"
-- @param ... its arguments
-- @return what the verb returns
function _M.call(handle, verb, ...)
    local store = stores:find(handle)
    return store[verb](store, ...)
end

--- Calls a verb that gives a long list.
-- @treturn {string,...}|nil the list, for `decode` of gateway.threads.pieces
-- @return what else the verb returns
function _M.call_long(handle, verb, ...)
    local list, second = _M.call(handle, verb, ...)
    return list and pieces.encode(list), second
end

--- Closes a store; no other call of its handle may be under way, or come after.
-- @tparam table handle
-- @treturn boolean true
function _M.close(handle)
    stores:take(handle):close()
    return true
end

return _M
