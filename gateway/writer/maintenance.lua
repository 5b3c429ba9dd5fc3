--- Maintains the files of images, beside changes: a delta that is full or old is merged with its
-- base, a new base is copied to the disk, files that somebody has removed or damaged are made anew,
-- and the store's log is cut.
--
-- Their heads are looked at when the kernel tells of a change, and each byte after a worker has
-- died by a signal (gateway.control.crashes), or somebody has written into them: a flipped bit in a
-- text makes answers wrong and kills nobody.
--
-- One thing at a time, in a timer of its own. What takes long runs in a second thread; what changes
-- what is live waits for its turn among the changes.
-- @module gateway.writer.maintenance

local images = require("sluice.ffi.images")
local monotonic = require("sluice.clock").monotonic

-- How often it looks whether something is due, at most; and where the kernel does not tell it of
-- files that change, at least.
local LOOK_SECONDS = 1
-- Later than anything is due: it waits to be woken. As long as a semaphore can wait, 23 days.
local FOREVER_SECONDS = 2000000
-- A delta is merged when so much of it is used, or it is old: so much older than a merge takes.
local MERGE_SHARE = 0.5
local MERGE_AGE_SECONDS = 60
local MERGE_AGE_RATIO = 100
-- How long after it failed the copy is written again, or the log emptied.
local PAUSE_SECONDS = 10
-- How long after a check of all bytes the next one is due, where they were written to: so long, or
-- so often what it took. For a million routes that is a minute. The writer's changes are such, too.
local CHECK_SECONDS = 2
local CHECK_RATIO = 200

local _M = {}
local methods = {}
local mt = { __index = methods }

--- Makes one, which does nothing yet.
-- @tparam table writer how it has the writer's verbs called, each as `(verb, ...)`: `call` at once,
-- `in_turn` when no other change is under way. Both yield
-- @tparam function on_end is called when something is done, without arguments
-- @tparam function watch has `look` called when a file that is live may have changed, from now on;
-- false: nobody will
-- @treturn table `is_busy`: something is under way; `files`: of the writer's `live`, when it
-- looked last
function _M.new(writer, on_end, watch)
    return setmetatable({
        writer = writer,
        on_end = on_end,
        watch = watch,
        is_busy = false,
    }, mt)
end

--- Begins anew, with what the writer has just made live.
-- @tparam boolean is_saved the base is the copy on the disk
function methods:begin(is_saved)
    self.merged_at, self.look_at, self.save_at = monotonic(), 0, 0
    self.check_at = monotonic() + CHECK_SECONDS
    self.is_saved, self.has_emptied, self.empty_at = is_saved, false, 0
end

--- Has the next `look` look, however long ago the last one was.
function methods:hurry()
    self.look_at = 0
end

local function in_background(self, fn, ...)
    local started = ngx.timer.at(0, function(_, ...)
        local ok, thrown = pcall(fn, self, ...)
        if not ok then
            ngx.log(ngx.ERR, "control: ", tostring(thrown))
        end
        self.is_busy = false
        self.on_end()
    end, ...)
    self.is_busy = started == true
end

-- Logs what failed. Not where this worker has given up its role meanwhile: who takes it up does it.
local function report(level, what, err)
    if err.err ~= "not ready" then
        ngx.log(level, "control: ", what, ": ", err.message or err.err)
    end
end

-- Who cannot read what is live may have found damage.
local function note_failure(self, err)
    if err.err == "cannot open" then
        self.is_touched, self.check_at = true, 0
    end
end

local function merge(self)
    local writer, began = self.writer, monotonic()
    local job, err = writer.in_turn("start_merge")
    local done, _ = job, nil
    if job then
        done, err = writer.call("merge", job)
    end
    if done then
        _, err = writer.in_turn("finish_merge", job)
    end
    self.merged_at = monotonic()
    self.merge_seconds = self.merged_at - began
    if err then
        report(ngx.ERR, "the delta was not merged", err)
        note_failure(self, err)
    end
end

-- Somebody has removed files that are live, or written into them: new ones, of a base that is
-- checked. True when they are live.
local function replace_files(self)
    ngx.log(ngx.WARN, "control: files of the live image are missing or damaged; creating new ones")
    local begun, err = self.writer.in_turn("begin")
    if not begun then
        report(ngx.ERR, "cannot create new files", err)
    end
    return begun ~= nil
end

