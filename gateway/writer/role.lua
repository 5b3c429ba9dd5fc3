--- The role of the one writer: the control worker takes it up, opens the store, makes live what
-- that holds, and gives the role up at its end. The store is read here, too.
--
-- gateway.writer.queue makes changes while the role is held. Both in one file would be over 500
-- lines; this one knows nothing of the queue.
--
-- States:
--
--   starting    the store is not open: why, is the message. Also where its files have gone while it
--               was open; it is opened again once they are there
--   waiting     another process has the role of the writer
--   building    what the store holds is made live
--   live        changes are taken
--   stopped     three control workers have died within a minute: what is live is served, changes
--               are refused. Who asks after a minute lets it try again; a reload does at once
--   left        the role was given up
-- @module gateway.writer.role

local ffi = require("ffi")
local files = require("gateway.store.files")
local images = require("sluice.ffi.images")
local monotonic = require("sluice.clock").monotonic
local places = require("gateway.store.places")
local reader = require("gateway.writer.reader")
local rows = require("gateway.image.rows")
local stat = require("posix.sys.stat")
local sqlite = require("gateway.store.sqlite")
local writer_thread = require("gateway.writer.thread")

local POOL = "sluice_store"
local WRITER = "gateway.writer.thread"
-- How often who has not got the role asks for it, and who cannot open the store tries again.
local POLL_SECONDS = 0.01
local RETRY_SECONDS = 1
-- How long a read waits for the store to be open, and an exit for what is under way.
local READY_SECONDS = 10
local LEAVE_SECONDS = 10
-- How often a worker that leaves looks around.
local LOOK_SECONDS = 1
-- So many deaths stop it, so long.
local DEATHS = 3
local DEATHS_MS = 60000
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

local READS = " backup changes_back changes_made changes_since check expired export find get list "
    .. "named revision tags unused "

local _M = {}

-- The one of this worker.
local self

-- Until it starts, and in other workers, there is none to ask.
local NOBODY = { state = "left", message = "this worker is not the writer" }

--- Notes the state for this worker and, in shared memory, for all others; but there only who has
-- the role, or is the only one.
function _M.note(state, message)
    self.state, self.message = state, message
    local block = images.C.sluice_images_control_block()
    if block ~= nil and block.pid == ngx.worker.pid() then
        block.state = images.C["SLUICE_CONTROL_" .. STATES[state]]
        if self.places then
            -- What this one has made live; else it is what the one before has.
            block.revision = self.revision
            images.note_store(block, rows.uuid_bytes(self.uuid))
        end
        ffi.copy(block.error, (message or ""):sub(1, ffi.sizeof(block.error) - 1))
    end
end

--- Notes the revision and the origin that the store has after changes.
function _M.note_made(result)
    if result.revision > self.revision then
        self.revision = result.revision
        _M.note(self.state, self.message)
    end
    self.origin = result.origin
end

--- The error where nothing can be changed, behind a nil.
-- @tparam[opt="changed"] string what "read": nor can anything be read
function _M.not_ready(what)
    local at = self or NOBODY
    local message = "the configuration cannot be %s: %s"
    message = message:format(what or "changed", at.message or at.state)
    return nil, { err = "not ready", message = message }
end

--- Whether the store cannot be opened, so that nobody waits for it.
-- @treturn boolean
-- @phases any
function _M.is_shut()
    return self ~= nil and self.state == "starting" and self.message ~= nil
end

--- Whether the files of the open store are no longer where they were opened. Some microseconds.
-- @treturn nil|string what has become of them, with the store's path
-- @phases any
function _M.lost()
    if not self or not self.places then
        return nil
    end
    local lost, reason = places.lost(self.opts.store, self.places)
    if not lost then
        return nil
    elseif self.state == "live" then
        -- Who has the role does not know it yet.
        _M.wake()
    end
    return ("%s: %s while the store was open"):format(self.opts.store, reason)
end

--- Looks after a loss whether the files are back, or what is open can be closed. Yields.
-- @treturn string|nil "back": all are as they were; "free": nothing is lost by closing the store,
-- and it may be opened anew; nil: to be asked again
-- @treturn nil|string why
-- @phases timer
function _M.look_again()
    local reason = _M.lost()
    if not reason then
        return "back"
    elseif not stat.lstat(self.opts.store) then
        -- Those that are open may be all that there is.
        return nil, reason
    end
    local saved, err = _M.call("save_lost")
    if saved then
        return "free"
    end
    return nil, ("%s, and cannot be put back: %s"):format(reason, err.message or err)
