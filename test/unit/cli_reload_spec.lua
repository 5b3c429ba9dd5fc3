--- What a reload asks of the running gateway.

local control = require("cli.instance.control")
local files = require("test.house.files")
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
