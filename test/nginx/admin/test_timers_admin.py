"""What the timers do, asked of the admin listener and by `sluice timers`."""

import json
import os
import re
import signal
import subprocess
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from processes import waited_seconds
from sluice import COMMAND, Gateway, Start, proxying
from upstream import Upstream
from wire import DEADLINE, wait_until

MAKER = """
local pdk = require("gateway.pdk")
local function fail()
    error("failed on purpose")
end
return {
    VERSION = "0.1.0", PRIORITY = 1,
    schema = { name = "maker", fields = { { config = { type = "record", fields = {
        { count = { type = "integer", default = 1 } },
    } } } } },
    init_worker = function()
        local timers = pdk.timers()
        for i = 1, COUNT do
            timers:at(3600 + i, print)
        end
        timers:named_every("often", 0.02, function() end)
        timers:named_every("bad", 0.05, fail)
    end,
}
"""


@pytest.fixture
def running(gateway: Start, upstream: Upstream) -> Gateway:
    """A gateway of three workers whose timers work and fail."""
    config = proxying(upstream) | {"plugins": [{"name": "maker"}]}
    started = gateway(config, plugins={"maker": MAKER.replace("COUNT", "5")}, workers=3)
    started.expect_log("failed on purpose", range(1, 100))
    return started


def timers(running: Gateway, query: str = "") -> dict[str, Any]:
    """The answer of the admin listener."""
    reply = httpx.get(f"{running.admin}/timers{query}", trust_env=False, timeout=DEADLINE)
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "application/json; charset=utf-8"
    return reply.json()


