--- `GET /timers`: what the timers of a worker do, or those of all workers.
--
-- One worker's response has Kong's layout. `?workers=all` has the sums of all workers, which
-- it asks over the events: there a timer stands for all that were created at one place.
-- @module gateway.admin.timers

local json = require("gateway.schema.json")
local response = require("gateway.admin.response")
local signal = require("posix.signal")
local timerng = require("sluice.timer.timerng")

local format = string.format
local max = math.max
local min = math.min

local SOURCE = "sluice-gateway-timers"

-- How long the others have to answer, and how often to look whether one has died.
local DEADLINE_SECONDS = 5
local LOOK_SECONDS = 0.05

-- Timers that are written at a time: a millisecond of work or two.
local SLICE = 20

local _M = {}
local mt = { __index = _M }

--- Makes this worker one that answers others about its timers. The caller starts the bus after it.
-- @tparam table opts
-- @tparam table opts.bus of sluice.events
-- @tparam table opts.timers of sluice.timer
-- @treturn table
-- @phases init_worker
function _M.new(opts)
    local self = setmetatable({
        bus = opts.bus,
        timers = opts.timers,
        worker = ngx.worker.id(),
        pid = ngx.worker.pid(),
        rounds = {}, -- by number: {by_pid = pid -> report, semaphore}
        last = 0,
    }, mt)
    self.bus:subscribe(SOURCE, "ask", function(message)
        self:report(message)
    end)
    self.bus:subscribe(SOURCE, "report", function(message)
        local round = self.rounds[message.id]
        -- A worker before or after this one may have its number.
        if round and message.asked == self.pid then
            round.by_pid[message.pid] = message
            round.semaphore:post(1)
        end
    end)
    return self
end

--- Tells the worker that asks.
function _M:report(message)
    local stats = self.timers:stats({ flamegraph = true })
    local sent, err = self.bus:publish({ worker = message.worker }, SOURCE, "report", {
        id = message.id,
        asked = message.pid,
        worker = self.worker,
        pid = self.pid,
        sys = stats.sys,
        places = stats.places,
        flamegraph = timerng.flamegraph(stats.flamegraph),
    })
    if not sent then
        ngx.log(ngx.ERR, "a timer report was lost: ", err)
    end
end

