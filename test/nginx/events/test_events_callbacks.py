"""Callbacks that yield, fail, are slow, end their context, or change the subscriptions."""

from collections.abc import Iterator

import pytest

from events_nginx import Events, names, over_socket
from wire import wait_until


# The dispatcher is the same for all transports, but how it is woken and fed is not.
@pytest.fixture(params=[Events, over_socket])
def ring(request: pytest.FixtureRequest) -> Iterator[Events]:
    """One worker with a transport."""
    with request.param(workers=1) as running:
        yield running.ready()


def log(ring: Events, count: int) -> list[str]:
    """The test's own log, once it has so many lines."""
    wait_until(lambda: ring.run(0, "return #probe.log") >= count, f"{count} lines in the log")
    return ring.run(0, "return probe.log")


# Keeps the worker, and everything in it, from its work.
BUSY = """
    local function busy(seconds)
        ngx.update_time()
        local till = ngx.now() + seconds
        repeat ngx.update_time() until ngx.now() >= till
    end
"""


def test_callbacks_run_in_the_order_of_subscription(ring: Events) -> None:
    code = """
        probe.log = {}
        for i = 1, 20 do
            ev:subscribe(i % 3 == 0 and "*" or "o", i % 2 == 0 and "*" or "e", function(data)
                table.insert(probe.log, data .. "/" .. i)
            end)
        end
        ev:publish("all", "o", "e", "a") ev:publish("all", "o", "e", "b")
    """
    ring.run(0, code)
    assert log(ring, 40) == [f"{d}/{i}" for d in "ab" for i in range(1, 21)]


def test_a_callback_that_yields_holds_up_nobody(ring: Events) -> None:
    code = """
        probe.log = {}
        local last = require("ngx.semaphore").new(0)
        ev:subscribe("y", "*", function(data, event)
            if event == "slow" then
                local heard = last:wait(30)
                table.insert(probe.log, (heard and "slow done " or "held up ") .. data)
            end
        end)
        ev:subscribe("y", "*", function(data, event)
            table.insert(probe.log, event .. data)
            if data == 5 then last:post() end
        end)
        ev:publish("all", "y", "slow", 1)
        for i = 2, 5 do ev:publish("all", "y", "fast", i) end
    """
    ring.run(0, code)
    assert log(ring, 6) == ["slow1", "fast2", "fast3", "fast4", "fast5", "slow done 1"]


def test_more_callbacks_wait_than_there_are_contexts(ring: Events) -> None:
    code = """
        probe.done, probe.at_once, probe.most = 0, 0, 0
        ev:subscribe("many", "*", function()
            probe.at_once = probe.at_once + 1
            probe.most = math.max(probe.most, probe.at_once)
            for _ = 1, 1500 do if probe.open then break end ngx.sleep(0.02) end
            probe.at_once = probe.at_once - 1
            probe.done = probe.done + 1
        end)
        for i = 1, 1000 do ev:publish("all", "many", "e", i) end
    """
    ring.run(0, code)
    wait_until(lambda: ring.run(0, "return probe.at_once") >= 30, "callbacks to wait")
    ring.run(0, "probe.open = true")
    wait_until(lambda: ring.run(0, "return probe.done") == 1000, "all callbacks to return")
    assert 30 <= ring.run(0, "return probe.most") <= 64
    # And all is as before.
    ring.forget()
    ring.publish(count=3)
    assert names(ring.heard(3)[0]) == ["1", "2", "3"]


def test_waiting_for_a_context_collects_no_garbage(ring: Events) -> None:
    """A whole collection for each callback that waits would be all that the worker does."""
    code = """
        probe.collections, probe.done = 0, 0
        local function watch()
            getmetatable(newproxy(true)).__gc = function()
                probe.collections = probe.collections + 1
                watch()
            end
        end
        watch()
        ev:subscribe("many", "*", function()
            ngx.sleep(0.005)
            probe.done = probe.done + 1
        end)
        for i = 1, 1000 do ev:publish("all", "many", "e", i) end
    """
    ring.run(0, code)
    wait_until(lambda: ring.run(0, "return probe.done") == 1000, "all callbacks to return")
    assert ring.run(0, "return probe.collections") < 100


def test_callbacks_that_wait_and_ones_that_end_their_context(ring: Events) -> None:
    """None of the contexts that are lost is missed for good, whatever the others do."""
    code = """
        probe.log = {}
        ev:subscribe("mixed", "*", function(data)
            table.insert(probe.log, data)
            if data > 100 and data <= 200 then ngx.exit(0) end
            ngx.sleep(0.05)
        end)
        for i = 1, 300 do ev:publish("all", "mixed", "e", i) end
    """
    ring.run(0, code)
    assert log(ring, 300) == list(range(1, 301))


