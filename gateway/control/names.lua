--- Names to addresses while the gateway runs: the system's resolver, in a thread.
-- @module gateway.control.names

local names = require("gateway.plugin.names")

local ngx = ngx
local pcall = pcall
local tostring = tostring

local _M = {}

-- Names of plugins to ask for at most; workers ask again for what is beyond.
local MAX_WAITING = 1000

-- Hosts that plugins wait for: in the order of their questions, and by themselves.
local queue, first, last, waits = {}, 1, 0, {}

--- Asks for names, in a thread where there are any: the resolver blocks. Yields.
-- @tparam {string,...} hosts
-- @treturn table host -> array of addresses (IPv6 in brackets), or why there is none
-- @phases access, content, timers
function _M.ask(hosts)
    if #hosts == 0 then
        return {}
    end
    local ok, found =
        ngx.run_worker_thread("sluice_dns", "gateway.control.resolver", "resolve_all", hosts)
    if not ok then
        error("the thread for names: " .. tostring(found))
    end
    return found
end

-- Asks for the names of the queue, one after the other as the one thread does; tells all workers,
-- so that each is asked for once.
local function answer_all(bus)
    while first <= last do
        local host, time = queue[first], ngx.now()
        local ok, found = pcall(_M.ask, { host })
        local message = { host = host, addresses = ok and found[host] or found, time = time }
        queue[first] = nil
        waits[host] = nil
        first = first + 1
        local sent, err = bus:publish("all", names.SOURCE, "answer", message)
        if not sent then
            ngx.log(ngx.ERR, "the addresses of ", host, " reach no worker: ", err)
        end
    end
end

--- Answers plugins in all workers (gateway.plugin.names).
-- @tparam table bus of sluice.events
-- @tparam table timers of sluice.timer
-- @phases init_worker
function _M.serve(bus, timers)
    -- A timer: too many callbacks that wait hold up other events.
    local runs = false
    local function run(premature)
        if not premature then
            answer_all(bus)
        end
        runs = false
    end
    bus:subscribe(names.SOURCE, "ask", function(question)
        local host = question.host
        if waits[host] or last - first >= MAX_WAITING then
            return
        end
        waits[host] = true
        last = last + 1
        queue[last] = host
        runs = runs or timers:at(0, run) ~= nil
    end)
end

return _M
