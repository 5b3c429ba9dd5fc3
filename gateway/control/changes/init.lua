--- A configuration goes live on all workers, or on none.
--
-- Two phases over the events' log, whose order all workers share:
--
--   the worker that was asked        every worker, itself among them
--   ---------------------------------------------------------------------------
--   prepare  {version, snapshot} ->  makes a candidate beside what is live
--                                 <- prepared {why it cannot, if so}
--   all could: writes the decision to disk
--   commit   {version}           ->  the candidate is live; nothing here can fail
--                                 <- applied
--   one could not, or is silent:
--   withdraw {version}           ->  drops the candidate
--
-- Whoever dies: a worker that is gone is not waited for. A starting worker looks
-- at the disk *after* it has begun to hear events, so no decision falls between;
-- and it announces what it finds there, in case that the one who decided died
-- before it could. A worker that gets a commit without its prepare, or was
-- detached from the log, loads from the disk.
--
-- The bus and the clock come from outside; what a candidate is, only the caller
-- knows.
-- @module gateway.control.changes

local _M = {}
local mt = { __index = _M }

local SOURCE = "sluice-gateway-rollout"

-- How long workers have to prepare, and to apply; and how long one change waits
-- for another.
local DEADLINE_SECONDS = 10
local TURN_SECONDS = 10
-- A worker that dies makes no event.
local LOOK_SECONDS = 0.05
local TURN_LOOK_SECONDS = 0.01

--- Joins this worker. Subscribes; the caller starts the bus after it, then calls
-- `catch_up`.
-- @tparam table opts
-- @tparam table opts.bus `publish`, `subscribe` as in sluice.events
-- @tparam table opts.files gateway.control.changes.files
-- @tparam table opts.host of this worker: `worker` (its id), `pid`, `now()`,
--   `sleep(seconds)`, `is_leaving()`, `members()` -> pid -> worker id, of each
--   worker at the log; `is_alive(pid)`, `event()` -> `{wait(seconds), post()}`
-- @tparam table opts.config what is rolled out: `prepare(message, posted)` ->
--   candidate, with what was posted in the worker that was asked; `load(current)`
--   -> candidate, `activate(candidate)`, `withdraw(candidate)`; the first two throw
--   what is wrong
-- @tparam number opts.version the live one
-- @treturn table
-- @phases init_worker
function _M.new(opts)
    local self = setmetatable({
        bus = opts.bus,
        files = opts.files,
        host = opts.host,
        config = opts.config,
        version = opts.version,
        candidate = nil, -- {version, id, value}
        round = nil, -- {id, posted, awaited = name, heard = pid -> true or why not, event}
        rounds = 0,
        is_busy = false,
    }, mt)
    for _, name in ipairs({ "prepare", "commit", "withdraw", "prepared", "applied" }) do
        self.bus:subscribe(SOURCE, name, function(message)
            self[name](self, message)
        end)
    end
    self.bus:subscribe("sluice", "overrun", function()
        self:catch_up()
    end)
    return self
end

-- A worker's part --------------------------------------------------------------

local function reply(self, event, message, err)
    if not message.worker then
        return
    end
    local answer = { id = message.id, pid = self.host.pid, err = err }
    local sent, why = self.bus:publish({ worker = message.worker }, SOURCE, event, answer)
    if not sent then
        ngx.log(ngx.ERR, "an answer about configuration ", message.version, " is lost: ", why)
    end
end

local function drop_candidate(self)
    local candidate = self.candidate
    self.candidate = nil
    if candidate then
        self.config.withdraw(candidate.value)
    end
end

local function activate(self, version, value)
    self.candidate = nil
    self.version = version
    self.config.activate(value)
end

--- Loads what is decided on disk, where that is newer than what is live.
-- @treturn true|nil
-- @treturn string|nil what is wrong with it
function _M:catch_up()
    local current = self.files:current()
    if not current or current.version <= self.version then
        return true
    end
    drop_candidate(self)
    local ok, value = pcall(self.config.load, current)
    if not ok then
        local newer = self.files:current()
        if newer and newer.version > current.version then
            -- It was removed while it was read.
            return self:catch_up()
        end
        ngx.log(ngx.ERR, "configuration ", current.version, " cannot be loaded: ", value)
        return nil, value
    end
    activate(self, current.version, value)
    return true
