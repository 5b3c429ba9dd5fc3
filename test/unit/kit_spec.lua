--- The global `kong` without nginx, as the command line and checks have it.

local kit = require("gateway.kit")
local phases = require("gateway.kit.phases")

describe("the global kong", function()
    local kong = kit.install()

    it("is there once, whoever asks", function()
        assert.equal(kong, rawget(_G, "kong"))
        assert.equal(kong, kit.install({ database = "local" }, { "one" }))
        kit.install({}, {})
    end)

    it("says which version of Kong's interface it is", function()
        assert.same({ "3.9.3", 3009003 }, { kong.version, kong.version_num })
    end)

    it("has a configuration that says what holds, and that nobody writes", function()
        local settings = {
            database = "local",
            file = "",
            headers = { "latency_tokens", "via" },
            admin_token = "secret",
            daemon = true,
            workers = 3,
        }
        kit.install(settings, { "one" })
        local configuration = kong.configuration
        assert.equal("postgres", configuration.database)
        assert.equal("traditional", configuration.role)
        assert.same({ one = true }, configuration.loaded_plugins)
        assert.is_true(configuration.nginx_daemon)
        assert.equal(3, configuration.nginx_worker_processes)
        assert.is_nil(configuration.admin_token)
        assert.is_nil(configuration.remove_sensitive().admin_token)
        assert.equal(3, configuration.remove_sensitive().workers)
        local headers = configuration.enabled_headers
        assert.is_true(headers["X-Kong-Proxy-Latency"] and headers.Via)
        assert.is_false(headers.Server or headers["X-Kong-Request-Id"] or headers.server_tokens)
        local ok, err = pcall(function()
            configuration.database = "off"
        end)
        assert.is_false(ok)
        assert.matches("cannot write to configuration$", err)
        for _, changed in ipairs({ { database = "off" }, { database = "local", file = "/f" } }) do
            kit.install(changed, {})
            assert.equal("off", configuration.database)
        end
    end)

    it("has no tables of a request where there is none", function()
        assert.is_nil(kong.ctx.shared)
        assert.is_nil(kong.ctx.plugin)
        assert.is_nil(kong.ctx.another)
    end)
end)

describe("phases", function()
    it("are refused in Kong's words and order, at the caller's line", function()
        local mask = phases.set("log", "access", "rewrite")
        local function of_kit()
            phases.check(mask)
        end
        local function plugin()
            of_kit()
        end
        local ok, err = pcall(plugin)
        assert.is_false(ok)
        local said = "function cannot be called in init phase %(only in: rewrite, access, log%)$"
        assert.matches("kit_spec.lua:%d+: " .. said, err)
        local ok_there = phases.run_outside("configure", "mine", function()
            assert.equal("configure", phases.current())
            assert.equal("mine", phases.plugin())
            phases.check(phases.set("configure"))
        end)
        assert.is_true(ok_there)
        assert.is_nil(phases.plugin())
        assert.equal("init", phases.current())
    end)

    it("of a plugin's function end where it throws", function()
        local ok, err = phases.run_outside("init_worker", "mine", function()
            error("thrown", 0)
        end)
        assert.same({ false, "thrown", "init" }, { ok, err, phases.current() })
    end)

    it("have names", function()
        assert.same({ "access", "log" }, phases.names(phases.set("log", "access")))
        assert.has_error(function()
            phases.set("acess")
        end, "unknown phase: acess")
    end)
end)

describe("kong.log", function()
    local lines
    local stderr = io.stderr

    before_each(function()
        lines = {}
        rawset(io, "stderr", {
            write = function(_, ...)
                lines[#lines + 1] = table.concat({ ... }):gsub("\n$", "")
            end,
        })
    end)

    after_each(function()
        rawset(io, "stderr", stderr)
    end)

    local function said(pattern)
        assert.equal(1, #lines)
        assert.matches(pattern, lines[1])
    end

    it("says file, line and message", function()
        local err = kit.install().log.err -- an upvalue, as plugins take it
        err("a", 1, nil, true)
        said("^%[kong%] kit_spec%.lua:%d+ a1niltrue$")
    end)

    it("says the plugin that runs", function()
        local log = kit.install().log
        phases.run_outside("configure", "mine", function()
            log("text")
        end)
        said("^%[kong%] kit_spec%.lua:%d+ %[mine%] text$")
    end)

    it("has facilities of other names and formats", function()
        local log = kit.install().log.new("other", "%namespace: %message (%line_src)")
        log.warn("text")
        said("^%[kong%] other: text %(%d+%)$")
        assert.has_error(function()
            log.new("")
        end, "namespace cannot be an empty string")
        assert.has_error(function()
            log.new(1)
        end, "namespace must be a string")
    end)

    it("frames what it inspects, until it is turned off", function()
        local log = kit.install().log
        log.inspect({ a = 1 })
        assert.equal(5, #lines)
        assert.matches("%[core%]%-+%+$", lines[1])
        assert.matches("^|  a = 1 +|$", lines[3])
        log.inspect.off()
        log.inspect({})
        log.inspect.on()
        assert.equal(5, #lines)
    end)

    it("warns of what is deprecated", function()
        kit.install().log.deprecation("it", " is old", { after = "3.1", removal = "4.0" })
        said("it is old %(deprecated after 3.1, scheduled for removal in 4.0%)$")
    end)
end)

describe("what plugins add to a log entry", function()
    local apply = require("gateway.kit.log.serialize").apply

    local function item(key, value, mode)
        return { key = key, value = value, mode = mode or "set" }
    end

    it("is put where its key says", function()
        local root = { request = { id = "r" }, status = 200 }
        apply(root, {
            item("one", 1),
            item("request.headers.x", "y"),
            item(".dotted", true),
            item("status", nil),
        })
        local request = { id = "r", headers = { x = "y" } }
        assert.same({ request = request, one = 1, [".dotted"] = true }, root)
    end)

    it("is added where there is nothing, or replaces what there is", function()
        local root = { a = 1, t = {} }
        apply(root, {
            item("a", 2, "add"),
            item("b", 2, "add"),
            item("a", 3, "replace"),
            item("c", 3, "replace"),
            item("t.u.v", 3, "replace"),
        })
        assert.same({ a = 3, b = 2, t = {} }, root)
    end)

    it("is refused where JSON cannot have it, or nothing can be below", function()
        local loop = {}
        loop.loop = loop
        local shared = {}
        for _, value in ipairs({ loop, { shared, shared }, { f = print }, print, { [{}] = 1 } }) do
            assert.has_error(function()
                apply({}, { item("a", value) })
            end)
        end
        local ok, err = pcall(apply, { a = 1 }, { item("a.b", 1) })
        assert.is_false(ok)
        assert.matches("'a%.b' could not be used as a serialize value%. Subkey 'a' is not", err)
    end)

    it("is refused outside of requests", function()
        assert.has_error(function()
            kit.install().log.serialize()
        end)
    end)
end)
