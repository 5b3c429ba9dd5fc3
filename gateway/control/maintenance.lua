--- The care of the files of images, beside changes: a delta that is full or old is merged with its
-- base, a new base is copied to the disk, and files that somebody has removed are made anew.
--
-- One thing at a time, in a timer of its own. What takes long runs in a second thread; what changes
-- what is live waits for its turn among the changes.
-- @module gateway.control.maintenance

local monotonic = require("sluice.clock").monotonic

local math = math
local ngx = ngx
local pcall = pcall
local setmetatable = setmetatable
local tostring = tostring

-- How often it looks whether something is due.
local LOOK_SECONDS = 1
-- A delta is merged when so much of it is used, or it is old: so much older than a merge takes.
local MERGE_SHARE = 0.5
local MERGE_AGE_SECONDS = 60
local MERGE_AGE_RATIO = 100
-- How long after one that failed the copy is written again.
local SAVE_PAUSE_SECONDS = 10

local _M = {}
local methods = {}
local mt = { __index = methods }

--- Makes one, which does nothing yet.
-- @tparam table writer how it has the writer's verbs called, each as `(verb, ...)`: `call` at once,
-- `in_turn` when no other change is under way. Both yield
-- @tparam function on_end is called when something is done, without arguments
-- @treturn table `is_busy`: something is under way; `files`: of the writer's `live`, when it
-- looked last
function _M.new(writer, on_end)
    return setmetatable({ writer = writer, on_end = on_end, is_busy = false }, mt)
end

--- Begins anew, with what the writer has just made live.
-- @tparam boolean is_saved the base is the copy on the disk
function methods:begin(is_saved)
    self.merged_at, self.look_at, self.save_at = monotonic(), 0, 0
    self.is_saved = is_saved
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
        ngx.log(ngx.ERR, "control: a delta was not merged: ", err.message or err.err)
    end
end

-- Somebody has removed files that are live, or written into them: new ones.
local function replace_files(self)
    ngx.log(ngx.WARN, "control: files of what is live are gone or damaged: they are made anew")
    local begun, err = self.writer.in_turn("begin")
    if not begun then
        ngx.log(ngx.ERR, "control: new files cannot be made: ", err.message or err.err)
    end
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
    self.save_at = monotonic() + SAVE_PAUSE_SECONDS
    ngx.log(ngx.WARN, "control: the next start has to build its image: ", err.message or err.err)
end

local function is_merge_due(self, live)
    local age = monotonic() - self.merged_at
    local old = math.max(MERGE_AGE_SECONDS, MERGE_AGE_RATIO * (self.merge_seconds or 0))
    local is_full = live.used > MERGE_SHARE * (live.used + live.room)
    return is_full or (live.revision > live.base_revision and age > old)
end

--- Begins what is due; looks once a second. Yields.
-- @phases timer
function methods:look()
    if self.is_busy or monotonic() < self.look_at then
        return
    end
    self.look_at = monotonic() + LOOK_SECONDS
    local live, err = self.writer.call("live")
    if not live then
        ngx.log(ngx.ERR, "control: ", err and (err.message or err.err))
        return
    end
    self.files = live
    if self.is_saved then
        self.saved, self.is_saved = live.base, false
    end
    if not live.is_whole then
        in_background(self, replace_files)
    elseif live.base ~= self.saved and monotonic() >= self.save_at then
        in_background(self, save, live)
    elseif is_merge_due(self, live) then
        in_background(self, merge)
    end
end

return _M
