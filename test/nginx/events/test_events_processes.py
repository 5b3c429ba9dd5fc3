"""Events while processes come, go, and are killed."""

import os
import random
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from events_publishing import CHECK, GAPS, PUBLISH, PUBLISHERS, hear_from_each
from seeds import seed_of
from threads import beside

from events_nginx import Events, names
from processes import descriptors
from sluice import alive
from wire import ClosedEarly, Wire, wait_until


def test_workers_killed_under_load() -> None:
    """The long version is test/nginx/support/kill_events.py."""
    seed = seed_of("events_processes")
    print("seed", seed)
    dice = random.Random(seed)
    with Events(workers=3, init_worker=CHECK + PUBLISH) as ring:
        ring.expect_log(r"exited on signal 9", range(1, 1000))
        # The test's own dictionary: nginx takes its lock from the dead.
        ring.expect_log(r'shared memory zone "notes" was locked by', range(1000))
        ring.ready()
        survivor = ring.run(0, "return ngx.worker.pid()")
        with ring.connection(0) as wire:
            killed: set[int] = set()

            def kill_another() -> bool:
                time.sleep(dice.uniform(0, 0.02))
                victims = [pid for pid in ring.workers() if pid != survivor]
                if victims:
                    victim = dice.choice(victims)
                    os.kill(victim, signal.SIGKILL)
                    killed.add(victim)
                return len(killed) >= 20 and ring.run_on(wire, PUBLISHERS) >= 10

            wait_until(kill_another, "enough deaths, and publishers heard before theirs")
        wait_until(lambda: not killed & set(ring.workers()), "the last to die")
        wait_until(lambda: len(ring.workers()) == 3, "the last successor")
        ring.run(0, 'ngx.shared.notes:set("stop", true)')
        assert ring.run(0, GAPS) == ""
        hear_from_each(ring)


@pytest.mark.parametrize("count", [1, 5000])
@pytest.mark.parametrize("end", ["kill -9", "kill -STOP", "a loop"])
def test_what_was_published_is_heard_whatever_its_publisher_does(
    end: str, count: int, ring: Events
) -> None:
    """At once, by workers that slept: nothing is left for the publisher's loop to do."""
    publish = f'for i = 1, {count} do assert(ev:publish("all", "last", "words", i) == true) end\n'
    finish = f'os.execute("{end} " .. ngx.worker.pid())'
    ring.expect_log(r"exited on signal 9")
    publisher = ring.pid_of(1)
    with ring.connection(0) as other, ring.connection(1) as doomed:
        ring.send_code(doomed, publish + (finish if "kill" in end else "while true do end"))
        wait_until(lambda: ring.run_on(other, "return #probe.heard") == count, "all to be heard")
        if "9" not in end:
            assert alive(publisher)
            os.kill(publisher, signal.SIGKILL)
        wait_until(lambda: publisher not in ring.workers(), "its end")
    wait_until(lambda: len(ring.workers()) == 2, "its successor")
    hear_from_each(ring)


def test_a_reload_loses_nothing() -> None:
    with Events(workers=2, init_worker=CHECK + PUBLISH) as ring:
        ring.ready()
        seen = set(ring.workers())
        for _ in range(5):
            time.sleep(0.1)
            ring.restart_workers()
            seen |= set(ring.workers())
        wait_until(lambda: not ring.retiring(), "old workers to leave")
        ring.run(0, 'ngx.shared.notes:set("stop", true)')
        # What an old worker published last has arrived at the new ones.
        last = """
            local out = {}
            for publisher, n in pairs(probe.heard_of) do
                local published = ngx.shared.notes:get("published " .. publisher)
                table.insert(out, published == n and "ok" or publisher)
            end
            return out
        """
        wait_until(
            lambda: all(set(said) == {"ok"} for said in ring.run_all(last).values()),
            "the last event of each",
        )
        assert ring.run(0, GAPS) == ""
        assert len(seen) == 12
        hear_from_each(ring)


@contextmanager
def old_worker(ring: Events, code: str) -> Iterator[Wire]:
    """A connection with a request that runs the code, in a worker that a reload has replaced."""
    with Wire(ring.proxy_port) as wire:
        ring.send_code(wire, code)
        begun = 'return ngx.shared.notes:get("waits")'
        wait_until(lambda: ring.run(0, begun), "the request to be begun")
        ring.restart_workers()
        yield wire


