--- The control worker's loop: it takes the role of the writer, makes live what the store holds, and
-- then makes one change after the other (gateway.control.apply has the states and the verbs).
--
-- What blocks runs in threads: gateway.control.writer_thread writes, .maintenance keeps the files.
-- @module gateway.control.loop

local ffi = require("ffi")
local images = require("sluice.images")
local garbage_collector = require("gateway.control.garbage_collector")
local maintenance = require("gateway.control.maintenance")
local monotonic = require("sluice.clock").monotonic
local pieces = require("gateway.store.pieces")
local sqlite = require("gateway.store.sqlite")
local writer_thread = require("gateway.control.writer_thread")

local error = error
local ipairs = ipairs
local math = math
local ngx = ngx
local pcall = pcall
local tonumber = tonumber
local tostring = tostring
local unpack = unpack

local POOL = "sluice_store"
local WRITER = "gateway.control.writer_thread"
local READER = "gateway.store.thread"
-- How often who has not got the role asks for it, and who cannot open the store tries again.
local POLL_SECONDS = 0.01
local RETRY_SECONDS = 1
-- How long a change waits for the state to be live, and an exit for what is under way.
local READY_SECONDS = 10
local LEAVE_SECONDS = 10
-- So many deaths stop it, so long.
local DEATHS = 3
local DEATHS_MS = 60000
-- Transactions that share a commit.
local MAX_BATCH = 256
-- Entities of a replacement that leaves much garbage behind.
local MANY = 5000
-- How often who waits for its change looks whether it may go on.
local LOOK_SECONDS = 1
local FOREVER_SECONDS = 2000000 -- until it is woken: a semaphore can wait for 23 days

local STATES = {
    starting = "STARTING",
    waiting = "WAITING",
    building = "BUILDING",
    live = "LIVE",
    stopped = "READ_ONLY",
    left = "STOPPED",
}

-- Whoever reads meanwhile waits.
local OPENING = { starting = true, waiting = true, building = true }

-- Verbs that give as many as there are.
local LONG = { changes_back = true }

local _M = {}

-- The one of this worker.
local self

-- Until it starts, and in other workers, there is none to ask.
local NOBODY = { state = "left", message = "this worker does not write" }

-- Notes the state for this worker and, in shared memory, for all others; but there only who has the
-- role, or is the only one.
local function note(state, message)
    self.state, self.message = state, message
    local block = images.C.sluice_control_block()
    if block ~= nil and block.pid == ngx.worker.pid() then
        block.state = images.C["SLUICE_CONTROL_" .. STATES[state]]
        block.revision = self.uuid and self.revision or block.revision
        ffi.copy(block.error, (message or ""):sub(1, ffi.sizeof(block.error) - 1))
    end
end

--- The error of who comes when nothing can be changed.
-- @treturn nil
-- @treturn table error
function _M.not_ready()
    local at = self or NOBODY
    local message = "the configuration cannot be changed now: " .. (at.message or at.state)
    return nil, { err = "not ready", message = message }
end

-- Calls a function of a module in a thread. Yields.
local function in_thread(module, ...)
    local ok, first, second = ngx.run_worker_thread(POOL, module, ...)
    if not ok then
        return nil, { err = "failed", message = tostring(first) }
    end
    return first, second
end

-- Has the writer replace what is there; where it is much, in a Lua state that is closed: that alone
-- gives its memory back.
local function replace(count, ...)
    if count < MANY then
        return in_thread(WRITER, "replace", self.handle, ...)
    end
    local module = "gateway.store.lua_state"
    return in_thread(module, "call", WRITER, "replace_alone", self.handle, ...)
end

local function call(verb, ...)
    return in_thread(WRITER, "call", self.handle, verb, ...)
end

-- The queue --------------------------------------------------------------------------------------

