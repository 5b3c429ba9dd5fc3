--- The writer's queue without nginx: who waits for what, how long, and what becomes of it.

local stand_ins = require("test.unit.support.stand_ins")

describe("gateway.writer.queue", function()
    local CHANGES = { { kind = "routes", delete = "1" } }

    local restore, now, queue, state, batches, loop
    -- What has become of the store's files; what the role was told; how often it was taken.
    local lost, looks, noted, taken

    -- A role that is taken at once, but says what the test wants.
    local role = {
        is_open = function()
            return true
        end,
        is_leaving = function()
            return false
        end,
        note = function(word, message)
            noted[#noted + 1] = word .. ": " .. tostring(message)
        end,
        is_shut = function()
            return state == "starting"
        end,
        lost = function()
            return lost
        end,
        look_again = function()
            return unpack(table.remove(looks, 1), 1, 2)
        end,
        note_made = function() end,
        not_ready = function()
            return nil, { err = "not ready", message = state }
        end,
        start = function() end,
        state = function()
            return { state = state }
        end,
        take = function()
            taken = taken + 1
            return "copy"
        end,
        wake = function() end,
        wait = coroutine.yield,
        give_up = function() end,
        run = function(name, transactions)
            assert.equal("batch", name)
            batches[#batches + 1] = transactions
            if state == "moved" then
                state = "live"
                return nil, { err = "moved", message = "is missing" }
            end
            local results = {}
            for i in ipairs(transactions) do
                results[i] = { revision = i }
            end
            return results
        end,
    }

    -- Waits in turns of the test.
    local semaphore = {
        new = function()
            return { post = function() end, wait = coroutine.yield }
        end,
    }

    local function never()
        return math.huge
    end

    before_each(function()
        now, state, batches = 1000, "live", {}
        lost, noted, taken = nil, {}, 0
        restore = stand_ins.put({
            ["gateway.writer"] = {
                complete = function(_, change)
                    return change
                end,
            },
            ["gateway.writer.announcing"] = {
                new = function()
                    return { look = never }
                end,
            },
            ["gateway.writer.maintenance"] = {
                new = function()
                    return { begin = function() end, look = never }
                end,
            },
            ["gateway.writer.queue"] = false,
            ["gateway.writer.role"] = role,
            ["ngx.semaphore"] = semaphore,
            ["sluice.clock"] = {
                monotonic = function()
                    return now
                end,
            },
            ["sluice.ffi.images"] = { page = function() end },
        }, {
            ALERT = 1,
            ERR = 2,
            log = function() end,
            sleep = coroutine.yield,
            timer = {
                at = function(_, run)
                    loop = coroutine.create(run)
                    return true
                end,
            },
        })
        queue = require("gateway.writer.queue")
        queue.start({ layouts = {} })
    end)

    after_each(function()
        restore()
    end)

    local function resume(thread)
        assert(coroutine.resume(thread))
    end

    -- Begins to wait for a change; `answer.done` says whether it is over.
    local function ask(verb, ...)
        local answer, arguments = {}, { ... }
        answer.thread = coroutine.create(function()
            answer.result, answer.err = queue[verb](unpack(arguments))
            answer.done = true
        end)
        resume(answer.thread)
        return answer
    end

    local function wait_until(answer, seconds)
        while not answer.done and now < seconds do
            now = now + 1
            resume(answer.thread)
        end
    end

    it("has what waits together share a commit, and answers each", function()
        local one, other = ask("transaction", CHANGES), ask("transaction", CHANGES)
        resume(loop)
        resume(one.thread)
        resume(other.thread)
        assert.equal(1, #batches)
        assert.same({ 1, 2 }, { one.result.revision, other.result.revision })
    end)

    it("refuses a change after ten seconds without the role, and never makes it", function()
        state = "waiting"
        local late = ask("transaction", CHANGES)
        wait_until(late, 1010)
        assert.is_nil(late.done)
        wait_until(late, 1011)
        assert.same({ err = "not ready", message = "waiting" }, late.err)
        state = "live"
        resume(loop)
        assert.same({}, batches)
    end)

    it("has a change wait as long as it takes while another is being made", function()
        local waits = ask("transaction", CHANGES)
        wait_until(waits, 1100)
        assert.is_nil(waits.done)
        resume(loop)
        resume(waits.thread)
        assert.equal(1, waits.result.revision)
    end)

    it("refuses a change at once where the store cannot be opened", function()
        state = "starting"
        local refused = ask("transaction", CHANGES)
        assert.same({ err = "not ready", message = "starting" }, refused.err)
    end)

    it("takes the role anew when the store's files have gone, and refuses what waits", function()
        lost = "store.db: is missing"
        local refused = ask("transaction", CHANGES)
        role.give_up = function(is_saved)
            assert.is_true(is_saved)
            lost, role.give_up = nil, function() end
        end
        looks = { { nil, lost }, { nil, "a reason" }, { "free" } }
        resume(loop)
        resume(refused.thread)
        assert.equal("not ready", refused.err.err)
        resume(loop)
        resume(loop)
        assert.same(
            { { "starting: store.db: is missing", "starting: a reason" }, 2, {} },
            { noted, taken, batches }
        )
        local made = ask("transaction", CHANGES)
        resume(loop)
        resume(made.thread)
        assert.equal(1, made.result.revision)
    end)

    it("does so where a commit finds it", function()
        state, looks = "moved", { { "free" } }
        local refused = ask("transaction", CHANGES)
        resume(loop)
        resume(refused.thread)
        local message = "the configuration cannot be changed: is missing"
        assert.same({ err = "not ready", message = message }, refused.err)
        assert.same({ { "starting: is missing" }, 2 }, { noted, taken })
    end)

    it("goes on where the files are back", function()
        lost, looks = "is missing", { { "back" } }
        local look_again = role.look_again
        role.look_again = function()
            lost, role.look_again = nil, look_again
            return look_again()
        end
        resume(loop)
        local made = ask("transaction", CHANGES)
        resume(loop)
        resume(made.thread)
        assert.equal(1, made.result.revision)
        assert.same({ { "starting: is missing", "live: nil" }, 1 }, { noted, taken })
    end)

    it("answers who waits for what throws, and goes on", function()
        role.call = function()
            error("thrown on purpose", 0)
        end
        local broken, behind = ask("in_turn", "begin"), ask("transaction", CHANGES)
        resume(loop)
        resume(broken.thread)
        resume(behind.thread)
        assert.same({ err = "failed", message = "thrown on purpose" }, broken.err)
        assert.equal("not ready", behind.err.err)
        local next_one = ask("transaction", CHANGES)
        resume(loop)
        resume(next_one.thread)
        assert.equal(1, next_one.result.revision)
    end)
end)
