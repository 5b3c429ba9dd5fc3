-- The list of entries that stand in lines of texts, beside an array of entries.
--
-- SEED repeats a run.

local lines = require("sluice.lines")

local ROUNDS = 20000
local SEED = require("test.unit.support.seed")("lines")

local function text_of(entries, from, count)
    return table.concat(entries, "\n", from, from + count - 1) .. "\n"
end

describe("a list of lines", function()
    it("is empty at first", function()
        assert.equal(0, lines.new().count)
    end)

    it("gives out an entry that is alone as it came, whatever is in it", function()
        local list = lines.new()
        list:push("a\nb", 1)
        assert.same({ "a\nb", 1 }, { list:take(1) })
        assert.equal(0, list.count)
    end)

    it("cuts a text where fewer are taken, and gives out what is left as one", function()
        local list = lines.new()
        list:push("1\n2\n3\n4\n", 4)
        list:push("5\n", 1)
        assert.same({ "1\n2\n", 2 }, { list:take(2) })
        assert.equal(3, list.count)
        assert.same({ "3\n4\n", 2 }, { list:take(9) })
        assert.same({ "5\n", 1 }, { list:take(9) })
    end)

    it("is what an array of entries is, seed " .. SEED, function()
        math.randomseed(SEED)
        local list, model, made = lines.new(), {}, 0
        for _ = 1, ROUNDS do
            local what = math.random(3)
            if what == 1 then
                local count = math.random(6)
                local entries = {}
                for i = 1, count do
                    made = made + 1
                    entries[i] = ("x"):rep(math.random(0, 3)) .. made
                    model[#model + 1] = entries[i]
                end
                list:push(text_of(entries, 1, count), count)
            elseif #model > 0 then
                local most = math.random(8)
                local text, count = list:take(most)
                assert.is_true(count >= 1 and count <= most)
                assert.equal(text_of(model, 1, count), text)
                if what == 2 then
                    list:put_back(text, count)
                else
                    for _ = 1, count do
                        table.remove(model, 1)
                    end
                end
            end
            assert.equal(#model, list.count)
        end
        assert.is_true(made > ROUNDS / 2)
    end)
end)