end

--- Tells the others what is decided, for the case that nobody could.
function _M:announce()
    local current = self.files:current()
    if current then
        self.bus:publish("all", SOURCE, "commit", { version = current.version })
    end
end

function _M:prepare(message)
    -- One that leaves serves what it has begun, with what it has begun it.
    if self.host.is_leaving() then
        return reply(self, "prepared", message)
    end
    drop_candidate(self)
    local round = self.round
    local posted = round and round.id == message.id and round.posted or nil
    local ok, value = pcall(self.config.prepare, message, posted)
    if ok then
        self.candidate = { version = message.version, id = message.id, value = value }
    end
    reply(self, "prepared", message, not ok and tostring(value) or nil)
end

function _M:commit(message)
    local candidate, err = self.candidate, nil
    if message.version > self.version and not self.host.is_leaving() then
        if
            candidate
            and candidate.version == message.version
            and (not message.id or candidate.id == message.id)
        then
            activate(self, candidate.version, candidate.value)
        else
            local _
            _, err = self:catch_up()
        end
    end
    reply(self, "applied", message, err)
end

function _M:withdraw(message)
    if self.candidate and self.candidate.id == message.id then
        drop_candidate(self)
    end
end

-- The part of the worker that was asked ----------------------------------------

-- A worker that was asked to prepare twice answers twice: the second answer may come when the
-- question is another.
local function hear(self, answer, message)
    local round = self.round
    if round and round.id == message.id and round.awaited == answer then
        round.heard[message.pid] = message.err or true
        round.event:post()
    end
end

function _M:prepared(message)
    hear(self, "prepared", message)
end

function _M:applied(message)
    hear(self, "applied", message)
end

local function count(set)
    local n = 0
    for _ in pairs(set) do
        n = n + 1
    end
    return n
end

--- Who of the asked has not answered yet: one of them, or whose answer is no.
-- @treturn number|nil pid
-- @treturn string|nil why not
local function find_missing(self, round, asked)
    local silent
    for pid in pairs(asked) do
        local heard = round.heard[pid]
        if heard and heard ~= true then
            return pid, heard
        elseif not heard and self.host.is_alive(pid) then
            silent = pid
        elseif not heard then
            asked[pid] = nil
        end
    end
    return silent
end

--- Waits for the answers of all who were asked and live. Yields.
-- @tparam table round
-- @tparam table asked pid -> worker id
-- @tparam[opt] function look is called when all have answered: whether that was all
-- @treturn true|nil
-- @treturn string|nil the first refusal, or who is silent
local function await(self, round, asked, look)
    local deadline = self.host.now() + DEADLINE_SECONDS
    while true do
        local pid, why = find_missing(self, round, asked)
        if why then
            return nil, ("worker %d: %s"):format(pid, why)
        elseif not pid and (not look or look()) then
            return true
        elseif self.host.now() >= deadline then
            local silent = pid or "that has just started"
            return nil, ("worker %s did not answer in %d seconds"):format(silent, DEADLINE_SECONDS)
        end
        round.event:wait(LOOK_SECONDS)
    end
end

local function tell(self, event, message)
    return self.bus:publish("all", SOURCE, event, message)
end

--- Sends the prepare. A snapshot that no event can carry is loaded from the disk
-- by each worker.
local function tell_prepare(self, message)
    local sent, err = tell(self, "prepare", message)
    if err == "payload too large" then
        message.snapshot, message.addresses = nil, nil
        sent, err = tell(self, "prepare", message)
    end
    return sent, err
end

-- The decision stands already, so it has to be told.
local function tell_commit(self, message)
    local deadline = self.host.now() + DEADLINE_SECONDS
    while true do
        local sent, err = tell(self, "commit", message)
        if sent then
            return true
        elseif self.host.now() >= deadline then
            return nil, err
        end
        self.host.sleep(LOOK_SECONDS)
    end
