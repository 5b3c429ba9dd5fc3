"""The module with ASan, UBSan and LSan in a real nginx, doing all that it does."""

import os
import signal

from asan import MODULE, check_nothing_to_report
from events_counting import COUNT, PUBLISH
from events_publishing import hear_from_each

from events_nginx import Events
from wire import wait_until

STATS = "return ev:stats()"


def test_nothing_to_report(asan: dict[str, str]) -> None:
    big = """
        local text = ("x"):rep(300000)
        for i = 1, 5 do ev:publish("all", "big", "e", text) end
        for i = 1, 100 do ev:publish("key " .. i, "unique", "e", i) end
        for i = 1, 10 do ev:publish({ worker = i % 2 }, "one", "e", text) end
        return ev:stats().total.published
    """
    with Events(
        workers=2,
        main="sluice_events_size 256k; sluice_events_stall 200ms;\n",
        init_worker=COUNT,
        module=MODULE,
        environment=asan,
    ) as ring:
        ring.expect_log(r"this worker missed \d+ events", range(1, 20))
        ring.expect_log(r"exited on signal 9")
        ring.ready()
        for worker in (0, 1):
            ring.run(worker, big)
        ring.run(0, PUBLISH % (1000, 1, 3000))
        wait_until(lambda: ring.run(1, "return probe.last") == 3000, "the last event")
        stopped = ring.pid_of(1)
        with ring.connection(0) as zero:
            os.kill(stopped, signal.SIGSTOP)
            ring.run_on(zero, PUBLISH % (1000, 3001, 6000))
            wait_until(
                lambda: "detached" in {w["state"] for w in ring.run_on(zero, STATS)["workers"]},
                "it to be detached",
            )
            os.kill(stopped, signal.SIGCONT)
        ring.settle()
        for _ in range(2):
            ring.restart_workers()
        hear_from_each(ring)
        victim = ring.pid_of(0)
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: len(ring.workers()) == 2 and victim not in ring.workers(), "a successor")
        hear_from_each(ring)
        wait_until(lambda: not ring.retiring(), "old workers to leave")
        check_nothing_to_report(ring, 6)
