--- `kong.tools.queue`: what follows a request and may be late, in batches, and again until it works
-- (lib/sluice/queue.lua, with its figures and limits).
--
-- As in Kong there is one queue for a name in a worker, and a handler gets a batch as a list. What
-- differs: batches under way count for `max_entries` and `max_bytes`; a worker that leaves goes on
-- trying for 20 seconds; trouble is logged at most each ten seconds by a queue.
-- @module gateway.kit.queue

local pdk = require("gateway.pdk")
local queue = require("sluice.queue")

local assert = assert
local format = string.format
local ngx = ngx
local type = type

local _M = {}

-- From so many on queues that are empty are let go, when another one comes.
local FEW = 100

-- Per name {queue, handler, conf, settings}.
local queues, count, sweep_at = {}, 0, FEW

local NUMBERS = {
    "max_batch_size",
    "max_coalescing_delay",
    "max_entries",
    "max_retry_time",
    "initial_retry_delay",
    "max_retry_delay",
}

local function given(value)
    return value ~= nil and (not ngx or value ~= ngx.null) and value or nil
end

-- An entry as the queue holds it; only texts count for bytes, as in Kong.
local function box(value)
    return { value = value, size = type(value) == "string" and #value or 0 }
end

local function size_of(boxed)
    return boxed.size
end

local function settings_of(conf)
    local settings = {
        max_bytes = given(conf.max_bytes),
        concurrency_limit = conf.concurrency_limit,
    }
    for _, name in ipairs(NUMBERS) do
        settings[name] = conf[name]
    end
    -- As there: each entry alone where there is no limit.
    if settings.concurrency_limit == -1 then
        settings.max_batch_size = 1
    end
    return settings
end

local function send_with(own)
    return function(_, boxes)
        local entries = {}
        for i, boxed in ipairs(boxes) do
            entries[i] = boxed.value
        end
        local ok, err = own.handler(own.handler_conf, entries)
        if ok == true then
            return true
        end
        return nil, tostring(err or "no error details returned by handler")
    end
end

-- Lets go of the queues that have nothing.
local function sweep()
    for name, own in pairs(queues) do
        if own.queue:stats().entries == 0 then
            queues[name] = nil
            count = count - 1
        end
    end
    sweep_at = math.max(FEW, 2 * count)
end

local function new_queue(conf, handler, handler_conf)
    local own = {
        handler = handler,
        handler_conf = handler_conf,
        conf = conf,
        settings = settings_of(conf),
    }
    own.queue = queue.new({
        name = format("[%s] queue %s", conf.log_tag or "", conf.name),
        timers = pdk.queue_timers(),
        current = function()
            return own.settings, own
        end,
        send = send_with(own),
        size_of = size_of,
    })
    return own
end

local function queue_of(conf, handler, handler_conf)
    local own = queues[conf.name]
    if not own then
        if count >= sweep_at then
            sweep()
        end
        own = new_queue(conf, handler, handler_conf)
        queues[conf.name] = own
        count = count + 1
    elseif own.conf ~= conf then
        -- The latest that was seen counts.
        own.conf, own.settings = conf, settings_of(conf)
    end
    own.handler_conf = handler_conf
    return own
end

local function check(conf, handler, handler_conf)
    assert(type(conf) == "table", "arg #1 (queue_conf) must be a table")
    assert(type(handler) == "function", "arg #2 (handler) must be a function")
    assert(
        handler_conf == nil or type(handler_conf) == "table",
        "arg #3 (handler_conf) must be a table or nil"
    )
    assert(type(conf.name) == "string", "arg #1 (queue_conf) must include a name")
    for _, name in ipairs(NUMBERS) do
        local message = "arg #1 (queue_conf) " .. name .. " must be a number"
        assert(type(conf[name]) == "number", message)
    end
    local max_bytes = given(conf.max_bytes)
    assert(
        max_bytes == nil or type(max_bytes) == "number",
        "arg #1 (queue_conf) max_bytes must be a number or nil"
    )
    assert(
        type(conf.concurrency_limit) == "number",
        "arg #1 (queue_conf) concurrency_limit must be a number"
    )
end

local TOO_LONG = "string to be queued is longer (%d bytes) than the queue's max_bytes (%d bytes)"

--- Adds an entry. Does not yield.
-- @tparam table conf `name`, `log_tag`, and the fields of `typedefs.queue`: `max_batch_size`,
-- `max_coalescing_delay`, `max_entries`, `max_bytes`, `max_retry_time`, `initial_retry_delay`,
-- `max_retry_delay`, `concurrency_limit` (1, or -1: each entry alone and at once, 64 at a time)
-- @tparam function handler `(handler_conf, entries)`: true, or nil and why not; it may yield, and
-- may throw
-- @tparam[opt] table handler_conf the latest counts for all that wait
-- @tparam any value not nil
-- @treturn true|nil
-- @treturn string|nil "entry must be a non-nil Lua value"; that it is longer than `max_bytes`
-- @raise what is wrong with the arguments
-- @phases any of a worker
function _M.enqueue(conf, handler, handler_conf, value)
    check(conf, handler, handler_conf)
    if value == nil then
        return nil, "entry must be a non-nil Lua value"
    end
    local own = queue_of(conf, handler, handler_conf)
    local max_bytes = own.settings.max_bytes
    if max_bytes and type(value) == "string" and #value > max_bytes then
        local message = format(TOO_LONG, #value, max_bytes)
        ngx.log(ngx.ERR, "queue ", conf.name, ": ", message)
        return nil, message
    end
    return own.queue:push(box(value))
end

local function entries_of(name)
    local own = queues[name]
    return own and own.queue:stats().entries or 0
end

--- Whether a queue has entries, those under way included.
-- @tparam string name
-- @treturn boolean
-- @phases any
function _M.exists(name)
    return entries_of(name) > 0
end

_M._exists = _M.exists

--- Whether another entry would push an old one out.
-- @tparam table conf with `name`
-- @treturn boolean false where there is no queue yet
-- @phases any
function _M.is_full(conf)
    local own = queues[conf.name]
    local settings = own and own.settings
    if not own then
        return false
    end
    local stats = own.queue:stats()
    return stats.entries >= settings.max_entries
        or (settings.max_bytes ~= nil and stats.bytes >= settings.max_bytes)
end

--- Whether an entry has room without pushing an old one out.
-- @tparam table conf with `name`
-- @tparam any entry
-- @treturn boolean true where there is no queue yet
-- @phases any
function _M.can_enqueue(conf, entry)
    local own = queues[conf.name]
    if not own then
        return true
    elseif _M.is_full(conf) then
        return false
    end
    local most = own.settings.max_bytes
    local room = most and most - own.queue:stats().bytes
    return not room or type(entry) ~= "string" or #entry <= room
end

-- Former name of a parameter -> its default, and the name that took its place.
local FORMER = {
    { "queue_size", 1, "max_batch_size" },
    { "flush_timeout", 2, "max_coalescing_delay" },
    { "batch_span_count", 200, "max_batch_size" },
    { "batch_flush_delay", 3, "max_coalescing_delay" },
}

-- "queue/name" -> when it was said last
local said = {}
local SAY_AGAIN_SECONDS = 60

local function warn(queue_name, name, message)
    local key = queue_name .. "/" .. name
    if ngx.now() - (said[key] or -SAY_AGAIN_SECONDS) >= SAY_AGAIN_SECONDS then
        said[key] = ngx.now()
        ngx.log(ngx.WARN, message)
    end
end

local function use_former(conf, config)
    local retries = given(config.retry_count)
    if retries and retries ~= 10 then
        local message = "the retry_count parameter no longer works, please update your "
            .. "configuration to use initial_retry_delay and max_retry_time instead"
        warn(conf.name, "retry_count", message)
    end
    for _, former in ipairs(FORMER) do
        local name, default, now = unpack(former)
        local value = given(config[name])
        if value and value ~= default then
            conf[now] = value
            local message = "the %s parameter is deprecated, please update your configuration to "
                .. "use queue.%s instead"
            warn(conf.name, name, message:format(name, now))
        end
    end
end

--- The parameters for `enqueue` of a plugin's configuration: its record `queue`, with a name.
-- @tparam string plugin_name
-- @tparam table config
-- @tparam[opt] string queue_name the id of the plugin's configuration without it
-- @treturn table the record, changed in place
-- @phases rewrite, access, header_filter, body_filter, log
function _M.get_plugin_params(plugin_name, config, queue_name)
    local conf = config.queue or {}
    local kong = rawget(_G, "kong")
    local id = config.__plugin_id or (kong.plugin and kong.plugin.get_id())
    local tag = format("%s plugin %s", plugin_name, tostring(id))
    if config.plugin_instance_name then
        tag = format("%s (%s)", tag, config.plugin_instance_name)
    end
    conf.log_tag = tag
    conf.name = given(conf.name) or queue_name or id
    use_former(conf, config)
    return conf
end

return _M