-- `crashes`: those that it is an answer to.
local function check_files(self, live, crashes)
    local began = monotonic()
    local is_sound = self.writer.call("is_sound", live)
    self.check_at = monotonic() + math.max(CHECK_SECONDS, CHECK_RATIO * (monotonic() - began))
    if not is_sound then
        local now = self.writer.in_turn("live")
        -- Others may have been published meanwhile, whose turn is next.
        local is_same = now and now.base == live.base and now.delta == live.delta
        if not is_same or not replace_files(self) then
            self.is_touched, self.check_at = true, 0
            return
        end
    end
    self.is_touched = false
    images.note_checked(crashes)
end

-- The copy for the next start, whose deletions need not be known any more. A disk that has no room
-- for it may have some later.
local function save(self, live)
    local done, err = self.writer.call("save", live)
    if done then
        done, err = self.writer.in_turn("compact", live.base_revision)
    end
    if done then
        self.saved = live.base
        return
    end
    self.save_at = monotonic() + PAUSE_SECONDS
    report(ngx.WARN, "the image for the next start was not saved", err)
    note_failure(self, err)
end

-- Seconds until a merge is due; 0: now.
local function merge_wait(self, live)
    if live.used > MERGE_SHARE * (live.used + live.room) then
        return 0
    elseif live.revision <= live.base_revision then
        return FOREVER_SECONDS
    end
    local old = math.max(MERGE_AGE_SECONDS, MERGE_AGE_RATIO * (self.merge_seconds or 0))
    return math.max(0, self.merged_at + old - monotonic())
end

-- Notes what is live. New files count as written to: somebody may have, before their first stamp.
local function note_files(self, live)
    local before = self.files
    local is_same = before and before.base == live.base and before.delta == live.delta
    if not is_same or before.stamp ~= live.stamp then
        self.is_touched = true
    end
    self.files = live
    if self.is_saved then
        self.saved, self.is_saved = live.base, false
    end
end

-- Seconds until a check of all bytes is due; 0: now.
local function check_wait(self, live, crashes)
    if not live.is_whole or not images.are_checked(crashes) then
        return 0
    end
    return self.is_touched and math.max(0, self.check_at - monotonic()) or math.huge
end

-- Seconds until the log is to be emptied; 0: now. One that a dead writer has left is emptied too:
-- what a cut of power has left behind its last commit is not to be taken for damage later.
local function log_wait(self, live)
    if live.is_log_large or (not self.has_emptied and live.log_bytes > 0) then
        return math.max(0, self.empty_at - monotonic())
    end
    return FOREVER_SECONDS
end

-- Where somebody reads what stands there, it comes again.
local function empty_log(self)
    local done, err = self.writer.in_turn("empty_log")
    self.has_emptied = self.has_emptied or done
    if err then
        self.empty_at = monotonic() + PAUSE_SECONDS
        report(ngx.ERR, "the store's log was not truncated", err)
    end
end

-- Begins what is due, of what is live. Seconds until something may be that nobody tells of.
local function begin_due(self, live)
    local crashes = images.crashes()
    local save_wait = FOREVER_SECONDS
    if live.base ~= self.saved then
        save_wait = math.max(0, self.save_at - monotonic())
    end
    local check, merge_in = check_wait(self, live, crashes), merge_wait(self, live)
    local log_in = log_wait(self, live)
    if check == 0 then
        in_background(self, check_files, live, crashes)
    elseif save_wait == 0 then
        in_background(self, save, live)
    elseif merge_in == 0 then
        in_background(self, merge)
    elseif log_in == 0 then
        in_background(self, empty_log)
    else
        return math.min(check, save_wait, merge_in, log_in)
    end
    -- Its end is told of.
    return self.is_busy and FOREVER_SECONDS or LOOK_SECONDS
end

--- Begins what is due; looks once a second at most. Yields.
-- @treturn number seconds after which to call it again, at the latest
-- @phases timer
function methods:look()
    if self.is_busy then
        return FOREVER_SECONDS
    end
    local early = self.look_at - monotonic()
    if early > 0 then
        return early
    end
    self.look_at = monotonic() + LOOK_SECONDS
    -- Before it looks: what happens from here on is told of.
    local is_watched = self.watch()
    local live, err = self.writer.call("live")
    if not live then
        ngx.log(ngx.ERR, "control: ", err and (err.message or err.err))
        return LOOK_SECONDS
    end
    note_files(self, live)
    local wait = begin_due(self, live)
    return is_watched and wait or math.min(wait, LOOK_SECONDS)
end

return _M
