"""From slices to metrics, and from those to a table and to JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import stats
from load import Slice

# Share of the time in which a worker has to be busy to count as the bottleneck.
SATURATED = 0.85


@dataclass(frozen=True)
class Metric:
    """A value with its unit and the ends of its 95% interval."""

    value: float
    unit: str
    low: float
    high: float


@dataclass
class Result:
    """A scenario's run; `invalid` says why its figures must not be used."""

    scenario: str
    invalid: str | None = None
    metrics: dict[str, Metric] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The contract that every bench keeps."""
        return {
            "scenario": self.scenario,
            "invalid": self.invalid,
            "metrics": {name: vars(metric) for name, metric in self.metrics.items()},
        }

    def write(self, folder: Path) -> Path:
        """Writes `<scenario>.json`, whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.scenario}.json"
        draft = path.with_suffix(".json.new")
        draft.write_text(json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n")
        draft.replace(path)
        return path


def measure(ours: list[Slice], theirs: list[Slice]) -> dict[str, Metric]:
    """Metrics of slices that were taken in pairs."""
    out: dict[str, Metric] = {}

    def both(read: Callable[[Slice], float]) -> tuple[list[float], list[float]]:
        return [read(slice_) for slice_ in ours], [read(slice_) for slice_ in theirs]

    def add(name: str, unit: str, estimate: stats.Estimate) -> None:
        out[name] = Metric(estimate.value, unit, estimate.low, estimate.high)

    cpu, cpu_nginx = both(lambda slice_: slice_.cpu_us)
    rps, rps_nginx = both(lambda slice_: slice_.rps)
    p99, p99_nginx = both(lambda slice_: slice_.p99_ms)
    busy, busy_nginx = both(lambda slice_: slice_.busy)
    add("efficiency", "ratio", stats.ratio(cpu_nginx, cpu))
    add("rps_ratio", "ratio", stats.ratio(rps, rps_nginx))
    add("p99_ratio", "ratio", stats.ratio(p99, p99_nginx))
    add("rps", "requests/s", stats.level(rps))
    add("rps_nginx", "requests/s", stats.level(rps_nginx))
    add("p99_ms", "ms", stats.level(p99))
    add("p99_ms_nginx", "ms", stats.level(p99_nginx))
    add("cpu_us", "us/request", stats.level(cpu))
    add("cpu_us_nginx", "us/request", stats.level(cpu_nginx))
    add("busy", "share", stats.level(busy))
    add("busy_nginx", "share", stats.level(busy_nginx))
    return out


def metric(unit: str, estimate: stats.Estimate) -> Metric:
    """A metric of an estimate."""
    return Metric(estimate.value, unit, estimate.low, estimate.high)


def remark(metrics: dict[str, Metric]) -> str | None:
    """A warning about figures that are right but flatter or wrong one of the sides."""
    if "busy" not in metrics:
        return None
    busy = min(metrics[name].value for name in ("busy", "busy_nginx"))
    if busy >= SATURATED:
        return None
    return (
        f"note: a worker was idle {1 - busy:.0%} of the time, so the load generator's core was the "
        "limit; RPS and latency say little, and an idle worker needs more CPU time per request"
    )


def verdict(metric: Metric, bar: float) -> str:
    """Whether a bar, the least a value may be, is met, and whether the whole interval says so."""
    met = metric.value >= bar
    clear = metric.low >= bar or metric.high < bar
    return f"at least {bar:.2f}: {_met(met, clear)}"


def verdict_at_most(metric: Metric, limit: float) -> str:
    """The same of a limit, the most that a value may be."""
    met = metric.value <= limit
    clear = metric.high <= limit or metric.low > limit
    return f"at most {limit:.2f}: {_met(met, clear)}"


def _met(met: bool, clear: bool) -> str:
    return f"{'met' if met else 'NOT met'}{'' if clear else ', within noise'}"


def table(result: Result, bars: dict[str, float], limits: dict[str, float] | None = None) -> str:
    """The metrics as a table that a terminal and Markdown both show."""
    limits = limits or {}
    rows: list[tuple[str, ...]] = [("metric", "value", "95% interval", "unit", "bar")]
    for name, metric in result.metrics.items():
        bar = verdict(metric, bars[name]) if name in bars else ""
        bar = verdict_at_most(metric, limits[name]) if name in limits else bar
        interval = f"{_number(metric.low)} to {_number(metric.high)}"
        rows.append((name, _number(metric.value), interval, metric.unit, bar))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rows.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    )


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 10 else f"{value:.3f}"