end

--- What it does.
-- @treturn table `state`, `message`, `revision`, `uuid`, `origin`; read only
function _M.state()
    return self or NOBODY
end

-- The writer's thread ----------------------------------------------------------------------------

-- Calls a function of a module in a thread. Yields.
local function in_thread(module, ...)
    local ok, first, second = ngx.run_worker_thread(POOL, module, ...)
    if not ok then
        return nil, { err = "failed", message = tostring(first) }
    end
    return first, second
end

--- Calls a function of gateway.writer.thread in a thread, with the handle. Yields.
function _M.run(name, ...)
    return in_thread(WRITER, name, self.handle, ...)
end

--- The same in a Lua state that is closed then: that alone gives its memory back.
function _M.run_alone(name, ...)
    return in_thread("gateway.threads.lua_state", "call", WRITER, name, self.handle, ...)
end

--- Calls a verb of the writer in a thread. Yields.
function _M.call(verb, ...)
    return _M.run("call", verb, ...)
end

-- Waking -----------------------------------------------------------------------------------------

--- Wakes who waits. Does not yield.
function _M.wake()
    self.wakeup:post(1)
end

--- Waits to be woken. A worker that leaves looks around, too. Yields.
-- @tparam number seconds at most
function _M.wait(seconds)
    self.wakeup:wait(ngx.worker.exiting() and math.min(seconds, LOOK_SECONDS) or seconds)
end

--- Has the kernel wake it once when a file of images may have changed.
-- @treturn boolean false: it will not
function _M.watch()
    -- Declared by ngx.semaphore.
    local post = ffi.cast("int (*)(void *, int)", ffi.C.ngx_http_lua_ffi_sema_post)
    return images.C.sluice_watch_control(self.opts.images, self.wakeup.sem, post) == 0
end

-- nginx runs this before its time when the worker is to leave.
local function wake_at_exit()
    if not ngx.worker.exiting() then
        ngx.timer.at(FOREVER_SECONDS, wake_at_exit)
        return
    end
    _M.wake()
end

-- Taking and giving up ---------------------------------------------------------------------------

-- Waits until somebody asks, a minute after too many deaths; who asks has to be accepted. False: it
-- leaves.
local function stay_stopped()
    images.C.sluice_control_accept()
    local reason = "%d control workers died within a minute; the live configuration is served"
    _M.note("stopped", reason:format(DEATHS))
    ngx.log(ngx.ALERT, "control: ", self.message)
    self.stopped_at = monotonic()
    while not self.is_asked and not ngx.worker.exiting() do
        _M.wait(FOREVER_SECONDS)
    end
    self.is_asked = false
    return not ngx.worker.exiting()
end

--- Whether it is to leave: `leave` was called, or its worker leaves, ten seconds later.
function _M.is_leaving()
    if ngx.worker.exiting() and self.leave_at == math.huge then
        self.leave_at = monotonic() + LEAVE_SECONDS
    end
    return self.has_to_leave or monotonic() > self.leave_at
end

-- What is live, as the last control worker has noted it.
local function live_store()
    local block = images.C.sluice_images_control_block()
    local live = block ~= nil and images.live_store(block)
    return live and { uuid = files.uuid_of(live.store), revision = live.revision } or nil
end

-- Opens the store, and with it the role. False: it is to leave before.
local function open()
    local said
    while not _M.is_leaving() do
        if self.reader.handle and stat.lstat(self.opts.store) then
            -- It reads what was there, and shares its locks with what is there now.
            self.reader:close()
        end
        local live = live_store()
        self.opts.live = live
        if live then
            self.uuid, self.revision = live.uuid, live.revision
        end
        local handle, err = in_thread(WRITER, "open", self.opts)
        self.handle = handle
        local is_locked = not handle and err.err == "locked"
        if not is_locked then
            -- Where it cannot be opened nobody else will answer, and say why.
            images.C.sluice_control_accept()
        end
        if handle then
            return true
        end
        _M.note(is_locked and "waiting" or "starting", err.message or err.err)
        if not is_locked and said ~= self.message then
            said = self.message
            ngx.log(ngx.ERR, "control: the store cannot be opened: ", said)
        end
        self.wakeup:wait(is_locked and POLL_SECONDS or RETRY_SECONDS)
    end
    return false
end

