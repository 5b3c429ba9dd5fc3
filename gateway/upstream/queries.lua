--- Queries for the addresses of hosts while the gateway runs: the system's resolver, in threads.
--
-- It blocks, for many seconds where a name server is silent. So hosts wait in lanes that have
-- threads of their own: those that had addresses the last time never wait for others, nor do those
-- that somebody waits for wait behind ones that were asked for in vain. And a host whose name
-- server was silent is waited for once, not by each who needs it.
-- @module gateway.upstream.queries

local dns = require("gateway.pdk.dns")
local monotonic = require("sluice.clock").monotonic

local _M = {}

-- Threads of each lane; cli/nginx/conf.lua has their sum.
local THREADS = { resolved = 3, wanted = 2, unresolved = 2, plugins = 1 }

-- Hosts that a thread asks for at a time, one where few wait; and seconds after which it gives back
-- those that it has not asked for yet: behind one that is slow.
local MAX_CHUNK, CHUNK_SECONDS = 20, 0.5
-- So many chunks a thread has to be for before they are longer.
local CHUNKS = 8

-- Hosts of plugins to ask for at most; workers ask again for what is beyond.
local MAX_WAITING = 1000

-- A host is silent whose answer takes longer than this, unless it has addresses then; for so long
-- afterwards. So many are remembered.
local PROMPT_SECONDS, SILENT_SECONDS = 2, 30
local MAX_SILENT = 10000

-- How long all who wait for one query wait for it together.
local WAITED_SECONDS = 5

-- Silence --------------------------------------------------------------------------------------

-- host -> when it was silent the last time.
local silent, silent_count = {}, 0

local function note_silence(host)
    if silent_count >= MAX_SILENT then
        silent, silent_count = {}, 0
    end
    silent_count = silent_count + (silent[host] and 0 or 1)
    silent[host] = monotonic()
end

local function forget_silence(host)
    silent_count = silent_count - (silent[host] and 1 or 0)
    silent[host] = nil
end

local function is_silent(host)
    if silent[host] and monotonic() >= silent[host] + SILENT_SECONDS then
        forget_silence(host)
    end
    return silent[host] ~= nil
end

-- Queues -----------------------------------------------------------------------------------------

local function new_queue()
    return { first = 1, last = 0 }
end

local function push(queue, query)
    queue.last = queue.last + 1
    queue[queue.last] = query
end

local function put_back(queue, query)
    queue.first = queue.first - 1
    queue[queue.first] = query
end

local function pop(queue)
    local query = queue[queue.first]
    if query then
        queue[queue.first] = nil
        queue.first = queue.first + 1
    end
    return query
end

local function size(queue)
    return queue.last - queue.first + 1
end

-- Lanes ------------------------------------------------------------------------------------------

local function new_lane(threads)
    return {
        threads = threads,
        idle = threads,
        -- Queries that wait.
        queue = new_queue(),
        -- By host, until it is answered: { host, callbacks, ends = when nobody waits any more,
        -- began = when a thread has taken it, waited = until when somebody waits }.
        asked = {},
        count = 0,
    }
end

local lanes = {}
for name, threads in pairs(THREADS) do
    lanes[name] = new_lane(threads)
end

local function finish(self, query, answer)
    self.asked[query.host] = nil
    self.count = self.count - 1
    local is_late = query.began and monotonic() >= query.began + PROMPT_SECONDS
    if is_late and type(answer) ~= "table" then
        note_silence(query.host)
    elseif query.began then
        forget_silence(query.host)
    end
    for _, callback in ipairs(query.callbacks) do
        local ok, err = pcall(callback, answer)
        if not ok then
            ngx.log(ngx.ERR, "names: ", tostring(err))
        end
    end
end

