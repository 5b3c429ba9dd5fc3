"""Memory, start and reload: that the figures come, and are of the right size."""

import time
from typing import Any

import kinds
import pytest
from scenario import Described


def measured(kind: str, **data: Any) -> dict[str, float]:
    scenario = Described(kind, kind, kind, {}, {}, {"limit_s": 0, "workers": 1} | data)
    metrics = kinds.measure(scenario, time.monotonic())
    assert all(metric.low <= metric.value <= metric.high for metric in metrics.values())
    return {name: metric.value for name, metric in metrics.items()}


@pytest.mark.long
def test_start_and_reload_are_timed() -> None:
    found = measured("start", routes=[10], rounds=1)
    assert set(found) == {"start_ms_10", "reload_ms_10"}
    assert all(5 < value < 20_000 for value in found.values())


@pytest.mark.long
def test_memory_grows_with_routes() -> None:
    found = measured("memory", routes=[10, 2000], rounds=1, pushes=10, pushed_routes=10)
    assert 2 < found["pss_mb_10"] < found["pss_mb_2000"] < 200
    assert found["pss_mb_10"] < found["rss_mb_10"]
    assert 10 < found["pss_kb_per_1000_routes"] < 50_000
    assert 0.5 < found["pss_ratio_10_pushes"] < 3
