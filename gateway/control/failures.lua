--- Plugins' configurations that a `configure` of theirs has thrown on, for `/status`: the traffic
-- workers tell of them, since they decode a configuration when a request first needs it.
-- @module gateway.control.failures

local ipairs = ipairs
local setmetatable = setmetatable

-- Failures that are kept; the oldest goes first.
local MAX_FAILURES = 100

-- The event; its data is an entry of the list.
local SOURCE, EVENT = "sluice-gateway", "configure failed"

local _M = {}
local mt = { __index = _M }

--- Makes the list, and hears of failures from then on.
-- @tparam table bus of sluice.events
-- @treturn table
-- @phases init_worker
function _M.new(bus)
    local self = setmetatable({ entries = {} }, mt)
    bus:subscribe(SOURCE, EVENT, function(failure)
        self:add(failure)
    end)
    return self
end

--- Tells the control worker of a failure, and the log. Does not yield.
-- @tparam table bus of this worker
-- @tparam string plugin its name
-- @tparam string id of the plugin's entity
-- @tparam number revision of the entity
-- @tparam string message
function _M.tell(bus, plugin, id, revision, message)
    ngx.log(ngx.ERR, message)
    local failure = { plugin = plugin, id = id, revision = revision, message = message }
    bus:publish("all", SOURCE, EVENT, failure)
end

--- Notes a failure; once for all workers.
function _M:add(failure)
    for i, known in ipairs(self.entries) do
        if known.id == failure.id then
            table.remove(self.entries, i)
            break
        end
    end
    self.entries[#self.entries + 1] = failure
    if #self.entries > MAX_FAILURES then
        table.remove(self.entries, 1)
    end
end

--- The failures, the last one at the end; those of entities that have changed since are forgotten.
-- Yields.
-- @tparam function read of gateway.control.apply
-- @treturn {table,...}
function _M:list(read)
    local entries = {}
    for _, failure in ipairs(self.entries) do
        local row, err = read("get", "plugins", failure.id)
        local is_gone = err and err.err == "not found"
        if not is_gone and not (row and row.revision > failure.revision) then
            entries[#entries + 1] = failure
        end
    end
    self.entries = entries
    return entries
end

return _M
