--- What one Lua VM has opened, and the other VMs of its process use through a *handle*.
--
-- `ngx.run_worker_thread` copies tables one by one into the thread's VM, for each call. So a handle
-- is two strings: a token, and all that a VM which does not know the token needs, as bytes.
-- @module gateway.store.handles

local files = require("gateway.store.files")
local string_buffer = require("string.buffer")

local _M = {}
local methods = {}
local mt = { __index = methods }

--- Makes the list of those of one kind that this VM knows.
-- @tparam function attach gives what is behind the plain data of its `handle` method
-- @treturn table
function _M.new(attach)
    -- token -> what is open; a token never comes again
    return setmetatable({ attach = attach, known = {} }, mt)
end

--- Adds what was opened.
-- @tparam table opened has `handle`, which gives plain data
-- @treturn table handle
function methods:add(opened)
    local token = files.draw_uuid()
    self.known[token] = opened
    return { token = token, bytes = string_buffer.encode(opened:handle()) }
end

--- Finds what is behind a handle of any VM.
-- @tparam table handle of `add`
-- @treturn table
function methods:find(handle)
    local found = self.known[handle.token]
    if not found then
        found = self.attach(string_buffer.decode(handle.bytes))
        self.known[handle.token] = found
    end
    return found
end

--- The same for the last time.
function methods:take(handle)
    local found = self:find(handle)
    self.known[handle.token] = nil
    return found
end

return _M