end

local function prepare_all(self, round, message)
    local asked = self.host.members()
    local sent, err = tell_prepare(self, message)
    if not sent then
        return nil, "the log of events does not take it: " .. err
    end
    return await(self, round, asked, function()
        local is_all = true
        for pid, worker in pairs(self.host.members()) do
            if not asked[pid] and not round.heard[pid] then
                -- It has started meanwhile, and may have missed the question.
                is_all = false
                asked[pid] = worker
                self.bus:publish({ worker = worker }, SOURCE, "prepare", message)
            end
        end
        return is_all
    end)
end

local function commit_all(self, round, opts)
    round.heard, round.awaited = {}, "applied"
    local message = { id = round.id, version = round.version, worker = opts.wait and round.worker }
    -- Who starts from now on finds it on the disk.
    local asked = self.host.members()
    local told, err = tell_commit(self, message)
    if not told then
        return nil, "the log of events does not take it: " .. err
    end
    if not opts.wait then
        return true
    end
    local applied, why = await(self, round, asked)
    return applied, why, count(asked)
end

--- One change, from its number to its end; the caller has the turn.
local function run(self, posted, opts)
    local host, files = self.host, self.files
    local current = files:current()
    local version = math.max(self.version, current and current.version or 0) + 1
    self.rounds = self.rounds + 1
    local round = {
        id = host.pid .. ":" .. self.rounds,
        posted = posted,
        version = version,
        worker = host.worker,
        heard = {},
        awaited = "prepared",
        event = host.event(),
    }
    local name, err = files:write(version, posted.at, posted.kind, posted.text)
    if not name then
        return nil, "failed", "it cannot be written: " .. err
    end
    self.round = round
    local message = {
        id = round.id,
        version = version,
        worker = host.worker,
        file = {
            version = version,
            at = posted.at,
            kind = posted.kind,
            path = files.folder .. "/" .. name,
        },
        snapshot = posted.snapshot,
        addresses = posted.addresses,
    }
    local ready, why = prepare_all(self, round, message)
    if ready then
        ready, why = files:decide(name)
    end
    if ready and why then
        ngx.log(ngx.ERR, "configuration ", version, " may not outlive a loss of power: ", why)
    end
    if not ready then
        tell(self, "withdraw", { id = round.id, version = version })
        files:clean()
        return nil, "withdrawn", why
    end
    local applied, reason, workers = commit_all(self, round, opts)
    files:clean()
    if not applied then
        return nil, "late", reason
    end
    return { version = version, workers = workers }
end

local function take_turn(self)
    local host = self.host
    local deadline = host.now() + TURN_SECONDS
    while self.is_busy or not self.files:lock() do
        if host.now() >= deadline then
            return false
        end
        host.sleep(TURN_LOOK_SECONDS)
    end
    self.is_busy = true
    return true
end

--- Rolls a configuration out. Yields; takes at most 30 seconds.
-- @tparam table posted `{text, kind, at, snapshot, addresses}`; the last two are for
--   `prepare` and travel in an event if one can carry them
-- @tparam table opts `wait`: until every live worker has applied it
-- @treturn table|nil `{version, workers}`: `workers` that have applied it, with `wait`
-- @treturn string|nil "busy": others took too long; "failed": this worker cannot
--   even begin; "withdrawn": it is live nowhere; "late": it is decided and will be
--   live everywhere, but not everybody has said so in time
-- @treturn string|nil why, for people
-- @phases content
function _M:post(posted, opts)
    if not take_turn(self) then
        return nil, "busy", ("another change is under way for %d seconds"):format(TURN_SECONDS)
    end
    local ok, result, word, why = pcall(run, self, posted, opts)
    self.round = nil
    self.is_busy = false
    self.files:unlock()
    if not ok then
        return nil, "failed", tostring(result)
    end
    return result, word, why
end

return _M
