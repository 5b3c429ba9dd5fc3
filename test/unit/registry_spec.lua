--- The plugins of the gateway: found by listing, loaded from a folder each.

local lfs = require("lfs")
local finder = require("gateway.plugin.finder")
local registry = require("gateway.plugin.registry")
local schema = require("gateway.schema")
local support = require("test.unit.support.config")

describe("the registry of plugins", function()
    it("has each folder of plugins/ with a handler as a bundled one", function()
        local folders = {}
        for name in lfs.dir("plugins") do
            if lfs.attributes("plugins/" .. name .. "/handler.lua") then
                folders[#folders + 1] = name
            end
        end
        table.sort(folders)
        assert.is_true(#folders >= 5)
        assert.same(folders, registry.bundled())
        local loaded = support.registry:names()
        table.sort(loaded)
        assert.same(folders, loaded)
    end)

    it("has in nginx's module those that say that they are native", function()
        local natives, found = {}, {}
        for _, plugin in ipairs(support.registry:list()) do
            natives[#natives + 1] = plugin.native and plugin.name or nil
        end
        table.sort(natives)
        local pipe = assert(io.popen("sh module/plugins.sh table plugins"))
        for name in pipe:read("*a"):gmatch("\n    &ngx_http_sluice_plugin_([%w_]+)") do
            found[#found + 1] = name:gsub("_", "-")
        end
        pipe:close()
        assert.is_true(#natives >= 4)
        assert.same(natives, found)
    end)

    it("runs those of higher priority first, of equal ones the last by name", function()
        local list = support.registry:list()
        for i = 2, #list do
            local one, other = list[i - 1], list[i]
            local is_tie = one.priority == other.priority and one.name > other.name
            assert.is_true(one.priority > other.priority or is_tie, one.name)
        end
    end)

    it("loads by the names of another one what that has, in its order", function()
        local again = assert(registry.load(support.registry:names()))
        assert.same(support.registry:names(), again:names())
        local against_priority = { "rate-limiting", "key-auth" }
        assert.same(against_priority, assert(registry.load(against_priority)):names())
    end)

    it("keeps what entities a plugin brings", function()
        assert.equal("keyauth_credentials", support.registry:get("key-auth").entities[1].name)
        assert.same({}, support.registry:get("http-log").entities)
    end)

    -- A folder of an owner's: path below it -> text.
    local function folder(texts)
        local path = os.tmpname()
        os.remove(path)
        for file, text in pairs(texts) do
            assert(os.execute(("mkdir -p %s/%s"):format(path, file:match("^(.*)/"))))
            local out = assert(io.open(path .. "/" .. file, "w"))
            out:write(text)
            out:close()
        end
        return path
    end

    -- Loads with it as `lua_package_path`, as nginx and the command line do; then all is as before.
    -- `above`: of its folder, where the plugins are in one below that.
    local function load_from(path, names, above)
        local before, owners = package.path, ("%s/%s?.lua"):format(path, above or "")
        package.path = before .. ";" .. owners .. ";./compat/?.lua;./compat/?/init.lua"
        local loaded, err, absent = registry.load(names, { lua_package_path = owners })
        package.path = before
        for module in pairs(package.loaded) do
            if module:find("^kong%.plugins%.") or module:find("^plugins%.mine%.") then
                package.loaded[module] = nil
            end
        end
        os.execute("rm -r " .. path)
        assert(registry.load({ "bundled" }))
        return loaded, err, absent
    end

    local HANDLER = "return { VERSION = '1.2.3', PRIORITY = 7, access = function() end }"
    local SCHEMA =
        "return { name = '%s', fields = { { config = { type = 'record', fields = {} } } } }"

    it("finds a plugin where Kong does, and then where ours are", function()
        local loaded = assert(load_from(
            folder({
                ["kong/plugins/mine/handler.lua"] = HANDLER,
                ["kong/plugins/mine/schema.lua"] = SCHEMA:format("mine"),
                ["plugins/mine/handler.lua"] = "error('not this one')",
                ["plugins/ours/handler.lua"] = HANDLER,
                ["plugins/ours/schema.lua"] = SCHEMA:format("ours"),
            }),
            { "mine", "ours" }
        ))
        assert.equal("kong.plugins.mine", loaded:get("mine").base)
        assert.equal("plugins.ours", loaded:get("ours").base)
        assert.equal("1.2.3", loaded:get("mine").version)
        assert.same({}, loaded:notes())
    end)

    it("takes an owner's folder in the place of a bundled plugin, and says so", function()
        local path = folder({
            ["kong/plugins/cors/handler.lua"] = HANDLER,
            ["kong/plugins/cors/schema.lua"] = SCHEMA:format("cors"),
            ["kong/plugins/cors/migrations/init.lua"] = "error('is never loaded')",
        })
        local loaded = assert(load_from(path, { "cors", "key-auth" }))
        assert.is_nil(loaded:get("cors").native)
        assert.is_true(loaded:get("key-auth").native)
        local file = path .. "/kong/plugins/cors/handler.lua"
        assert.same({
            ("plugin 'cors': %s is used in the place of the bundled one"):format(file),
            "plugin 'cors': its migrations are not run: entities of daos.lua need none, and there "
                .. "is no SQL",
        }, loaded:notes())
    end)

    it("says which module of Sluice's an owner's hides", function()
        local path, before = folder({ ["resty/http.lua"] = "return {}" }), package.path
        package.path = ("%s/?.lua;%s;./compat/?.lua"):format(path, before)
        local hidden = finder.hidden()
        package.path = before .. ";./compat/?.lua"
        local others = finder.hidden()
        package.path = before
        os.execute("rm -r " .. path)
        local file = path .. "/resty/http.lua"
        assert.same({ { module = "resty.http", file = file } }, hidden)
        assert.same({}, others)
    end)

    it("says which plugin is not there, and which files it has looked for", function()
        local path = folder({ ["kong/plugins/none/schema.lua"] = SCHEMA:format("none") })
        local loaded, err, absent = load_from(path, { "none" })
        assert.same({ nil, "none" }, { loaded, absent })
        assert.matches("^plugin 'none': not found; these files were looked for:\n", err)
        for _, file in ipairs({ "kong/plugins/none/handler.lua", "plugins/none/handler.lua" }) do
            assert.is_truthy(err:find("\n  " .. path .. "/" .. file, 1, true), err)
        end
        assert.is_nil(err:find("/compat/", 1, true))
    end)

    it("names the place of a schema that is not there", function()
        for _, base in ipairs({ "kong/plugins", "plugins" }) do
            local path = folder({ [base .. "/mine/handler.lua"] = HANDLER })
            local loaded, err, absent = load_from(path, { "mine" })
            local said = "plugin 'mine': schema.lua: not found; it belongs beside handler.lua: "
                .. "%s/%s/mine/schema.lua (docs/plugin-development.md shows one)"
            assert.same({ nil, said:format(path, base) }, { loaded, err, absent })
        end
    end)

    it("refuses what Kong refuses of a handler", function()
        local made = "return { VERSION = %s, PRIORITY = %s, access = function() end, %s }"
        for _, case in ipairs({
            { '"1.0.0"', "1.5", "", "PRIORITY: integer expected" },
            { '"1.0.0"', '"1"', "", "PRIORITY: integer expected" },
            { '"1.0.0"', "0 / 0", "", "PRIORITY: integer expected" },
            { '"1.0.0"', "nil", "", "lacks PRIORITY, an integer; write PRIORITY = 1000" },
            { "nil", "1", "", 'lacks VERSION, a text; write VERSION = "1.0.0"' },
            { "1", "1", "", 'VERSION: text of the form "x.y.z" expected' },
            { '"new"', "1", "", 'VERSION: text of the form "x.y.z" expected' },
            { '"1.0.0.1"', "1", "", 'VERSION: text of the form "x.y.z" expected' },
            { '"1.0.0"', "1", "log = 3", "log: function expected" },
        }) do
            local loaded, err = load_from(
                folder({
                    ["kong/plugins/mine/handler.lua"] = made:format(case[1], case[2], case[3]),
                    ["kong/plugins/mine/schema.lua"] = SCHEMA:format("mine"),
                }),
                { "mine" }
            )
            assert.same({ nil, "plugin 'mine': handler.lua: " .. case[4] }, { loaded, err })
        end
    end)

    it("refuses mistakes in a schema, wherever the plugin was found", function()
        local made = "return { name = 'mine', fields = { { config = { type = 'record', "
            .. "fields = { { greeting = { type = 'string', default = 'hi' } } } } } } }"
        for _, case in ipairs({
            {
                "type = 'string'",
                "typ = 'string'",
                "config.greeting.type: required field missing; "
                    .. "config.greeting.typ: unknown field; did you mean type?",
            },
            { "type = 'record', ", "", "config.type: required field missing" },
            { "config =", "conf =", "conf: unknown field; did you mean config?" },
            { "config =", "other =", "config: required field missing" },
            {
                "{ config",
                "{ limit = { type = 'integer' } }, %0",
                "limit: unknown field; a plugin's own fields stand in the record config",
            },
            {
                "{ config",
                "{ consumr = { type = 'string' } }, %0",
                "consumr: unknown field; did you mean consumer?",
            },
            {
                "{ config",
                "{ enabled = { type = 'string' } }, %0",
                "enabled: expected the type boolean",
            },
            { "'record', fields = {.*", "'string' } } } }", "config: record with fields expected" },
            { "'hi'", "'hi', one_of = 'hi'", "config.greeting.one_of: expected an array" },
            { "'hi'", "5", "config.greeting.default: expected a string" },
            {
                "'hi'",
                "'hi', requird = true",
                "config.greeting.requird: unknown field; did you mean required?",
            },
            {
                "'string'",
                "'strng'",
                "config.greeting.type: expected one of: array, boolean, foreign, function, "
                    .. "integer, json, map, number, record, set, string",
            },
            {
                "'mine'",
                "'else'",
                "the schema's name is 'else'; expected 'mine', the name of its folder",
            },
            { "return", "return 1 --", "expected a definition table" },
        }) do
            for _, base in ipairs({ "kong/plugins", "plugins" }) do
                local loaded, err = load_from(
                    folder({
                        [base .. "/mine/handler.lua"] = HANDLER,
                        [base .. "/mine/schema.lua"] = made:gsub(case[1], case[2], 1),
                    }),
                    { "mine" }
                )
                assert.same({ nil, "plugin 'mine': schema.lua: " .. case[3] }, { loaded, err })
            end
        end
    end)

    it("takes what a schema of Kong's has beside config", function()
        local definition = [[
            local typedefs = require("kong.db.schema.typedefs")
            return { name = "mine", fields = {
                { consumer = typedefs.no_consumer },
                { service = typedefs.no_service },
                { route = typedefs.no_route },
                { consumer_group = typedefs.no_consumer_group },
                { protocols = typedefs.protocols_http },
                { config = { type = "record", fields = {} } },
            } }
        ]]
        assert(load_from(
            folder({
                ["kong/plugins/mine/handler.lua"] = HANDLER,
                ["kong/plugins/mine/schema.lua"] = definition,
            }),
            { "mine" }
        ))
    end)

    it("has records in records filled in where a default was checked before", function()
        local definition = [[
            local n = { type = "integer", default = 1 }
            local inner = { type = "record", fields = { { n = n } } }
            local config = { type = "record", default = {}, fields = { { inner = inner } } }
            return { name = "mine", fields = { { config = config } } }
        ]]
        for _, base in ipairs({ "kong/plugins", "plugins" }) do
            local loaded = assert(load_from(
                folder({
                    [base .. "/mine/handler.lua"] = HANDLER,
                    [base .. "/mine/schema.lua"] = definition,
                }),
                { "mine" }
            ))
            local filled = schema.walk(loaded:get("mine").schema, { config = {} })
            assert.same({ config = { inner = { n = 1 } } }, filled)
        end
    end)

    it("says in one line why a file cannot be loaded", function()
        for said, source in pairs({
            ["handler.lua:2: unexpected symbol near '='"] = "\nreturn = 1",
            ["handler.lua:2: module 'gateway.pdq' not found"] = "\nrequire('gateway.pdq')",
            ["handler.lua:1: attempt to call global 'retrun' (a nil value)"] = "retrun()",
            ["handler.lua:1: module 'ngx.none' not found"] = "require('ngx.none')",
            ["handler.lua:1: ngx.re.split: there is none outside of nginx"] = "require('ngx.re')"
                .. ".split('a', 'b')",
            ["handler.lua:1: one two"] = "error('one\\n\\ttwo')",
            ["handler.lua: without a place"] = "error('without a place', 0)",
        }) do
            -- A path that Lua shows whole, and one of which it shows the end.
            for _, above in ipairs({ "", ("long/"):rep(15) }) do
                local path = folder({
                    [above .. "kong/plugins/mine/handler.lua"] = source,
                    [above .. "kong/plugins/mine/schema.lua"] = SCHEMA:format("mine"),
                })
                local loaded, err = load_from(path, { "mine" }, above)
                assert.same({ nil, "plugin 'mine': " .. said }, { loaded, err })
            end
        end
    end)

    -- The names of modules in a folder, and of those in its folders.
    local function modules_in(root, below)
        local names = {}
        local found = io.popen(("cd %s && find %s -name '*.lua' 2>/dev/null"):format(root, below))
        for file in found:lines() do
            local name = file:gsub("^%./", ""):gsub("%.lua$", ""):gsub("/init$", "")
            names[#names + 1] = name:gsub("/", ".")
        end
        found:close()
        return names
    end

    it("loads a handler that takes nginx's modules and ours where it is loaded", function()
        local core = package.searchpath("resty.core.base", package.path)
        local root = core:gsub("/resty/core/base%.lua$", "")
        local names = modules_in(root, "ngx resty")
        local libraries = #names
        for _, name in ipairs(modules_in("compat", ".")) do
            names[#names + 1] = name
        end
        for _, name in ipairs({ "events", "header", "queue", "redact", "timer", "var" }) do
            names[#names + 1] = "sluice." .. name
        end
        assert.is_true(libraries > 30 and #names > libraries + 40)
        local lines = {}
        for i, name in ipairs(names) do
            local is_there = name ~= "ngx.pipe" -- Debian's nginx has none
            lines[i] = is_there and ("assert(require(%q), %q)"):format(name, name) or ""
        end
        lines[#lines + 1] = [[
            local base = require("resty.core.base")
            base.allows_subsystem("http")
            local split, semaphore = require("ngx.re").split, require("ngx.semaphore").new
            local read, dict = ngx.req.read_body, ngx.shared.mine
            local texts = { [ngx.HTTP_UNAUTHORIZED] = "who?", [ngx.OK] = ngx.worker.id() }
            if ngx.config.ngx_lua_version < 10019 or ngx.config.subsystem ~= "http" then
                error("too old")
            end
            -- As lua-resty-string's AES does.
            local ffi = require("ffi")
            ffi.cdef("const void *EVP_md5(void); const void *TLS_method(void);")
            local md5, method = ffi.C.EVP_md5(), ffi.C.TLS_method()
            local number = ngx.re.match("a1", "[0-9]+", "jo")[0]
            return {
                VERSION = "1.0", PRIORITY = 5, number = number,
                access = function() return split("a b", " ") end,
            }]]
        local loaded, err = load_from(
            folder({
                ["kong/plugins/mine/handler.lua"] = table.concat(lines, "\n"),
                ["kong/plugins/mine/schema.lua"] = SCHEMA:format("mine"),
            }),
            { "mine" }
        )
        assert.is_nil(err)
        assert.equal("1", loaded:get("mine").handler.number)
    end)

    it("names the file that a plugin's own requires, where the mistake is in that", function()
        local path = folder({
            ["kong/plugins/mine/handler.lua"] = "require('kong.plugins.mine.helper')",
            ["kong/plugins/mine/helper.lua"] = "\nreturn = 1",
        })
        local _, err = load_from(path, { "mine" })
        local place = path .. "/kong/plugins/mine/helper.lua:2: "
        assert.equal("plugin 'mine': handler.lua: " .. place .. "unexpected symbol near '='", err)
    end)

    local DAOS = [[
        return { {
            name = "%s", primary_key = { "id" }, endpoint_key = "name", %s
            fields = { { id = { type = "string", uuid = true, auto = true } },
                { name = { type = "string", unique = true, %s } } },
        } }
    ]]

    it("has all kinds of entities before it loads the first handler", function()
        local source = [[
            local own, other = kong.db.first_things, kong.db.daos.second_things
            return { VERSION = "1.2.3", PRIORITY = 7, of = { own.schema.name, other.schema.name } }
        ]]
        local files = {}
        for _, name in ipairs({ "first", "second" }) do
            local at = "kong/plugins/" .. name
            files[at .. "/handler.lua"] = source
            files[at .. "/schema.lua"] = SCHEMA:format(name)
            files[at .. "/daos.lua"] = DAOS:format(name .. "_things", "", "")
        end
        local loaded = assert(load_from(folder(files), { "first", "second" }))
        for _, name in ipairs({ "first", "second" }) do
            assert.same({ "first_things", "second_things" }, loaded:get(name).handler.of)
            assert.equal(name .. "_things", loaded:get(name).entities[1].name)
        end
    end)

    it("refuses what Kong refuses of daos.lua, and names file and word", function()
        for said, words in pairs({
            ["cache_kye: unknown field; did you mean cache_key?"] = {
                'cache_kye = { "name" },',
                "",
            },
            ["name.requried: unknown field; did you mean required?"] = { "", "requried = true" },
            ["endpoint_key: value must be a field name"] = { 'endpoint_key = "nmae",', "" },
            ["ttl: expected a boolean"] = { "ttl = 3,", "" },
            ["name.one_of: expected an array"] = { "", 'one_of = "a"' },
        }) do
            local loaded, err = load_from(
                folder({
                    ["kong/plugins/mine/handler.lua"] = HANDLER,
                    ["kong/plugins/mine/schema.lua"] = SCHEMA:format("mine"),
                    ["kong/plugins/mine/daos.lua"] = DAOS:format("my_things", unpack(words)),
                }),
                { "mine" }
            )
            local start = "plugin 'mine': daos.lua: 'my_things': "
            assert.same({ nil, start .. said }, { loaded, err })
            assert.is_nil(require("gateway.entities").get("my_things"))
        end
    end)

    it("says in one sentence that Sluice lacks a module of Kong's", function()
        local loaded, err = load_from(
            folder({
                ["kong/plugins/mine/handler.lua"] = 'require("kong.singletons")',
                ["kong/plugins/mine/schema.lua"] = SCHEMA:format("mine"),
            }),
            { "mine" }
        )
        local said = "plugin 'mine': handler.lua: module 'kong.singletons' not found: "
            .. "Sluice has none of this name (docs/modules.md has those of Kong)"
        assert.same({ nil, said }, { loaded, err })
    end)

    it("runs classes of Kong 2: the phases that they have themselves", function()
        local source = [[
            local BasePlugin = require("kong.plugins.base_plugin")
            local Old = BasePlugin:extend()
            Old.PRIORITY = 3
            function Old:new()
                Old.super.new(self, "old")
                self.made = true
            end
            function Old:access(conf)
                Old.super.access(self)
                return self._name, self.made, conf
            end
            return Old
        ]]
        local loaded = assert(load_from(
            folder({
                ["kong/plugins/old/handler.lua"] = source,
                ["kong/plugins/old/schema.lua"] = SCHEMA:format("old"),
            }),
            { "old" }
        ))
        local handler = loaded:get("old").handler
        assert.same({ "old", true, "conf" }, { handler:access("conf") })
        assert.is_false(handler.log)
        assert.same({ 3, "0.0.0" }, { loaded:get("old").priority, loaded:get("old").version })
    end)

    it("warns of what looks like a phase and never runs", function()
        assert.same({}, support.registry:warnings())
        local function phase() end
        package.preload["plugins.typos.handler"] = function()
            return {
                VERSION = "1",
                PRIORITY = 1,
                acess = phase,
                access = phase,
                helper = phase,
                loog = "no function",
                preread = phase,
                [1] = phase,
            }
        end
        package.preload["plugins.typos.schema"] = function()
            return { name = "typos", fields = { { config = { type = "record", fields = {} } } } }
        end
        assert.same({
            "plugin 'typos': handler.lua: the phase preread is not available to plugins in Lua; "
                .. "it never runs",
            "plugin 'typos': handler.lua: acess is no phase and never runs; did you mean access?",
        }, assert(registry.load({ "typos" })):warnings())
        package.preload["plugins.typos.handler"] = nil
        package.preload["plugins.typos.schema"] = nil
    end)
end)
