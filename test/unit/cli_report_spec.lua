-- What start and status say: cli/terminal/report.lua.

local cjson = require("cjson")
local report = require("cli.terminal.report")

describe("listeners", function()
    it("are shown with their protocols, and without what else is set of them", function()
        local proxy = {
            "*:8000 reuseport",
            "[::]:8443 ssl http2 backlog=64",
            "127.0.0.1:8444 ssl",
            "127.0.0.1:8002 http2",
        }
        assert.equal(
            "proxy 0.0.0.0:8000, [::]:8443 ssl http2, 127.0.0.1:8444 ssl, 127.0.0.1:8002 http2, "
                .. "admin off",
            report.listeners({ proxy_listen = proxy, admin_listen = {} })
        )
    end)
end)

describe("what status says to programs", function()
    it("has lists where there is nothing, and texts as they are", function()
        local text = [[{"draining":[],"error":"/a{}\\/b","pid":2}]]
        local found = { draining = {}, error = "/a{}\\/b", pid = 2 }
        assert.same(cjson.decode(text), cjson.decode(report.json(found)))
        assert.equal(#text, #report.json(found))
    end)
end)
