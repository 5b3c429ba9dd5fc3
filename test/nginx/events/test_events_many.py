"""Many workers: slots of the events' log, and bursts that would wake all again and again."""

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from events_publishing import hear_from_each

from events_nginx import Events, names
from sluice import NGINX, Gateway, alive, proxying
from upstream import Upstream
from wire import Wire, wait_until

LOG = "local log = ev:stats().log return log.slots, log.attached, log.unattached"

TO_EACH = """
    for id = 0, {last} do
        assert(ev:publish({{ worker = id }}, "to", tostring(id)) == true)
    end
"""

# A request that its worker has to stay for.
STAY = """
    ngx.shared.notes:incr("staying", 1, 0)
    for _ = 1, 3000 do
        if ngx.shared.notes:get("leave") then break end
        ngx.sleep(0.01)
    end
"""


def eventfds(pid: int) -> int:
    """How many a process has open."""
    files = Path(f"/proc/{pid}/fd").iterdir()
    return sum(str(file.readlink()) == "anon_inode:[eventfd]" for file in files)


@pytest.mark.parametrize(("workers", "slots"), [(2, 256), (64, 320)])
def test_slots_follow_the_workers(workers: int, slots: int) -> None:
    with Events(workers=workers) as ring, Wire(ring.proxy_port) as wire:
        assert eventfds(ring.master()) == slots
        wait_until(lambda: ring.run_on(wire, LOG) == [slots, workers, 0], "all to have one")
        # An event for each, which all the others pass.
        ring.run_on(wire, TO_EACH.format(last=workers - 1))
        delivered = "return ev:stats().total.delivered"
        wait_until(lambda: ring.run_on(wire, delivered) == workers, "each to get its own")


@pytest.mark.parametrize(
    ("workers", "slots", "reason"),
    [
        (3, "2", '"worker_processes" must be at most 2, as many as the events'),
        (1024, "1024", '"worker_processes" must be at most 1023, as many as the events'),
        (2, "0", '"sluice_events_slots" must be between 1 and 1024'),
        (2, "1025", '"sluice_events_slots" must be between 1 and 1024'),
        (2, "x", "invalid number"),
    ],
)
def test_slots_that_are_refused_at_the_start(workers: int, slots: str, reason: str) -> None:
    assert reason in Events(workers=workers, main=f"sluice_events_slots {slots};").refuses()


def reload_is_refused(ring: Events, reason: str) -> None:
    """A reload leaves the workers as they are."""
    before = ring.workers()
    ring.expect_log(reason)
    os.kill(ring.master(), signal.SIGHUP)
    wait_until(lambda: ring.error_log().count("[emerg]") > 0, "a refusal")
    assert ring.workers() == before
    hear_from_each(ring)


def test_a_reload_with_more_workers_than_slots_is_refused(ring: Events) -> None:
    conf = ring.prefix / "nginx.conf"
    text = conf.read_text()
    conf.write_text(text.replace("worker_processes 2;", "worker_processes 257;"))
    reload_is_refused(
        ring, r"log has slots for 256 processes, since nginx was started with fewer: restart"
    )
    conf.write_text(text)
    ring.restart_workers()
    hear_from_each(ring)


def test_a_reload_is_refused_while_old_workers_have_the_slots() -> None:
    with (
        Events(workers=2, main="sluice_events_slots 4;") as ring,
        contextlib.ExitStack() as stack,
    ):
        ring.ready()
        for worker in range(2):
            wire = stack.enter_context(ring.connection(worker))
            ring.send_code(wire, STAY)
        wait_until(lambda: ring.run(0, 'return ngx.shared.notes:get("staying")') == 2, "two")
        ring.restart_workers()
        wait_until(lambda: len(ring.retiring()) == 2, "the old ones to stay")
        reload_is_refused(
            ring, r"4 processes read the events' log, which has slots for 4: there are none for 2"
        )
        ring.run(0, 'ngx.shared.notes:set("leave", true)')
        wait_until(lambda: not ring.retiring(), "the old ones to leave")
        ring.restart_workers()
        hear_from_each(ring)


