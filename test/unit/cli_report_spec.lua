-- What start and status say of listeners: cli/terminal/report.lua.

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
