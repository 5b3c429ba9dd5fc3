"""The module with ASan, UBSan and LSan in a real nginx, doing all that it does."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from test_events_limits import COUNT, PUBLISH
from test_events_processes import hear_from_each

from events_ring import Ring
from sluice import ROOT
from wire import wait_until

STATS = "return ev:stats()"


def runtime(name: str) -> str:
    """The path of a sanitizer's library."""
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """For an nginx and a cjson built without sanitizers: both keep some memory to the end."""
    subprocess.run([ROOT / "scripts" / "build-module", "asan"], check=True, timeout=300)
    suppressions = tmp_path / "suppressions"
    suppressions.write_text("leak:ngx_alloc\nleak:strbuf_init\n")
    return os.environ | {
        "LD_PRELOAD": f"{runtime('libasan.so')}:{runtime('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=1",
        "LSAN_OPTIONS": f"suppressions={suppressions}",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }


def test_nothing_to_report(environment: dict[str, str]) -> None:
    big = """
        local text = ("x"):rep(300000)
        for i = 1, 5 do ev:publish("all", "big", "e", text) end
        for i = 1, 100 do ev:publish("key " .. i, "unique", "e", i) end
        for i = 1, 10 do ev:publish({ worker = i % 2 }, "one", "e", text) end
        return ev:stats().total.published
    """
    module = ROOT / "build" / "module-asan" / "ngx_sluice_module.so"
    with Ring(
        workers=2,
        main="sluice_events_size 256k; sluice_events_stall 200ms;\n",
        init_worker=COUNT,
        module=str(module),
        environment=environment,
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
        wait_until(lambda: len(ring.workers()) == 2 and victim not in ring.workers(), "its heir")
        hear_from_each(ring)
        wait_until(lambda: not ring.retiring(), "old workers to leave")
        # The master says so a little later.
        wait_until(lambda: ring.error_log().count("exited with code") == 4, "the ends of all")
        ended = ring.error_log().count("exited with code 0")
        assert ended == 4, "a leak, or a report, ends a process with another code"
