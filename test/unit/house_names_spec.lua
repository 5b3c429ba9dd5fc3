-- Words that were retired do not come back as names.

local scan = require("test.house.scan")
local words = require("test.house.names")

describe("the words of the house", function()
    it("are the field's, in every name of the product", function()
        local found, count = {}, 0
        local folders = { "cli", "gateway", "lib", "module", "plugins" }
        for path, text in scan.sources(folders, "%.lua$", "%.[ch]$") do
            count = count + 1
            for _, complaint in ipairs(words.complaints(path, text)) do
                found[#found + 1] = complaint
            end
        end
        assert.same({}, found)
        assert.is_true(count > 300, ("only %d files were found"):format(count))
    end)

    it("are looked for in names, whole or between underscores", function()
        assert.same(
            { "a.c:2: take_seat: say slot, of a registration; shard, of counts" },
            words.complaints("a.c", '/* a seat */\nint take_seat(void);\nchar *s = "seat";\n')
        )
        assert.same(
            { "a.h:1: SEATS: say slots, shards" },
            words.complaints("a.h", "#define SEATS 8\n")
        )
        assert.same(
            { "a.lua:1: told: say reported, notified" },
            words.complaints("a.lua", "told()")
        )
        assert.same({ "x/heir.lua:1: heir: say successor" }, words.complaints("x/heir.lua", ""))
        assert.same({}, words.complaints("a.lua", "-- told\nlocal s = 'heir' .. seated"))
    end)
end)
