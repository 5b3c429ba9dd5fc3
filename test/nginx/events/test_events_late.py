"""Workers that call `init_worker` late, or never: nothing that was published since the master
began to start them is missed in silence, and nobody waits for them."""

import json
import os
import signal

import pytest

from events_nginx import Events, Json, names
from wire import wait_until

LATE = """
        local late = { [1] = true }
        local events = require("sluice.events")
        local new = events.new
        events.new = function(...)
            local ev = new(...)
            ev.init_worker = function()
                if late[ngx.worker.id()] then
                    return true
                end
                ev.init_worker = nil
                return ev:init_worker()
            end
            return ev
        end
"""
"""Worker 1 starts when it is told to."""

START = "ev.init_worker = nil return ev:init_worker()"
IN_TIMER = f"ngx.timer.at(0.01, function() {START} end) return true"


@pytest.mark.parametrize("code", [START, IN_TIMER], ids=["request", "timer"])
def test_nothing_is_missed(code: str) -> None:
    with Events(init=LATE) as ring:
        ring.run(
            0,
            """
            ev:publish("all", "test", "1")
            ev:publish({ worker = 1 }, "test", "2")
            ev:publish("all", "test", "3", ("x"):rep(3 * 1024 * 1024))
        """,
        )
        ring.run(1, 'ev:publish("all", "test", "4")')
        assert not ring.heard_at(1)
        assert ring.run(1, code) is True
        ring.publish_at(0, first=5)
        ring.heard_through("5")
        assert names(ring.heard_at(1)) == ["1", "2", "3", "4", "5"]
        assert names(ring.heard_at(0)) == ["1", "3", "4", "5"]


def test_a_keyed_event_waits_for_one_that_wants_it() -> None:
    with Events(init=LATE) as ring:
        ring.run(0, 'ev:publish("a key", "test", "1")')
        ring.publish_at(0, first=2)
        wait_until(lambda: names(ring.heard_at(0)) == ["1", "2"], "worker 0")
        ring.run(1, START)
        ring.publish_at(0, first=3)
        assert [names(heard) for heard in ring.heard_through("3").values()] == [
            ["1", "2", "3"],
            ["2", "3"],
        ]


def test_after_a_reload() -> None:
    with Events(init=LATE) as ring:
        ring.publish_at(0, first=1)
        ring.restart_workers()
        ring.publish_at(0, first=2, count=3)
        ring.run(1, START)
        ring.publish_at(0, first=5)
        assert names(ring.heard_through("5")[1])[-4:] == ["2", "3", "4", "5"]


def test_a_respawned_worker() -> None:
    with Events(init=LATE) as ring:
        ring.expect_log("exited on signal 9")
        ring.publish_at(0, first=1)
        old = ring.run(1, "return ngx.worker.pid()")
        os.kill(old, signal.SIGKILL)
        wait_until(lambda: ring.run(1, "return ngx.worker.pid()") != old, "another worker 1")
        ring.publish_at(0, first=2, count=3)
        ring.run(1, START)
        ring.publish_at(0, first=5)
        assert names(ring.heard_through("5")[1]) == ["2", "3", "4", "5"]


def test_nobody_waits_for_one_that_never_starts() -> None:
    """Ten laps of the log; it hears how many events it has missed, and those that come then."""
    with Events(init=LATE, main="sluice_events_size 64k;\nsluice_events_stall 1h;\n") as ring:
        done = 0
        for _ in range(40):
            assert ring.publish_at(0, first=done + 1, count=16, data="text1000") == {"true": 16}
            done += 16
            wait_until(lambda done=done: len(ring.heard_at(0)) == done, "worker 0")
        ring.run(1, START)
        ring.publish_at(0, first=done + 1)
        assert names(ring.heard_through(str(done + 1))[1]) == [str(done + 1)]
        overrun = {"missed": done, "reason": "late"}
        assert ring.at(1, "/overrun") == {"count": 1, "last": overrun}


def test_a_mark_outlives_the_end_of_the_log() -> None:
    """The log comes round, and what nobody else needs is still there."""
    with Events(init=LATE, main="sluice_events_size 64k;\n") as ring:
        ring.publish_at(0, first=1, count=40, data="text1000")
        wait_until(lambda: len(ring.heard_at(0)) == 40, "worker 0")
        ring.expect_log("exited on signal 9")
        old = ring.run(1, "return ngx.worker.pid()")
        os.kill(old, signal.SIGKILL)
        wait_until(lambda: ring.run(1, "return ngx.worker.pid()") != old, "another worker 1")
        ring.publish_at(0, first=41, count=40, data="text1000")
        ring.run(1, START)
        ring.publish_at(0, first=81)
        assert names(ring.heard_through("81")[1]) == [str(n) for n in range(41, 82)]


def test_a_reload_without_a_master_holds_nothing_up() -> None:
    """nginx calls no init_worker then, so nobody comes to read what is kept for it."""
    main = "master_process off; sluice_events_size 64k; sluice_events_stall 1h;"
    with Events(workers=1, main=main) as ring, ring.connection(0) as wire:

        def ask(target: str) -> Json:
            # Over one connection: after a reload nobody accepts from one of two sockets.
            return json.loads(wire.ask(target).body.partition(b" ")[2])

        os.kill(ask("/stats")["pid"], signal.SIGHUP)
        wait_until(lambda: ask("/stats")["log"]["generation"] == 2, "the reload")
        for done in range(0, 160, 16):
            target = f"/publish?first={done + 1}&count=16&data=text1000"
            assert ask(target) == {"true": 16}
            wait_until(lambda done=done: ask("/heard-count") == done + 16, "what was published")
