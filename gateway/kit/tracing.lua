--- `kong.tracing`: spans of a request.
--
-- As in Kong without `tracing_instrumentations`: the tracer that plugins find records nothing, and
-- its spans do nothing. `kong.tracing.new(name)` makes one that records, in the request's ngx.ctx.
-- @module gateway.kit.tracing

local ffi = require("ffi")
local phases = require("gateway.kit.phases")
local rand = require("openssl.rand")
local span = require("gateway.kit.tracing.span")

local check = phases.check
local error = error
local ngx = ngx
local setmetatable = setmetatable
local type = type

local none = span.none

-- Of a trace's id so many bytes decide whether it is recorded.
local SAMPLED_BYTES = 8
local BOUND = 2 ^ 64
local TOO_SHORT = "sampling needs trace ID to be longer than 8 bytes to work"
local INTERNAL = 1

local PROCESS = phases.allow("tracing.process_span", phases.set("log"))

-- Where there is an ngx.ctx.
local HAS_CONTEXT = {
    ssl_cert = true,
    rewrite = true,
    access = true,
    header_filter = true,
    body_filter = true,
    log = true,
    content = true,
}

local function has_context()
    return ngx and ngx.get_phase and HAS_CONTEXT[ngx.get_phase()] or false
end

local function sampler_of(default_rate)
    return function(trace_id, rate)
        rate = rate or default_rate
        if type(rate) ~= "number" then
            return nil, "invalid fraction"
        elseif rate >= 1 then
            return true
        elseif rate <= 0 then
            return false
        elseif #trace_id < SAMPLED_BYTES then
            return nil, TOO_SHORT
        end
        local number = ffi.new("uint64_t[1]")
        ffi.copy(number, trace_id, SAMPLED_BYTES)
        return tonumber(number[0]) < rate * BOUND
    end
end

-- Whether a new span is recorded.
local function is_sampled(tracer, parent, options, trace_id)
    if parent and parent.should_sample ~= nil then
        return parent.should_sample
    elseif options.should_sample ~= nil then
        return options.should_sample
    elseif not tracer then
        return false
    end
    local found, err = tracer.sampler(trace_id)
    if err then
        ngx.log(ngx.ERR, "sampler failure: ", err)
    end
    return found or false
end

local span_mt = { __index = span.methods }

local function create_span(tracer, options)
    span.check(options, 3)
    options = options or {}
    local parent = options.parent or (tracer and tracer.active_span())
    local trace_id = parent and parent.trace_id or options.trace_id or rand.bytes(16)
    return setmetatable({
        parent = parent,
        parent_id = parent and parent.span_id or options.parent_id,
        tracer = tracer,
        span_id = rand.bytes(8),
        trace_id = trace_id,
        kind = options.span_kind or INTERNAL,
        should_sample = is_sampled(tracer, parent, options, trace_id),
    }, span_mt)
end

local function link_span(tracer, made, name, options)
    if type(tracer) ~= "table" then
        error("invalid tracer", 3)
    end
    span.check(options, 3)
    options = options or {}
    made.tracer = made.tracer or tracer
    made.start_time_ns = options.start_time_ns or span.time_ns()
    made.attributes = options.attributes
    made.name, made.linked = name, true
    local spans = tracer.get_spans()
    local count = spans[0] + 1
    spans[count], spans[0] = made, count
    return made
end

local function start_span(tracer, name, options)
    if type(name) ~= "string" or name == "" then
        error("invalid span name", 3)
    end
    return link_span(tracer, create_span(tracer, options), name, options)
end

local tracer_mt = {}
tracer_mt.__index = tracer_mt

-- What ngx.ctx has of a tracer.
local function add_context(self, namespace)
    self.active_span_key = namespace .. "_active_span"
    self.spans_table_key = namespace .. "_SPANS"

    --- The span that is active, of this request.
    function self.active_span()
        return has_context() and ngx.ctx[self.active_span_key] or nil
    end

    --- Makes a span the active one.
    function self.set_active_span(active)
        if has_context() then
            if active then
                active.active = true
            end
            ngx.ctx[self.active_span_key] = active
        end
    end

    --- Begins with no span.
    function self.init_spans()
        local spans = { [0] = 0 }
        ngx.ctx[self.spans_table_key] = spans
        return spans
    end

    --- All spans of the request; their number at 0.
    function self.get_spans()
        return ngx.ctx[self.spans_table_key] or self.init_spans()
    end

    --- The first span of the request.
    function self.get_root_span()
        return self.get_spans()[1]
    end
