-- Which source of a setting wins, and what a mistake in each is answered with.

local files = require("test.house.files")
local options = require("cli.options")
local posix = require("posix.sys.socket")
local scan = require("test.house.scan")
local settings = require("cli.options.settings")
local sockets = require("cli.options.sockets")
local words = require("test.unit.support.words")

local FILE = "/etc/test/sluice.conf"

-- A stand-in for io.open over a table of contents.
local function opener(texts)
    return function(path)
        local text = texts[path]
        if not text then
            return nil, path .. ": No such file or directory"
        end
        return {
            read = function()
                return text
            end,
            close = function() end,
        }
    end
end

local function resolve(opts)
    local flags = opts.flags or {}
    if opts.file then
        flags.conf = FILE
    end
    return settings.resolve({
        flags = flags,
        environment = opts.environment or {},
        cwd = "/base/here",
        open = opener({ [FILE] = opts.file }),
        remembered = opts.remembered,
        defaults = opts.defaults,
        only = opts.only,
    })
end

describe("cli.options.settings", function()
    it("has every option, each of its default's type", function()
        local found, errors = resolve({})
        assert.same({}, errors)
        for _, option in ipairs(options.list) do
            assert.is_not_nil(found[option.name], option.name)
        end
        assert.same({ "0.0.0.0:8000", "0.0.0.0:8443 ssl http2" }, found.proxy_listen)
        assert.is_number(found.workers)
        assert.is_false(found.real_ip_recursive)
        assert.equal(16384, found.worker_connections)
    end)

    it("takes flag, environment, file, default, in that order", function()
        local given = {
            file = "workers = 2\nkeepalive_requests = 22\nlog_level = warn",
            environment = { SLUICE_WORKERS = "3", SLUICE_KEEPALIVE_REQUESTS = "33" },
            flags = { workers = "4" },
        }
        local found = resolve(given)
        assert.equal(4, found.workers)
        assert.equal(33, found.keepalive_requests)
        assert.equal("warn", found.log_level)
        assert.equal("logs/error.log", found.error_log)
    end)

    it("starts relative paths from where they were written", function()
        local found = resolve({ file = "prefix = run", flags = { file = "a/b.yaml" } })
        assert.equal("/etc/test/run", found.prefix)
        assert.equal("/base/here/a/b.yaml", found.file)
    end)

    it("reads comments, quotes and blanks in the file", function()
        local found = resolve({
            file = '# first\n\n  workers=2   # two\r\naccess_log_format = "$uri # $status"  # why\n'
                .. "access_log = logs/a#b.log\nlua_package_path =\n",
        })
        assert.equal(2, found.workers)
        assert.equal("$uri # $status", found.access_log_format)
        assert.equal("logs/a#b.log", found.access_log)
        assert.equal("", found.lua_package_path)
    end)

    it("names no setting in the place of an unknown one that is far from all", function()
        for _, name in ipairs({ "bundle", "helo", "port", "x", ("e"):rep(200) }) do
            local variable = "SLUICE_" .. name:upper()
            local _, errors = resolve({ environment = { [variable] = "1" } })
            local none = "unknown variable %s (docs/config.md lists them)"
            assert.same({ "environment: " .. none:format(variable) }, errors)
            _, errors = resolve({ file = name .. " = 1\n" })
            none = "%s:1: unknown setting '%s' (docs/config.md lists them)"
            assert.same({ none:format(FILE, name) }, errors)
        end
    end)

    it("names the line of an unknown, doubled or broken setting, all at once", function()
        local found, errors = resolve({
            file = "worker = 2\nworkers = 2\nworkers = 3\nnonsense\nconf = x\nlog_level = loud",
        })
        assert.is_nil(found)
        assert.equal(5, #errors)
        assert.equal(FILE .. ":1: unknown setting 'worker'; did you mean workers?", errors[1])
        assert.equal(FILE .. ":3: 'workers' is already set in " .. FILE .. ":2", errors[2])
        assert.equal(FILE .. ":4: expected `name = value`, found `nonsense`", errors[3])
        assert.equal(FILE .. ":5: unknown setting 'conf' (docs/config.md lists them)", errors[4])
        assert.matches("^log_level %(" .. FILE:gsub("%p", "%%%0") .. ":6%): 'loud'", errors[5])
    end)

    it("names the source of a bad value", function()
        local _, errors = resolve({ environment = { SLUICE_WORKERS = "many" } })
        assert.same({
            "workers (environment SLUICE_WORKERS): 'many' is not valid; "
                .. "expected auto, or a whole number from 1 to 511",
        }, errors)
        _, errors = resolve({ flags = { log_level = "loud" } })
        assert.matches("^log_level %(flag %-%-log%-level%): 'loud'", errors[1])
    end)

    it("lists the words of an address once", function()
        local _, errors = resolve({
            flags = { proxy_listen = "127.0.0.1:1 foo bar", admin_listen = "127.0.0.1:2 baz" },
        })
        assert.matches("expected addresses such as .*, reuseport, ", errors[1])
        assert.same({
            "admin_listen (flag --admin-listen): '127.0.0.1:2 baz' is not valid; "
                .. "expected what proxy_listen takes",
        }, { unpack(errors, 2) })
        local _, alone = resolve({ flags = { admin_listen = "127.0.0.1:2 baz" } })
        assert.matches("expected addresses such as .*, reuseport, ", alone[1])
    end)

    it("takes no standard input for a file", function()
        local _, errors = resolve({ flags = { file = "-" } })
        assert.same({
            "file (flag --file): '-' is not valid; expected a path: a setting cannot be standard "
                .. "input (./- is a file of this name)",
        }, errors)
        assert.matches("/%-$", resolve({ flags = { file = "./-" } }).file)
    end)

    it("refuses unknown variables, but those of vaults and of others", function()
        local _, errors = resolve({
            environment = { SLUICE_PROXY_LISTN = "127.0.0.1:1", SLUICE_XYZ = "", PROXY = "x" },
        })
        assert.same({
            "environment: unknown variable SLUICE_PROXY_LISTN; did you mean SLUICE_PROXY_LISTEN?",
            "environment: unknown variable SLUICE_XYZ (docs/config.md lists them)",
        }, errors)
        for name, setting in pairs({ CONFF = "CONF", WORKRS = "WORKERS" }) do
            _, errors = resolve({ environment = { ["SLUICE_" .. name] = "1" } })
            local said = "environment: unknown variable SLUICE_%s; did you mean SLUICE_%s?"
            assert.same({ said:format(name, setting) }, errors)
        end
        for _, name in ipairs({ "HOST", "LOG", "MODE", "PORT", "TOKEN" }) do
            _, errors = resolve({ environment = { ["SLUICE_" .. name] = "1" } })
            local said = "environment: unknown variable SLUICE_%s (docs/config.md lists them)"
            assert.same({ said:format(name) }, errors, "the prefix is no likeness")
        end
        _, errors = resolve({
            file = "vault_env = SLUICE_DB_PASSWORD",
            environment = {
                SLUICE_DB_PASSWORD = "secret",
                SLUICE_CONTAINER = "1",
                SLUICE_SERVICE_HOST = "10.0.0.1",
                SLUICE_SERVICE_PORT_PROXY = "8000",
                SLUICE_PORT = "tcp://10.0.0.1:8000",
                SLUICE_PORT_8000_TCP_ADDR = "10.0.0.1",
            },
        })
        assert.same({}, errors)
    end)

    it("takes a command's own defaults last, and remembers them", function()
        local found, errors, given = resolve({
            defaults = { prefix = "/of/kong", user = "kong", log_level = "warn" },
            environment = { KONG_LOG_LEVEL = "info" },
            file = "user = me",
        })
        assert.same({}, errors)
        assert.equal(
            "/of/kong me info",
            table.concat({
                found.prefix,
                found.user,
                found.log_level,
            }, " ")
        )
        found = resolve({
            remembered = given,
            defaults = { prefix = "/other" },
            file = "history = 5",
        })
        assert.equal("/of/kong kong", found.prefix .. " " .. found.user)
    end)

    it("wants a settings file that was asked for, not the default one", function()
        assert.is_table((resolve({})))
        local found, errors = resolve({ flags = { conf = "/none.conf" } })
        assert.is_nil(found)
        assert.same({
            "conf (flag --conf): cannot read /none.conf: No such file or directory",
        }, errors)
    end)

    describe("addresses", function()
        -- Each row: proxy_listen, admin_listen, what is said.
        local REFUSED = {
            {
                "127.0.0.1:9 reuseport",
                "127.0.0.1:9",
                "admin_listen: 127.0.0.1:9 is also a proxy_listen address; use another port",
            },
            {
                "*:9",
                "0.0.0.0:9",
                "admin_listen: 0.0.0.0:9 is also the proxy_listen address *:9; use another port",
            },
            {
                "[::1]:9",
                "[0:0::0001]:9",
                "admin_listen: [0:0::0001]:9 is also the proxy_listen address [::1]:9; "
                    .. "use another port",
            },
            {
                "127.0.0.1:9, 127.0.0.1:9 reuseport",
                "off",
                "proxy_listen: 127.0.0.1:9 is given twice; leave one out",
            },
            {
                "*:9, 127.0.0.1:8, 0.0.0.0:9",
                "off",
                "proxy_listen: *:9 and 0.0.0.0:9 are one address; leave one out",
            },
            {
                "[::ffff:7f00:1]:9, [::FFFF:127.0.0.1]:9",
                "off",
                "proxy_listen: [::ffff:7f00:1]:9 and [::FFFF:127.0.0.1]:9 are one address; "
                    .. "leave one out",
            },
            {
                "127.0.0.1:9 backlog=5",
                "*:9",
                "admin_listen: *:9 overlaps 127.0.0.1:9 of proxy_listen, and nginx would open "
                    .. "both; leave one out, or give both reuseport",
            },
            {
                "[::]:9 ipv6only=off, 10.0.0.1:9",
                "off",
                "proxy_listen: 10.0.0.1:9 overlaps [::]:9 of proxy_listen, and nginx would open "
                    .. "both; leave one out, or give both reuseport",
            },
        }
        for _, row in ipairs(REFUSED) do
            it(("refuses %s and %s"):format(row[1], row[2]), function()
                local _, errors = resolve({
                    flags = { proxy_listen = row[1], admin_listen = row[2], admin_insecure = "on" },
                })
                assert.same({ row[3] }, errors)
            end)
        end

        it("refuses a name beside each of its addresses", function()
            local found = sockets.of("localhost:9")
            assert.is_true(#found > 0)
            for _, socket in ipairs(found) do
                local _, errors = resolve({
                    flags = { proxy_listen = socket.text, admin_listen = "localhost:9" },
                })
                local line = "admin_listen: localhost:9 is also the proxy_listen address %s; "
                    .. "use another port"
                assert.same({ line:format(socket.text) }, errors)
            end
        end)

        describe("of a name", function()
            local real = posix.getaddrinfo
            local ips

            before_each(function()
                posix.getaddrinfo = function(host)
                    assert.equal("localhost", host)
                    local found = {}
                    for i, ip in ipairs(ips) do
                        found[i] = { addr = ip }
                    end
                    return found
                end
            end)

            after_each(function()
                posix.getaddrinfo = real
            end)

            local function errors_of(proxy, admin)
                local _, errors =
                    resolve({ flags = { proxy_listen = proxy, admin_listen = admin } })
                return errors
            end

            it("are compared each, and told once", function()
                ips = { "::1", "127.0.0.1", "127.0.0.1" }
                local line = "proxy_listen: localhost:9 is given twice; leave one out"
                assert.same({ line }, errors_of("localhost:9, localhost:9 ssl", "off"))
                for _, host in ipairs({ "[0::1]", "127.0.0.1" }) do
                    line = "admin_listen: %s:9 is also the proxy_listen address localhost:9; "
                        .. "use another port"
                    assert.same({ line:format(host) }, errors_of("localhost:9", host .. ":9"))
                end
                assert.same({}, errors_of("localhost:9", "127.0.0.2:9"))
            end)

            it("are this machine's alone where the name says so", function()
                ips = { "127.0.0.1", "10.0.0.1" }
                local line = errors_of("off", "localhost:9")[1]
                assert.truthy(line:find("admin_listen: localhost:9 is not on loopback", 1, true))
                ips = { "127.0.0.1", "::1" }
                assert.same({}, errors_of("off", "localhost:9"))
            end)
        end)

        it("takes those that nginx opens side by side, or as one", function()
            for _, listen in ipairs({
                "0.0.0.0:9, [::]:9",
                "127.0.0.1:9, [::1]:9, *:8, [::]:7 ipv6only=off",
                "127.0.0.1:9, 0.0.0.0:9, [::1]:9, [::]:9",
                "127.0.0.1:9 reuseport, 0.0.0.0:9 reuseport",
                "127.0.0.1:9, 127.0.0.2:9",
            }) do
                local _, errors = resolve({
                    flags = { proxy_listen = listen, admin_listen = "off" },
                })
                assert.same({}, errors)
            end
        end)
    end)

    it("wants a token for an admin listener that is not on loopback", function()
        local function errors_of(listen, more)
            local flags = { admin_listen = listen }
            for name, value in pairs(more or {}) do
                flags[name] = value
            end
            local _, errors = resolve({ flags = flags })
            return errors
        end
        for _, host in ipairs({
            "127.0.0.1",
            "127.1.2.3",
            "localhost",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::0001]",
        }) do
            assert.same({}, errors_of(host .. ":1"))
        end
        for _, host in
            ipairs(words([[
            0.0.0.0 * [::] 10.0.0.1 128.0.0.1 1.127.0.0 [::2] [::10] [::1:0] [1::] [1::1]
            [fe80::1] [::ffff:127.0.0.1]
        ]]))
        do
            assert.same({
                "admin_listen: "
                    .. host
                    .. ":1 is not on loopback, and there is no admin_token; set one "
                    .. "(SLUICE_ADMIN_TOKEN, the settings file, or `sluice token add NAME`), "
                    .. "listen on 127.0.0.1, or allow anyone who can connect (admin_insecure = on)",
            }, errors_of(host .. ":1"))
            assert.equal(1, #errors_of("127.0.0.1:1, " .. host .. ":2 backlog=9"))
            assert.same({}, errors_of(host .. ":1", { admin_insecure = "on" }))
            assert.same({}, errors_of(host .. ":1", { admin_token = ("x"):rep(16) }))
        end
        assert.same({}, errors_of("off"))
    end)

    it("shows no secret in what it says", function()
        for _, source in ipairs({
            { environment = { SLUICE_ADMIN_TOKEN = "s3cret" } },
            { file = "admin_token = s3cret" },
            { file = "admin_token s3cret" },
            { file = "admin_token = " .. ("s3cret"):rep(3) .. "\nadmin_token = s3cret" },
            { file = "admin_tokens = s3cret" },
        }) do
            local found, errors = resolve(source)
            assert.is_nil(found)
            assert.matches("admin_token", errors[1], 1, true)
            assert.is_nil(table.concat(errors, "\n"):find("s3cret", 1, true))
        end
    end)

    it("refuses too few buffers for the responses of upstreams", function()
        local function errors_of(size, buffers)
            return select(
                2,
                resolve({ flags = { proxy_buffer_size = size, proxy_buffers = buffers } })
            )
        end
        for _, fits in ipairs({ { "4k", "8 4k" }, { "16k", "3 16k" }, { "1m", "5 512k" } }) do
            assert.same({}, errors_of(fits[1], fits[2]))
        end
        assert.same({
            "proxy_buffers: 8 16k are too few for proxy_buffer_size 64k; all but one of them have "
                .. "to hold 131072 bytes",
        }, errors_of("64k", "8 16k"))
        assert.same({
            "proxy_buffers: 2 8k are too few for proxy_buffer_size 4k; all but one of them have to "
                .. "hold 16384 bytes",
        }, errors_of("4k", "2 8k"))
        assert.same({
            "proxy_buffers (flag --proxy-buffers): '8' is not valid; expected a number "
                .. 'and a size, such as "4 8k"',
        }, errors_of("4k", "8"))
    end)

    it("remembers what start was given, under the flags of now and above the file", function()
        local _, _, given = resolve({
            flags = { workers = "4", file = "a.yaml" },
            environment = { SLUICE_LOG_LEVEL = "debug", SLUICE_KEEPALIVE_REQUESTS = "5" },
        })
        local found = resolve({
            file = "workers = 2\nheader_prefix = X-File\nlog_level = warn\nkeepalive_requests = 6",
            flags = { log_level = "info" },
            environment = { SLUICE_KEEPALIVE_REQUESTS = "7", SLUICE_WORKERS = "9" },
            remembered = given,
        })
        assert.equal(4, found.workers, "a flag of start beats the environment of now")
        assert.equal("/base/here/a.yaml", found.file)
        assert.equal("info", found.log_level, "a flag of now beats the environment of start")
        assert.equal(7, found.keepalive_requests, "the environment of now beats that of start")
        assert.equal("X-File", found.header_prefix, "the file is read again")
    end)

    it("resolves some settings whatever is wrong with the others", function()
        local found, errors = resolve({
            file = "prefix = /p\nworkers = x\nnonsense",
            only = { "prefix" },
        })
        assert.same({}, errors)
        assert.same({ prefix = "/p" }, found)
    end)

    it("does not take a default for what a file that is wrong may have said", function()
        local only = { "prefix" }
        local found, errors = resolve({ file = "prefx = /p", only = only })
        assert.is_nil(found)
        assert.same({ FILE .. ":1: unknown setting 'prefx'; did you mean prefix?" }, errors)
        found, errors = resolve({ file = "conff = x" })
        assert.is_nil(found)
        assert.same({ FILE .. ":1: unknown setting 'conff' (docs/config.md lists them)" }, errors)
        found, errors = resolve({ environment = { SLUICE_PREFX = "/p" }, only = only })
        assert.is_nil(found)
        assert.same({
            "environment: unknown variable SLUICE_PREFX; did you mean SLUICE_PREFIX?",
        }, errors)
        found, errors = resolve({ flags = { conf = "/none.conf" }, only = only })
        assert.is_nil(found)
        assert.matches("^conf %(flag %-%-conf%): cannot read ", errors[1])
        assert.same(
            { prefix = "/q" },
            resolve({ flags = { conf = "/none.conf", prefix = "/q" }, only = only })
        )
    end)
end)

describe("the settings that docs/*.md show", function()
    it("are valid", function()
        local found = 0
        for _, path in ipairs(scan.files("docs")) do
            for text in files.read(path):gmatch("\n```\n([%l_]+ = .-\n)```\n") do
                found = found + 1
                local _, errors = resolve({ file = text })
                assert.same({}, errors, path)
            end
        end
        assert.is_true(found >= 5)
    end)
end)
