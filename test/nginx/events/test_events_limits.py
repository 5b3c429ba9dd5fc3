"""A full log, its queue, readers that are stuck, and payloads that need pieces."""

import os
import signal
import time

import pytest
from events_counting import COUNT, PUBLISH

from events_nginx import Events
from processes import cpu_seconds, switches
from wire import wait_until

SMALL = "sluice_events_size 64k;\n"

# A reader that does not read for so long is detached. A busy machine holds up everybody for a
# while: longer than that must not be.
STALLED = SMALL + "sluice_events_stall 4s;\n"

# Nobody is detached, however long a test takes.
PATIENT = SMALL + "sluice_events_stall 600s;\n"


def test_what_does_not_fit_waits_in_order() -> None:
    with Events(workers=2, main=PATIENT, init_worker=COUNT) as ring:
        ring.ready()
        answers = ring.run(0, PUBLISH % (100, 1, 5000))
        assert answers["queued"] > 4000
        assert answers["true"] + answers["queued"] == 5000
        for worker in (0, 1):
            wait_until(lambda w=worker: ring.run(w, "return probe.count") == 5000, "all of them")
            assert ring.run(worker, "return probe.wrong, probe.missed or 0") == [0, 0]
        ring.settle()
        # Nothing waits any more: nobody wakes up.
        assert ring.ring_stats()["total"]["queue_depth"] == 0


def test_the_queue_has_an_end() -> None:
    with Events("{ queue_len = 100 }", workers=2, main=PATIENT, init_worker=COUNT) as ring:
        ring.ready()
        answers = ring.run(0, PUBLISH % (100, 1, 5000))
        assert answers["queued"] == 100
        assert answers["full"] == 5000 - 100 - answers["true"]
        accepted = answers["true"] + 100
        for worker in (0, 1):
            wait_until(lambda w=worker: ring.run(w, "return probe.last") == accepted, "the last")
            assert ring.run(worker, "return probe.wrong") == 0
        refused = sum(worker["refused"] for worker in ring.ring_stats()["workers"])
        assert refused == answers["full"]


def test_the_queue_is_bounded_in_bytes() -> None:
    with Events("{ queue_bytes = 100000 }", workers=2, main=PATIENT, init_worker=COUNT) as ring:
        ring.ready()
        answers = ring.run(0, PUBLISH % (5000, 1, 100))
        assert 15 <= answers["queued"] <= 20
        assert answers["full"] > 50


def overrun(ring: Events, accepted: int, worker: int) -> None:
    """Checks that a worker knows exactly how many events it missed."""
    wait_until(lambda: ring.run(worker, "return probe.last") == accepted, "the last event")
    count, missed, reason = ring.run(worker, "return probe.count, probe.missed, probe.reason")
    assert reason == "stalled"
    assert missed > 0
    assert count + missed == accepted


def test_a_stopped_reader_is_detached_and_told() -> None:
    with Events(workers=3, main=STALLED, init_worker=COUNT) as ring:
        ring.expect_log(r"this worker missed \d+ events \(stalled\)")
        ring.ready()
        stopped = ring.pid_of(2)
        started = time.monotonic()
        with ring.connection(0) as zero, ring.connection(1) as one:
            os.kill(stopped, signal.SIGSTOP)
            try:
                answers = ring.run_on(zero, PUBLISH % (100, 1, 5000))
                assert set(answers) == {"true", "queued"}
                for wire in (zero, one):
                    wait_until(
                        lambda w=wire: ring.run_on(w, "return probe.count") == 5000,
                        "the others to hear all",
                    )
                    assert ring.run_on(wire, "return probe.wrong, probe.missed or 0") == [0, 0]
                assert time.monotonic() - started > 3.9
                states = sorted(
                    w["state"] for w in ring.run_on(zero, "return ev:stats()")["workers"]
                )
                assert states == ["attached", "attached", "detached"]
            finally:
                os.kill(stopped, signal.SIGCONT)
            # One more that it hears.
            ring.run_on(zero, 'ev:publish("all", "n", "e", 5001)')
        # The notice counts what was in the log when it came back.
        wait_until(lambda: ring.run(2, "return probe.missed") is not None, "the notice")
        ring.run(0, 'ev:publish("all", "n", "e", 5002)')
        overrun(ring, 5002, 2)