def test_errors_stay_where_they_happen_and_are_logged_once(ring: Events) -> None:
    code = """
        probe.log = {}
        ev:subscribe("bad", "*", function() error("what went wrong") end)
        ev:subscribe("bad", "*", function() error({ a = "table" }) end)
        ev:subscribe("bad", "*", function() local x = nil; return x.field end)
        ev:subscribe("bad", "*", function(data) table.insert(probe.log, data) end)
        for i = 1, 500 do ev:publish("all", "bad", "e", i) end
    """
    ring.expect_log(r"subscription \d+ to bad/\* failed at event bad/e: .*what went wrong")
    ring.expect_log(r"subscription \d+ to bad/\* failed at event bad/e: table: ")
    ring.expect_log(r"subscription \d+ to bad/\* failed at event bad/e: .*attempt to index")
    ring.run(0, code)
    assert log(ring, 500) == list(range(1, 501))
    stats = ring.run(0, "return ev:stats()")
    assert [s["errors"] for s in stats["subscriptions"] if s["source"] == "bad"] == [
        500, 500, 500, 0,
    ]  # fmt: skip


def test_errors_that_are_hard_to_tell(ring: Events) -> None:
    """No value, values that cannot be shown, and no stack left to handle the error on."""
    code = """
        probe.log = {}
        local function deeper(n) return 1 + deeper(n + 1) end
        local rude = setmetatable({}, { __tostring = function() error("not even a text") end })
        local odd = setmetatable({}, { __tostring = function() return {} end })
        ev:subscribe("hard", "nothing", function() error(nil) end)
        ev:subscribe("hard", "rude", function() error(rude) end)
        ev:subscribe("hard", "odd", function() error(odd) end)
        ev:subscribe("hard", "deep", function() deeper(1) end)
        ev:subscribe("hard", "*", function(data) table.insert(probe.log, data) end)
        for i = 1, 25 do
            for _, event in ipairs({ "nothing", "rude", "odd", "deep" }) do
                ev:publish("all", "hard", event, i)
            end
        end
    """
    events = ["nothing", "rude", "odd", "deep"]
    for event in events:
        ring.expect_log(rf"subscription \d+ to hard/{event} failed at event hard/{event}: ")
    ring.run(0, code)
    assert log(ring, 100) == [i for i in range(1, 26) for _ in events]
    for event in events:
        line = f"to hard/{event} failed at event"
        wait_until(lambda line=line: line in ring.error_log(), line)
    stats = ring.run(0, "return ev:stats()")
    assert {
        s["event"]: s["errors"] for s in stats["subscriptions"] if s["source"] == "hard"
    } == dict.fromkeys(events, 25) | {"*": 0}


def test_an_error_after_a_yield(ring: Events) -> None:
    code = """
        probe.log = {}
        ev:subscribe("late", "*", function(data)
            if data == 1 then ngx.sleep(0.1) error("late error") end
            table.insert(probe.log, data)
        end)
        for i = 1, 3 do ev:publish("all", "late", "e", i) end
    """
    ring.expect_log(r"failed at event late/e: .*late error")
    ring.run(0, code)
    assert log(ring, 2) == [2, 3]
    wait_until(lambda: "late error" in ring.error_log(), "the error")
    ring.publish(first=9)
    wait_until(lambda: names(ring.all("/heard")[0])[-1] == "9", "events to go on")


def test_a_callback_that_ends_its_context(ring: Events) -> None:
    """ngx.exit ends the coroutine of the dispatcher itself: another takes over."""
    code = """
        probe.log = {}
        ev:subscribe("exit", "*", function() ngx.exit(0) end)
        ev:subscribe("exit", "*", function(data) table.insert(probe.log, data) end)
        for i = 1, 200 do ev:publish("all", "exit", "e", i) end
    """
    ring.run(0, code)
    assert log(ring, 200) == list(range(1, 201))


def test_subscriptions_that_change_in_a_callback(ring: Events) -> None:
    code = """
        probe.log = {}
        local function note(name) return function(d) table.insert(probe.log, name .. d) end end
        local second
        ev:subscribe("c", "e", function(data)
            table.insert(probe.log, "first" .. data)
            if data == 1 then
                ev:subscribe("c", "e", note("new"))
                assert(ev:unsubscribe(second))
            end
        end)
        second = ev:subscribe("c", "e", note("second"))
        ev:subscribe("c", "e", note("third"))
        ev:publish("all", "c", "e", 1) ev:publish("all", "c", "e", 2)
        return select(2, ev:unsubscribe(123456))
    """
    assert ring.run(0, code) == "not found"
    assert log(ring, 5) == ["first1", "third1", "first2", "third2", "new2"]


def test_a_flood_leaves_time_for_requests(ring: Events) -> None:
    code = """
        probe.count = 0
        ev:subscribe("flood", "e", function() busy(0.001) probe.count = probe.count + 1 end)
        for i = 1, 1000 do ev:publish("all", "flood", "e", i) end
    """
    # A request that waits again and again, counted where nobody's but the worker's pace matters.
    turns = """
        local turns = 0
        while probe.count < 900 and turns < 30000 do
            ngx.sleep(0.001)
            turns = turns + 1
        end
        return turns
    """
    with ring.connection(0) as wire:
        ring.run(0, BUSY + code)
        # A second of callbacks, in slices of a few: requests come between all of them.
        assert ring.run_on(wire, turns) > 50


