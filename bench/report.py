"""From slices to metrics, and from those to a table and to JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import stats
from load import Memory, Slice
from verify import TooNoisy

# Share of the time in which a worker has to be busy to count as the bottleneck.
SATURATED = 0.85
# Share of the time in which generator and upstream have to run for their core to count as full.
FULL_CORE = 0.95


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


# What is read of a slice, and in which unit.
READINGS: dict[str, tuple[str, Callable[[Slice], float]]] = {
    "rps": ("requests/s", lambda slice_: slice_.rps),
    "p50_ms": ("ms", lambda slice_: slice_.p50_ms),
    "p90_ms": ("ms", lambda slice_: slice_.p90_ms),
    "p99_ms": ("ms", lambda slice_: slice_.p99_ms),
    "p999_ms": ("ms", lambda slice_: slice_.p999_ms),
    "cpu_us": ("us/request", lambda slice_: slice_.cpu_us),
    "client_us": ("us/request", lambda slice_: max(slice_.client_us, 1e-9)),
    "upstream_us": ("us/request", lambda slice_: max(slice_.upstream_us, 1e-9)),
    "switches": ("1/request", lambda slice_: max(slice_.switches_per_request, 1e-9)),
    "busy": ("share", lambda slice_: max(slice_.busy, 1e-9)),
}


def readings(slices: Sequence[Slice], suffix: str, block: int) -> dict[str, Metric]:
    """Everything that is read of one side's slices."""
    return {
        name + suffix: metric(unit, stats.level([read(slice_) for slice_ in slices], block))
        for name, (unit, read) in READINGS.items()
    }


def measure(ours: list[Slice], theirs: list[Slice], block: int = stats.BLOCK) -> dict[str, Metric]:
    """Metrics of slices that were taken in pairs; `block` of them share one start."""

    def ratio(over: Sequence[Slice], under: Sequence[Slice], name: str) -> Metric:
        _, read = READINGS[name]
        values = [read(slice_) for slice_ in over], [read(slice_) for slice_ in under]
        return metric("ratio", stats.ratio(*values, block))

    out = {
        "efficiency": ratio(theirs, ours, "cpu_us"),
        "rps_ratio": ratio(ours, theirs, "rps"),
        "p99_ratio": ratio(ours, theirs, "p99_ms"),
    }
    return out | readings(ours, "", block) | readings(theirs, "_nginx", block)


