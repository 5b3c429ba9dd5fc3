"""The scenarios of events, of configuration changes and of scrapes, each in a second or two."""

import re
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import events
import kinds
import pytest
import scenario
import sides
import stats
import verify
from scenario import Described

TRANSPORTS = ["ring", "socket", "poll"]

# Of each scenario as little as gives metrics.
SMALL: dict[str, dict[str, Any]] = {
    "events-throughput": {
        "seconds": 0.05,
        "cells": [{"workers": 2, "sizes": [64], "transports": TRANSPORTS}],
    },
    "events-latency": {"seconds": 0.2, "cells": [{"workers": 3, "transports": TRANSPORTS}]},
    "events-burst": {"count": 500, "transports": TRANSPORTS},
    "events-interference": {"seconds": 1, "connections": [20], "transports": ["ring"]},
    "events-idle": {"settle_s": 0.5, "seconds": 0.5, "transports": TRANSPORTS},
    "events-many": {"workers": 3, "rate": 2000, "seconds": 0.3},
    "config-change": {"posts": 2, "routes": [10], "load": {}},
    "config-push": {"posts": 2, "routes": 20, "load": {}},
    "scrape": {"routes": 50, "seconds": 1},
}
NAMES = list(SMALL)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(events.OPTIONS, "poll", '{ transport = "poll", interval = 0.02 }')


def measure(name: str, **fields: object) -> dict[str, Any]:
    loaded = scenario.load(name)
    assert isinstance(loaded, Described)
    data = loaded.data | {"rounds": 4, "limit_s": 60} | SMALL[name] | fields
    small = Described(name, loaded.kind, loaded.title, loaded.bars, loaded.limits, data)
    return kinds.measure(small, time.monotonic())


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_gives_its_metrics(name: str) -> None:
    if name == "events-interference" and not shutil.which("wrk"):
        pytest.skip("wrk is not installed")
    found = measure(name)
    for metric in found.values():
        assert 0 <= metric.low <= metric.value <= metric.high
    wanted = {
        "events-throughput": {"ring_over_socket_64B_w2"}
        | {f"{transport}_cpu_us_64B_w2" for transport in TRANSPORTS},
        "events-latency": {
            f"{side}_p{share}_us_w3" for side in (*TRANSPORTS, "floor") for share in (50, 99)
        }
        | {"ring_p50_over_floor_w3", "ring_p99_over_floor_w3"},
        "events-burst": {"accepted", "delivered_min", "drain_ms", "socket_accepted"},
        "events-interference": {
            f"ring_{case}_{what}"
            for case in ("1000_500ms", "10000_100ms")
            for what in ("rps_share", "p99_ratio", "cpu_share", "delivered_share")
        },
        "events-idle": {f"{transport}_wakeups_per_s" for transport in TRANSPORTS},
        "events-many": {"ticks_over_bursts", "lost", "ticks_cpu_us", "bursts_cpu_us"},
        "config-change": {"live_ms_p99_10"},
        "config-push": {"same_ms_p50", "same_ms_p99", "changed_ms_p50", "changed_ms_p99"},
        "scrape": {"rps_share", "p99_ratio", "scrape_ms"},
    }
    assert wanted[name] <= set(found)


def test_a_quick_run_measures_what_carries_a_bar() -> None:
    for name in NAMES:
        loaded = scenario.load(name)
        assert isinstance(loaded, Described)
        for bar in [*loaded.bars, *loaded.limits]:
            found = re.fullmatch(r"(ring|socket)_.*?(?:(64B|1KB|16KB)_)?w(\d+)", bar)
            if not found:
                continue
            transport, size, workers = found.groups()
            cells = [
                cell
                for cell in loaded.data["quick"]["cells"]
                if cell["workers"] == int(workers) and transport in cell["transports"]
            ]
            sizes = {events.SIZES[size] for cell in cells for size in cell.get("sizes", [])}
            assert cells, bar
            assert size is None or size in sizes, bar


@pytest.mark.long
def test_idle_sees_a_transport_that_polls() -> None:
    # What a busy machine puts off is not there to be counted, or is counted later.
    for _ in range(5):
        found = measure("events-idle")
        ring, poll = found["ring_wakeups_per_s"].value, found["poll_wakeups_per_s"].value
        if ring == 0 and poll == pytest.approx(50, rel=0.5):
            return
    raise AssertionError((ring, poll))


@pytest.mark.long
def test_a_burst_beyond_the_queue_is_counted_not_invalid() -> None:
    found = measure("events-burst", count=15_000, transports=["socket"])
    assert found["socket_accepted"].value < 15_000
    assert found["socket_delivered_min"].value == found["socket_accepted"].value


@pytest.mark.long
def test_what_is_refused_counts_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    run = events.Workers.run
    monkeypatch.setattr(
        events.Workers,
        "run",
        lambda self, order: replace((done := run(self, order)), offered=done.offered + 7),
    )
    assert measure("events-many")["lost"].value == 7


class Faulty(events.Workers):
    """Workers whose agent has one piece of its text replaced."""

    fault = ("", "")

    def write(self) -> None:
        super().write()
        (self.folder / "lua").mkdir()
        bench = sides.NGINX_FOLDER.parent
        agent = (bench / "agent.lua").read_text()
        assert self.fault[0] in agent
        (self.folder / "lua" / "agent.lua").write_text(agent.replace(*self.fault))
        conf = self.folder / "nginx.conf"
        conf.write_text(
            conf.read_text().replace(f'"{bench}/?', f'"{self.folder}/lua/?.lua;{bench}/?')
        )


@pytest.mark.parametrize(
    ("fault", "patience_s", "message"),
    [
        (("heard.count + 1", "heard.count + data.id % 2"), 60, "got 50 of 100 events"),
        (("add(heard.sum, data.id", "add(heard.sum, -data.id"), 60, "other contents"),
        (("notes:set(account_key", "print(account_key"), 0.5, "not every worker has heard the end"),
    ],
)
def test_loss_makes_a_run_invalid(
    fault: tuple[str, str], patience_s: float, message: str, tmp_path: Path
) -> None:
    Faulty.fault = fault
    order = events.Order("tick", count=100, patience=patience_s)
    with (
        Faulty("ring", 2, tmp_path / "nginx") as workers,
        pytest.raises(verify.InvalidRun, match=message),
    ):
        workers.run_lossless(order)


def test_rounds_alternate_and_end_in_time() -> None:
    assert list(stats.orders(["a", "b"], 3)) == [["a", "b"], ["b", "a"], ["a", "b"]]
    pooled = stats.pooled_quantile([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], 0.5)
    assert pooled.value == 4.5
    assert pooled.low <= 4.5 <= pooled.high
    assert stats.mean([0.0, 0.0, 0.0, 0.0]) == stats.Estimate(0, 0, 0)