def test_a_worker_without_a_slot_asks_again_until_it_has_one() -> None:
    """An upgrade's old workers count for another master, which cannot know of them."""
    with Events(workers=2, main="sluice_events_slots 3;\n") as ring:
        ring.expect_log("this worker gets no events: all slots of the log are taken")
        ring.ready()
        old, old_workers = ring.master(), ring.workers()
        ring.upgrade()

        def says(code: str) -> list[object]:
            """What the two new workers say."""
            found: dict[int, object] = {}

            def both() -> bool:
                with Wire(ring.proxy_port) as wire:
                    pid, value = ring.run_on(wire, f"return ngx.worker.pid(), {code}")
                if pid not in old_workers:
                    found[pid] = value
                return len(found) == 2

            wait_until(both, "both new workers to answer")
            return list(found.values())

        assert sorted(says("ev:is_ready()")) == [False, True]
        assert says("ev:stats().log.unattached") == [1, 1]
        with Wire(ring.proxy_port) as wire:
            ring.run_on(wire, 'for i = 1, 5 do ev:publish("all", "now", tostring(i)) end')
        os.kill(old, signal.SIGQUIT)
        wait_until(lambda: not alive(old), "the old master to leave")
        ring.ready()
        assert says("ev:stats().log.unattached") == [0, 0]
        # Both have heard what came before one of them could.
        for heard in ring.heard(5).values():
            assert names(heard) == [str(i) for i in range(1, 6)]
        hear_from_each(ring)


FEW_SLOTS = f"""#!/bin/bash
for file; do
    if [[ $file == *nginx.conf ]] && ! grep -q sluice_events_slots "$file"; then
        sed -i 's/^sluice_control on;/& sluice_events_slots 2;/' "$file"
    fi
done
exec -a "$0" {NGINX} "$@"
"""
"""An nginx with slots for a control worker and one that serves."""

TICKS = {
    "ticks": """
return {
    VERSION = "0.1.0", PRIORITY = 1,
    schema = { name = "ticks", fields = { { config = { type = "record", fields = {} } } } },
    init_worker = function()
        for _ = 1, ngx.worker.id() == 0 and 0 or 1000 do
            require("gateway.pdk").timers():at(0.001, function() end)
        end
    end,
}
"""
}
"""A plugin that has each worker that serves run a timer a thousand times."""


def test_the_gateway_says_who_has_no_slot(
    gateway: Callable[..., Gateway], upstream: Upstream, tmp_path: Path
) -> None:
    binary = tmp_path / "nginx"
    binary.write_text(FEW_SLOTS)
    binary.chmod(0o755)
    running = gateway(proxying(upstream), workers=1, nginx_binary=binary, plugins=TICKS)

    def runs() -> int:
        """Of timers, as /metrics has them, in thousands: the control worker's are few."""
        text = httpx.get(f"{running.admin}/metrics").text
        return int(text.partition("\nsluice_timer_runs_total ")[2].split()[0]) // 1000

    def figures() -> tuple[object, str]:
        """Of /status, and of /metrics."""
        # Without connections that an old process keeps.
        events = httpx.get(f"{running.admin}/status").json()["events"]
        text = httpx.get(f"{running.admin}/metrics").text
        found = [line for line in text.splitlines() if "_slot" in line and line[0] != "#"]
        return events, " ".join(found)

    none = (
        {"slots": 2, "taken": 2, "workers_without": 0},
        "sluice_events_slots 2 sluice_events_workers_without_slot 0",
    )
    assert figures() == none
    wait_until(lambda: runs() == 1, "timers to be counted")
    assert "without events" not in running.command("status").stdout
    leave = upstream.hold()
    with Wire(running.proxy_port) as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        upstream.wait_for(1)
        running.expect_log(r"2 processes read the events' log, which has slots for 2")
        done = running.command("reload", "--new-workers")
        assert done.returncode == 1
        assert "slots for 2: there are none for 2 new ones until old workers" in done.stderr
        assert done.stderr.splitlines()[-1].endswith("the running configuration is kept")

        done = running.command("upgrade", "--watch", "0.3")
        assert done.returncode == 0, done.stderr
        one = (
            {"slots": 2, "taken": 2, "workers_without": 1},
            "sluice_events_slots 2 sluice_events_workers_without_slot 1",
        )
        wait_until(lambda: figures() == one, "one worker to be without")
        line = "1 without events: all 2 slots of the event log are in use"
        wait_until(lambda: line in running.command("status").stdout, "status to say so")
        leave.set()
        assert wire.read_reply().status == 200
    wait_until(lambda: figures() == none, "it to have one")
    wait_until(lambda: runs() == 2, "what it counted without one")