-- A chunk of what waits: queries, and their hosts.
local function take(self)
    local most =
        math.max(1, math.min(MAX_CHUNK, math.floor(size(self.queue) / self.threads / CHUNKS)))
    local taken, hosts, now = {}, {}, monotonic()
    while #taken < most do
        local query = pop(self.queue)
        if not query then
            break
        elseif query.ends < now then
            finish(self, query, "no thread was available in time")
        else
            query.began = now
            taken[#taken + 1] = query
            hosts[#hosts + 1] = query.host
        end
    end
    return taken, hosts
end

local start

-- Asks for one chunk. Timers have memory of their own: each has one.
local function run(premature, self)
    local taken, hosts = take(self)
    local ok, found = true, {}
    if #hosts > 0 and not premature then
        ok, found = ngx.run_worker_thread(
            "sluice_dns",
            "gateway.upstream.resolver",
            "resolve_all",
            hosts,
            CHUNK_SECONDS
        )
    end
    self.idle = self.idle + 1
    for i = #taken, 1, -1 do
        local query = taken[i]
        local answer = premature and "the worker is shutting down"
            or not ok and "the thread for names: " .. tostring(found)
            or found[query.host]
        if answer then
            finish(self, query, answer)
        else
            query.began = nil
            put_back(self.queue, query)
        end
    end
    start(self)
end

start = function(self)
    for _ = 1, math.min(self.idle, size(self.queue)) do
        if not ngx.timer.at(0, run, self) then
            return -- the next who asks starts it
        end
        self.idle = self.idle - 1
    end
end

--- Asks for a host; who has asked for it already shares the answer. Does not yield.
-- @tparam string lane "resolved": it had addresses the last time; "wanted": a request or a change
--   needs it; "unresolved"; "plugins"
-- @tparam string host
-- @tparam function callback gets an array of addresses (IPv6 in brackets), or why there is none;
--   must not yield
-- @tparam[opt] number seconds after which it is not asked for any more, if no thread was free
-- @treturn table query
-- @phases timers and later
function _M.ask_one(lane, host, callback, seconds)
    local self = lanes[lane]
    local query = self.asked[host]
    if not query then
        query = { host = host, callbacks = {}, ends = 0 }
        self.asked[host] = query
        self.count = self.count + 1
        push(self.queue, query)
    end
    query.callbacks[#query.callbacks + 1] = callback
    query.ends = math.max(query.ends, seconds and monotonic() + seconds or math.huge)
    start(self)
    return query
end

--- Asks for hosts, and waits so many seconds, for one that somebody waits for already as long as
-- that one does. Hosts that were silent just now are neither asked for nor waited for. Yields.
-- @tparam string lane as of `ask_one`
-- @tparam {string,...} hosts
-- @tparam number seconds
-- @treturn table host -> array of addresses (IPv6 in brackets), or why there is none; nil where
--   there is no answer yet
-- @phases access, content, timers
function _M.ask(lane, hosts, seconds)
    local found, missing, is_over = {}, {}, false
    local now, longest = monotonic(), 0
    local done = assert(require("ngx.semaphore").new(0))
    for _, host in ipairs(hosts) do
        local query = not is_silent(host)
            and _M.ask_one(lane, host, function(answer)
                if is_over then
                    return
                end
                found[host], missing[host] = answer, nil
                if next(missing) == nil then
                    done:post(1)
                end
            end, seconds)
        if query then
            missing[host] = query
            query.waited = query.waited or seconds > 0 and now + WAITED_SECONDS or nil
            longest = math.max(longest, math.min(seconds, (query.waited or now) - now))
        end
    end
    if longest > 0 then
        done:wait(longest)
    end
    is_over, now = true, monotonic()
    for host, query in pairs(missing) do
        if query.began and now >= query.began + PROMPT_SECONDS then
            note_silence(host)
        end
    end
    return found
end

--- Answers plugins in all workers (gateway.pdk.dns).
-- @tparam table bus of sluice.events
-- @phases init_worker
function _M.serve(bus)
    local function ask(question)
        local host, time = question.host, ngx.now()
        local lane = lanes.plugins
        if lane.asked[host] or lane.count >= MAX_WAITING then
            return
        end
        _M.ask_one("plugins", host, function(answer)
            local message = { host = host, addresses = answer, time = time }
            dns.hear(message)
            local sent, err = bus:publish("all", dns.SOURCE, "answer", message)
            if not sent then
                ngx.log(ngx.ERR, "the addresses of ", host, " cannot be sent to the workers: ", err)
            end
        end)
    end
    bus:subscribe(dns.SOURCE, "ask", ask)
    dns.answer_here(ask)
end

return _M
