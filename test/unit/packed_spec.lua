local core = require("sluice.ffi.core")
local ffi = require("ffi")
local layout = require("gateway.store.layout")
local packed = require("sluice.ffi.packed")
local records = require("gateway.image.records")
local store = require("test.unit.support.store")
local support = require("test.unit.support.writer")
local writer = require("gateway.writer")

local MODULE = "test.native"
local ID = "00000000-0000-4000-8000-000000000001"

describe("packed configurations", function()
    local place

    before_each(function()
        package.loaded[MODULE] = {
            pack = function(config)
                return "one " .. config.text
            end,
        }
        place = support.place()
    end)

    after_each(function()
        package.loaded[MODULE] = nil
        support.clean()
    end)

    -- Opens a writer with one native plugin, by the name `native`, of this version.
    local function open(version)
        local packers = version and { native = { version = version, module = MODULE } }
        place.layouts = layout.derive(store.schemas(), { packers = packers })
        return (support.open(place))
    end

    local function put(opened, name, text)
        local plugin = { id = ID, name = name, config = { text = text } }
        return writer.complete(opened.store.by_kind, { kind = "plugins", put = plugin })
    end

    it("are numbers and texts in words of 32 bits", function()
        local out = packed.new()
        out:number(-1)
        out:text("abc")
        out:text(nil)
        out:list({ "a", "" })
        out:double(0.5)
        local bytes = out:bytes()
        local words = ffi.new("uint32_t[2]", 2 ^ 32 - 1, 3)
        assert.equal(ffi.string(words, 8) .. "abc", bytes:sub(1, 11))
        assert.equal(("\255"):rep(4), bytes:sub(12, 15))
        words[0], words[1] = 2, 1
        assert.equal(ffi.string(words, 8) .. "a\0\0\0\0", bytes:sub(16, 28))
        assert.equal(0.5, ffi.cast("double *", ffi.cast("const char *", bytes) + 28)[0])
        assert.equal(36, #bytes)
        assert.equal("", out:bytes())
    end)

    it("stand in the image, of native plugins only", function()
        local opened = open("1")
        assert(opened:batch({ { assert(put(opened, "native", "a")) } }))
        assert.truthy(support.published(place):find(" native 0 one a ", 1, true))
        assert(opened:batch({ { assert(put(opened, "other", "a")) } }))
        assert.truthy(support.published(place):find(" other 0 - ", 1, true))
        opened:close()
    end)

    it("say which phases in Lua they need, where their plugin does", function()
        package.loaded[MODULE].lua_phases = function(config)
            return config.text == "a" and { "access", "log" } or {}
        end
        local packers = {
            native = { version = "1", module = MODULE, packs = true, has_phases = true },
            lua = { version = "1", module = MODULE, packs = false, has_phases = true },
        }
        place.layouts = layout.derive(store.schemas(), { packers = packers })
        local opened = support.open(place)
        -- 0x02 and 0x10, in units of 0x100.
        assert(opened:batch({ { assert(put(opened, "native", "a")) } }))
        assert.truthy(support.published(place):find(" native 4608 one a ", 1, true))
        assert(opened:batch({ { assert(put(opened, "lua", "a")) } }))
        assert.truthy(support.published(place):find(" lua 4608 - ", 1, true))
        assert(opened:batch({ { assert(put(opened, "lua", "b")) } }))
        assert.truthy(support.published(place):find(" lua 0 - ", 1, true))
        opened:close()
    end)

    it("say so in what stands for those of consumers", function()
        package.loaded[MODULE].lua_phases = function(config)
            return config.text == "lua" and { "log" } or {}
        end
        local packers =
            { native = { version = "1", module = MODULE, packs = true, has_phases = true } }
        place.layouts = layout.derive(store.schemas(), { packers = packers })
        local opened = support.open(place)
        local function change(kind, entity)
            local made = writer.complete(opened.store.by_kind, { kind = kind, put = entity })
            assert(opened:batch({ { assert(made) } }))
        end
        -- The flags of all placeholders, which nobody has packed.
        local function placeholders()
            local found = {}
            for flags in support.published(place):gmatch(" native (%d+) %- ") do
                found[#found + 1] = flags
            end
            table.sort(found)
            return table.concat(found, " ")
        end
        local function configure(number, text, enabled)
            change("plugins", {
                id = ID:sub(1, -2) .. number,
                name = "native",
                config = { text = text },
                consumer = { id = ID:sub(1, -2) .. number },
                enabled = enabled,
            })
        end
        for number = 1, 2 do
            change("consumers", { id = ID:sub(1, -2) .. number, username = "c" .. number })
        end
        configure(1, "plain")
        assert.equal("1", placeholders())
        configure(2, "lua")
        assert.equal("1 5", placeholders())
        configure(1, "lua")
        assert.equal("5", placeholders())
        configure(2, "lua", false)
        assert.equal("5", placeholders())
        configure(1, "plain")
        assert.equal("1", placeholders())
        assert.equal(support.built(opened), (support.published(place)))
        opened:close()
    end)

    it("are made anew by another version of the plugin, and of no other kind", function()
        local opened = open("1")
        assert(opened:batch({ { assert(put(opened, "native", "a")) } }))
        opened:close()
        package.loaded[MODULE].pack = function(config)
            return "two " .. config.text
        end
        opened = open("1")
        assert.truthy(support.published(place):find(" native 0 one a ", 1, true))
        opened:close()
        opened = open("2")
        assert.truthy(support.published(place):find(" native 0 two a ", 1, true))
        assert.equal(support.built(opened), (support.published(place)))
        opened:close()
        opened = open(nil)
        assert.truthy(support.published(place):find(" native 0 - ", 1, true))
        opened:close()
        local by_kind = layout.by_kind(place.layouts)
        assert.equal(records.version(by_kind.routes), records.version(by_kind.plugins))
        local packers = { native = { version = "9", module = MODULE } }
        by_kind = layout.by_kind(layout.derive(store.schemas(), { packers = packers }))
        assert.are_not.equal(records.version(by_kind.routes), records.version(by_kind.plugins))
    end)

    it("are refused where the plugin cannot, with its words", function()
        package.loaded[MODULE].pack = function()
            error("is nothing that C can do", 0)
        end
        local opened = open("1")
        local change, err = put(opened, "native", "a")
        assert.is_nil(change)
        assert.equal(
            "unbuildable plugins config",
            ("%s %s %s"):format(err.err, err.kind, err.field)
        )
        assert.truthy(err.message:find("config is nothing that C can do", 1, true))
        package.loaded[MODULE].pack = function()
            return ("x"):rep(2 ^ 20 + 1)
        end
        change, err = put(opened, "native", "a")
        assert.is_nil(change)
        assert.truthy(err.message:find("longer than 1 MiB", 1, true))
        opened:close()
    end)
end)

describe("the place of packed configurations", function()
    it("is what both languages say", function()
        assert.equal(6, tonumber(core.C.SLUICE_CORE_PLUGIN_PACKED))
    end)
end)
