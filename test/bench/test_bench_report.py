"""The JSON contract and the table."""

import json
from pathlib import Path

import pytest
import report
from load import Memory, Report, Slice
from verify import TooNoisy


def slices(cpu_us: float, p99_us: int, requests: int, client_us: int = 7) -> list[Slice]:
    counted = Report(requests, 1, 1_000_000, 100, 200, p99_us, 9000, 0, 0, 0, 0, 0)
    slice_ = Slice(
        counted,
        cpu_ns=int(cpu_us * 1000 * requests),
        wait_ns=0,
        client_ns=client_us * 1000 * requests,
        upstream_ns=9000 * requests,
        switches=2 * requests,
    )
    return [slice_] * 8


def test_metrics_divide_the_right_way() -> None:
    metrics = report.measure(slices(25, 6000, 30_000), slices(20, 4000, 40_000))
    values = {name: metric.value for name, metric in metrics.items()}
    expected = {
        "efficiency": 0.8,  # hand-written CPU / ours: below 1, we need more
        "rps_ratio": 0.75,  # ours / hand-written
        "p99_ratio": 1.5,
        "rps": 30_000,
        "rps_nginx": 40_000,
        "p50_ms": 0.1,
        "p99_ms": 6,
        "p99_ms_nginx": 4,
        "p999_ms_nginx": 9,
        "cpu_us": 25,
        "cpu_us_nginx": 20,
        "client_us": 7,
        "upstream_us_nginx": 9,
        "switches": 2,
        "busy": 0.75,
        "busy_nginx": 0.8,
    }
    assert {name: values[name] for name in expected} == pytest.approx(expected)


def test_a_yardstick_is_held_against_both_slices_before_it() -> None:
    ours = [*slices(20, 1, 1000)[:1], *slices(45, 1, 1000)[:1]] * 4  # 30 in the middle
    metrics = report.yardstick(ours, slices(24, 1, 1000)[:4], "haproxy", 4)
    assert metrics["efficiency_over_haproxy"].value == pytest.approx(0.8)
    assert metrics["cpu_us_haproxy"].value == pytest.approx(24)


def test_a_generator_that_was_the_limit_makes_a_run_invalid() -> None:
    report.check_generator(slices(25, 1, 36_000, client_us=18))  # the worker was busy as well
    report.check_generator(slices(25, 1, 20_000))  # something else was the limit
    with pytest.raises(TooNoisy, match=r"ran for 98% of the time, the worker for 50%"):
        report.check_generator(slices(25, 1, 20_000, client_us=40))


def test_two_revisions_are_compared_metric_by_metric() -> None:
    memory = [Memory(4 << 20, 2 << 20, 1 << 20)] * 2
    rows = report.compare(
        slices(26, 6000, 30_000), slices(25, 6000, 40_000), memory, memory, block=4
    )
    values = {row.name: [row.old, row.new, row.ratio.value] for row in rows}
    assert values["cpu_us"] == pytest.approx([25, 26, 1.04])
    assert values["rps"] == pytest.approx([40_000, 30_000, 0.75])
    assert values["p99_ms"] == pytest.approx([6, 6, 1])
    assert values["rss_mb"] == pytest.approx([4, 4, 1])
    verdicts = {row.name: row.verdict for row in rows}
    assert {name for name, word in verdicts.items() if word == "slower"} == {"cpu_us", "rps"}
    assert "faster" not in verdicts.values()
    metrics = report.compared_metrics(rows)
    assert metrics["cpu_us_ratio"].value == pytest.approx(1.04)
    assert metrics["cpu_us_old"].value == pytest.approx(25)
    assert "1.040 to 1.040 | slower" in report.comparison(rows)


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


def test_what_each_side_has_is_told_side_by_side() -> None:
    result = report.Result("x", None, report.measure(slices(25, 1, 9000), slices(20, 1, 9000)))
    lines = report.table(result, {}).splitlines()
    head = next(line for line in lines if "nginx" in line)
    assert [cell.strip() for cell in head.split("|")[1:-1]] == ["", "Sluice", "nginx"]
    cpu = next(line for line in lines if line.startswith("| cpu_us"))
    assert "25.00 (25.00 to 25.00)" in cpu
    assert "20.00 (20.00 to 20.00)" in cpu


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
