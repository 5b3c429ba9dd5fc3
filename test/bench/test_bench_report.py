"""The JSON contract and the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import report
from load import Report, Slice


def slices(cpu_us: float, p99_us: int, requests: int) -> list[Slice]:
    counted = Report(requests, 1, 1_000_000, 1, p99_us, 0, 0, 0, 0, 0)
    return [Slice(counted, int(cpu_us * 1000 * requests), 0)] * 8


def test_metrics_divide_the_right_way() -> None:
    metrics = report.measure(slices(25, 6000, 30_000), slices(20, 4000, 40_000))
    values = {name: metric.value for name, metric in metrics.items()}
    assert values == pytest.approx(
        {
            "efficiency": 0.8,  # hand-written CPU / ours: below 1, we need more
            "rps_ratio": 0.75,  # ours / hand-written
            "p99_ratio": 1.5,
            "rps": 30_000,
            "rps_nginx": 40_000,
            "p99_ms": 6,
            "p99_ms_nginx": 4,
            "cpu_us": 25,
            "cpu_us_nginx": 20,
            "busy": 0.75,
            "busy_nginx": 0.8,
        }
    )


def test_an_idle_worker_is_remarked_on() -> None:
    full, half = slices(25, 1, 40_000), slices(25, 1, 20_000)
    assert report.remark(report.measure(full, full)) is None
    assert "idle 50%" in (report.remark(report.measure(full, half)) or "")


def test_json_is_the_contract(tmp_path: Path) -> None:
    result = report.Result("x", None, {"efficiency": report.Metric(0.8, "ratio", 0.7, 0.9)})
    path = result.write(tmp_path / "new" / "folder")
    assert path.name == "x.json"
    assert [other.name for other in path.parent.iterdir()] == ["x.json"]
    assert json.loads(path.read_text()) == {
        "scenario": "x",
        "invalid": None,
        "metrics": {"efficiency": {"value": 0.8, "unit": "ratio", "low": 0.7, "high": 0.9}},
    }


def test_an_invalid_result_says_why(tmp_path: Path) -> None:
    path = report.Result("x", "Sluice: 1 status errors").write(tmp_path)
    assert json.loads(path.read_text()) == {
        "scenario": "x",
        "invalid": "Sluice: 1 status errors",
        "metrics": {},
    }


@pytest.mark.parametrize(
    ("low", "value", "high", "text"),
    [
        (0.76, 0.80, 0.84, "at least 0.75: met"),
        (0.74, 0.76, 0.84, "at least 0.75: met, within noise"),
        (0.70, 0.74, 0.76, "at least 0.75: NOT met, within noise"),
        (0.70, 0.72, 0.74, "at least 0.75: NOT met"),
    ],
)
def test_verdict(low: float, value: float, high: float, text: str) -> None:
    assert report.verdict(report.Metric(value, "ratio", low, high), 0.75) == text


def test_table_is_markdown_with_the_bars() -> None:
    metrics = {
        "efficiency": report.Metric(0.801, "ratio", 0.79, 0.81),
        "rps": report.Metric(31234.5, "requests/s", 30000, 32000),
    }
    lines = report.table(report.Result("x", None, metrics), {"efficiency": 0.75}).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[2].split("|")[1:-1][0].strip() == "efficiency"
    assert "0.790 to 0.810" in lines[2]
    assert "at least 0.75: met" in lines[2]
    assert "| 31234 " in lines[3]
    assert "at least" not in lines[3]
