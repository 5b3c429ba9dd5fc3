--- Spans of `kong.tracing`: what took how long, and what is known of it.
-- @module gateway.kit.tracing.span

local error = error
local ngx = ngx
local tostring = tostring
local type = type

local time_ns = require("sluice.clock").wall_ns

local _M = {}

--- The methods of a span that is recorded.
-- @table span
_M.methods = {}

local methods = _M.methods

local VALUES = { string = true, number = true, boolean = true, table = true, ["nil"] = true }

--- Ends a span, once.
-- @tparam[opt] number end_time_ns nanoseconds since 1970; now without it
-- @raise "invalid span end time"; "invalid span duration": it ends before it begins
-- @phases any
function methods:finish(end_time_ns)
    if self.end_time_ns ~= nil then
        return
    elseif end_time_ns ~= nil and type(end_time_ns) ~= "number" then
        error("invalid span end time", 2)
    elseif end_time_ns and end_time_ns < self.start_time_ns then
        error("invalid span duration", 2)
    end
    self.end_time_ns = end_time_ns or time_ns()
    if self.active and self.tracer.active_span() == self then
        self.tracer.set_active_span(self.parent)
        self.active = nil
    end
end

--- Notes a value; nil takes it back. Others than texts, numbers, booleans and tables are logged.
-- @tparam string key
-- @tparam string|number|boolean|table|nil value
-- @raise "invalid key"
-- @phases any
function methods:set_attribute(key, value)
    if type(key) ~= "string" then
        error("invalid key", 2)
    elseif not VALUES[type(value)] then
        ngx.log(ngx.ERR, debug.traceback("invalid span attribute value type: " .. type(value), 2))
    end
    self.attributes = self.attributes or {}
    self.attributes[key] = value
end

--- Notes that something happened.
-- @tparam string name
-- @tparam[opt] table attributes
-- @tparam[opt] number time_ns
-- @raise "invalid name", "invalid attribute"
-- @phases any
function methods:add_event(name, attributes, at_ns)
    if type(name) ~= "string" then
        error("invalid name", 2)
    elseif attributes ~= nil and type(attributes) ~= "table" then
        error("invalid attribute", 2)
    end
    self.events = self.events or { [0] = 0 }
    local count = self.events[0] + 1
    self.events[count] = { name = name, time_ns = at_ns or time_ns(), attributes = attributes }
    self.events[0] = count
end

--- Notes an error, as the event "exception".
-- @tparam any err
-- @phases any
function methods:record_error(err)
    self:add_event("exception", { ["exception.message"] = tostring(err) })
end

--- Says how it ended.
-- @tparam number status 0: nobody says; 1: well; 2: with an error
-- @raise "invalid status"
-- @phases any
function methods:set_status(status)
    if type(status) ~= "number" then
        error("invalid status", 2)
    end
    self.status = status
end

local function nothing() end

--- What is handed on with it: nothing.
-- @treturn function an iterator without values
-- @phases any
function methods.each_baggage_item()
    return nothing
end

--- Nothing: spans are collected as other tables.
-- @phases any
function methods.release() end

--- The span where nobody records: it takes everything and keeps nothing.
_M.none = setmetatable({
    is_recording = false,
    finish = nothing,
    set_attribute = nothing,
    add_event = nothing,
    record_error = nothing,
    set_status = nothing,
    each_baggage_item = methods.each_baggage_item,
}, { __newindex = nothing })

local OPTIONS = {
    { "start_time_ns", "number", "invalid start time" },
    { "span_kind", "number", "invalid start kind" },
    { "should_sample", "boolean", "invalid sampled" },
    { "attributes", "table", "invalid attributes" },
}

--- Checks the options of a new span.
-- @tparam any options nil or a table
-- @tparam number level of the caller to be told
-- @raise what is wrong
-- @phases any
function _M.check(options, level)
    if options ~= nil and type(options) ~= "table" then
        error("invalid options type", level)
    end
    for _, option in ipairs(options and OPTIONS or {}) do
        local value = options[option[1]]
        if value ~= nil and type(value) ~= option[2] then
            error(option[3], level)
        end
    end
end

_M.time_ns = time_ns

return _M
