local stand_ins = require("test.unit.support.stand_ins")

describe("gateway.writer.maintenance", function()
    local restore, now, live, asked, answer, begun, logged

    local function call(verb)
        asked[#asked + 1] = verb
        if verb == "live" then
            return live
        end
        return unpack(answer[verb] or { true })
    end

    before_each(function()
        asked, answer, logged, now = {}, {}, {}, 1000
        restore = stand_ins.put({
            ["gateway.writer.maintenance"] = false,
            ["sluice.clock"] = {
                monotonic = function()
                    return now
                end,
            },
            ["sluice.ffi.images"] = {
                crashes = function()
                    return 0
                end,
                are_checked = function()
                    return true
                end,
                note_checked = function() end,
            },
        }, {
            log = function(_, ...)
                logged[#logged + 1] = table.concat({ ... })
            end,
            timer = {
                at = function(_, fn, ...)
                    local arguments = { ... }
                    begun = function()
                        fn(false, unpack(arguments))
                    end
                    return true
                end,
            },
        })
        live = {
            base = 1,
            delta = 1,
            stamp = "1",
            is_whole = true,
            used = 0,
            room = 100,
            revision = 1,
            base_revision = 1,
            log_bytes = 0,
        }
    end)

    after_each(function()
        restore()
    end)

    -- With all done that a start leaves to do, and a kernel that tells of files.
    local function idle()
        local maintenance = require("gateway.writer.maintenance")
        local one = maintenance.new({ call = call, in_turn = call }, function() end, function()
            return true
        end)
        one:begin(true)
        return one
    end

    -- Looks when it has said so, and when something has ended: nothing else wakes it.
    local function run(one, seconds)
        local to = now + seconds
        asked = {}
        while now < to do
            local wait = one:look()
            if begun then
                local ends = begun
                begun = nil
                ends()
            else
                now = math.min(to, now + math.max(wait, 0.001))
            end
        end
    end

    local function count(verb)
        local found = 0
        for _, each in ipairs(asked) do
            found = found + (each == verb and 1 or 0)
        end
        return found
    end

    it("does not look again where nothing is due", function()
        local one = idle()
        run(one, 60)
        run(one, 86400)
        assert.is_true(#asked <= 1)
    end)

    it("empties a large log again, ten seconds after that failed", function()
        local one = idle()
        run(one, 60)
        one:hurry()
        live.is_log_large, live.log_bytes = true, 2 ^ 30
        answer.empty_log = { nil, { err = "disk" } }
        run(one, 35)
        assert.is_true(count("empty_log") >= 3)
        assert.is_true(count("empty_log") <= 4)
    end)

    it("saves a base again, ten seconds after that failed", function()
        local one = idle()
        run(one, 60)
        one:hurry()
        live.base = 2
        answer.save = { nil, { err = "disk" } }
        run(one, 35)
        assert.is_true(count("save") >= 3)
        assert.is_true(count("save") <= 4)
    end)

    it("reports what failed, but not that the worker has given up its role", function()
        local one = idle()
        run(one, 60)
        live.is_log_large, live.log_bytes = true, 2 ^ 30
        for message, err in pairs({ gone = "not ready", full = "disk" }) do
            one:hurry()
            answer.empty_log = { nil, { err = err, message = message } }
            run(one, 15)
        end
        assert.is_true(#logged >= 1)
        for _, line in ipairs(logged) do
            assert.equal("control: the store's log was not truncated: full", line)
        end
    end)
end)
