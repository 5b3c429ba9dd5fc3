--- The control worker's reads of the store, in threads (gateway.store.thread), beside the writer.
--
-- Two at a time: SQLite has them wait for each other anyway. All others wait here, in the order in
-- which they came, where they take neither a thread nor a thread's Lua VM from the writer.
-- @module gateway.writer.reader

local garbage_collector = require("sluice.garbage_collector")
local monotonic = require("sluice.clock").monotonic
local pieces = require("gateway.threads.pieces")

local THREAD = "gateway.store.thread"
-- At a time; cli/nginx/conf.lua has threads for them.
local MAX_READS = 2
-- How long a read waits for its turn, and the end for reads that are under way.
local WAIT_SECONDS = 10
local LOOK_SECONDS = 0.01

-- Verbs that give as many as there are.
local LONG = { changes_back = true }

local _M = {}
local methods = {}
local mt = { __index = methods }

--- Makes one, which is not open.
-- @tparam function in_thread calls a function of a module in a thread: `(module, name, ...)`
-- @treturn table
-- @phases init_worker
function _M.new(in_thread)
    return setmetatable({
        in_thread = in_thread,
        handle = nil,
        -- in threads
        count = 0,
        places = require("ngx.semaphore").new(MAX_READS),
    }, mt)
end

--- Opens the store. Yields; throws why not.
-- @tparam string store path
-- @tparam {table,...} layouts of gateway.store.layout
-- @treturn table what its verb `revision` gives
-- @phases timer
function methods:open(store, layouts)
    local opts = { layouts = layouts, read_only = true, check = false }
    local handle, err = self.in_thread(THREAD, "open", store, opts)
    local now
    if handle then
        self.handle = handle
        now, err = self.in_thread(THREAD, "call", handle, "revision")
    end
    if not now then
        error(err.message or err.err, 0)
    end
    return now
end

--- Calls a verb when it is its turn, ten seconds later at most. Yields.
-- @treturn boolean false: it is not open
-- @return what the verb returns; nil and an error, "busy" among them
-- @phases content, timer
function methods:call(verb, ...)
    if not self.places:wait(WAIT_SECONDS) then
        local message = ("the store was locked by readers for %d seconds"):format(WAIT_SECONDS)
        return true, nil, { err = "busy", message = message }
    end
    local handle, is_long = self.handle, LONG[verb]
    if not handle then
        self.places:post(1)
        return false
    end
    self.count = self.count + 1
    local first, second =
        self.in_thread(THREAD, is_long and "call_long" or "call", handle, verb, ...)
    self.count = self.count - 1
    self.places:post(1)
    if first and is_long then
        first = pieces.decode(first, garbage_collector.turns())
    end
    return true, first, second
end

--- Nobody begins to read; those who have are waited for, since it would go from under them. Yields.
-- @phases timer
function methods:close()
    local handle, deadline = self.handle, monotonic() + WAIT_SECONDS
    self.handle = nil
    while self.count > 0 and monotonic() < deadline do
        ngx.sleep(LOOK_SECONDS)
    end
    if handle and self.count == 0 then
        self.in_thread(THREAD, "close", handle)
    end
end

return _M
