-- Processes of the machine: cli/instance/process.lua.

local process = require("cli.instance.process")
local unistd = require("posix.unistd")

local PID = unistd.getpid()
-- The kernel gives no number as high.
local NO_PID = 2 ^ 30

describe("processes", function()
    it("are found by how their command line begins", function()
        local line = process.command_line(PID)
        local beginning = line:match("^%S+")
        local found, is_there = process.beginning_with(beginning), false
        for i, pid in ipairs(found) do
            is_there = is_there or pid == PID
            assert.is_true(i == 1 or pid > found[i - 1])
            -- Another may have ended meanwhile.
            local now = process.command_line(pid)
            assert.equal(beginning, now and now:sub(1, #beginning) or beginning)
        end
        assert.is_true(is_there)
        assert.same({}, process.beginning_with("no program is called that:"))
    end)

    it("have a parent, as long as they are there", function()
        assert.equal(unistd.getppid(), process.parent(PID))
        assert.equal(0, process.parent(1))
        assert.is_nil(process.parent(NO_PID))
    end)

    it("have files open, of which the first is named first", function()
        local path = os.tmpname()
        local file = io.open(path, "w")
        local last, is_there = -1, false
        for name, fd in process.open_files(PID) do
            assert.is_true(fd > last)
            last = fd
            is_there = is_there or name == path
        end
        file:close()
        os.remove(path)
        assert.is_true(is_there)
        assert.is_nil(process.open_files(NO_PID)())
    end)
end)