def place(found: dict[str, Any], field: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The only timer that a condition holds for."""
    (timer,) = [timer for timer in found["stats"]["timers"].values() if field(timer)]
    return timer


def test_a_workers_timers_in_kongs_layout(running: Gateway) -> None:
    wait_until(lambda: timers(running)["stats"]["timers"]["often"]["stats"]["runs"] > 3, "runs")
    found = timers(running)
    assert found["worker"]["count"] == 3
    assert found["worker"]["id"] in range(3)
    stats = found["stats"]
    sys = stats["sys"]
    assert {"running", "pending", "waiting", "total", "runs"} <= set(sys)
    assert sys["total"] == len(stats["timers"])
    assert sys["total"] >= 7
    often = stats["timers"]["often"]
    assert often["name"] == "often"
    assert often["is_running"] is False
    assert re.search(r"maker/handler\.lua:\d+", often["meta"]["name"])
    assert often["meta"]["callstack"]
    assert set(often["stats"]["elapsed_time"]) == {"avg", "max", "min", "variance"}
    assert 0 < often["stats"]["elapsed_time"]["min"] <= often["stats"]["elapsed_time"]["avg"]
    assert often["stats"]["finish"] == often["stats"]["runs"]
    assert often["stats"]["last_err_msg"] == ""
    bad = stats["timers"]["bad"]
    assert bad["stats"]["finish"] == 0
    assert bad["stats"]["runs"] > 0
    assert "failed on purpose" in bad["stats"]["last_err_msg"]
    assert set(stats["flamegraph"]) == {"running", "pending", "elapsed_time"}
    for line in stats["flamegraph"]["elapsed_time"].splitlines():
        assert re.fullmatch(r".+ \d+\.\d{3}", line)


def test_all_workers_together(running: Gateway) -> None:
    def ready() -> bool:
        return place(timers(running, "?workers=all"), is_many)["count"] == 20

    def is_many(timer: dict[str, Any]) -> bool:
        return timer["count"] >= 5

    wait_until(ready, "all workers to have their timers")
    found = timers(running, "?workers=all")
    assert found["worker"] == {"id": "all", "count": 3}
    assert {worker["pid"] for worker in found["workers"]} == {
        *running.workers(),
        running.control(),
    }
    assert sorted(worker["id"] for worker in found["workers"]) == [0, 1, 2, 3]
    assert found["silent"] == []
    sys = found["stats"]["sys"]
    assert sys["total"] == sum(worker["sys"]["total"] for worker in found["workers"])
    many = place(found, is_many)
    assert many["count"] == 20
    assert many["stats"]["runs"] == 0
    bad = place(found, lambda timer: "on purpose" in timer["stats"]["last_err_msg"])
    assert bad["count"] == 4
    assert bad["stats"]["finish"] == 0
    assert bad["stats"]["elapsed_time"]["max"] >= bad["stats"]["elapsed_time"]["p99"] * 0.5
    assert bad["stats"]["lateness"]["min"] >= 0


def test_a_dead_or_stopped_worker_is_not_waited_for_long(running: Gateway) -> None:
    victim, stuck = running.workers()[:2]
    running.expect_log(f"worker process {victim} exited on signal 9")
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in running.workers(), "its death")
    os.kill(stuck, signal.SIGSTOP)
    try:
        # A connection that the stopped worker has taken is answered later.
        wire = running.wire()
        wire.close()
        begun = time.monotonic()
        found = asked_of_another(running)
        assert time.monotonic() - begun < 30
        assert stuck in found["silent"]
        assert victim not in found["silent"]
    finally:
        os.kill(stuck, signal.SIGCONT)
    wait_until(lambda: len(timers(running, "?workers=all")["workers"]) == 4, "all of them")


def asked_of_another(running: Gateway) -> dict[str, Any]:
    """The answer of a worker that is not stopped; one that is takes connections, too."""
    for _ in range(20):
        try:
            reply = httpx.get(f"{running.admin}/timers?workers=all", trust_env=False, timeout=8)
        except httpx.TimeoutException:
            continue
        return reply.json()
    raise AssertionError("no worker answers")


def test_wrong_arguments_and_methods(running: Gateway) -> None:
    with httpx.Client(base_url=running.admin, trust_env=False, timeout=DEADLINE) as client:
        assert client.get("/timers?workers=2").status_code == 400
        assert client.post("/timers").status_code == 405
        assert client.head("/timers").status_code == 200


def test_a_hundred_thousand_timers_do_not_block_a_worker(
    gateway: Start, upstream: Upstream
) -> None:
    config = proxying(upstream) | {"plugins": [{"name": "maker"}]}
    running = gateway(config, plugins={"maker": MAKER.replace("COUNT", "100000")})
    running.expect_log("failed on purpose", range(1, 100))
    upstream.answer(200, body=b"ok")
    running.ask("/")
    pids = [os.getpid(), running.control(), *running.workers()]

    def let_through() -> bool:
        slowest = 0.0
        asked = 0
        waited = waited_seconds(*pids)
        with (
            httpx.Client(trust_env=False, timeout=DEADLINE) as client,
            client.stream("GET", f"{running.admin}/timers") as reply,
            running.wire() as wire,
        ):
            parts = []
            for part in reply.iter_bytes(1 << 16):
                parts.append(part)
                begun = time.monotonic()
                wire.ask("/")
                slowest = max(slowest, time.monotonic() - begun)
                asked += 1
        found = json.loads(b"".join(parts))
        assert len(found["stats"]["timers"]) >= 100_000
        print(f"{asked} requests meanwhile, the slowest took {slowest * 1000:.0f} ms")
        assert asked > 50
        return slowest < 0.5 + waited_seconds(*pids) - waited

    def add_up() -> float:
        begun, waited = time.monotonic(), waited_seconds(*pids)
        assert timers(running, "?workers=all")["stats"]["sys"]["total"] >= 100_000
        return time.monotonic() - begun - (waited_seconds(*pids) - waited)

    wait_until(let_through, "requests to be answered meanwhile", 3 * DEADLINE)
    wait_until(lambda: add_up() < 1, "the figures of all")


# sluice timers


def test_the_table_is_sorted_and_cut(running: Gateway) -> None:
    wait_until(
        lambda: "failures" in running.command("timers").stdout,
        "a table",
    )
    done = running.command("timers", "--sort", "timers")
    assert done.returncode == 0, done.stderr
    first, second, empty, head, *rows = done.stdout.splitlines()
    assert re.match(r"4 workers: \d+ timers, of them \d+ waiting, ", first)
    assert re.match(
        r"\d+ runs, \d+ failures, \d+ skipped; backlog \S+; \d+ contexts of at ", second
    )
    assert empty == ""
    names = [
        "timers",
        "running",
        "runs",
        "failures",
        "skipped",
        "time",
        "mean",
        "p99",
        "max",
        "late",
    ]
    assert head.split() == [*names, "created", "at"]
    counts = [int(row.split()[0]) for row in rows]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 20
    assert all(re.search(r"\S+:\d+$", row) for row in rows)
    cut = running.command("timers", "--sort", "failures", "--top", "1").stdout.splitlines()
    assert int(cut[4].split()[3]) > 0
    assert re.fullmatch(r"\.\.\. and \d+ places more", cut[5])
    assert json.loads(running.command("timers", "--json").stdout)["worker"]["id"] == "all"


@pytest.mark.parametrize("kind", ["elapsed", "pending", "running"])
def test_a_flame_graph(running: Gateway, tmp_path: Path, kind: str) -> None:
    wait_until(lambda: timers(running)["stats"]["timers"]["often"]["stats"]["runs"] > 3, "runs")
    file = tmp_path / "timers.svg"
    done = running.command("timers", "--flame", str(file), "--of", kind)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    root = ET.parse(file).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    titles = [title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert kind == "running" or any("maker/handler.lua" in title for title in titles), titles
    no_folder = running.command("timers", "--flame", str(tmp_path / "no" / "folder.svg"))
    assert no_folder.returncode == 1
    assert "No such file" in no_folder.stderr


def test_watching_goes_on_until_it_is_interrupted(running: Gateway, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with out.open("w") as file:
        watch = subprocess.Popen(
            [str(COMMAND), "timers", "--watch", "0.1"], env=running.environment(), stdout=file
        )
        wait_until(lambda: out.read_text().count("created at") >= 3, "three tables")
        watch.send_signal(signal.SIGINT)
        assert watch.wait(20) == -signal.SIGINT
    assert out.read_text().startswith("\x1b[H\x1b[2J")


def test_wrong_use_and_a_gateway_that_does_not_run(running: Gateway) -> None:
    for wrong in (["--sort", "name"], ["--top", "0"], ["--of", "x"], ["--watch", "x"]):
        assert running.command("timers", *wrong).returncode == 2
    running.stop()
    assert running.command("timers").returncode == 3
