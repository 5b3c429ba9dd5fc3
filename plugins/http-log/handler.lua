--- Sends an entry about each request to a log server, in batches, and again until it works.
--
-- Requests put entries into shared memory in C (ngx_http_sluice_http_log.c); all else is done in
-- the control worker, which has one queue for each configuration.
-- @module plugins.http-log.handler

local endpoint = require("sluice.http_endpoint")
local http_client = require("sluice.http_client")
local log_fields = require("gateway.kit.functions.log_fields")
local pdk = require("gateway.pdk")
local queue = require("sluice.queue")
local spool = require("sluice.ffi.spool")

local ngx = ngx

-- What follows from a configuration, by configuration: {settings, endpoint, head}.
local compiled = setmetatable({}, { __mode = "k" })

-- {queue, conf} by the id of the plugin entity, over changes of configuration: what a changed one
-- has gathered goes where the changed one says. `conf` is the newest, for when it is gone; queues
-- of entities that are gone live by their timers until they are empty.
local queues, queue_count = {}, 0

-- A large batch is put together in slices, so that it does not hold up the control worker.
local SLICE_TEXTS, PAUSE_SECONDS = 4000, 0.001

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
-- In pieces: one string of all would be copied twice, and new memory each time.
-- @tparam {string,...} texts entries, each with a comma and the end of its line
local function request_of(target, texts)
    local last = texts[#texts]:sub(1, -3)
    if target.settings.max_batch_size == 1 then
        return { target.head, tostring(#last), "\r\n\r\n", last }
    end
    local pieces, length = { target.head, "", "\r\n\r\n", "[" }, 2 + #last
    for i = 1, #texts - 1 do
        pieces[#pieces + 1] = texts[i]
        length = length + #texts[i]
        if i % SLICE_TEXTS == 0 then
            ngx.sleep(PAUSE_SECONDS)
        end
    end
    pieces[2] = tostring(length)
    pieces[#pieces + 1] = last
    pieces[#pieces + 1] = "]"
    return pieces
end

local function send(target, texts, _, seconds_left)
    local conf = target.conf
    local timeout_ms = conf.timeout
    if seconds_left then
        timeout_ms = math.min(timeout_ms, seconds_left * 1000)
    end
    local answer, err = http_client.ask(target.endpoint, request_of(target, texts), {
        pool = "http-log",
        timeout_ms = timeout_ms,
        keepalive_ms = conf.keepalive,
        -- As in Kong: log servers often have certificates of their own.
        verify = false,
    })
    if not answer then
        return nil, err
    elseif answer.status < 200 or answer.status >= 300 then
        return nil, ("%s answered %d"):format(target.endpoint.authority, answer.status)
    end
    return true
end

--- Makes the queue of a plugin entity. What is live counts, not what its requests began with.
local function new_queue(conf)
    local id, own = conf.__id, { conf = conf }
    own.queue = queue.new({
        name = ("http-log %s to %s"):format(id, compile(conf).endpoint.authority),
        timers = pdk.queue_timers(),
        send = send,
        on_drop = spool.note_lost,
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

return {
    VERSION = "0.2.0",
    PRIORITY = 12,
    native = true,

    lua_phases = log_fields.lua_phases,
    log = log_fields.log,

    --- What the C reads of a configuration: nothing.
    -- @treturn string
    pack = function()
        return ""
    end,

    --- Adds entries to the queue of their configuration, in the control worker.
    -- @tparam table conf what is live, or the last that was, where it is gone
    -- @tparam string lines an entry each, with a comma and its end
    -- @tparam number count of lines
    deliver = function(_, conf, lines, count)
        local own = queues[conf.__id] or add_queue(conf)
        if own.conf ~= conf and pdk.store():current(conf) then
            own.conf = conf
        end
        own.queue:push(lines, count)
    end,
}
