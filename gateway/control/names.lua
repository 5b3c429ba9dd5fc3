--- Names to addresses while the gateway runs: the system's resolver, in threads.
--
-- It blocks, for many seconds where a name server is silent. So names wait in lanes that have
-- threads of their own: those that are known to have addresses never wait for others, nor do those
-- that somebody waits for wait behind ones that were asked for in vain.
-- @module gateway.control.names

local monotonic = require("sluice.clock").monotonic
local names = require("gateway.plugin.names")

local assert = assert
local floor = math.floor
local huge = math.huge
local ipairs = ipairs
local max = math.max
local min = math.min
local ngx = ngx
local pairs = pairs
local pcall = pcall
local tostring = tostring

local _M = {}

-- Threads of each lane; cli/nginx_conf.lua has their sum.
local THREADS = { known = 3, wanted = 2, unknown = 2, plugins = 1 }

-- Names that a thread asks for at a time, one where few wait; and seconds after which it gives back
-- those that it has not asked for yet: behind one that is slow.
local MAX_CHUNK, CHUNK_SECONDS = 20, 0.5
-- So many chunks a thread has to be for before they are longer.
local CHUNKS = 8

-- Names of plugins to ask for at most; workers ask again for what is beyond.
local MAX_WAITING = 1000

-- Queues -----------------------------------------------------------------------------------------

local function new_queue()
    return { first = 1, last = 0 }
end

local function push(queue, entry)
    queue.last = queue.last + 1
    queue[queue.last] = entry
end

local function put_back(queue, entry)
    queue.first = queue.first - 1
    queue[queue.first] = entry
end

local function pop(queue)
    local entry = queue[queue.first]
    if entry then
        queue[queue.first] = nil
        queue.first = queue.first + 1
    end
    return entry
end

local function size(queue)
    return queue.last - queue.first + 1
end

-- Lanes ------------------------------------------------------------------------------------------

local function new_lane(threads)
    return {
        threads = threads,
        idle = threads,
        -- Entries that wait.
        queue = new_queue(),
        -- By host, until it is answered: { host, callbacks, ends = when nobody waits any more }.
        asked = {},
        count = 0,
    }
end

local lanes = {}
for name, threads in pairs(THREADS) do
    lanes[name] = new_lane(threads)
end

local function finish(self, entry, answer)
    self.asked[entry.host] = nil
    self.count = self.count - 1
    for _, callback in ipairs(entry.callbacks) do
        local ok, err = pcall(callback, answer)
        if not ok then
            ngx.log(ngx.ERR, "names: ", tostring(err))
        end
    end
end

-- A chunk of what waits: entries, and their hosts.
local function take(self)
    local most = max(1, min(MAX_CHUNK, floor(size(self.queue) / self.threads / CHUNKS)))
    local entries, hosts, now = {}, {}, monotonic()
    while #entries < most do
        local entry = pop(self.queue)
        if not entry then
            break
        elseif entry.ends < now then
            finish(self, entry, "no thread was free in time")
        else
            entries[#entries + 1] = entry
            hosts[#hosts + 1] = entry.host
        end
    end
    return entries, hosts
end

local start

-- Asks for one chunk. Timers have memory of their own: each has one.
local function run(premature, self)
    local entries, hosts = take(self)
    local ok, found = true, {}
    if #hosts > 0 and not premature then
        ok, found = ngx.run_worker_thread(
            "sluice_dns",
            "gateway.control.resolver",
            "resolve_all",
            hosts,
            CHUNK_SECONDS
        )
    end
    self.idle = self.idle + 1
    for i = #entries, 1, -1 do
        local entry = entries[i]
        local answer = premature and "the worker leaves"
            or not ok and "the thread for names: " .. tostring(found)
            or found[entry.host]
        if answer then
            finish(self, entry, answer)
        else
            put_back(self.queue, entry)
        end
    end
    start(self)
end

start = function(self)
    for _ = 1, min(self.idle, size(self.queue)) do
        if not ngx.timer.at(0, run, self) then
            return -- the next who asks starts it
        end
        self.idle = self.idle - 1
    end
end

--- Asks for a name; who has asked for it already shares the answer. Does not yield.
-- @tparam string lane "known": it had addresses the last time; "wanted": a request or a change
--   needs it; "unknown"; "plugins"
-- @tparam string host
-- @tparam function callback gets an array of addresses (IPv6 in brackets), or why there is none;
--   must not yield
-- @tparam[opt] number seconds after which it is not asked for any more, if no thread was free
-- @phases timers and later
function _M.ask_one(lane, host, callback, seconds)
    local self = lanes[lane]
    local entry = self.asked[host]
    if not entry then
        entry = { host = host, callbacks = {}, ends = 0 }
        self.asked[host] = entry
        self.count = self.count + 1
        push(self.queue, entry)
    end
    entry.callbacks[#entry.callbacks + 1] = callback
    entry.ends = max(entry.ends, seconds and monotonic() + seconds or huge)
    start(self)
end

--- Asks for names, and waits so many seconds. Yields.
-- @tparam string lane as of `ask_one`
-- @tparam {string,...} hosts
-- @tparam number seconds
-- @treturn table host -> array of addresses (IPv6 in brackets), or why there is none; nil where
--   there is no answer yet
-- @phases access, content, timers
function _M.ask(lane, hosts, seconds)
    local found, missing, is_over = {}, #hosts, false
    if missing == 0 then
        return found
    end
    local done = assert(require("ngx.semaphore").new(0))
    for _, host in ipairs(hosts) do
        _M.ask_one(lane, host, function(answer)
            if not is_over then
                found[host] = answer
                missing = missing - 1
                if missing == 0 then
                    done:post(1)
                end
            end
        end, seconds)
    end
    done:wait(seconds)
    is_over = true
    return found
end

--- Answers plugins in all workers (gateway.plugin.names).
-- @tparam table bus of sluice.events
-- @phases init_worker
function _M.serve(bus)
    bus:subscribe(names.SOURCE, "ask", function(question)
        local host, time = question.host, ngx.now()
        local lane = lanes.plugins
        if lane.asked[host] or lane.count >= MAX_WAITING then
            return
        end
        _M.ask_one("plugins", host, function(answer)
            local message = { host = host, addresses = answer, time = time }
            local sent, err = bus:publish("all", names.SOURCE, "answer", message)
            if not sent then
                ngx.log(ngx.ERR, "the addresses of ", host, " reach no worker: ", err)
            end
        end)
    end)
end

return _M