def test_a_busy_reader_is_detached_and_told() -> None:
    busy = """
        ngx.shared.notes:set("busy", true)
        local till = os.time() + 60
        repeat until ngx.shared.notes:get("enough") or os.time() > till
    """
    with Events(workers=2, main=STALLED, init_worker=COUNT) as ring:
        ring.expect_log(r"this worker missed \d+ events \(stalled\)")
        ring.ready()
        with ring.connection(0) as zero, ring.connection(1) as one:
            ring.send_code(one, busy)
            wait_until(lambda: ring.run_on(zero, 'return ngx.shared.notes:get("busy")'), "work")
            ring.run_on(zero, PUBLISH % (100, 1, 3000))
            wait_until(lambda: ring.run_on(zero, "return probe.last") == 3000, "the other reader")
            ring.run_on(zero, 'ngx.shared.notes:set("enough", true)')
            ring.answer_on(one)
        # The notice counts what was in the log when it came back.
        wait_until(lambda: ring.run(1, "return probe.missed") is not None, "the notice")
        ring.run(0, 'ev:publish("all", "n", "e", 3001)')
        overrun(ring, 3001, 1)


PAIR = 'ev:publish("all", "slow", "e") ev:publish("all", "new", "name", 1)'


def test_names_that_were_overwritten_are_not_kept() -> None:
    """A batch is at hand whose first callback takes so long that its other events are lost."""
    subscribe = """
        ev:subscribe("slow", "e", function()
            if ngx.worker.id() == 0 then return end
            ngx.shared.notes:set("busy", true)
            local till = os.time() + 60
            repeat until ngx.shared.notes:get("enough") or os.time() > till
        end)
        ev:subscribe("new", "name", function(data) probe.fresh = data end)
    """
    with Events(workers=2, main=STALLED, init_worker=COUNT + subscribe) as ring:
        ring.expect_log(r"this worker missed \d+ events \(stalled\)")
        ring.ready()
        slow = ring.pid_of(1)
        with ring.connection(0) as zero:
            os.kill(slow, signal.SIGSTOP)
            try:
                ring.run_on(zero, PAIR)
            finally:
                os.kill(slow, signal.SIGCONT)
            wait_until(lambda: ring.run_on(zero, 'return ngx.shared.notes:get("busy")'), "work")
            ring.run_on(zero, PUBLISH % (100, 1, 3000))
            wait_until(lambda: ring.run_on(zero, "return probe.last") == 3000, "the other reader")
            ring.run_on(zero, 'ngx.shared.notes:set("enough", true)')
            wait_until(lambda: ring.run(1, "return probe.missed or 0") > 0, "the notice")
            assert ring.run(1, "return probe.fresh or 0") == 0
            ring.run_on(zero, 'ev:publish("all", "new", "name", 2)')
        wait_until(lambda: ring.run(1, "return probe.fresh") == 2, "the next event of this name")
        # All but the slow one, which was heard, and the last.
        assert ring.run(1, "return probe.missed + probe.count") == 3001