--- Pids that have neither answered nor died.
local function missing(self, by_pid)
    local out = json.array({})
    for _, worker in ipairs(self.bus:stats().workers) do
        local pid = worker.pid
        local is_member = worker.state == "attached" and worker.worker
        if is_member and not by_pid[pid] and signal.kill(pid, 0) == 0 then
            out[#out + 1] = pid
        end
    end
    return out
end

--- Asks all workers and waits for their reports. Yields.
-- @treturn table|nil reports by pid
-- @treturn table|string pids that said nothing; why nobody could be asked
local function ask(self)
    self.last = self.last + 1
    local id, round =
        self.last, { by_pid = {}, semaphore = assert(require("ngx.semaphore").new(0)) }
    self.rounds[id] = round
    local message = { id = id, worker = self.worker, pid = self.pid }
    local sent, err = self.bus:publish("all", SOURCE, "ask", message)
    if not sent then
        self.rounds[id] = nil
        return nil, err
    end
    ngx.update_time()
    local give_up_at = ngx.now() + DEADLINE_SECONDS
    local silent
    repeat
        round.semaphore:wait(LOOK_SECONDS)
        silent = missing(self, round.by_pid)
        ngx.update_time()
    until #silent == 0 or ngx.now() > give_up_at
    self.rounds[id] = nil
    return round.by_pid, silent
end

-- Sums -------------------------------------------------------------------------

-- Fields that do not add up: the greatest counts.
local GREATEST = { backlog_age = true }

local function add(sum, figures)
    for name, value in pairs(figures) do
        if type(value) == "number" then
            local before = sum[name] or 0
            sum[name] = GREATEST[name] and max(before, value) or before + value
        end
    end
end

--- Distributions together; of the 99th percentiles the greatest: the true one is not above it.
local function merge_spread(a, runs_a, b, runs_b)
    if runs_b == 0 then
        return a
    elseif not a or runs_a == 0 then
        return b
    end
    local runs = runs_a + runs_b
    local step = b.mean - a.mean
    return {
        min = min(a.min, b.min),
        max = max(a.max, b.max),
        p99 = max(a.p99, b.p99),
        mean = a.mean + step * runs_b / runs,
        -- Chan, Golub, LeVeque: Updating Formulae and a Pairwise Algorithm (1979).
        variance = (
            a.variance * runs_a
            + b.variance * runs_b
            + step * step * runs_a * runs_b / runs
        ) / runs,
    }
end

local function merge_place(sum, place)
    local before = sum.runs or 0
    for _, name in ipairs({ "elapsed", "lateness" }) do
        sum[name] = merge_spread(sum[name], before, place[name], place.runs) or place[name]
    end
    sum.last_err = place.last_err or sum.last_err
    add(sum, place)
end

--- All reports as one.
-- @treturn table `{sys, places, flamegraph}`
function _M.merge(reports)
    local total = { sys = {}, places = {}, flamegraph = {} }
    for _, report in ipairs(reports) do
        add(total.sys, report.sys)
        for text, place in pairs(report.places) do
            total.places[text] = total.places[text] or {}
            merge_place(total.places[text], place)
        end
        for kind, folded in pairs(report.flamegraph) do
            total.flamegraph[kind] = (total.flamegraph[kind] or "") .. folded
        end
    end
    return total
end

-- Answers ----------------------------------------------------------------------

local function get_all(self)
    local by_pid, silent = ask(self)
    if not by_pid then
        return response.json(503, { message = "cannot query the workers: " .. silent })
    end
    local reports, workers = {}, json.array({})
    for pid, report in pairs(by_pid) do
        reports[#reports + 1] = report
        workers[#workers + 1] = { id = report.worker, pid = pid, sys = report.sys }
    end
    table.sort(workers, function(a, b)
        return a.pid < b.pid
    end)
    local total = _M.merge(reports)
    local timers = {}
    for text, place in pairs(total.places) do
        local shown = timerng.timer(text, place, text, place.running > 0)
        shown.count = place.timers
        shown.running = place.running
        shown.created = place.created
        shown.stats.skipped = place.skipped
        shown.stats.elapsed_time.p99 = place.elapsed.p99
        shown.stats.lateness = place.lateness
        timers[text] = shown
    end
    return response.json(200, {
        worker = { id = "all", count = ngx.worker.count() },
        workers = workers,
        silent = silent,
        stats = { sys = total.sys, timers = timers, flamegraph = total.flamegraph },
    })
end

local function member(name, value)
    return json.encode(name) .. ":" .. json.encode(value)
end

--- Writes this worker's response piece by piece: 100,000 timers are 30 MB.
local function get_own(self)
    local stats = self.timers:stats({ timers = true, flamegraph = true })
    response.begin(200)
    ngx.print(
        "{",
        member("worker", { id = self.worker, count = ngx.worker.count() }),
        ',"stats":{',
        member("sys", stats.sys),
        ",",
        member("flamegraph", timerng.flamegraph(stats.flamegraph)),
        ',"timers":{'
    )
    local pieces, count = {}, 0
    for _, timer in ipairs(stats.timers) do
        local name = timer.name or format("%.0f", timer.handle)
        pieces[#pieces + 1] = count > 0 and "," or ""
        json.append(pieces, name)
        pieces[#pieces + 1] = ":"
        json.append(pieces, timerng.timer(name, timer, timer.place, timer.state == "running"))
        count = count + 1
        if count % SLICE == 0 then
            ngx.print(pieces)
            pieces = {}
            if not ngx.flush(true) then
                return -- the client has gone
            end
            ngx.sleep(0.001)
        end
    end
    ngx.print(pieces, "}}}")
end

--- Answers the request. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam table args arguments of the query
-- @phases content
function _M.get(live, args)
    if args.workers == nil then
        return get_own(live.timers)
    elseif args.workers ~= "all" then
        return response.json(400, { message = "workers must be 'all', given once" })
    end
    return get_all(live.timers)
end

return _M
