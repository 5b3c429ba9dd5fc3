--- The protocol of a configuration change, played through with workers that take turns and die
-- at random, over an ordered log as the events have it.

local rollout = require("gateway.control.changes")

local ROUNDS = 300
local WORKERS = 4

--- A world of workers: a log that all read in the same order, each at its own pace; one disk.
local function new_world(random)
    return { random = random, log = {}, now = 0, workers = {}, pids = 0, disk = {}, lock = nil }
end

local function new_files(world, pid)
    return {
        folder = "",
        current = function()
            return world.disk.current
        end,
        write = function(_, version, at, _, text)
            local name = "file " .. version
            world.disk[name] = { version = version, at = at, text = text }
            return name
        end,
        decide = function(_, name)
            world.disk.current = world.disk[name]
            coroutine.yield() -- where it may die
            return true
        end,
        clean = function() end,
        lock = function()
            -- As the system's: a process may take again what it has.
            if world.lock and world.lock ~= pid and world.workers[world.lock] then
                return false
            end
            world.lock = pid
            return true
        end,
        unlock = function()
            world.lock = nil
        end,
    }
end

local function new_bus(world, worker)
    return {
        subscribe = function(_, _, event, callback)
            worker.callbacks[event] = callback
        end,
        publish = function(_, target, _, event, data)
            world.log[#world.log + 1] = {
                worker = type(target) == "table" and target.worker or nil,
                event = event,
                data = data,
            }
            return true
        end,
    }
end

local function new_host(world, worker)
    return {
        worker = worker.id,
        pid = worker.pid,
        is_leaving = function()
            return false
        end,
        is_alive = function(pid)
            return world.workers[pid] ~= nil
        end,
        members = function()
            local pids = {}
            for pid, other in pairs(world.workers) do
                pids[pid] = other.id
            end
            return pids
        end,
        event = function()
            return { wait = coroutine.yield, post = function() end }
        end,
        sleep = function()
            coroutine.yield()
        end,
        now = function()
            return world.now
        end,
    }
end

--- What is rolled out is a text; one with "bad <id>" cannot be prepared by worker <id>.
local function new_config(worker)
    local function prepare(text)
        if text == "bad " .. worker.id then
            error("cannot", 0)
        end
        return text
    end
    return {
        prepare = function(message, posted)
            worker.posted = posted
            return prepare(message.snapshot)
        end,
        load = function(current)
            return prepare(current.text)
        end,
        activate = function(text)
            worker.live = text
        end,
        withdraw = function() end,
    }
end

local function start_worker(world, id, live)
    world.pids = world.pids + 1
    local worker = { id = id, pid = world.pids, callbacks = {}, live = live, tasks = {} }
    world.workers[worker.pid] = worker
    worker.at = #world.log -- a worker that starts hears what comes from now on
    worker.rollout = rollout.new({
        bus = new_bus(world, worker),
        files = new_files(world, worker.pid),
        host = new_host(world, worker),
        config = new_config(worker),
        version = 0,
    })
    worker.rollout:catch_up()
    worker.rollout:announce()
    return worker
end

