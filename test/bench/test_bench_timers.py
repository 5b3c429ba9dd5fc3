"""The scenarios of timers: their arithmetic against known numbers, then each small and for real."""

import os
import shutil
import time
from pathlib import Path
from typing import Any

import kinds
import load
import outcome
import pytest
import report
import scenario
import timers
import timers_cost
from scenario import Described
from timers import Order, Window, Worker
from verify import InvalidRun

needs_wrk = pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")

ROUNDS = 4  # the fewest that have an interval


def loaded(name: str) -> Described:
    found = scenario.load(name)
    assert isinstance(found, Described)
    return found


def measured(name: str, **fields: object) -> dict[str, report.Metric]:
    real = loaded(name)
    data = real.data | {"rounds": ROUNDS, "limit_s": 0} | fields
    small = Described(name, real.kind, real.title, real.bars, real.limits, data)
    return kinds.measure(small, time.monotonic())


def windows(fired: int, expected: int, cpu_ns: int, rps: int = 0, p99_us: int = 0) -> list[Window]:
    """As many alike as give an interval; with a second of requests if there are any."""
    counted = outcome.Report(rps, 0, 1_000_000, 1, 1, p99_us, p99_us, 0, 0, 0, 0, 0)
    slice_ = load.Slice(counted, cpu_ns, 0) if rps else None
    return [Window(fired, expected, cpu_ns, slice_)] * ROUNDS


def test_a_fire_costs_what_is_above_no_timers() -> None:
    found = {
        "none": windows(0, 0, 2_000_000),
        "ngx": windows(8000, 10_000, 10_000_000),
        "sluice": windows(10_000, 10_000, 3_000_000),
    }
    out = timers.idle_metrics("case", found)
    assert out["cpu_ns_ngx_case"].value == pytest.approx(1000)  # by delivered fires
    assert out["cpu_ns_case"].value == pytest.approx(100)
    assert out["cpu_ratio_case"].value == pytest.approx(10)
    # Timers that cost less than the noise are no negative cost.
    assert timers.cpu_per_fire(found["none"], found["sluice"]) == [1.0] * ROUNDS


def test_requests_are_compared_with_those_without_timers() -> None:
    found = {
        "none": windows(0, 0, 0, rps=10_000, p99_us=2000),
        "sluice": windows(10, 10, 0, rps=9500, p99_us=3000),
    }
    out = timers.load_metrics("case", found)
    assert out["rps_none_case"].value == pytest.approx(10_000)
    assert out["rps_share_case"].value == pytest.approx(0.95)
    assert out["p99_ratio_case"].value == pytest.approx(1.5)
    assert out["p99_ms_case"].value == pytest.approx(3)
    assert "rps_share_ngx_case" not in out


def test_a_case_that_delivers_too_little_of_ours_is_invalid() -> None:
    found = {"ngx": windows(500, 1000, 0), "sluice": windows(990, 1000, 0)}
    out = timers.fires_metrics("case", found)
    assert out["fires_case"].value == 0.99
    assert out["fires_ngx_case"].value == 0.5
    with pytest.raises(InvalidRun, match=r"case: 0\.9890 of the timers that were due fired"):
        timers.fires_metrics("case", {"sluice": windows(989, 1000, 0)})
    with pytest.raises(InvalidRun, match="no timer was due"):
        timers.fires_metrics("case", {"sluice": windows(0, 0, 0)})


def test_fires_are_counted_over_all_slices() -> None:
    share = timers.delivered([Window(0, 10, 0), Window(20, 10, 0), Window(9, 10, 0)])
    assert (share.value, share.low, share.high) == (pytest.approx(29 / 30), 0.0, 2.0)


def test_early_and_wakeups() -> None:
    early = timers_cost.early([[0.1, 0.0], [-0.001, -0.002]])
    assert (early.value, early.low, early.high) == (2, 0, 2)
    rates = {"bare": [1.0, 0.0, 2.0], "empty": [1.0, 0.0, 0.0], "hour": [1.0, 3.0, 1.0]}
    assert timers_cost.beyond_bare(rates) == [0.0, 3.0, 0.0]


def test_an_order_is_a_table_of_lua() -> None:
    assert Order(100, 0.1, 256, True).lua() == (
        "{ timers = 100, interval = 0.1, callbacks = 256, yielding = true, contexts = 128 }"
    )


@pytest.mark.parametrize("quick", [False, True])
def test_every_bar_is_on_something_that_is_measured(quick: bool) -> None:
    real = loaded("timers-load")
    data = real.data | (real.data["quick"] if quick else {})
    names: set[str] = set()
    for cell in data["cells"]:
        assert len(cell["name"]) > 0
        Order(**cell["order"])
        found = {
            kind: {
                side: windows(1, 1, 1, rps=1, p99_us=1) for side in cell.get(kind, data["sides"])
            }
            for kind in ("idle", "load")
        }
        names |= set(timers.metrics(cell["name"], found))
    assert set(real.bars) | set(real.limits) <= names


@pytest.mark.long
@needs_wrk
def test_recurrent_timers_give_their_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timers, "SETTLE_S", 0.1)
    monkeypatch.setattr(timers, "FEWEST_FIRES", 0)  # a busy machine lets fires wait
    cells: list[dict[str, Any]] = [
        {
            "name": "few",
            "order": {"timers": 1000, "interval": 0.02},
            "load": ["none", "sluice"],
        },
        {
            "name": "mix",
            "order": {"timers": 1000, "interval": 0, "callbacks": 7},
            "load": [],
            "idle_s": 0.5,
        },
        {
            "name": "yielding",
            "order": {"timers": 50, "interval": 0.02, "yielding": True},
            "load": [],
        },
    ]
    out = measured("timers-load", cells=cells, idle_s=0.2, load_s=1, connections=10)
    for name in ("few", "mix", "yielding"):
        assert {f"cpu_ratio_{name}", f"cpu_ns_ngx_{name}", f"fires_{name}"} <= set(out)
        # A fire too many can come of a slice's edge, where there are few.
        assert 0.99 <= out[f"fires_{name}"].value <= 1.05
    assert {"rps_share_few", "p99_ratio_few", "rps_none_few"} <= set(out)
    for metric in out.values():
        assert 0 <= metric.low <= metric.value <= metric.high


@pytest.mark.long
def test_costs_give_their_metrics() -> None:
    out = measured("timers-cost", timers=5000, fires=200, settle_s=0.5, idle_rounds=2, idle_s=0.3)
    real = loaded("timers-cost")
    assert set(real.limits) | {"cancel_ns", "create_ns_ngx", "quit_ms_100k_ngx"} <= set(out)
    assert out["early"].value == 0
    assert out["wakeups_idle"].value == 0
    for metric in out.values():
        assert metric.low <= metric.value <= metric.high


@pytest.mark.long
def test_who_stands_still_fires_nothing_and_ends(tmp_path: Path) -> None:
    with Worker("sluice", tmp_path / "nginx", Order(10, 0.01)) as worker:
        pid = worker.worker
        fired = worker.ask("fires")["fired"]
        worker.stand_still()
        time.sleep(2)
        with worker.awake():
            # Nothing is made good of the 2,000 that were due meanwhile.
            assert worker.ask("fires")["fired"] < fired + 2000
        worker.check()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
