-- The rules of the house in C, and functions that nobody uses, in C and in Lua.

local c = require("test.house.c")
local dead = require("test.house.dead")
local files = require("test.house.files")
local rules = require("test.house.rules")
local scan = require("test.house.scan")

describe("the house", function()
    local house = scan.read(".")

    it("has been read in C: some known calls are there", function()
        local modules = house.modules
        assert.is_truthy(modules["module.core.ring.ring.c"].uses["module.core.ring.ring_lock.c"])
        assert.is_truthy(
            modules["module.lib.events.ngx_sluice_events.c"].uses["module.core.ring.ring_map.c"]
        )
        local events = modules["lib.sluice.events.module"]
        assert.is_truthy(events.uses["module.lib.events.ngx_sluice_events.c"])
        assert.is_nil(modules["module.core.ring.ring_lock.c"].uses["module.core.ring.ring.c"])
    end)

    it("has no functions of C that nobody uses", function()
        assert.same({}, dead.in_c(house, rules))
    end)

    it("has no functions of Lua that nobody uses", function()
        assert.same({}, dead.in_lua(house, rules))
    end)

    it("has names in C that say which file has them", function()
        assert.same({}, dead.misnamed(house, rules))
    end)

    it("has for Lua what its headers declare for it, and nothing else", function()
        local declared, found = {}, {}
        for _, file in pairs(house.headers) do
            local text = files.read(file)
            for region in text:gmatch("\n/%* FFI %*/\n(.-)\n/%* FFI end %*/\n") do
                for name in pairs(c.read(region).declares) do
                    declared[name] = true
                    if not house.functions[name] then
                        found[#found + 1] = file .. " declares " .. name .. "(), which is nowhere"
                    end
                end
            end
        end
        for _, module in pairs(house.modules) do
            for i, token in ipairs(module.code or {}) do
                local is_of_c = i > 2 and module.code[i - 2].text == "C"
                if is_of_c and token.text:find("^sluice_") and not declared[token.text] then
                    found[#found + 1] = ("%s:%d: no header declares %s() for Lua"):format(
                        module.file,
                        token.line,
                        token.text
                    )
                end
            end
        end
        assert.is_truthy(declared.sluice_var_count and declared.sluice_core_check)
        assert.same({}, found)
    end)

    it("declares to FFI what is the module's by sluice.abi alone", function()
        local found = {}
        for _, module in pairs(house.modules) do
            local code = module.code or {}
            for i, token in ipairs(code) do
                local text = token.text == "cdef" and (code[i + 2] or code[i + 1]).text or ""
                for name in text:gmatch("[%a_][%w_]*") do
                    if house.functions[name] and module.name ~= "lib.sluice.ffi.abi" then
                        found[#found + 1] = module.file .. " declares " .. name
                    end
                end
            end
        end
        assert.same({}, found)
    end)

    -- nginx makes no list for HTTP/0.9: pushing to it elsewhere has crashed a worker.
    it("adds lines to lists of headers in one place", function()
        local found = {}
        for file, text in scan.sources({ "module", "plugins" }, "%.[ch]$") do
            found[#found + 1] = c.read(text).uses.ngx_list_push and file or nil
        end
        assert.same({ "module/lib/header/ngx_http_sluice_header_list.c" }, found)
    end)

    it("has nothing in its lists of exceptions that is not there", function()
        local gone = {}
        for name in pairs(rules.misnamed) do
            gone[#gone + 1] = not house.functions[name] and name or nil
        end
        for name in pairs(rules.alive) do
            local module, fn = name:match("^(.*)%.([^.]+)$")
            local source = module and house.modules[module]
            local is_there = house.functions[name]
            for _, token in ipairs(source and source.code or {}) do
                is_there = is_there or token.text == fn
            end
            if not is_there then
                gone[#gone + 1] = name
            end
        end
        assert.same({}, gone)
    end)
end)

local function functions(source)
    local found = {}
    for name, fn in pairs(c.read(source).functions) do
        found[#found + 1] = ("%s:%d%s"):format(name, fn.line, fn.static and " static" or "")
    end
    table.sort(found)
    return found
end

describe("what reads C", function()
    it("finds functions, however their heads are written", function()
        assert.same(
            { "four:14 static", "one:1", "three:9", "two:6 static" },
            functions([[
int
one(int a)
{
    if (a) { return 1; }
}
static const char *two(void) { return "}"; }
int prototype(int a);

struct a *three(int (*f)(int), char c
    /* ( */)
{
    return c == '{' ? NULL : f(1);
}
static ngx_inline uint64_t
four(void)
{
}
]])
        )
    end)

    it("leaves comments, strings and prototypes alone", function()
        local uses = c.read([[
/* a() */ // b()
int c(int d);
#include "e.h"
static char *f = "g()\"h()";
int i(void) { return '"' + j("k()"); }
]]).uses
        assert.is_nil(uses.a or uses.b or uses.c or uses.d or uses.e or uses.g or uses.h or uses.k)
        assert.is_truthy(uses.j.by.i)
    end)

    it("finds uses in tables, values and macros", function()
        local uses = c.read([[
static int_pt  a = b;
static command_t  c[] = {
    { "d", e },
};
#define f(x)  \
    g(x, h)
]]).uses
        assert.is_truthy(uses.b.by[""])
        assert.equal(3, uses.e.line)
        assert.equal(6, uses.g.line)
        assert.equal(6, uses.h.line)
    end)
end)

--- The rules that sources break.
local function violations(sources)
    return (scan.violations(scan.build(sources), rules))
end

describe("the scan of C", function()
    it("has nothing against calls that run downwards", function()
        assert.same(
            {},
            violations({
                ["module/core/ring/ring.h"] = "int ring_put(void);",
                ["module/core/ring/ring.c"] = '#include "ring.h"\nint ring_put(void) { }',
                ["module/lib/events/events.c"] = '#include "ring.h"\nint f(void) { ring_put(); }',
            })
        )
    end)

    it("names the file, the line and the function of a call that runs upwards", function()
        assert.same(
            {
                "module/core/ring/ring.c:2 calls ev_wake() of module.lib.events.events.c: "
                    .. "runs upwards from module.core.ring to module.lib.events",
            },
            violations({
                ["module/core/ring/ring.c"] = "int ring_put(void) {\nev_wake(); }",
                ["module/lib/events/events.c"] = "int ev_wake(void) { }",
            })
        )
    end)

    it("keeps the rooms of plain C apart", function()
        local found = violations({
            ["module/core/ring/ring.c"] = '#include "wheel.h"\nint a(void) { }',
            ["module/core/wheel/wheel.h"] = "",
        })
        assert.equal(1, #found)
        assert.matches(
            "ring.c:1 includes module.core.wheel.wheel.h: runs between rooms",
            found[1],
            1,
            true
        )
        found = violations({ ["module/core/image/core.c"] = "#include <ngx_core.h>" })
        assert.matches("core.c:1 includes ngx_core.h: plain C knows nothing", found[1], 1, true)
    end)

    it("keeps what plugins decide plain", function()
        local source = "#include <ngx_config.h>\n#include <ngx_core.h>"
        local found = violations({ ["plugins/one-two/sluice_one_two.c"] = source })
        assert.matches("one_two.c:1 includes ngx_config.h: plain C knows", found[1], 1, true)
        assert.same({}, violations({ ["plugins/one-two/ngx_http_sluice_one_two.c"] = source }))
    end)

    it("has nginx's header of the platform before the system's", function()
        local sources = {
            ["module/core/image/core.h"] = "#include <stddef.h>",
            ["module/gateway/log/a.h"] = "#include <ngx_config.h>",
            ["module/gateway/log/a.c"] = '#include "a.h"\n#include "core.h"',
        }
        assert.same({}, violations(sources))
        sources["module/gateway/log/a.c"] = '#include "core.h"\n#include "a.h"'
        local why = "module/core/image/core.h:1 includes stddef.h before ngx_config.h"
        assert.same({ "module/gateway/log/a.c: " .. why }, violations(sources))
    end)

    it("finds cycles within a room", function()
        assert.same(
            { "cycle: module.core.ring.a.c -> module.core.ring.b.c -> module.core.ring.a.c" },
            violations({
                ["module/core/ring/a.c"] = "int a(void) { b(); }",
                ["module/core/ring/b.c"] = "int b(void) { a(); }",
            })
        )
    end)

    it("keeps what the doors shut out of C, too", function()
        local sources = { ["plugins/two/two.c"] = "int two_x(void) { }" }
        for _, file in ipairs({
            "plugins/one/handler.lua",
            "plugins/two/handler.lua",
            "cli/main.lua",
        }) do
            sources[file] = "C.two_x()"
        end
        local found = {}
        for _, line in ipairs(violations(sources)) do
            found[#found + 1] = line:match("^(%S+):1 calls two_x%(%) of plugins%.two%.two%.c: ")
        end
        -- Two may call its own.
        assert.same({ "cli/main.lua", "plugins/one/handler.lua" }, found)
    end)

    it("sees what Lua calls, in the code and in declarations", function()
        local house = scan.build({
            ["lib/sluice/x.lua"] = 'ffi.cdef("int x_a(void);") C.x_b()',
            ["module/lib/events/x.c"] = "int x_a(void) { }\nint x_b(void) { }\nint x_c(void) { }",
        })
        assert.is_truthy(house.modules["lib.sluice.x"].uses["module.lib.events.x.c"])
        assert.same({ "module/lib/events/x.c:3: x_c() is used by nobody" }, dead.in_c(house, rules))
    end)
end)

describe("the search for dead functions", function()
    it("finds those of C that could be static", function()
        assert.same(
            { "module/core/ring/a.c:1: a() is used in this file alone: make it static" },
            dead.in_c(
                scan.build({
                    ["module/core/ring/a.c"] = "int a(void) { a(); }\nint b(void) { a(); }",
                    ["module/core/ring/b.c"] = "static x  y = b;",
                }),
                rules
            )
        )
    end)

    it("leaves alone what a library declares", function()
        local house = scan.build({
            ["module/core/image/core.h"] = "int a(void);",
            ["module/core/image/a.c"] = "int a(void) { }\nint b(void) { }",
        })
        assert.same({ "module/core/image/a.c:2: b() is used by nobody" }, dead.in_c(house, rules))
    end)

    it("finds public names that do not say where they stand", function()
        local header = "module/gateway/plugin/ngx_http_sluice_plugin.h"
        local source = "module/gateway/plugin/ngx_http_sluice_early.c"
        local house = scan.build({
            ["module/core/ring/ring_slot.c"] = "int sluice_ring_take(void) { }",
            [header] = "int ngx_http_sluice_plugin_set(void);",
            [source] = "int ngx_http_sluice_plugin_set(void) { }\n"
                .. "int ngx_http_sluice_late(void) { }",
        })
        assert.same({
            source .. ":2: ngx_http_sluice_late() does not begin with its file's name",
        }, dead.misnamed(house, rules))
    end)

    it("finds functions and methods of Lua", function()
        local house = scan.build({
            ["gateway/a.lua"] = "function _M.f() end\nfunction _M.g() end\nfunction m:h() end\n"
                .. "function m:i() end\nfunction _M.j() end\nfunction m:k() end",
            ["gateway/b.lua"] = "local f = a.f\na:i()\nlocal x = t.h\nlocal s = 'a.j()'",
        })
        assert.same({
            "gateway/a.lua:2: g is used by nobody",
            "gateway/a.lua:3: h is used by nobody",
            "gateway/a.lua:6: k is used by nobody",
        }, dead.in_lua(house, rules))
    end)

    it("leaves what users' code calls alone", function()
        local house = scan.build({ ["lib/sluice/x.lua"] = "function _M.f() end" })
        assert.same({}, dead.in_lua(house, rules))
    end)
end)