def test_waiting_for_space_costs_next_to_nothing() -> None:
    """Publishers that wait and readers that have nothing to read do not wake each other."""
    with Events(workers=3, main=PATIENT) as ring:
        ring.ready()
        stopped = ring.pid_of(2)
        others = [pid for pid in ring.workers() if pid != stopped]
        with ring.connection(0) as zero, ring.connection(1) as one:
            os.kill(stopped, signal.SIGSTOP)
            try:
                for wire in (zero, one):
                    assert ring.run_on(wire, PUBLISH % (100, 1, 3000))["queued"] > 1000
                time.sleep(0.2)
                began = time.monotonic()
                before = [switches(pid) for pid in others], [cpu_seconds(pid) for pid in others]
                time.sleep(1)
                after = [switches(pid) for pid in others], [cpu_seconds(pid) for pid in others]
                seconds = time.monotonic() - began
                assert ring.run_on(zero, "return 1") == 1
            finally:
                os.kill(stopped, signal.SIGCONT)
        # A hundred looks a second of one's own, and as many wakeups by the other.
        assert all(b - a < 450 * seconds for a, b in zip(before[0], after[0], strict=True))
        assert all(b - a < 0.1 * seconds for a, b in zip(before[1], after[1], strict=True))


def test_a_short_stop_loses_nothing() -> None:
    with Events(workers=2, main=SMALL, init_worker=COUNT) as ring:
        ring.ready()
        stopped = ring.pid_of(1)
        with ring.connection(0) as zero:
            os.kill(stopped, signal.SIGSTOP)
            try:
                ring.run_on(zero, PUBLISH % (100, 1, 3000))
                time.sleep(1)
            finally:
                os.kill(stopped, signal.SIGCONT)
        for worker in (0, 1):
            wait_until(lambda w=worker: ring.run(w, "return probe.count") == 3000, "all of them")
            assert ring.run(worker, "return probe.wrong, probe.missed or 0") == [0, 0]


MEGABYTE = 1 << 20

BIG = """
    local size = %d
    local unit = ("0123456789abcdef"):rep(64)
    local text = unit:rep(size / 1024)
    return tostring(ev:publish(%s, "big", "e", { text = text, n = %d }))
"""

HEAR_BIG = """
    probe.sizes = {}
    local unit = ("0123456789abcdef"):rep(64)
    ev:subscribe("big", "e", function(data)
        local right = data.text == unit:rep(#data.text / 1024)
        table.insert(probe.sizes, right and data.n or "wrong")
    end)
"""


@pytest.mark.parametrize("size", ["64k", "1m", "16m"])
def test_payloads_of_all_sizes(size: str) -> None:
    sizes = [1024, 8192, 100 * 1024, MEGABYTE, 5 * MEGABYTE, 15 * MEGABYTE]
    with Events(workers=3, main=f"sluice_events_size {size};\n", init_worker=HEAR_BIG) as ring:
        ring.ready()
        for n, bytes_ in enumerate(sizes):
            ok = ring.run(n % 3, BIG % (bytes_, '"all"', n))
            assert ok in ("true", "queued")
            # In order, one sender's messages; so wait before another sends.
            for worker in range(3):
                wait_until(
                    lambda w=worker, n=n: len(ring.run(w, "return probe.sizes")) > n,
                    f"{bytes_} bytes in a log of {size}",
                )
        assert ring.run_all("return probe.sizes") == {w: list(range(6)) for w in range(3)}
        assert ring.ring_stats()["dropped_partials"] == 0


def test_frames_for_others_do_not_hold_up_the_log() -> None:
    """A reader sleeps behind them, not before them."""
    code = """
        for i = 1, 3000 do
            ev:publish("all", "n", "e", i)
            ev:publish({ worker = 1 }, "other", "e", ("x"):rep(1000))
        end
    """
    with Events(workers=2, main=PATIENT, init_worker=COUNT) as ring:
        ring.ready()
        ring.run(0, code)
        for worker in (0, 1):
            wait_until(lambda w=worker: ring.run(w, "return probe.last") == 3000, "the last")
            assert ring.run(worker, "return probe.wrong, probe.missed or 0") == [0, 0]
        ring.settle()
        assert ring.ring_stats()["log"]["used"] == 0