--- Waits until an entry's turn has come and is over. Yields.
-- @tparam table entry `changes` of one transaction, as gateway.control.writer_thread takes it;
-- `pieces`, `made`, `origin`, `by` and `count` of a replacement; or `verb` and `arguments` of the
-- writer
-- @treturn table|nil
-- @treturn nil|table error
function _M.enqueue(entry)
    entry.done = assert(require("ngx.semaphore").new(0))
    self.queue[#self.queue + 1] = entry
    self.bell:post(1)
    local deadline = monotonic() + READY_SECONDS
    while not entry.is_done do
        entry.done:wait(LOOK_SECONDS)
        local is_late = not entry.is_taken and not entry.is_done and monotonic() > deadline
        if is_late and self.state ~= "live" then
            entry.is_done = true
            return _M.not_ready()
        end
    end
    return entry.result, entry.err
end

-- Has a verb of the writer called when it is its turn. Yields.
local function in_turn(verb, ...)
    return _M.enqueue({ verb = verb, arguments = { ... } })
end

local function finish(entry, result, err)
    entry.result, entry.err, entry.is_done = result, err, true
    entry.done:post(1)
end

local function note_made(result)
    if result.revision > self.revision then
        self.revision = result.revision
        note(self.state, self.message)
    end
    self.origin = result.origin
end

-- The next entry, with those behind it that can share its commit.
local function take()
    local taken, queue = {}, self.queue
    while queue[1] and #taken < MAX_BATCH do
        local first = queue[1]
        if first.is_done then
            table.remove(queue, 1)
        elseif #taken > 0 and not (first.changes and taken[1].changes) then
            break
        else
            first.is_taken = true
            taken[#taken + 1] = table.remove(queue, 1)
            if not first.changes then
                break
            end
        end
    end
    return taken
end

local function run_batch(taken)
    local members = {}
    for i, entry in ipairs(taken) do
        members[i] = entry.changes
    end
    local results, err = in_thread(WRITER, "batch", self.handle, members)
    for i, entry in ipairs(taken) do
        local result = results and results[i]
        local is_made = result and result.revision
        if is_made then
            note_made(result)
        end
        finish(entry, is_made and result or nil, not is_made and (result or err) or nil)
    end
end

local function run(taken)
    local entry = taken[1]
    if entry.changes then
        return run_batch(taken)
    end
    local result, err
    if entry.pieces then
        local sent = { pieces = entry.pieces, made = entry.made }
        self.writing = { entities = entry.count, since = ngx.time() }
        result, err = replace(entry.count, sent, entry.origin, entry.by)
        self.writing = nil
        if result then
            note_made(result)
        end
    else
        result, err = call(entry.verb, unpack(entry.arguments))
    end
    finish(entry, result, err)
end

-- The loop ---------------------------------------------------------------------------------------

-- Waits to be woken. A worker that leaves looks around, too.
local function wait_for_bell(seconds)
    self.bell:wait(ngx.worker.exiting() and math.min(seconds, LOOK_SECONDS) or seconds)
end

-- nginx runs this before its time when the worker is to leave.
local function ring_at_exit()
    if not ngx.worker.exiting() then
        ngx.timer.at(FOREVER_SECONDS, ring_at_exit)
        return
    end
    self.bell:post(1)
end

-- Waits until somebody asks, a minute after too many deaths; who asks has to be accepted. False: it
-- leaves.
local function stay_stopped()
    images.C.sluice_control_accept()
    local reason = "%d control workers died within a minute; what was live is served"
    note("stopped", reason:format(DEATHS))
    ngx.log(ngx.ALERT, "control: ", self.message)
    self.stopped_at = monotonic()
    while not self.is_asked and not ngx.worker.exiting() do
        wait_for_bell(FOREVER_SECONDS)
    end
    self.is_asked = false
    return not ngx.worker.exiting()
end

local function is_leaving()
    if ngx.worker.exiting() and self.leave_at == math.huge then
        self.leave_at = monotonic() + LEAVE_SECONDS
    end
    return self.is_told or monotonic() > self.leave_at
end

-- Opens the store and makes what it holds live. False: it was told to leave before.
local function come_alive()
    local said
    while true do
        if is_leaving() then
            return false
        end
        local handle, err = in_thread(WRITER, "open", self.opts)
        if handle then
            self.handle = handle
            break
        end
        local is_locked = err.err == "locked"
        if not is_locked then
            -- Nobody else will answer, and say why.
            images.C.sluice_control_accept()
        end
        note(is_locked and "waiting" or "starting", err.message or err.err)
        if not is_locked and said ~= self.message then
            said = self.message
            ngx.log(ngx.ERR, "control: the store is not opened: ", said)
        end
        self.bell:wait(is_locked and POLL_SECONDS or RETRY_SECONDS)
    end
    images.C.sluice_control_accept()
    note("building")
    local crashes = images.crashes()
    local begun, err = call("begin")
    while not begun do
        note("building", err.message or err.err)
        ngx.log(ngx.ERR, "control: nothing new can be made live: ", self.message)
        if is_leaving() then
            return false
        end
        self.bell:wait(RETRY_SECONDS)
        begun, err = call("begin")
    end
    images.note_checked(crashes)
    self.maintenance:begin(begun.from == "copy")
    ngx.log(ngx.NOTICE, "control: the store is live, begun with: ", begun.from)
    return true
end

local function open_reader()
    local reader, err = in_thread(READER, "open", self.opts.store, {
        layouts = self.opts.layouts,
        read_only = true,
        check = false,
    })
    local now
    if reader then
        self.reader = reader
        now, err = in_thread(READER, "call", reader, "revision")
    end
    if not now then
        error(err.message or err.err, 0)
    end
    self.uuid, self.revision, self.origin = now.uuid, now.revision, now.origin
end

-- Others may have mapped files that were live before: says so, once for each new file. They look by
-- themselves when a request comes, so that one that is not told serves nothing old.
local function announce_files()
    local published = ffi.new("sluice_core_published_t")
    if images.C.sluice_core_published(images.page(), published) ~= images.C.SLUICE_CORE_OK then
        return
    end
    local base, delta = tonumber(published.base), tonumber(published.delta)
    if base ~= self.base or delta ~= self.delta then
        self.base, self.delta = base, delta
        self.on_files()
    end
end

local function serve()
    while true do
        announce_files()
        local taken = take()
        if taken[1] then
            run(taken)
        elseif is_leaving() and not self.maintenance.is_busy then
            return
        else
            wait_for_bell(self.maintenance:look())
        end
    end
end

-- Nobody begins to read; those who have are waited for, since it would go from under them.
local function close_reader()
    local reader, deadline = self.reader, monotonic() + LEAVE_SECONDS
    self.reader = nil
    while self.reads > 0 and monotonic() < deadline do
        ngx.sleep(POLL_SECONDS)
    end
    if reader and self.reads == 0 then
        in_thread(READER, "close", reader)
    end
end

-- Gives the role up; nobody waits for nothing. `exit` may come meanwhile, and closes nothing twice.
local function end_it()
    note("left", "this worker leaves")
    local handle = self.handle
    self.handle = nil
    if handle then
        in_thread(WRITER, "close", handle)
    end
    for _, entry in ipairs(self.queue) do
        if not entry.is_done then
            finish(entry, _M.not_ready())
        end
    end
    self.queue = {}
    close_reader()
end

local function loop()
    local is_stopped = images.C.sluice_control_deaths(DEATHS_MS) >= DEATHS
    if (not is_stopped or stay_stopped()) and come_alive() then
        open_reader()
        note("live")
        serve()
    end
    end_it()
end

-- Nothing that goes wrong here ends the worker: nginx would not start another one.
local function run_loop(premature)
    if premature then
        return end_it()
    end
    while self.state ~= "left" do
        local ok, thrown = pcall(loop)
        if not ok then
            ngx.log(ngx.ALERT, "control: ", tostring(thrown))
            pcall(end_it)
            note("starting", tostring(thrown))
            ngx.sleep(RETRY_SECONDS)
        end
    end
end

-- Public -----------------------------------------------------------------------------------------

--- Starts it; see `start` of gateway.control.apply.
-- @tparam table opts `store`, `images`, `layouts`, `page`: plain data, for threads
-- @tparam function on_files as in gateway.control.apply
-- @phases init_worker
function _M.start(opts, on_files)
    -- For `exit`, when the threads are gone.
    sqlite.keep()
    self = {
        opts = opts,
        on_files = on_files,
        state = "starting",
        revision = 0,
        queue = {},
        -- reads that are under way
        reads = 0,
        bell = require("ngx.semaphore").new(0),
        leave_at = math.huge,
    }
    -- Declared by ngx.semaphore.
    local post = ffi.cast("int (*)(void *, int)", ffi.C.ngx_http_lua_ffi_sema_post)
    self.maintenance = maintenance.new({ call = call, in_turn = in_turn }, function()
        self.bell:post(1)
    end, function()
        return images.C.sluice_control_watch(opts.images, self.bell.sem, post) == 0
    end)
    ring_at_exit()
    local started, err = ngx.timer.at(0, run_loop)
    if not started then
        note("stopped", "no timer: " .. err)
    end
end

--- Looks after the files of images now.
function _M.look()
    if self then
        self.maintenance:hurry()
        self.bell:post(1)
    end
end

--- Whether a change may wait to be made; lets a stopped loop try again, a minute after it stopped.
-- @treturn boolean
function _M.is_open()
    if not self or self.state == "left" then
        return false
    elseif self.state == "stopped" then
        self.is_asked = self.stopped_at ~= nil
            and (monotonic() - self.stopped_at) * 1000 >= DEATHS_MS
        self.bell:post(1)
        return self.is_asked
    end
    return true
end

--- Asks the store in a thread of its own. Waits until it is open, ten seconds at most. Yields.
-- @return what the verb returns; nil and an error
function _M.read(verb, ...)
    local deadline = monotonic() + READY_SECONDS
    while self and not self.reader and OPENING[self.state] and monotonic() < deadline do
        ngx.sleep(POLL_SECONDS)
    end
    if not self or not self.reader then
        return _M.not_ready()
    end
    self.reads = self.reads + 1
    local is_long = LONG[verb]
    local first, second =
        in_thread(READER, is_long and "call_long" or "call", self.reader, verb, ...)
    self.reads = self.reads - 1
    if first and is_long then
        return pieces.decode(first, garbage_collector.turns()), second
    end
    return first, second
end

--- What it does.
-- @treturn table `state`, `message`, `revision`, `uuid`, `origin`, `queue`,
-- `maintenance`; read only
function _M.state()
    return self or NOBODY
end

--- Closes the store where the worker ends at once, so that its file is whole without its log: the
-- threads have ended what they did by now. Blocks on the disk.
-- @phases exit_worker
function _M.exit()
    local handle = self and self.handle
    if handle then
        self.handle = nil
        pcall(writer_thread.close, handle)
    end
end

--- Finishes what waits, and gives the role up. Yields, ten seconds at most.
-- @phases timer
function _M.leave()
    if not self then
        return
    end
    self.is_told = true
    local deadline = monotonic() + LEAVE_SECONDS
    while self.state ~= "left" and monotonic() < deadline do
        self.bell:post(1)
        ngx.sleep(POLL_SECONDS)
    end
end

return _M
