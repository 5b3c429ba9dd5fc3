--- Plugins that have failed, for `/status`: configurations that they cannot do with, and phases in
-- which they have thrown. The traffic workers report them.
-- @module gateway.control.plugin_errors

-- Failures that are kept; the oldest goes first.
local MAX_FAILURES = 100

-- The event; its data is an entry of the list.
local SOURCE, EVENT = "sluice-gateway", "plugin failed"

-- A worker tells of a phase of a plugin no more often, and no more of the message.
local PAUSE_SECONDS = 1
local MAX_MESSAGE = 500

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
function _M.report(bus, plugin, id, revision, message)
    ngx.log(ngx.ERR, message)
    local failure = { plugin = plugin, id = id, revision = revision, message = message }
    bus:publish("all", SOURCE, EVENT, failure)
end

-- What was reported, by plugin and phase -> when.
local reported = {}

--- Tells the control worker that a plugin has thrown. Does not yield, and does not log.
-- @tparam table bus of this worker
-- @tparam string plugin its name
-- @tparam string phase
-- @tparam string message
function _M.report_thrown(bus, plugin, phase, message)
    local key, now = plugin .. " " .. phase, ngx.now()
    if reported[key] and now - reported[key] < PAUSE_SECONDS then
        return
    end
    reported[key] = now
    local text = tostring(message):sub(1, MAX_MESSAGE)
    bus:publish("all", SOURCE, EVENT, { plugin = plugin, phase = phase, message = text })
end

--- Tells it that the plugin has run there without throwing.
-- @tparam table bus of this worker
-- @tparam string plugin
-- @tparam string phase
function _M.report_mended(bus, plugin, phase)
    reported[plugin .. " " .. phase] = nil
    bus:publish("all", SOURCE, EVENT, { plugin = plugin, phase = phase, is_mended = true })
end

local function is_same(one, other)
    if one.id or other.id then
        return one.id == other.id
    end
    return one.plugin == other.plugin and one.phase == other.phase
end

--- Notes a failure; once for all workers.
function _M:add(failure)
    for i, known in ipairs(self.entries) do
        if is_same(known, failure) then
            table.remove(self.entries, i)
            break
        end
    end
    if not failure.is_mended then
        self.entries[#self.entries + 1] = failure
    end
    if #self.entries > MAX_FAILURES then
        table.remove(self.entries, 1)
    end
end

--- The failures, the last one at the end; those of entities that have changed since are forgotten.
-- Yields.
-- @tparam function read of gateway.writer.role
-- @treturn {table,...}
function _M:list(read)
    local entries = {}
    for _, failure in ipairs(self.entries) do
        local row, err
        if failure.id then
            row, err = read("get", "plugins", failure.id)
        end
        local is_gone = err and err.err == "not found"
        if not is_gone and not (row and row.revision > failure.revision) then
            entries[#entries + 1] = failure
        end
    end
    self.entries = entries
    return entries
end

return _M