def test_pieces_of_several_senders_do_not_mix() -> None:
    with Events(workers=3, main="sluice_events_size 256k;\n", init_worker=HEAR_BIG) as ring:
        ring.ready()
        for n in range(30):
            ring.run(n % 3, BIG % (300 * 1024, '"all"', n))
        for worker in range(3):
            wait_until(
                lambda w=worker: len(ring.run(w, "return probe.sizes")) == 30, "all messages"
            )
        heard = ring.run_all("return probe.sizes")
        assert sorted(heard[0]) == list(range(30))
        assert heard[0] == heard[1] == heard[2]


def test_pieces_of_senders_that_get_their_slots_between_them() -> None:
    """Each worker's message begins before it has joined, and ends when it has."""
    init = """
        local new = package.loaded.probe.new
        package.loaded.probe.new = function()
            local ev = new()
            local text = ("0123456789abcdef"):rep(64 * 2048)
            assert(ev:publish("all", "big", "e", { text = text, n = ngx.worker.id() }))
            return ev
        end
    """
    options = {"main": "sluice_events_size 256k;\n", "init": init, "init_worker": HEAR_BIG}
    with Events(workers=3, **options) as ring:
        ring.ready()
        for worker in range(3):
            wait_until(lambda w=worker: len(ring.run(w, "return probe.sizes")) == 3, "all messages")
        heard = ring.run_all("return probe.sizes")
        assert sorted(heard[0]) == [0, 1, 2]
        assert heard[0] == heard[1] == heard[2]
        assert ring.ring_stats()["dropped_partials"] == 0


@pytest.mark.parametrize("target", ["{ worker = 1 }", '{ key = "a key", timeout = 600 }'])
def test_large_payloads_for_one(target: str) -> None:
    with Events(workers=2, main="sluice_events_size 256k;\n", init_worker=HEAR_BIG) as ring:
        ring.ready()
        ring.run(0, BIG % (2 * MEGABYTE, target, 1))
        ring.run(1, BIG % (2 * MEGABYTE, target, 2))
        expected = 2 if "worker" in target else 1

        def heard() -> list[str]:
            said = ring.run_all("return table.concat(probe.sizes, ' ')").values()
            return " ".join(said).split()

        wait_until(lambda: len(heard()) >= expected, "the messages")
        ring.settle()
        assert sorted(heard()) in (["1", "2"], ["1"], ["2"])
        assert len(heard()) == expected


def test_a_payload_over_the_limit() -> None:
    code = """
        local ok, err = ev:publish("all", "big", "e", ("x"):rep(16 * 1024 * 1024 + 1))
        local redeliver, why = ev:publish({ key = "k", redeliver = true }, "big", "e",
            ("x"):rep(100000))
        return tostring(ok), err, tostring(redeliver), why
    """
    with Events(workers=1, main="sluice_events_size 256k;\n") as ring:
        ring.ready()
        assert ring.run(0, code) == ["nil", "payload too large"] * 2


def test_a_sender_that_dies_between_pieces() -> None:
    die = """
        ev:publish("all", "big", "e", ("x"):rep(8 * 1024 * 1024))
        os.execute("kill -9 " .. ngx.worker.pid())
    """
    with Events(workers=2, main="sluice_events_size 256k;\n", init_worker=HEAR_BIG) as ring:
        ring.expect_log(r"exited on signal 9")
        ring.ready()
        old = set(ring.workers())
        with ring.connection(1) as one:
            ring.send_code(one, die)
            wait_until(lambda: len(set(ring.workers()) - old) == 1, "the sender's successor")
        ring.ready()
        ring.run(1, BIG % (2 * MEGABYTE, '"all"', 1))
        wait_until(lambda: ring.run(0, "return probe.sizes") == [1], "the next message")
        # What came of the first one is forgotten.
        dropped = "return ev:stats().dropped_partials"
        wait_until(lambda: ring.run(0, dropped) == 1, "the rest of the first one to be dropped")
