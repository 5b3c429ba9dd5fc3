"""Images and roles of workers with ASan, UBSan and LSan in nginx."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest
from test_events_sanitizers import runtime

from images_bare import Images
from sluice import ROOT
from wire import wait_until

ROUTES = """
    local n, list = %d, {}
    for i = 1, 20 do
        list[i] = w.route(i, {
            hosts = i %% 3 == 0 and { "*.example", "a:81" } or nil,
            paths = { i %% 4 == 0 and "~/p(" .. i .. "|" .. n .. ")+$" or "/p" .. i },
            methods = i %% 5 == 0 and { "PUT", "OTHER" } or nil,
            headers = i %% 2 == 0 and { ["x-a"] = { "~*^v[0-9]+$", "w" } } or nil,
        })
    end
    w.base(n, list, n)
    w.delta(n, n, n)
    w.publish(n, n, n)
    w.change({ w.route(30, { paths = { "/changed" .. n }, revision = n + 1 }) }, n + 1)
    w.publish(n, n, n + 1)
    w.release()
    os.remove(w.path("base", n - 2))
"""


def ask_at_random(nginx: Images, chosen: random.Random, count: int) -> None:
    """Requests that match one thing or another."""
    for _ in range(count):
        lines = [
            (chosen.choice(["X-A", "x_a", "x-b", "X_B", "other"]), chosen.choice(["v1", "w", "z"]))
            for _ in range(chosen.choice([0, 1, 3, 40]))
        ]
        lines.append(("Host", chosen.choice(["a", "a:81", "b.example:80", "a:99999999999"])))
        path = chosen.choice([f"/p{chosen.randrange(30)}", "/changed7", "/none", "/p" + "4" * 90])
        method = chosen.choice(["GET", "PUT", "OTHER"])
        with nginx.wire() as wire:
            assert wire.ask(path, method, lines).status in (200, 400, 404)


def test_nothing_to_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    subprocess.run([ROOT / "scripts" / "build-module", "asan"], check=True, timeout=300)
    suppressions = tmp_path / "suppressions"
    # What nginx and a cjson without sanitizers keep to the end.
    suppressions.write_text("leak:ngx_alloc\nleak:strbuf_init\n")
    monkeypatch.setenv("LD_PRELOAD", f"{runtime('libasan.so')}:{runtime('libubsan.so')}")
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=1")
    monkeypatch.setenv("LSAN_OPTIONS", f"suppressions={suppressions}")
    monkeypatch.setenv("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
    chosen = random.Random(3)
    with Images(module=f"{ROOT}/build/module-asan") as nginx:
        nginx.expect_log("exited on signal 9")
        nginx.expect_log("cannot map", range(1, 3))
        for number in range(2, 22):
            nginx.run(ROUTES % number)
            ask_at_random(nginx, chosen, 10)
            assert nginx.traffic('return w.find("credential", "key-auth", 8, "key", 3)') == "none"
            assert nginx.traffic('return w.find("by_id", 2, ("i"):rep(16))') == "none"
        nginx.run("w.publish(99, 0, 99)")
        assert nginx.match("/p1")["status"] == 503
        nginx.run(ROUTES % 100)
        wait_until(lambda: nginx.match("/p1")["status"] == 200, "what is live")
        nginx.restart_workers()
        ask_at_random(nginx, chosen, 10)
        zero = nginx.zero()
        os.kill(zero, signal.SIGKILL)
        wait_until(lambda: nginx.zero() != zero, "the next worker 0")
        old = nginx.master()
        nginx.upgrade()
        nginx.end(old)
        ask_at_random(nginx, chosen, 10)
        nginx.stop()
        log = nginx.error_log()
        assert "Sanitizer" not in log
        assert "runtime error" not in log
        assert not [
            line for line in log.splitlines() if "exited with code" in line and "code 0" not in line
        ]
        # Two left at the reload, two with the old master, two with the new one.
        assert log.count("exited with code 0") == 6, "a leak, or a report, ends with another code"
