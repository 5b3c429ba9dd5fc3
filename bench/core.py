"""The scenario of the core alone: a cold match and its cache lines, by the number of routes.

The programs are `bench/micro/match.c` and `match_lines.c`, which `test/core` builds: they print
lines of `name value`.
Each round runs all sizes one after the other, so that their ratio is of the same minutes.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import report
import stats
from progress import progress
from report import Metric, metric
from setting import Setting
from verify import InvalidRun

UNITS = {
    "match_ns": "ns",
    "match_ns_without_delta": "ns",
    "match_ns_at_random": "ns",
    "build_ms": "ms",
    "check_ms": "ms",
    "map_us": "us",
    "live_ms": "ms",
    "image_bytes_per_route": "B",
    "cold_lines": "lines",
}
TIMEOUT_S = 300


def built(root: Path, out: Path) -> list[Path]:
    """The programs of a checkout, compiled."""
    names = ["bench", "lines"]
    command = ["make", "-s", "-C", str(root / "test" / "core"), f"OUT={out}"]
    done = subprocess.run(
        [*command, *(str(out / name) for name in names)], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise InvalidRun(f"the core's programs do not compile: {done.stderr.strip()[-300:]}")
    return [out / name for name in names]


def ask(program: Path, routes: int) -> dict[str, float]:
    """Runs a program; what it printed."""
    done = subprocess.run([program, str(routes)], capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise InvalidRun(f"{program.name}: {(done.stderr or done.stdout).strip()[-300:]}")
    return parse(done.stdout)


def parse(output: str) -> dict[str, float]:
    """Reads lines of `name value`; others are for people."""
    words = (line.split() for line in output.splitlines())
    return {pair[0]: float(pair[1]) for pair in words if len(pair) == 2 and ":" not in pair[0]}


def measure(setting: Setting) -> dict[str, Metric]:
    """Measures the scenario."""
    bench, lines = built(setting.root, setting.folder / "programs")
    sizes = setting.data["routes"]
    found: dict[int, list[dict[str, float]]] = {size: [] for size in sizes}
    for _ in setting.rounds(["all"], 0, 1):
        for size in sizes:
            progress(f"{setting.name}: {size} routes")
            found[size].append(ask(bench, size) | ask(lines, size))
    out = {}
    for size, rounds in found.items():
        for name, unit in UNITS.items():
            out[f"{name}_{size}"] = report.spread(unit, [round_[name] for round_ in rounds])
    fewest = min(sizes)
    for size in sizes:
        if size != fewest:
            times = [[one["match_ns"] for one in found[of]] for of in (size, fewest)]
            out[f"match_growth_{size}"] = metric("ratio", stats.ratio(*times))
    return out