def test_an_old_worker_with_a_request_still_hears_and_speaks() -> None:
    wait = """
        ngx.shared.notes:set("waits", true)
        for _ = 1, 3000 do
            if probe.stop then break end
            ngx.sleep(0.01)
        end
        ev:publish("all", "old", "speaks", ngx.worker.exiting())
        return probe.stop
    """
    init_worker = 'ev:subscribe("stop", "*", function(data) probe.stop = data end)'
    with Events(workers=2, init_worker=init_worker) as ring:
        ring.ready()
        with old_worker(ring, wait) as wire:
            wait_until(lambda: len(ring.retiring()) == 1, "one old worker to stay")
            ring.ready()
            ring.run(0, 'ev:publish("all", "stop", "now", "heard")')
            assert ring.answer_on(wire) == "heard"
        for heard in ring.heard_through("speaks").values():
            assert [e["data"] for e in heard if e["source"] == "old"] == [True]
        wait_until(lambda: not ring.retiring(), "the old worker to leave")


def test_a_request_that_waits_for_weeks_keeps_its_old_worker() -> None:
    """Its timer is as far away as those of the contexts that wait for events, and no such one."""
    wait = """
        probe.semaphore = require("ngx.semaphore").new(0)
        ngx.shared.notes:set("waits", true)
        return probe.semaphore:wait(2000000) and "woken"
    """
    init_worker = 'ev:subscribe("wake", "*", function() probe.semaphore:post(1) end)'
    with Events(workers=1, init_worker=init_worker) as ring:
        ring.ready()
        with old_worker(ring, wait) as wire:
            ring.ready()
            wait_until(lambda: len(ring.retiring()) == 1, "the old worker to stay")
            none = "probe.semaphore = { post = function() end } "
            ring.run(0, none + 'ev:publish("all", "wake", "now")')
            assert ring.answer_on(wire) == "woken"
        wait_until(lambda: not ring.retiring(), "the old worker to leave")


def test_old_workers_leave_at_once(ring: Events) -> None:
    ring.publish(count=10)

    def leave_at_once() -> bool:
        old = ring.workers()
        with Wire(ring.proxy_port) as idle:
            idle.ask("/stats")
            started = time.monotonic()
            os.kill(ring.master(), signal.SIGHUP)
            wait_until(lambda: len(set(ring.workers()) - set(old)) == 2, "new workers")
            forked = time.monotonic()
            wait_until(lambda: not any(map(alive, old)), "old workers to leave")
        return time.monotonic() - forked < 0.2 and time.monotonic() - started < 1

    # A busy machine may hold them up now and then; what they wait for would do so each time.
    wait_until(leave_at_once, "old workers to leave at once")


def test_a_queue_is_flushed_before_a_worker_leaves() -> None:
    main = "sluice_events_size 64k; sluice_events_stall 600s;\n"
    with Events(workers=2, main=main, init_worker=CHECK) as ring:
        ring.ready()
        old = set(ring.workers())
        stopped = ring.pid_of(1)
        with ring.connection(0) as zero:
            os.kill(stopped, signal.SIGSTOP)
            ring.run_on(
                zero,
                'for i = 1, 2000 do ev:publish("all", "seq", "queued", i) end '
                "return ev:stats().total.queue_depth",
            )
        os.kill(ring.master(), signal.SIGHUP)
        wait_until(lambda: len(set(ring.workers()) - old) == 2, "new workers")
        time.sleep(0.2)
        os.kill(stopped, signal.SIGCONT)
        wait_until(lambda: not ring.retiring(), "old workers to leave")
        for worker in (0, 1):
            wait_until(
                lambda w=worker: ring.run(w, "return probe.heard_of.queued") == 2000,
                "the new workers to hear what was queued",
            )
        assert ring.run(0, GAPS) == ""


def test_a_killed_master_leaves_nothing_behind(ring: Events) -> None:
    workers = ring.workers()
    os.kill(ring.master(), signal.SIGKILL)
    # The orphans go on.
    ring.publish(first=1)
    for heard in ring.heard(1).values():
        assert names(heard) == ["1"]
    for pid in workers:
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not any(map(alive, workers)), "the orphans to leave")
    ring.start()
    hear_from_each(ring)
    Events.live.remove(ring)


def test_files_stay_the_same_over_reloads(ring: Events) -> None:
    master = ring.master()
    before = descriptors(master)
    for _ in range(10):
        ring.restart_workers()
    wait_until(lambda: not ring.retiring(), "old workers to leave")
    # The master closes its end of a worker's channel when it has noticed the exit.
    wait_until(lambda: descriptors(master) == before, "the master to have as many files")
    ring.ready()
    slots = ring.ring_stats()["workers"]
    assert sorted(w["pid"] for w in slots) == sorted(ring.workers())


