--- Sends an entry about each request to a log server, in batches, and again until it works.
-- @module plugins.http-log

local endpoint = require("plugins.http-log.endpoint")
local pdk = require("gateway.plugin.pdk")
local queue = require("sluice.queue")
local schema = require("plugins.http-log.schema")
local sender = require("plugins.http-log.sender")

local ngx = ngx

local _M = {
    name = "http-log",
    version = "0.1.0",
    priority = 12,
    schema = schema,
}

-- What follows from a configuration, by configuration: {settings, endpoint, head}.
local compiled = setmetatable({}, { __mode = "k" })

-- {queue, conf} by the id of the plugin entity, over changes of configuration: what a changed one
-- has gathered goes where the changed one says. `conf` is the newest, for when it is gone; queues
-- of entities that are gone live by their timers.
local queues, queue_count = {}, 0

-- How many queues there may be before those are let go whose entities are gone.
local FEW_QUEUES = 100
local sweep_at = FEW_QUEUES

--- The queue's settings, with those of former names where they are set.
local function settings_of(conf)
    local settings = {}
    for name, value in pairs(conf.queue) do
        settings[name] = value
    end
    settings.max_batch_size = conf.queue_size or settings.max_batch_size
    settings.max_coalescing_delay = conf.flush_timeout or settings.max_coalescing_delay
    return settings
end

--- The head of the requests to the log server, but for their length.
local function head_of(conf, target)
    local lines = {
        ("%s %s HTTP/1.1"):format(conf.method, target.target),
        "Host: " .. target.authority,
        "Content-Type: " .. conf.content_type,
    }
    if target.userinfo then
        local text = ngx.unescape_uri(target.userinfo)
        lines[#lines + 1] = "Authorization: Basic " .. ngx.encode_base64(text)
    end
    for name, value in pairs(conf.headers or {}) do
        lines[#lines + 1] = name .. ": " .. value
    end
    if conf.keepalive == 0 then
        lines[#lines + 1] = "Connection: close"
    end
    return table.concat(lines, "\r\n") .. "\r\nContent-Length: "
end

local function compile(conf)
    local found = compiled[conf]
    if not found then
        local target = assert(endpoint.parse(conf.http_endpoint))
        found = {
            conf = conf,
            settings = settings_of(conf),
            endpoint = target,
            head = head_of(conf, target),
        }
        compiled[conf] = found
    end
    return found
end

--- The request with a batch: an array of entries, or where batches are of one the entry itself.
-- In pieces: one string of all would be hashed, copied twice, and new memory each time.
local function request_of(target, entries, count)
    if target.settings.max_batch_size == 1 then
        return { target.head, tostring(#entries[1]), "\r\n\r\n", entries[1] }
    end
    local pieces, length = { target.head, "", "\r\n\r\n" }, 1
    for i = 1, count do
        local entry = entries[i]
        pieces[#pieces + 1] = i == 1 and "[" or ","
        pieces[#pieces + 1] = entry
        length = length + 1 + #entry
    end
    pieces[#pieces + 1] = "]"
    pieces[2] = tostring(length)
    return pieces
end

local function send(target, entries, count, seconds_left)
    local conf = target.conf
    local timeout_ms = conf.timeout
    if seconds_left then
        timeout_ms = math.min(timeout_ms, seconds_left * 1000)
    end
    local request = request_of(target, entries, count)
    local status, err = sender.send(target.endpoint, request, timeout_ms, conf.keepalive)
    if not status then
        return nil, err
    elseif status < 200 or status >= 300 then
        return nil, ("%s answered %d"):format(target.endpoint.authority, status)
    end
    return true
end

--- Makes the queue of a plugin entity. What is live counts, not what its requests began with.
local function new_queue(conf)
    local id, own = conf.__id, { conf = conf }
    own.queue = queue.new({
        name = ("http-log %s to %s"):format(id, compile(conf).endpoint.authority),
        timers = pdk.timers(),
        send = send,
        current = function()
            own.conf = pdk.store():current(own.conf) or own.conf
            local target = compile(own.conf)
            return target.settings, target
        end,
    })
    return own
end

--- Lets go of the queues whose configuration is gone; they empty themselves. Looks at all, each
-- time that they have become twice as many.
local function sweep()
    for id, own in pairs(queues) do
        if not pdk.store():current(own.conf) then
            queues[id] = nil
            queue_count = queue_count - 1
        end
    end
    sweep_at = math.max(FEW_QUEUES, 2 * queue_count)
end

local function add_queue(conf)
    if queue_count >= sweep_at then
        sweep()
    end
    local own = new_queue(conf)
    queues[conf.__id] = own
    queue_count = queue_count + 1
    return own
end

--- Gets configurations ready that this worker has met.
function _M.configure(_, confs)
    for _, conf in ipairs(confs) do
        local own = queues[conf.__id]
        if own then
            own.conf = conf
        end
        compile(conf)
    end
end

--- Adds the request's entry to the queue.
function _M.log(_, conf)
    local own = queues[conf.__id] or add_queue(conf)
    own.queue:push(pdk.log_entry())
end

return _M
