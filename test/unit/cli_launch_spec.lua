--- How the command line waits for nginx, with a clock and processes of the test.

local launch = require("cli.instance.launch")
local process = require("cli.instance.process")

local MASTER, WORKERS = 100, 511
local TIMEOUT_S = 10

describe("the end of a gateway", function()
    local real, stubs, clock_s, sent = {}, {}, 0, {}

    -- worker -> when it leaves; the master does after them.
    local leaves_at

    local function is_there(pid)
        if pid == MASTER then
            for _, at_s in pairs(leaves_at) do
                if at_s >= clock_s then
                    return true
                end
            end
            return false
        end
        return leaves_at[pid] >= clock_s
    end

    local function workers()
        local pids = {}
        for i = 1, WORKERS do
            pids[i] = MASTER + i
        end
        return pids
    end

    function stubs.has_ended(pid)
        return not is_there(pid)
    end

    function stubs.alive(pid)
        return is_there(pid)
    end

    function stubs.all()
        local pids, parents = {}, { [MASTER] = 1 }
        for pid = MASTER, MASTER + WORKERS do
            pids[#pids + 1] = is_there(pid) and pid or nil
            parents[pid] = pid == MASTER and 1 or MASTER
        end
        return pids, parents
    end

    function stubs.send(pid, name)
        sent[#sent + 1] = name .. " " .. pid
        return true
    end

    function stubs.poll(timeout_s, probe)
        local deadline_s = clock_s + timeout_s
        while true do
            local found = probe()
            if found or clock_s >= deadline_s then
                return found or nil
            end
            clock_s = clock_s + 0.1
        end
    end

    -- Those up to a number leave, so many a second; the others stay.
    local function leave(count, a_second)
        leaves_at = {}
        for i = 1, WORKERS do
            leaves_at[MASTER + i] = i <= count and i / a_second or math.huge
        end
    end

    before_each(function()
        clock_s, sent = 0, {}
        for name, stub in pairs(stubs) do
            real[name], process[name] = process[name], stub
        end
    end)

    after_each(function()
        for name in pairs(stubs) do
            process[name] = real[name]
        end
    end)

    it("is waited for as long as workers leave", function()
        leave(WORKERS, 8)
        assert.is_true(launch.end_all({ MASTER }, "SIGTERM", TIMEOUT_S))
        assert.is_true(clock_s > 60, clock_s)
        assert.same({ "SIGTERM 100" }, sent)
        -- A master that was killed has left them.
        clock_s = 0
        assert.is_true(launch.end_all(workers(), "SIGTERM", TIMEOUT_S))
        assert.is_true(clock_s > 60, clock_s)
    end)

    it("is waited for also where a master forks more before it is told", function()
        leave(WORKERS, 8)
        local all = process.all
        process.all = function()
            local pids, parents = all()
            for pid = 1000, clock_s > 0 and 1000 + WORKERS or 0 do
                pids[#pids + 1], parents[pid] = pid, MASTER
            end
            return pids, parents
        end
        assert.is_true(launch.end_all({ MASTER }, "SIGTERM", TIMEOUT_S))
    end)

    it("is given up when none leaves any more", function()
        leave(200, 8)
        assert.same({ nil, "timeout" }, { launch.end_all({ MASTER }, "SIGTERM", TIMEOUT_S) })
        assert.is_true(clock_s >= 25 + TIMEOUT_S and clock_s <= 26 + 2 * TIMEOUT_S, clock_s)
        clock_s = 0
        leave(0, 1)
        assert.same({ nil, "timeout" }, { launch.end_all({ MASTER }, "SIGTERM", TIMEOUT_S) })
        assert.is_true(clock_s < TIMEOUT_S + 1, clock_s)
    end)

    it("after its requests takes the time that it was given", function()
        leave(WORKERS, 8)
        assert.same({ nil, "timeout" }, { launch.end_all({ MASTER }, "SIGQUIT", TIMEOUT_S) })
        assert.is_true(clock_s < TIMEOUT_S + 1, clock_s)
    end)
end)
