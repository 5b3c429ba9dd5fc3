--- The writer's verbs for `ngx.run_worker_thread`, which keeps the control worker's loop free.
--
-- A thread's Lua VM is not always the same one: the writer is known by a *handle*, plain data.
-- @module gateway.control.writer_thread

local string_buffer = require("string.buffer")
local writer = require("gateway.control.writer")

local ipairs = ipairs

local _M = {}

-- token -> writer of this VM; a token never comes again
local attached = {}

--- Opens the store and with it the role.
-- @tparam table opts of gateway.control.writer
-- @treturn table|nil handle
-- @treturn nil|table error
function _M.open(opts)
    local opened, err = writer.open(opts)
    if not opened then
        return nil, err
    end
    local handle = opened:handle()
    attached[handle.store.token] = opened
    return handle
end

local function find(handle)
    local found = attached[handle.store.token]
    if not found then
        found = writer.attach(handle)
        attached[handle.store.token] = found
    end
    return found
end

--- Calls a verb.
-- @tparam table handle of `open`
-- @tparam string verb such as "batch"
-- @param ... its arguments
-- @return what the verb returns
function _M.call(handle, verb, ...)
    local found = find(handle)
    return found[verb](found, ...)
end

local function decode(pieces)
    local items = {}
    for _, piece in ipairs(pieces) do
        for _, item in ipairs(string_buffer.decode(piece)) do
            items[#items + 1] = item
        end
    end
    return items
end

--- Makes the store hold these entities and no others.
-- @tparam table handle
-- @tparam {string,...} pieces arrays of changes, as `string.buffer` encodes them
-- @tparam[opt] string origin
-- @tparam[opt] string by
-- @return what `replace` of the writer returns
function _M.replace(handle, pieces, origin, by)
    local done, err = find(handle):replace(decode(pieces), origin, by)
    -- The thread's VM stays, and would keep what was a configuration.
    collectgarbage()
    return done, err
end

--- Gives the role up; no other call of the handle may be under way, or come after.
-- @tparam table handle
-- @treturn boolean true
function _M.close(handle)
    local found = find(handle)
    attached[handle.store.token] = nil
    found:close()
    return true
end

return _M