# Counts in probe.turns how often nginx's loop comes to its timers.
TURNS = """
    probe.turns = 0
    local function turn()
        probe.turns = probe.turns + 1
        if not probe.is_over then assert(ngx.timer.at(0.001, turn)) end
    end
    turn()
"""


def test_a_flood_of_failures_leaves_time_for_requests(ring: Events) -> None:
    code = """
        probe.count = 0
        ev:subscribe("flood", "e", function()
            probe.count = probe.count + 1
            probe.is_over = probe.count == 9000
            probe.seen = probe.turns
            error("as always")
        end)
        for i = 1, 9000 do ev:publish("all", "flood", "e", i) end
    """
    ring.expect_log(r"failed at event flood/e")
    ring.run(0, TURNS + code)
    wait_until(lambda: ring.run(0, "return probe.is_over"), "the last callback")
    # Some 5 us each, in slices of a millisecond.
    assert ring.run(0, "return probe.seen") > 10


def test_many_callbacks_of_one_event_leave_time_for_requests(ring: Events) -> None:
    code = """
        probe.log = {}
        for i = 1, 100 do
            ev:subscribe("flood", "e", function()
                busy(0.002)
                probe.is_over = i == 100
                table.insert(probe.log, probe.turns)
            end)
        end
        ev:publish("all", "flood", "e", 1)
        ev:publish("all", "flood", "other", 1)
    """
    ring.run(0, TURNS + BUSY + code)
    turns = log(ring, 100)
    assert turns[-1] - turns[0] > 50


def test_a_request_context_is_not_shared_with_callbacks(ring: Events) -> None:
    """A callback that keeps something in ngx.ctx while it waits finds it again."""
    code = """
        probe.log = {}
        ev:subscribe("ctx", "e", function(data)
            ngx.ctx.mine = data
            ngx.sleep(0.05 - data / 1000)
            table.insert(probe.log, ngx.ctx.mine == data)
        end)
        ngx.ctx.mine = "the request's"
        for i = 1, 20 do ev:publish("all", "ctx", "e", i) end
        ngx.sleep(0.01)
        return ngx.ctx.mine
    """
    assert ring.run(0, code) == "the request's"
    assert log(ring, 20) == [True] * 20


def test_time_and_calls_are_counted_by_subscription(lone_ring: Events) -> None:
    code = """
        local ids, returned = {}, 0
        ids[1] = ev:subscribe("time", "e", function()
            ngx.update_time()
            local till = ngx.now() + 0.02
            repeat ngx.update_time() until ngx.now() >= till
        end)
        ids[2] = ev:subscribe("time", "e", function() end)
        ids[3] = ev:subscribe("time", "e", function() ngx.sleep(0.1) returned = returned + 1 end)
        for i = 1, 5 do ev:publish("all", "time", "e", i) end
        for _ = 1, 3000 do if returned == 5 then break end ngx.sleep(0.01) end
        local stats = ev:stats().subscriptions
        for _, id in ipairs(ids) do ev:unsubscribe(id) end
        return stats
    """

    def undisturbed() -> bool:
        slow, quick, waiting = lone_ring.run(0, code)[-3:]
        assert [s["calls"] for s in (slow, quick, waiting)] == [5, 5, 5]
        assert [s["source"] for s in (slow, quick, waiting)] == ["time"] * 3
        assert slow["seconds"] >= 0.09
        return slow["seconds"] < 0.3 and quick["seconds"] < 0.02 and waiting["seconds"] < 0.05

    # Whoever takes the worker's CPU away adds to what runs just then: once it is undisturbed.
    wait_until(undisturbed, "each subscription to have its own time only")


def test_time_is_counted_where_quick_callbacks_share_a_look_at_the_clock(lone_ring: Events) -> None:
    """Runs of quick callbacks that end in a slow one, or in one of another subscription."""
    code = """
        local ids, last = {}, nil
        ids[1] = ev:subscribe("quick", "e", function() end)
        ids[2] = ev:subscribe("mixed", "e", function(data)
            if data % 10 == 0 then busy(0.01) end
            last = data
        end)
        ids[3] = ev:subscribe("slow", "e", function(data) if data % 20 == 0 then busy(0.01) end end)
        for i = 1, 200 do
            ev:publish("all", i % 20 == 0 and "slow" or "quick", "e", i)
        end
        for i = 1, 100 do ev:publish("all", "mixed", "e", i) end
        for _ = 1, 3000 do if last == 100 then break end ngx.sleep(0.01) end
        local stats = ev:stats().subscriptions
        for _, id in ipairs(ids) do ev:unsubscribe(id) end
        return stats
    """

    def undisturbed() -> bool:
        quick, mixed, slow = lone_ring.run(0, BUSY + code)[-3:]
        assert [s["calls"] for s in (quick, mixed, slow)] == [190, 100, 10]
        assert min(mixed["seconds"], slow["seconds"]) >= 0.09
        return quick["seconds"] < 0.02 and max(mixed["seconds"], slow["seconds"]) < 0.3

    wait_until(undisturbed, "each subscription to have its own time only")
