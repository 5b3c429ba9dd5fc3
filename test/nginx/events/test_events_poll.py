"""The poll transport: events in a shared dictionary, found by a timer."""

import os
import signal
import time

from events_nginx import names, over_poll
from wire import wait_until


def test_a_key_of_what_was_refused_is_free() -> None:
    with over_poll() as events:
        events.ready()
        # In the way of the event, so that room is not made of the key.
        events.publish_at(0, count=100)
        # More than the dictionary ever holds: refused, and not "a repeat, so all is well" then.
        for _ in range(2):
            assert events.publish_at(0, key="k", data="text2000000") == {"full": 1}
        # Nobody can tell an event that was refused from one that was thrown out.
        events.expect_log(r"missed \d+ events \(overflow\)", range(0, 9))


def test_an_event_larger_than_the_dictionary_leaves_the_next_alone() -> None:
    """The dictionary has one megabyte."""
    with over_poll() as events:
        events.ready()
        assert events.publish(data="text2000000")[1] == {"full": 1}
        events.publish(event="next")
        assert all(names(heard) == ["next"] for heard in events.heard(1).values())


LATE = """
    location /late {
        content_by_lua_block {
            local ev, dict = require("probe").ev, ngx.shared.sluice_events
            local number = dict:incr("/last", 1, 0)
            assert(ev:publish("all", "test", "after", 1))
            ngx.sleep(0.1)
            dict:set("/event/" .. number, require("string.buffer").encode({
                kind = "all", source = "test", event = "late", wid = ngx.worker.id(), data = 1,
            }))
            ngx.say("stored")
        }
    }
"""


def test_one_stored_after_its_successor_is_waited_for() -> None:
    """A publisher may be put aside between taking its number and storing the event."""
    with over_poll("interval = 0.02, wait_max = 60", workers=3, locations=LATE) as events:
        events.ready()
        assert events.text("/late") == "stored\n"
        for heard in events.heard_through("after").values():
            assert names(heard) == ["late", "after"]


def test_an_overflow_is_counted_and_told() -> None:
    """More in an interval than the dictionary holds: what is gone is gone, but nobody is fooled."""
    with over_poll("interval = 0.3") as events:
        events.ready()
        events.expect_log(r"missed \d+ events \(overflow\)", range(2, 20))
        total = 5000
        # The other worker must not look in between.
        other = events.at(1, "/stats")["pid"]
        with events.connection(0) as wire:
            os.kill(other, signal.SIGSTOP)
            try:
                events._ask(wire, f"/publish?count={total}&data=text1000")
            finally:
                os.kill(other, signal.SIGCONT)
        events.publish(event="end")

        def ended() -> bool:
            return all("end" in names(heard) for heard in events.all("/heard").values())

        wait_until(ended, "the last event")
        for worker in range(2):
            stats = events.at(worker, "/stats")
            heard = len(events.heard_at(worker))
            assert stats["missed"] > 0
            assert heard + stats["missed"] == total + 1
            overrun = events.at(worker, "/overrun")
            assert overrun["count"] >= 1
            assert overrun["last"]["reason"] == "overflow"
            assert stats["queue_depth"] == 0
        assert sum(events.at(w, "/stats")["evicted"] for w in range(2)) > 0


def test_the_interval_counts() -> None:
    with over_poll("interval = 0.5") as events:
        events.ready()
        began = time.monotonic()
        before = events.at(0, "/stats")["polls"]
        wait_until(lambda: events.at(0, "/stats")["polls"] >= before + 6, "six more polls")
        polls = events.at(0, "/stats")["polls"] - before
        # One at once, and one more: nginx counts from when it woke, so after a poll that the
        # machine held up the next comes sooner.
        assert polls <= (time.monotonic() - began) / 0.5 + 2


def test_a_killed_worker_goes_on_from_now() -> None:
    with over_poll(init="package.loaded.probe.ev = package.loaded.probe.new()") as events:
        events.ready()
        events.expect_log("exited on signal 9", 1)
        events.publish(count=3)
        events.heard(3)
        victim = events.at(1, "/stats")["pid"]
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: events.at(1, "/stats")["pid"] != victim, "the worker to be replaced")
        events.publish(event="on")
        wait_until(lambda: "on" in names(events.heard_at(0)), "the survivor to hear")
        wait_until(lambda: "on" in names(events.heard_at(1)), "the new one to hear")
        assert names(events.heard_at(1)) == ["on"]


def test_reload() -> None:
    with over_poll(init="package.loaded.probe.ev = package.loaded.probe.new()") as events:
        events.ready()
        events.publish(count=3)
        events.heard(3)
        events.restart_workers()
        wait_until(lambda: not events.retiring(), "the old workers to leave")
        events.publish(event="after")
        for heard in events.heard(1).values():
            assert names(heard) == ["after"]


def test_the_dictionary_is_missing() -> None:
    events = over_poll('shm = "nowhere"')
    events.expect_log("nginx.conf lacks 'lua_shared_dict nowhere", 2)
    with events:
        wait_until(
            lambda: events.error_log().count("lacks 'lua_shared_dict") == 2, "each worker to say so"
        )