OTHERS_SLEEP = """
        local function others_sleep()
            for _, worker in ipairs(ev:stats().workers) do
                if worker.pid ~= ngx.worker.pid() and (worker.lag > 0 or not worker.asleep) then
                    return false
                end
            end
            return true
        end
"""


def test_a_burst_wakes_each_worker_a_few_times() -> None:
    """Though each has read all and sleeps again before the next event is published."""
    burst = (
        OTHERS_SLEEP
        + """
        local function sent()
            for _, worker in ipairs(ev:stats().workers) do
                if worker.pid == ngx.worker.pid() then return worker.wakeups_sent end
            end
        end
        local before, deadline = sent(), os.time() + 20
        for i = 1, 100 do
            assert(ev:publish("all", "burst", tostring(i)) == true)
            -- The event loop does not turn meanwhile.
            while not others_sleep() and os.time() < deadline do end
        end
        return sent() - before, os.time() < deadline
    """
    )
    with Events(workers=3) as ring:
        ring.ready()
        ring.settle()
        sent, in_time = ring.run(0, burst)
        assert in_time
        # Two others, and itself: at once eight times, then by the alarm.
        assert sent <= 8 * 2 + 1
        for heard in ring.heard(100).values():
            assert names(heard) == [str(i) for i in range(1, 101)]


LAST_OF_A_BURST = (
    OTHERS_SLEEP
    + """
    local ffi = require("ffi")
    ffi.cdef("int kill(int pid, int signal);")
    for i = 1, 20 do
        assert(ev:publish("all", "burst", tostring(i)) == true)
    end
    local deadline = os.time() + 20
    while not others_sleep() and os.time() < deadline do end
    assert(ev:publish("all", "burst", "21") == true)
    ffi.C.kill(ngx.worker.pid(), SIGNAL)
    return true
"""
)
"""The last event comes when nobody has anything to read; its publisher's turn does not end."""

BURST = [str(i) for i in range(1, 22)]


HEARD = "local n = {} for i, e in ipairs(probe.heard) do n[i] = e.event end return n"


def test_an_event_of_a_stopped_publisher_is_heard() -> None:
    with Events(workers=3) as ring, contextlib.ExitStack() as stack:
        ring.ready()
        ring.settle()
        pid = ring.pid_of(0)
        # A stopped worker has a socket, whose connections nobody accepts.
        publisher, *others = [stack.enter_context(ring.connection(i)) for i in range(3)]
        ring.send_code(publisher, LAST_OF_A_BURST.replace("SIGNAL", str(int(signal.SIGSTOP))))
        try:
            for wire in others:
                wait_until(lambda wire=wire: ring.run_on(wire, HEARD) == BURST, "the last one")
        finally:
            os.kill(pid, signal.SIGCONT)
        assert ring.answer_on(publisher) is True


def test_an_event_of_a_killed_publisher_is_heard(ring: Events) -> None:
    """Of one that was leaving, so that no successor comes to wake anybody."""
    with ring.connection(0) as wire:
        ring.send_code(wire, STAY + LAST_OF_A_BURST.replace("SIGNAL", str(int(signal.SIGKILL))))
        staying = 'return ngx.shared.notes:get("staying")'
        wait_until(lambda: ring.run(1, staying) == 1, "it to stay")
        ring.restart_workers()
        wait_until(lambda: len(ring.retiring()) == 1, "the other old one to leave")
        ring.settle()
        ring.expect_log("exited on signal 9")
        ring.run(0, 'ngx.shared.notes:set("leave", true)')
        for worker in (0, 1):
            wait_until(
                lambda worker=worker: names(ring.heard_at(worker)) == BURST,
                f"worker {worker} to hear the last one",
            )
