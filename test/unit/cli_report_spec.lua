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

describe("what status says to people", function()
    local function said(more)
        local found = {
            prefix = "/p",
            pid = 2,
            uptime_s = 1,
            version = "1",
            file = "",
            database = "local",
            proxy_listen = { "127.0.0.1:8000" },
            admin_listen = { "127.0.0.1:8001" },
            status_listen = {},
            logs = {},
            workers = { ready = { 3 }, draining = {} },
            certificates = { list = {}, self_signed_expires = 86400 },
        }
        for name, value in pairs(more) do
            found[name] = value
        end
        return table.concat(report.status(found, 0), "\n") .. "\n"
    end

    it("has certificates where a listener has TLS", function()
        local line = "\ntls      all names: self-signed, until 1970-01-02 (1 day)\n"
        assert.is_nil(said({}):find("self-signed", 1, true))
        for _, name in ipairs({ "proxy_listen", "admin_listen", "status_listen" }) do
            local text = said({ [name] = { "127.0.0.1:1", "127.0.0.1:2 ssl http2" } })
            assert.is_truthy(text:find(line, 1, true), text)
        end
    end)

    it("tells of plugins that throw and of killed workers, where there are any", function()
        local control = { life = "answers", state = "live", pid = 4, revision = 1, deaths = 0 }
        control.crashes, control.unmapped = 0, 0
        local quiet = said({ control = control, plugin_failures = {} })
        assert.is_nil(quiet:find("plugins", 1, true))
        assert.is_nil(quiet:find("killed", 1, true))
        control.crashes = 2
        local text = said({
            control = control,
            plugin_failures = {
                { plugin = "mine", phase = "access", count = 12 },
                { plugin = "mine", phase = "log", count = 1 },
            },
        })
        for _, line in ipairs({
            "         workers killed by signals since the start: 2; see error.log",
            "plugins  mine: 12 errors in access since the last start or reload; see error.log",
            "         mine: 1 error in log since the last start or reload; see error.log",
        }) do
            assert.is_truthy(text:find("\n" .. line .. "\n", 1, true), text)
        end
    end)

    it("has the pids of workers, where these are few", function()
        local many = { 11, 12, 13, 14, 15, 16, 17, 18, 19 }
        for line, workers in pairs({
            ["1 (pid 3)"] = { ready = { 3 }, draining = {} },
            ["2 (pid 3, 5), 1 shutting down"] = { ready = { 3, 5 }, draining = { 4 } },
            ["0, 1 shutting down"] = { ready = {}, draining = { 4 } },
            ["9"] = { ready = many, draining = {} },
        }) do
            local text = said({ workers = workers })
            assert.is_truthy(text:find("\nworkers  " .. line .. "\n", 1, true), text)
        end
    end)

    it("says that clients of the Admin API need a token, where it listens", function()
        for line, more in pairs({
            ["127.0.0.1:8001, token required"] = { admin_token_required = true },
            ["127.0.0.1:8001"] = {},
            ["off"] = { admin_token_required = true, admin_listen = {} },
        }) do
            local text = said(more)
            assert.is_truthy(text:find("\nadmin    " .. line .. "\n", 1, true), text)
        end
    end)

    it("names what the configuration comes from", function()
        for line, more in pairs({
            ["none: the store is the source of truth"] = {},
            ["none: the last POST /config is the configuration (database = off)"] = {
                database = "off",
            },
            ["/a.yaml"] = { database = "off", file = "/a.yaml" },
            ["/a.yaml (replaced by POST /config)"] = { file = "/a.yaml", file_replaced = true },
            ["/a.yaml (changed since it was loaded; `sluice reload` loads it)"] = {
                file = "/a.yaml",
                file_changed = true,
            },
        }) do
            local text = said(more)
            assert.is_truthy(text:find("\nfile     " .. line .. "\n", 1, true), text)
        end
    end)
end)
