local stand_ins = require("test.unit.support.stand_ins")

describe("gateway.writer.announcing", function()
    local restore, now, live, answer, logged, notified, one

    before_each(function()
        now, logged, notified, answer = 1000, 0, 0, true
        restore = stand_ins.put({
            ["gateway.writer.announcing"] = false,
            ["sluice.clock"] = {
                monotonic = function()
                    return now
                end,
            },
        }, {
            log = function()
                logged = logged + 1
            end,
        })
        live = { 1, 1 }
        one = require("gateway.writer.announcing").new(function()
            return unpack(live)
        end, function()
            notified = notified + 1
            return answer, not answer and "full" or nil
        end)
    end)

    after_each(function()
        restore()
    end)

    -- Looks when it has said so, and each time that something else wakes the loop.
    local function run(seconds, step)
        local to = now + seconds
        while now < to do
            now = math.min(to, now + math.min(one:look(), step or math.huge))
        end
    end

    it("notifies once for each new file", function()
        run(100, 1)
        assert.equal(1, notified)
        live = { 1, 2 }
        run(100, 1)
        assert.equal(2, notified)
        live = {}
        run(100, 1)
        assert.equal(2, notified)
        assert.equal(0, logged)
    end)

    it("notifies again until that succeeds, at most once a minute in the end", function()
        answer = nil
        run(600, 0.01)
        assert.is_true(notified >= 14)
        assert.is_true(notified <= 16)
        assert.equal(1, logged)
        answer, notified = true, 0
        run(60)
        assert.equal(1, notified)
        run(600)
        assert.equal(1, notified)
        -- Another failure does not wait as long as the last one did.
        answer, notified, live = nil, 0, { 2, 3 }
        run(2)
        assert.equal(2, notified)
    end)
end)