-- Makes live what the store holds. Nil: it is to leave before.
local function begin()
    _M.note("building")
    local crashes = images.crashes()
    local begun, err = _M.call("begin")
    while not begun do
        _M.note("building", err.message or err.err)
        ngx.log(ngx.ERR, "control: changes cannot be made live: ", self.message)
        if _M.is_leaving() then
            return nil
        end
        self.wakeup:wait(RETRY_SECONDS)
        begun, err = _M.call("begin")
    end
    images.note_checked(crashes)
    ngx.log(ngx.NOTICE, "control: the store is live, begun with: ", begun.from)
    return begun.from
end

--- Takes the role up: opens the store, makes live what it holds. Yields, as long as that takes.
-- Throws where the store cannot be read.
-- @treturn string|nil `from` of the writer's `begin`; nil or false: it is to leave before
-- @phases timer
function _M.take()
    local is_stopped = images.C.sluice_control_deaths(DEATHS_MS) >= DEATHS
    local from = (not is_stopped or stay_stopped()) and open() and begin()
    if from then
        self.reader:close()
        local now = self.reader:open(self.opts.store, self.opts.layouts)
        self.uuid, self.revision, self.origin = now.uuid, now.revision, now.origin
        self.places = _M.call("places")
        _M.note("live")
    end
    return from
end

-- Of what `close` of the writer returns.
local function report_loss(saved, err)
    if not saved then
        local line = "control: the changes in the removed log are lost: "
        ngx.log(ngx.ALERT, line, type(err) == "table" and err.message or err)
    end
end

--- Gives the role up; `exit` may come meanwhile, and closes nothing twice. Yields.
-- @tparam[opt=false] boolean is_saved after a loss: `look_again` says that it is free. What was
-- open can still be read then
-- @phases timer
function _M.give_up(is_saved)
    local handle = self.handle
    self.handle, self.places = nil, nil
    if handle then
        report_loss(in_thread(WRITER, "close", handle, is_saved))
    end
    if not is_saved then
        self.reader:close()
    end
end

--- Begins, without the role. Does not yield.
-- @tparam table opts of gateway.writer: plain data, for threads
-- @phases init_worker
function _M.start(opts)
    -- For `exit`, when the threads are gone.
    sqlite.keep()
    self = {
        opts = opts,
        state = "starting",
        revision = 0,
        reader = reader.new(in_thread),
        wakeup = require("ngx.semaphore").new(0),
        leave_at = math.huge,
    }
    wake_at_exit()
end

--- Whether a change may wait to be made; lets a stopped control worker try again, a minute after it
-- stopped.
-- @treturn boolean
function _M.is_open()
    if not self or self.state == "left" then
        return false
    elseif self.state == "stopped" then
        self.is_asked = self.stopped_at ~= nil
            and (monotonic() - self.stopped_at) * 1000 >= DEATHS_MS
        _M.wake()
        return self.is_asked
    end
    return true
end

--- Asks the store in a thread of its own; never waits for one who writes. Waits until it is open,
-- unless it cannot be opened, and for a place, ten seconds each at most. Yields.
-- @tparam string verb get, named, find, list, tags, unused, revision, changes_back, changes_made,
-- changes_since, check, backup or export
-- @param ... its arguments (gateway.store.database)
-- @return what it returns; nil and an error, "busy" among them
-- @phases content, timer
function _M.read(verb, ...)
    if not READS:find(" " .. tostring(verb) .. " ", 1, true) then
        error(("bad argument #1 to 'read' (no such verb: %s)"):format(tostring(verb)), 2)
    end
    local deadline = monotonic() + READY_SECONDS
    while self and not self.reader.handle and OPENING[self.state] and monotonic() < deadline do
        if _M.is_shut() then
            return _M.not_ready("read")
        end
        ngx.sleep(POLL_SECONDS)
    end
    if self and self.reader.handle then
        local is_open, first, second = self.reader:call(verb, ...)
        if is_open then
            return first, second
        end
    end
    return _M.not_ready("read")
end

--- Closes the store where the worker ends at once, so that its file is whole without its log: the
-- threads have ended what they did by now. Blocks on the disk.
-- @phases exit_worker
function _M.exit()
    local handle = self and self.handle
    if handle then
        self.handle = nil
        local ok, saved, err = pcall(writer_thread.close, handle)
        report_loss(ok and saved, ok and err or saved)
    end
end

--- Has what waits finished, and the role given up. Yields, ten seconds at most.
-- @phases timer
function _M.leave()
    if not self then
        return
    end
    self.has_to_leave = true
    local deadline = monotonic() + LEAVE_SECONDS
    while self.state ~= "left" and monotonic() < deadline do
        _M.wake()
        ngx.sleep(POLL_SECONDS)
    end
end

return _M
