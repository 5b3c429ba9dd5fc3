--- The queue of changes, in the control worker: each waits here until the writer makes it, and is
-- answered when it is on the disk and live on every worker. Transactions that wait together share a
-- commit.
--
-- What blocks runs in threads: gateway.writer.thread writes, .reader reads, .maintenance keeps the
-- files. Who writes, and since when, is gateway.writer.role's.
--
-- Errors are tables with `err` and `message`: the store's words (docs/store.md), "full",
-- "unbuildable", and "not ready" (every state in which no changes are taken).
-- @module gateway.writer.queue

local announcing = require("gateway.writer.announcing")
local ffi = require("ffi")
local garbage_collector = require("sluice.garbage_collector")
local images = require("sluice.ffi.images")
local layout = require("gateway.store.layout")
local maintenance = require("gateway.writer.maintenance")
local monotonic = require("sluice.clock").monotonic
local pieces = require("gateway.threads.pieces")
local role = require("gateway.writer.role")
local writer = require("gateway.writer")

-- Changes that are completed without giving others a turn, and are handed to a thread as they are;
-- and those that make so much garbage that it is collected later.
local FEW, MANY = 20, 10000
-- Entities between two looks at the clock.
local STRIDE = 16
-- Entities of a replacement that leaves much garbage behind.
local MANY_REPLACED = 5000
-- Transactions that share a commit.
local MAX_BATCH = 256
-- What is said of a change that waited.
local UNCHANGED = "the configuration cannot be changed: "
-- How long a change waits for the state to be live, and how often it looks.
local READY_SECONDS = 10
local LOOK_SECONDS = 1
local RETRY_SECONDS = 1

local _M = {}

-- kind -> layout
local by_kind

-- What waits: `changes` of one transaction, as gateway.writer.thread takes them; or `run`, which
-- does what is to be done and returns a result, or nil and an error.
local waiting = {}

-- What is being made, of what waited.
local taken = {}

-- The replacement that is being made: `entities`, `since`.
local writing

-- Of gateway.writer.announcing, .maintenance.
local announced, maintained

-- Waiting ----------------------------------------------------------------------------------------