def test_programs_that_a_worker_starts_inherit_nothing(lone_ring: Events) -> None:
    code = """
        local pipe = io.popen("ls -l /proc/self/fd")
        local text = pipe:read("*a")
        pipe:close()
        return text
    """
    listing = lone_ring.run(0, code)
    assert "memfd" not in listing
    assert listing.count("eventfd") <= 2, listing


def test_without_a_master_process() -> None:
    # Such an nginx does not become a daemon by itself here; it is one with `daemon on`.
    with Events(workers=1, main="master_process off;", init_worker=CHECK + PUBLISH) as ring:
        ring.ready()
        wait_until(lambda: ring.run(0, "return next(probe.heard_of) ~= nil"), "its own events")
        assert ring.run(0, "return ev:is_ready()") is True
        assert ring.run(0, GAPS) == ""


def test_instances_side_by_side() -> None:
    with Events(workers=2) as one, Events(workers=2) as two:
        one.ready()
        two.ready()
        one.publish(first=1)
        two.publish(first=2)
        assert names(one.heard(1)[0]) == ["1"]
        assert names(two.heard(1)[0]) == ["2"]


def test_a_configuration_test_disturbs_nothing(ring: Events) -> None:
    for _ in range(3):
        assert ring.nginx("-t").returncode == 0
    hear_from_each(ring)
    assert ring.ring_stats()["log"]["generation"] == 1


@pytest.mark.parametrize("size", ["63k", "2048m", "x"])
def test_sizes_that_are_refused(size: str) -> None:
    assert "sluice_events_size" in Events(main=f"sluice_events_size {size};").refuses()


def test_a_missing_module_is_named() -> None:
    code = """
        local function nothing() return true end
        package.loaded.probe.ev = { subscribe = nothing, init_worker = nothing }
        local ok, err = require("sluice.events").new()
        package.loaded.probe.answer = tostring(ok) .. " " .. err
    """
    with Events(module=None, init=code) as ring:
        answer = ring.run(0, "return probe.answer")
        assert answer.startswith("nil the Sluice module is not loaded")
        assert re.search(r"load_module /\S+/ngx_sluice_module\.so;", answer)


def test_requests_during_reloads_are_not_disturbed() -> None:
    """Publishing requests over ten reloads: each that was accepted is heard by all who live."""
    with Events(workers=2, init_worker=CHECK) as ring:
        ring.ready()
        stop = threading.Event()
        accepted: list[int] = []

        def publish() -> None:
            n = 0
            while not stop.is_set():
                try:
                    with Wire(ring.proxy_port) as wire:
                        said = ring.run_on(
                            wire, f'return ev:publish("all", "seq", "http", {n + 1})'
                        )
                except (ClosedEarly, ConnectionError):
                    continue
                assert said in (True, "queued")
                n += 1
                accepted.append(n)

        with beside(publish, until=stop):
            for _ in range(10):
                before = len(accepted)
                ring.restart_workers()
                wait_until(lambda n=before: len(accepted) > n + 5, "publishing requests")
        ring.settle()
        assert len(accepted) > 50
        assert ring.run(0, GAPS) == ""
        assert set(ring.run_all("return probe.heard_of.http").values()) == {accepted[-1]}


def test_the_privileged_agent_hears_and_publishes() -> None:
    init = """
        local agent = require("ngx.process")
        agent.enable_privileged_agent(64)
        require("probe").is_agent = function() return agent.type() == "privileged agent" end
    """
    init_worker = """
        if probe.is_agent() then
            ev:subscribe("ask", "*", function(data, event, source, wid)
                local answer = { data = data, pid = ngx.worker.pid() }
                ev:publish({ worker = wid }, "answer", event, answer)
            end)
        end
        ev:subscribe("answer", "*", function(data, event, source, wid)
            probe.answer = { event, data.data, data.pid, tostring(wid) }
        end)
    """
    with Events(workers=2, init=init, init_worker=init_worker) as ring:
        ring.ready()
        agents = [w for w in ring.ring_stats()["workers"] if "worker" not in w]
        if not agents:
            pytest.skip("this nginx has no privileged agent; stock nginx has none")
        for target, event in (('"all"', "one"), ('{ worker = "agent" }', "two")):
            ring.run(1, f'assert(ev:publish({target}, "ask", "{event}", 7))')
            answer = [event, 7, agents[0]["pid"], "nil"]
            wait_until(
                lambda answer=answer: ring.run(1, "return probe.answer") == answer, "its answer"
            )
        old = agents[0]["pid"]
        ring.restart_workers()
        wait_until(lambda: not alive(old), "the old agent to leave")
        hear_from_each(ring)
