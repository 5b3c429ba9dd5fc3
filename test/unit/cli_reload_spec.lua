--- What a reload asks of the running gateway.

local control = require("cli.instance.control")
local control_worker = require("cli.instance.control_worker")
local files = require("test.house.files")
local instances = require("cli.instance")
local process = require("cli.instance.process")
local reload = require("cli.commands.reload")

describe("a reload", function()
    local ask, path = control.ask, os.tmpname()

    after_each(function()
        control.ask = ask
        os.remove(path)
    end)

    it("waits for a file as long as one of a million routes takes", function()
        files.write(path, "_format_version: '3.0'\n")
        local asked
        control.ask = function(...)
            asked = { ... }
            return 400, { message = "no" }
        end
        assert.same({ nil, "no", false }, { reload.import({ control = "/there" }, path) })
        assert.same({ "/there", "POST", "/config?wait=1" }, { unpack(asked, 1, 3) })
        -- 120 s were measured, where the other requests' 45 had it say that nothing changes.
        assert.is_true(asked[5] >= 300)
    end)
end)

describe("the workers that a reload counts", function()
    local real = {}

    local function stub(module, name, value)
        real[#real + 1] = { module, name, module[name] }
        module[name] = value
    end

    after_each(function()
        for _, each in ipairs(real) do
            each[1][each[2]] = each[3]
        end
        real = {}
    end)

    it("are those of traffic, among old ones as among new ones", function()
        local leaving = "nginx: worker process is shutting down"
        local lines = {
            [11] = leaving,
            [12] = leaving,
            [13] = leaving,
            [21] = "nginx: control process",
            [22] = "nginx: worker process",
            [23] = "nginx: worker process",
        }
        stub(process, "children", function()
            return { 11, 12, 13, 21, 22, 23 }
        end)
        stub(process, "command_line", function(pid)
            return lines[pid]
        end)
        stub(control_worker, "pids", function()
            return { [11] = true, [21] = true }
        end)
        assert.same({
            control = { 21 },
            draining = { 12, 13 },
            ready = { 22, 23 },
            starting = {},
        }, instances.workers(1))
    end)
end)