end

local function add_spans(self)
    --- Begins a span. Without a request it is one that does nothing.
    function self.start_span(...)
        if not has_context() then
            return none
        end
        return start_span(self, ...)
    end

    function self.create_span(...)
        return create_span(...)
    end

    function self.link_span(...)
        return link_span(...)
    end

    --- Calls a function with each of its spans.
    function self.process_span(processor, ...)
        check(PROCESS)
        if type(processor) ~= "function" then
            error("processor must be a function", 2)
        end
        for _, one in ipairs(self.get_spans()) do
            if one.tracer and one.tracer.name == self.name then
                processor(one, ...)
            end
        end
    end
end

--- Says of all spans whether they are recorded.
function tracer_mt:set_should_sample(should_sample)
    for _, one in ipairs(self.get_spans()) do
        if one.is_recording ~= false then
            one.should_sample = should_sample
        end
    end
end

--- Whether this request is recorded: as its parent says, or by the rate.
-- @tparam[opt] boolean parent_should_sample
-- @tparam[opt] number rate 0 to 1
-- @treturn boolean
function tracer_mt:get_sampling_decision(parent_should_sample, rate)
    local root = self.get_root_span()
    local propagates = root and root.attributes and root.attributes["kong.propagation_only"]
    if not root or propagates or parent_should_sample == false then
        return false
    elseif not rate then
        return false
    end
    local found, err = self.sampler(root.trace_id, rate)
    if err then
        ngx.log(ngx.ERR, "sampler failure: ", err)
    end
    return found or false
end

local function nothing() end

-- Records nothing.
local silent = { name = "noop", spans_table_key = "noop" }

--- The span that is active in this request; nil: none.
-- @treturn table|nil
-- @phases any
function silent.active_span() end

--- Makes a span the active one, whose children the next spans are.
-- @tparam[opt] table span
-- @phases any
function silent.set_active_span() end

--- Begins a span. The tracer that plugins find records nothing: its span takes all that a span
-- takes, and keeps nothing.
-- @tparam string name
-- @tparam[opt] table options `start_time_ns`, `span_kind`, `should_sample`, `attributes`, `parent`
-- @treturn table a span
-- @phases any
function silent.start_span()
    return none
end

--- A span that has no name and no time yet.
-- @treturn table a span
-- @phases any
function silent.create_span()
    return none
end

--- Calls a function with each of the tracer's spans of this request.
-- @tparam function processor `(span, ...)`
-- @phases log
function silent.process_span() end

--- Whether this request is recorded, by what its parent says and by a rate.
-- @tparam[opt] boolean parent_should_sample
-- @tparam[opt] number rate 0 to 1
-- @treturn boolean|nil
-- @phases any
function silent.get_sampling_decision() end

--- Says of all spans of this request whether they are recorded.
-- @tparam boolean should_sample
-- @phases any
function silent.set_should_sample() end

silent.get_spans, silent.get_root_span = nothing, nothing
silent.init_spans, silent.link_span = nothing, nothing

-- "namespace_name" -> tracer
local tracers = {}

--- A tracer; the same name gives the same one.
-- @tparam[opt="default"] string name
-- @tparam[opt] table options `noop`: it records nothing; `sampling_rate`, 1 without it; `namespace`
-- @treturn table
-- @phases any
function silent.new(name, options)
    options = options or {}
    if options.noop then
        return silent
    end
    name = name or "default"
    local namespace = options.namespace or "KONG"
    local key = namespace .. "_" .. name
    if not tracers[key] then
        local self = { name = name, sampler = sampler_of(options.sampling_rate or 1) }
        add_context(self, namespace)
        add_spans(self)
        tracers[key] = setmetatable(self, tracer_mt)
    end
    return tracers[key]
end

--- Has `kong.tracing` be another tracer.
-- @tparam table tracer of `new`
-- @raise "invalid tracer"
-- @phases any
function silent.set_global_tracer(tracer)
    local is_one = type(tracer) == "table"
        and (tracer.name == "noop" or getmetatable(tracer) == tracer_mt)
    if not is_one then
        error("invalid tracer", 2)
    end
    local kong = rawget(_G, "kong")
    if kong then
        kong.tracing = tracer
    end
end

local function new_of(_, ...)
    return silent.new(...)
end

tracer_mt.new, tracer_mt.set_global_tracer = silent.new, silent.set_global_tracer
tracer_mt.__call = new_of

return setmetatable(silent, { __call = new_of, __newindex = nothing })