local function pick(world)
    local list = {}
    for pid = 1, world.pids do
        list[#list + 1] = world.workers[pid]
    end
    return list[world.random(#list)]
end

local function read_one(world, worker)
    if worker.at >= #world.log then
        return false
    end
    worker.at = worker.at + 1
    local entry = world.log[worker.at]
    if not entry.worker or entry.worker == worker.id then
        local callback = worker.callbacks[entry.event]
        if callback then
            callback(entry.data)
        end
    end
    return true
end

local function run_task(worker)
    if #worker.tasks == 0 then
        return false
    end
    local i = math.random(#worker.tasks)
    assert(coroutine.resume(worker.tasks[i]))
    if coroutine.status(worker.tasks[i]) == "dead" then
        table.remove(worker.tasks, i)
    end
    return true
end

local function post(worker, text, answers)
    worker.tasks[#worker.tasks + 1] = coroutine.create(function()
        local result, word = worker.rollout:post(
            { text = text, snapshot = text, at = 0 },
            { wait = true }
        )
        answers[text] = result and result.version or word
    end)
end

--- Lets a worker go on, and the time, until it has answered.
local function wait_for_answer(world, worker, answers, text)
    repeat
        run_task(worker)
        read_one(world, worker)
        world.now = world.now + 0.1
    until answers[text]
end

local function settle(world)
    repeat
        local moved = false
        for pid = 1, world.pids do
            local worker = world.workers[pid]
            if worker then
                while read_one(world, worker) do
                    moved = true
                end
                moved = run_task(worker) or moved
            end
        end
        world.now = world.now + 0.01
    until not moved
end

local function live_texts(world)
    local texts = {}
    for _, worker in pairs(world.workers) do
        texts[worker.live] = true
    end
    return texts
end

--- One life of a world: posts, some of which somebody cannot take, and deaths, at random.
local function play(seed)
    math.randomseed(seed)
    local world = new_world(math.random)
    for id = 1, WORKERS do
        start_worker(world, id, "file")
    end
    local answers = {}
    for turn = 1, 200 do
        local worker, dice = pick(world), math.random(100)
        if dice <= 3 then
            local text = dice == 1 and "bad " .. math.random(WORKERS) or "text " .. turn
            post(worker, text, answers)
        elseif dice == 4 then
            world.workers[worker.pid] = nil
            start_worker(world, worker.id, "file")
        elseif dice <= 50 then
            run_task(worker)
        else
            read_one(world, worker)
        end
        world.now = world.now + 0.001
    end
    settle(world)
    return world, answers
end

describe("gateway.control.changes", function()
    it("leaves all workers with the same configuration, the one on disk, whoever dies", function()
        for seed = 1, ROUNDS do
            local world = play(seed)
            local current = world.disk.current
            local expected = { [current and current.text or "file"] = true }
            assert.same(expected, live_texts(world), "seed " .. seed)
        end
    end)

    it("makes nothing live that somebody could not take", function()
        for seed = 1, ROUNDS do
            local world, answers = play(seed)
            for text, answer in pairs(answers) do
                if text:find("^bad") then
                    assert.equal("withdrawn", answer, "seed " .. seed)
                end
            end
            for text in pairs(live_texts(world)) do
                assert.is_nil(text:find("^bad"), "seed " .. seed)
            end
        end
    end)

    it("counts versions up, one after the other", function()
        local world = new_world(math.random)
        local first = start_worker(world, 1, "file")
        local second = start_worker(world, 2, "file")
        local answers = {}
        post(first, "a", answers)
        post(second, "b", answers)
        post(first, "bad 2", answers)
        post(second, "c", answers)
        settle(world)
        local versions = { answers.a, answers.b, answers.c }
        table.sort(versions)
        assert.same({ 1, 2, 3 }, versions)
        assert.equal("withdrawn", answers["bad 2"])
        assert.is_nil(first.rollout.candidate)
        assert.is_nil(second.rollout.candidate)
    end)

    it("gives the worker that was asked what was posted, and no other", function()
        local world = new_world(function()
            return 1
        end)
        local asked, other = start_worker(world, 1, "file"), start_worker(world, 2, "file")
        post(asked, "text", {})
        settle(world)
        assert.equal("text", asked.posted.text)
        assert.is_nil(other.posted)
        assert.same({ text = true }, live_texts(world))
    end)

    it("drops what was prepared for nothing", function()
        local world = new_world(math.random)
        local first = start_worker(world, 1, "file")
        start_worker(world, 2, "file")
        post(first, "bad 2", {})
        settle(world)
        assert.is_nil(first.rollout.candidate)
        assert.same({ file = true }, live_texts(world))
    end)

    it("goes live when the one who has decided dies before he can say so", function()
        local world = new_world(math.random)
        local first = start_worker(world, 1, "file")
        local second = start_worker(world, 2, "file")
        post(first, "a", {})
        while not world.disk.current do
            run_task(first)
            read_one(world, first)
            read_one(world, second)
        end
        world.workers[first.pid] = nil
        settle(world)
        assert.equal("file", second.live)
        start_worker(world, 1, "file")
        settle(world)
        assert.same({ a = true }, live_texts(world))
    end)

    it("takes no second answer of a worker that was asked twice for that it has applied", function()
        local world = new_world(math.random)
        local first = start_worker(world, 1, "file")
        local second = start_worker(world, 2, "file")
        local answers = {}
        post(first, "a", answers)
        repeat
            run_task(first)
            read_one(world, first)
            read_one(world, second)
        until world.disk.current
        local round = first.rollout.round
        while #first.tasks > 0 and world.now < 1 do
            if world.now < 0.5 then
                run_task(first)
                first.rollout:prepared({ id = round.id, pid = second.pid })
            end
            read_one(world, first)
            world.now = world.now + 0.01
        end
        assert.equal("file", second.live)
        assert.is_nil(answers.a)
        settle(world)
        assert.equal("a", second.live)
        assert.equal(1, answers.a)
    end)

    it("is loaded from the disk by a worker that has missed its prepare", function()
        local world = new_world(math.random)
        local first = start_worker(world, 1, "file")
        local second = start_worker(world, 2, "file")
        post(first, "a", {})
        while not world.disk.current do
            run_task(first)
            read_one(world, first)
            read_one(world, second)
        end
        -- What it has is left of an earlier one with that number.
        second.rollout.candidate = { version = 1, id = "earlier", value = "earlier" }
        settle(world)
        assert.same({ a = true }, live_texts(world))
    end)

    it("does not wait for ever: not for an answer, and not for its turn", function()
        local world = new_world(math.random)
        local first = start_worker(world, 1, "file")
        local silent = start_worker(world, 2, "file")
        local answers = {}
        post(first, "a", answers)
        wait_for_answer(world, first, answers, "a")
        assert.equal("withdrawn", answers.a)
        assert.is_true(world.now > 10 and world.now < 12)

        world.lock = first.pid
        post(silent, "b", answers)
        repeat
            run_task(silent)
            world.now = world.now + 0.1
        until answers.b
        assert.equal("busy", answers.b)
        world.lock = nil

        settle(world)
        assert.same({ file = true }, live_texts(world))
    end)

    it("takes no answer to an earlier question", function()
        local world = new_world(math.random)
        local first = start_worker(world, 1, "file")
        local slow = start_worker(world, 2, "file")
        local answers = {}
        post(first, "a", answers)
        wait_for_answer(world, first, answers, "a")
        -- The slow one answers to "a" now, while "bad 2" waits, which it has not seen yet.
        post(first, "bad 2", answers)
        run_task(first)
        while world.log[slow.at + 1].data.snapshot ~= "bad 2" do
            read_one(world, slow)
        end
        for _ = 1, 100 do
            run_task(first)
            read_one(world, first)
        end
        assert.is_nil(answers["bad 2"])
        settle(world)
        assert.equal("withdrawn", answers["bad 2"])
    end)
end)
