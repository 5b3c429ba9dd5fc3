-- The timers' wheel in Lua beside a sorted list, what keeps its timers, and its distributions.

local memory = require("sluice.timer.plain_memory")
local spread = require("sluice.timer.spread")
local wheel = require("sluice.timer.wheel")

local SEED = tonumber(os.getenv("SEED")) or os.time()
local OPERATIONS = 60000

-- The same by sorting: slow, and checked by reading it.
local function list(now)
    local self = { now = now, waiting = {}, ready = {}, count = 0 }

    function self.insert(node)
        self.count = self.count + 1
        node.order = self.count
        table.insert(node.expires <= self.now and self.ready or self.waiting, node)
    end

    function self.remove(node)
        for _, queue in ipairs({ self.waiting, self.ready }) do
            for i, other in ipairs(queue) do
                if other == node then
                    table.remove(queue, i)
                end
            end
        end
    end

    function self.sort()
        table.sort(self.waiting, function(a, b)
            return a.expires < b.expires or a.expires == b.expires and a.order < b.order
        end)
    end

    function self.advance(to)
        self.now = to
        self.sort()
        while self.waiting[1] and self.waiting[1].expires <= to do
            table.insert(self.ready, table.remove(self.waiting, 1))
        end
    end

    function self.first()
        self.sort()
        return self.ready[1] and self.now or self.waiting[1] and self.waiting[1].expires
    end

    return self
end

-- Milliseconds from now, of any magnitude from the past to 3,170 years.
local function some_delay()
    local kind = math.random(10)
    if kind == 1 then
        return -math.random(0, 5)
    elseif kind <= 6 then
        return math.random(0, 200)
    end
    return math.floor(2 ^ (math.random() * 46.5))
end

local function drain(ours, model, label)
    while true do
        local node = wheel.shift(ours.ready)
        assert.equal(node, table.remove(model.ready, 1), label)
        if not node then
            return
        end
        node.gone = true
    end
end

local function step(ours, model, nodes, label)
    local kind = math.random(12)
    if kind <= 5 then
        local node = { expires = ours.now + some_delay() }
        ours:insert(node)
        model.insert(node)
        nodes[#nodes + 1] = node
    elseif kind <= 7 and #nodes > 0 then
        local node = table.remove(nodes, math.random(#nodes))
        if not node.gone then
            ours:remove(node)
            model.remove(node)
        end
    elseif kind <= 9 then
        local now = ours.now + math.random(0, 100)
        ours:advance(now)
        model.advance(now)
        assert.equal(now, ours.now, label)
    elseif kind == 10 then
        -- Whoever advances to `next` again and again comes to the first node, and never past it.
        local first = model.first()
        local following = ours:next()
        assert.equal(first == nil, following == nil, label)
        if first and first > ours.now then
            assert.is_true(following > ours.now and following <= first, label)
            ours:advance(following)
            model.advance(following)
        end
    else
        drain(ours, model, label)
    end
end

describe("the wheel in Lua", function()
    it("does at random what a sorted list does", function()
        math.randomseed(SEED)
        local ours, model, nodes = wheel.new(1000), list(1000), {}
        for i = 1, OPERATIONS do
            step(ours, model, nodes, ("operation %d of SEED=%d"):format(i, SEED))
            if i % 500 == 0 then
                -- Small enough for the list.
                for _, node in ipairs(nodes) do
                    if not node.gone then
                        ours:remove(node)
                        model.remove(node)
                    end
                end
                nodes = {}
            end
        end
        ours:advance(2 ^ 52)
        model.advance(2 ^ 52)
        drain(ours, model, "the end of SEED=" .. SEED)
        assert.is_nil(ours:next())
    end)

    it("gives equal times in order of insertion, from whatever level", function()
        local ours, nodes = wheel.new(0), {}
        for i = 1, 400 do
            nodes[i] = { expires = 70000 }
            ours:insert(nodes[i])
            ours:advance(i * 174)
        end
        ours:advance(70000)
        for i = 1, 400 do
            assert.equal(nodes[i], wheel.shift(ours.ready))
        end
    end)

    it("keeps no slot that is empty", function()
        local ours = wheel.new(0)
        for i = 1, 5000 do
            local node = { expires = i * 7919 }
            ours:insert(node)
            ours:remove(node)
        end
        for level = 0, #ours.levels do
            assert.equal(0, ours.levels[level].count)
            assert.is_nil(next(ours.levels[level].slots))
        end
    end)
end)

describe("the memory of timers in Lua", function()
    local function timer(name)
        return { name = name, place = { timers = 1 } }
    end

    it("uses slots again, handles never", function()
        local core = memory.new()
        for i = 1, 1000 do
            local t = timer("name")
            memory.keep(core, t)
            assert.equal(i, t.handle)
            assert.equal(t, memory.find(core, i))
            assert.equal(t, memory.find(core, "name"))
            memory.free(core, t)
            assert.is_nil(memory.find(core, i))
            assert.is_nil(memory.find(core, "name"))
        end
        assert.equal(1, #core.slots)
        assert.equal(0, core.count)
    end)

    it("leads from slot to slot over what is gone", function()
        local core, all = memory.new(), {}
        for i = 1, 100 do
            all[i] = timer()
            memory.keep(core, all[i])
        end
        for i = 1, 100 do
            if i % 3 == 0 then
                memory.free(core, all[i])
            elseif i % 3 == 1 then
                memory.hide(core, all[i])
            end
        end
        local found, slot = 0, 0
        while true do
            local t = memory.from(core, slot)
            if not t then
                break
            end
            assert.equal(2, t.handle % 3)
            found, slot = found + 1, t.slot + 1
        end
        assert.equal(33, found)
        assert.equal(67, core.count)
    end)

    it("leaves a name to whoever has it now", function()
        local core, old, young = memory.new(), timer("n"), timer("n")
        memory.keep(core, old)
        memory.hide(core, old)
        memory.keep(core, young)
        memory.free(core, old)
        assert.equal(young, memory.find(core, "n"))
    end)
end)

describe("a distribution", function()
    it("has the mean and variance of its values, and the p99 to 12 %", function()
        math.randomseed(SEED)
        local s, values, sum = spread.new(), {}, 0
        for i = 1, 5000 do
            values[i] = 10 ^ (math.random() * 6 - 6)
            sum = sum + values[i]
            s:add(values[i])
        end
        local mean, squares = sum / #values, 0
        for _, value in ipairs(values) do
            squares = squares + (value - mean) ^ 2
        end
        table.sort(values)
        local figures = s:figures()
        assert.equal(values[1], figures.min)
        assert.equal(values[#values], figures.max)
        assert.is_true(math.abs(figures.mean / mean - 1) < 1e-9)
        assert.is_true(math.abs(figures.variance / (squares / #values) - 1) < 1e-6)
        assert.is_true(math.abs(figures.p99 / values[4950] - 1) < 0.12, "SEED=" .. SEED)
    end)

    it("of nothing is nothing, of zeroes zero", function()
        assert.same({ min = 0, max = 0, mean = 0, variance = 0, p99 = 0 }, spread.new():figures())
        local s = spread.new()
        s:add(0)
        assert.is_true(s:figures().p99 < 2e-9)
        assert.equal(0, s:figures().max)
    end)
end)