def yardstick(
    ours: Sequence[Slice], theirs: Sequence[Slice], name: str, block: int
) -> dict[str, Metric]:
    """Metrics of a side that has one slice for each A B B A of ours."""
    halves = [
        math.sqrt(ours[2 * index].cpu_us * ours[2 * index + 1].cpu_us)
        for index in range(len(theirs))
    ]
    block = max(1, block // 2)
    cheaper = stats.ratio([slice_.cpu_us for slice_ in theirs], halves, block)
    out = {f"efficiency_over_{name}": metric("ratio", cheaper)}
    return out | readings(theirs, f"_{name}", block)


def memory(lives: Sequence[Memory], suffix: str = "") -> dict[str, Metric]:
    """Memory of a worker at the end of each of its lives."""
    return {
        f"{kind}_mb{suffix}": spread("MiB", [getattr(life, kind) / 2**20 for life in lives])
        for kind in ("rss", "pss")
    }


def syscalls(lives: Sequence[float], suffix: str = "") -> dict[str, Metric]:
    """System calls per request in each life; nothing where they could not be counted."""
    return {f"syscalls{suffix}": spread("1/request", lives)} if lives else {}


def spread(unit: str, values: Sequence[float]) -> Metric:
    """The median with the least and the most: of few values, or of ones that hardly differ."""
    ordered = sorted(values)
    return Metric(stats.quantile(ordered, 0.5), unit, ordered[0], ordered[-1])


def check_generator(slices: Sequence[Slice]) -> None:
    """Raises if the load generator's core was the limit, and not the worker."""
    generating, busy = (
        stats.quantile(sorted(_values(slices, read)), 0.5)
        for read in (lambda slice_: slice_.generating, lambda slice_: slice_.busy)
    )
    if generating > FULL_CORE and busy < SATURATED:
        raise TooNoisy(
            f"the generator was the limit: it and the upstream ran for {generating:.0%} of the "
            f"time, the worker for {busy:.0%}"
        )


@dataclass(frozen=True)
class Compared:
    """A metric of two revisions: both values, their ratio (new over old), and what that says."""

    name: str
    unit: str
    old: float
    new: float
    ratio: stats.Estimate
    verdict: str


# More of these is better; of all others less.
MORE_IS_BETTER = frozenset({"requests/s", "events/s", "events"})
# These say how ours stands to a yardstick, which is the same for both revisions.
RELATIVE = frozenset({"ratio", "share"})
COMPARED = ("cpu_us", "rps", "p50_ms", "p90_ms", "p99_ms", "p999_ms", "switches")


def compare(
    new: Sequence[Slice],
    old: Sequence[Slice],
    new_memory: Sequence[Memory],
    old_memory: Sequence[Memory],
    block: int,
) -> list[Compared]:
    """Slices and memory of two revisions that were taken in pairs."""
    rows = []
    for name in COMPARED:
        unit, read = READINGS[name]
        rows.append(_compared(name, unit, _values(new, read), _values(old, read), block))
    for kind in ("rss", "pss"):
        # One a life, and neighbours do not matter; too few to leave out any.
        pair = [
            [getattr(life, kind) / 2**20 for life in lives] for lives in (new_memory, old_memory)
        ]
        rows.append(_compared(f"{kind}_mb", "MiB", pair[0], pair[1], 1))
    return rows


def compare_runs(
    new: Sequence[dict[str, Metric]], old: Sequence[dict[str, Metric]]
) -> tuple[list[Compared], list[str]]:
    """Whole runs of two revisions that were taken in pairs; and what cannot be compared."""
    rows, left = [], []
    for name, found in new[0].items():
        if found.unit in RELATIVE or YARDSTICK in name.split("_"):
            continue
        if not all(name in run for run in (*new, *old)):
            left.append(f"{name} (not in every run)")
            continue
        values = [[run[name].value for run in runs] for runs in (new, old)]
        if min(map(min, values)) <= 0:
            least, most = min(map(min, values)), max(map(max, values))
            left.append(f"{name} ({_number(least)} to {_number(most)}: 0 has no ratio)")
            continue
        rows.append(_compared(name, found.unit, *values, stats.BLOCK))
    return rows, left


# A part of the names of metrics that are not ours but those of nginx's own.
YARDSTICK = "ngx"


def _values(slices: Sequence[Slice], read: Callable[[Slice], float]) -> list[float]:
    return [read(slice_) for slice_ in slices]


def _compared(
    name: str, unit: str, new: Sequence[float], old: Sequence[float], block: int
) -> Compared:
    ratio = stats.ratio(new, old, block)
    levels = [stats.level(side, block).value for side in (old, new)]
    word = stats.verdict(ratio, unit in MORE_IS_BETTER)
    return Compared(name, unit, levels[0], levels[1], ratio, word)


def compared_metrics(rows: Sequence[Compared]) -> dict[str, Metric]:
    """The same as metrics: `<name>_ratio`, new over old, `<name>` and `<name>_old`."""
    out = {f"{row.name}_ratio": metric("ratio", row.ratio) for row in rows}
    for row in rows:
        for name, value in ((row.name, row.new), (f"{row.name}_old", row.old)):
            out[name] = Metric(value, row.unit, value, value)
    return out


def summary(rows: Sequence[Compared]) -> str:
    """What a comparison of many metrics comes to: who is not the same, and how many are."""
    said = []
    for word in ("slower", "faster"):
        names = [row.name for row in rows if row.verdict == word]
        said += [f"{word}: {', '.join(names)}"] if names else []
    same = sum(row.verdict == "same" for row in rows)
    return "; ".join([*said, f"{same} of {len(rows)} the same"])


def comparison(rows: Sequence[Compared]) -> str:
    """Two revisions as a table."""
    cells = [("metric", "old", "new", "new / old", "95% interval", "verdict")]
    for row in rows:
        interval = f"{row.ratio.low:.3f} to {row.ratio.high:.3f}"
        value = f"{row.ratio.value:.3f}"
        label = f"{row.name}, {row.unit}"
        cells.append((label, _number(row.old), _number(row.new), value, interval, row.verdict))
    return grid(cells)


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
        f"note: a worker was idle {1 - busy:.0%} of the time, so it was not the limit; RPS and "
        "latency say little, and an idle worker needs more CPU time per request"
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
    apart = _of_sides(result.metrics)
    for name, metric in result.metrics.items():
        if any(name in names for names in apart.values()):
            continue
        bar = verdict(metric, bars[name]) if name in bars else ""
        bar = verdict_at_most(metric, limits[name]) if name in limits else bar
        interval = f"{_number(metric.low)} to {_number(metric.high)}"
        rows.append((name, _number(metric.value), interval, metric.unit, bar))
    out = grid(rows)
    if apart:
        out += "\n\n" + _sides_table(result.metrics, apart)
    return out


# The sides of proxy scenarios, by the ends of their metrics' names.
SIDES = {
    "Sluice": "",
    "nginx": "_nginx",
    "HAProxy": "_haproxy",
    "Envoy": "_envoy",
    "Caddy": "_caddy",
}


def _of_sides(metrics: dict[str, Metric]) -> dict[str, list[str]]:
    """The metrics that each side has one of, by the side's name."""
    bases = [name.removesuffix("_nginx") for name in metrics if name.endswith("_nginx")]
    present = {
        side: [base + end for base in bases if base + end in metrics] for side, end in SIDES.items()
    }
    return {side: names for side, names in present.items() if names}


def _sides_table(metrics: dict[str, Metric], apart: dict[str, list[str]]) -> str:
    rows: list[tuple[str, ...]] = [("", *apart)]
    for own in apart["Sluice"]:
        cells = [f"{own}, {metrics[own].unit}"]
        for side in apart:
            found = metrics.get(own + SIDES[side])
            cells.append(
                f"{_number(found.value)} ({_number(found.low)} to {_number(found.high)})"
                if found
                else ""
            )
        rows.append(tuple(cells))
    return grid(rows)


def grid(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows of cells in Markdown, the first one as the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [rows[0], tuple("-" * width for width in widths), *rows[1:]]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in lines
    )


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 10 else f"{value:.3f}"