-- Waits until something's turn has come and is over. Yields.
local function enqueue(job)
    job.done = assert(require("ngx.semaphore").new(0))
    if role.is_shut() then
        return role.not_ready()
    end
    waiting[#waiting + 1] = job
    role.wake()
    local deadline = monotonic() + READY_SECONDS
    while not job.is_done do
        job.done:wait(LOOK_SECONDS)
        local is_late = not job.is_taken and not job.is_done and monotonic() > deadline
        if is_late and role.state().state ~= "live" then
            job.is_done = true
            return role.not_ready()
        end
    end
    return job.result, job.err
end

--- Has a verb of the writer called when no change is under way. Yields.
-- @phases content, timer
function _M.in_turn(verb, ...)
    local arguments = { ... }
    return enqueue({
        run = function()
            return role.call(verb, unpack(arguments))
        end,
    })
end

local function finish(job, result, err)
    job.result, job.err, job.is_done = result, err, true
    job.done:post(1)
end

-- What comes next, with what is behind it and can share its commit.
local function take()
    taken = {}
    while waiting[1] and #taken < MAX_BATCH do
        local first = waiting[1]
        if first.is_done then
            table.remove(waiting, 1)
        elseif #taken > 0 and not (first.changes and taken[1].changes) then
            break
        else
            first.is_taken = true
            taken[#taken + 1] = table.remove(waiting, 1)
            if not first.changes then
                break
            end
        end
    end
end

local function is_moved(err)
    return type(err) == "table" and err.err == "moved"
end

local function run_batch()
    local transactions = {}
    for i, job in ipairs(taken) do
        transactions[i] = job.changes
    end
    local results, err = role.run("batch", transactions)
    for i, job in ipairs(taken) do
        local result = results and results[i]
        local is_made = result and result.revision
        if is_moved(err) then
            result = { err = "not ready", message = UNCHANGED .. err.message }
        end
        if is_made then
            role.note_made(result)
        end
        finish(job, is_made and result or nil, not is_made and (result or err) or nil)
    end
    return err
end

local function run_alone(job)
    local result, err = job.run()
    finish(job, result, err)
    return err
end

-- The loop ---------------------------------------------------------------------------------------

-- Nil: it is to leave. Else the store's files are no longer where they were opened: how that is.
local function serve()
    while true do
        local lost = role.lost()
        if lost then
            return lost
        end
        local again = announced:look()
        take()
        local first = taken[1]
        local err
        if first and first.changes then
            err = run_batch()
        elseif first then
            err = run_alone(first)
        elseif role.is_leaving() and not maintained.is_busy then
            return
        else
            role.wait(math.min(again, maintained:look()))
        end
        if is_moved(err) then
            return err.message
        end
    end
end

-- Nobody waits for nothing.
-- @tparam string|nil thrown what ended the loop, if it was not to end
local function refuse_all(thrown)
    for _, job in ipairs(taken) do
        if not job.is_done then
            finish(job, nil, { err = "failed", message = thrown })
        end
    end
    for _, job in ipairs(waiting) do
        if not job.is_done then
            finish(job, role.not_ready())
        end
    end
    taken, waiting, writing = {}, {}, nil
end

local function end_it(thrown)
    role.note("left", thrown or "this worker is shutting down")
    refuse_all(thrown)
    role.give_up()
end

-- The store's files have gone: what is live stays so and can be read, and what is open stays open
-- until closing it loses nothing. "back": all are where they were; "free": the store is to be
-- opened anew; nil: this worker is to leave.
local function lose(reason)
    ngx.log(ngx.ERR, "control: changes are refused: ", reason)
    role.note("starting", reason)
    refuse_all()
    while maintained.is_busy do
        role.wait(LOOK_SECONDS)
    end
    while not role.is_leaving() do
        local next_one, why = role.look_again()
        if next_one then
            return next_one
        elseif why ~= reason then
            reason = why
            ngx.log(ngx.ERR, "control: changes are refused: ", reason)
            role.note("starting", reason)
        end
        role.wait(RETRY_SECONDS)
    end
end

local function loop()
    local from = role.take()
    local lost, next_one
    if from then
        maintained:begin(from == "copy")
        lost = serve()
    end
    while lost do
        next_one = lose(lost)
        lost = nil
        if next_one == "back" then
            role.note("live")
            lost = serve()
        end
    end
    if next_one == "free" then
        role.give_up(true)
    else
        end_it()
    end
end

-- Nothing that goes wrong here ends the worker: nginx would not start another one.
local function run_loop(premature)
    if premature then
        return end_it()
    end
    while role.state().state ~= "left" do
        local ok, thrown = pcall(loop)
        if not ok then
            thrown = tostring(thrown)
            ngx.log(ngx.ALERT, "control: ", thrown)
            pcall(end_it, thrown)
            role.note("starting", thrown)
            ngx.sleep(RETRY_SECONDS)
        end
    end
end

--- Makes this worker the one that writes, as soon as no other does. Does not yield, never throws.
-- @tparam table opts
-- @tparam string opts.store path
-- @tparam string opts.images folder
-- @tparam {table,...} opts.layouts of gateway.store.layout
-- @tparam number opts.history revisions to keep (gateway.store.database)
-- @tparam boolean opts.begins_history of gateway.store.database
-- @tparam function opts.on_files is called, without arguments, when other files are live; again
-- where it returns nil and why, not true
-- @phases init_worker
function _M.start(opts)
    local page = images.page()
    by_kind = layout.by_kind(opts.layouts)
    announced = announcing.new(images.published, opts.on_files)
    maintained = maintenance.new({ call = role.call, in_turn = _M.in_turn }, role.wake, role.watch)
    role.start({
        store = opts.store,
        images = opts.images,
        layouts = opts.layouts,
        history = opts.history,
        begins_history = opts.begins_history,
        page = page and tonumber(ffi.cast("uintptr_t", page)),
        generations = page
            and tonumber(ffi.cast("uintptr_t", images.C.sluice_images_generations())),
    })
    local started, err = ngx.timer.at(0, run_loop)
    if not started then
        role.note("stopped", "no timer: " .. err)
    end
end

--- Has the files of images looked after now; does not yield.
-- @phases any
function _M.look()
    if maintained then
        maintained:hurry()
        role.wake()
    end
end

-- Changes ----------------------------------------------------------------------------------------

-- The changes as the writer takes them.
local function complete(changes, keep, pause)
    for i, change in ipairs(changes) do
        local completed, err = writer.complete(by_kind, change)
        if not completed then
            return nil, err
        end
        keep(completed, i)
        if pause and i % STRIDE == 0 then
            pause()
        end
    end
    return true
end

-- The same in turns, where they are many.
local function complete_in_turns(changes, keep)
    if #changes <= FEW then
        return complete(changes, keep)
    end
    if #changes < MANY then
        return complete(changes, keep, garbage_collector.turns())
    end
    return garbage_collector.hold(complete, changes, keep, garbage_collector.pauses())
end

--- Makes changes, all or none. Yields; what they make is live on every worker when it returns.
-- @tparam {table,...} changes `{ kind =, put = entity }` or `{ kind =, delete = id }`, each entity
-- once; with `if_revision`, that at which it was read (0: there was none), "changed" where it has
-- another by now; with `lenient` it is no error that one is there already, or none
-- @tparam[opt] table opts `by`: who, for the history; `at_revision`: "changed" where the store has
-- another by now; `keeps_origin`: what the store was made from is still what it holds;
-- `is_dry_run`: where they could be made, they are not, and the error is "dry run"
-- @treturn table|nil `{ uuid =, revision =, dates = }` of gateway.store.database's `batch`
-- @treturn nil|table error
-- @phases content, timer
function _M.transaction(changes, opts)
    if not role.is_open() then
        return role.not_ready()
    end
    opts = opts or {}
    local completed =
        { by = opts.by, at_revision = opts.at_revision, keeps_origin = opts.keeps_origin }
    completed.is_dry_run = opts.is_dry_run
    local many = #changes > FEW and pieces.new() or nil
    local ok, err = complete_in_turns(changes, function(change, i)
        if many then
            many:add(change)
        else
            completed[i] = change
        end
    end)
    if not ok then
        return nil, err
    end
    completed.pieces = many and many:finish()
    local done
    done, err = enqueue({ changes = completed })
    if many and done and done.dates then
        done.dates = pieces.decode(done.dates, garbage_collector.turns())
    end
    return done, err
end

--- Makes the store hold these entities and no others. Yields.
-- @tparam {table,...} items `{ kind =, put = entity }`, in their order
-- @tparam[opt] string origin what they were made from
-- @tparam[opt] string by who, for the history
-- @tparam[opt] table made a list of gateway.threads.blocks, of gateway.checker: what stands before
-- the items. It stays the caller's
-- @treturn table|nil `{ uuid =, revision =, changed = boolean }`
-- @treturn nil|table error
-- @phases content, timer
function _M.replace(items, origin, by, made)
    if not role.is_open() then
        return role.not_ready()
    end
    local all = pieces.new()
    local ok, err = complete_in_turns(items, function(change)
        all:add(change)
    end)
    if not ok then
        return nil, err
    end
    local sent, count = { pieces = all:finish(), made = made }, #items + (made and made.count or 0)
    return enqueue({
        run = function()
            writing = { entities = count, since = ngx.time() }
            local is_large = count >= MANY_REPLACED
            local run = is_large and role.run_alone or role.run
            local done, why = run(is_large and "replace_alone" or "replace", sent, origin, by)
            writing = nil
            if done then
                role.note_made(done)
            end
            return done, why
        end,
    })
end

--- Makes the changes that lead from the file that is live to the next one. Yields.
-- @tparam table made a list of gateway.threads.blocks with them. It stays the caller's
-- @tparam table of `before`, what the store was made from so far; `revision` of
-- gateway.store.replacing's `patch`; `origin`, what it is made from then
-- @tparam[opt] string by who, for the history
-- @treturn table|nil as `replace`
-- @treturn nil|table error; "changed" and those of a transaction: all of the file is to be replaced
-- @phases content
function _M.patch(made, of, by)
    if not role.is_open() then
        return role.not_ready()
    end
    return enqueue({
        run = function()
            writing = { entities = made.count, since = ngx.time() }
            local sent = { made = made, before = of.before, origin = of.origin }
            sent.revision = of.revision
            local done, why = role.run("patch", sent, by)
            writing = nil
            if done then
                role.note_made(done)
            end
            return done, why
        end,
    })
end

--- What the control worker does at the moment.
-- @treturn table `state` of gateway.writer.role, also "checking" (a worker has died by a signal,
-- and what is live is being checked) and "damaged" (a worker cannot map what is live, and answers
-- 503); `message`, `revision`, `uuid`, `origin`, `waiting` (changes), `deaths`, `writing` (a
-- configuration: `entities`, and `since`, seconds), and `base`, `delta` (numbers of files),
-- `base_bytes`, `delta_used`
-- @phases any
function _M.state()
    local at = role.state()
    local files = maintained and maintained.files or {}
    local block = images.C.sluice_images_control_block()
    local damage, why
    local lost = at.state == "live" and role.lost()
    if lost then
        damage, why = "starting", lost
    elseif block ~= nil and at.state == "live" then
        damage, why = images.damage(block, ngx.now() * 1000)
    end
    return {
        state = damage or at.state,
        message = why or at.message,
        revision = at.revision,
        uuid = at.uuid,
        origin = at.origin,
        waiting = maintained and #waiting,
        writing = writing,
        deaths = block ~= nil and block.deaths or 0,
        base = files.base,
        delta = files.delta,
        base_bytes = files.bytes,
        delta_used = files.used,
    }
end

return _M
