#!/usr/bin/env python3
"""Measures a change against what it is based on, and stops it if it is far slower.

    bench/gate.py          against the merge base with main, or, on main, the parent
    bench/gate.py REV      against a revision
    bench/gate.py --times  the CPU time of requests as well

The instructions of the parts in C (micro.INSTRUCTIONS_BOUND), which any machine counts
alike, and, with --times, three proxy scenarios of 65 seconds (compare.BOUND). Where
nothing that runs has changed, there is nothing to measure. A slowdown that a change is
worth is announced by a line at the end of its commit's message, which stays in the history:

    Slower: ring_event_64 9%: the check of a header sees its highest bytes
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
import time
from pathlib import Path

import compare
import micro
import report
import revisions
import run
import scenario as scenarios
import sides
import stats
import verify

SCENARIOS = ("proxy-plain", "proxy-plugins", "proxy-routes-1000")
# What a request runs through; the rest of the repository changes no speed.
RUNS = ("bin", "cli", "compat", "gateway", "lib", "module", "plugins", "scripts")

TRAILER = "Slower"
_ANNOUNCED = re.compile(r"(\S+) (\d+(?:\.\d+)?)%: \S.*")


def announced(new: str, old: str) -> dict[str, float]:
    """The bounds that the commits between two ask for, by scenario or part."""
    bounds: dict[str, float] = {}
    for line in revisions.trailers(old, new, TRAILER):
        found = _ANNOUNCED.fullmatch(line)
        if not found:
            form = f"{TRAILER}: <scenario or part> <percent>%: <why>"
            raise revisions.RevisionError(f"'{TRAILER}: {line}' is not of the form '{form}'")
        print(f"gate: announced: {line}")
        name, bound = found[1], 1 + float(found[2]) / 100
        bounds[name] = max(bound, bounds.get(name, bound))
    return bounds


def measure(new: str, old: str, times: bool) -> list[str]:
    """Compares two commits and prints the tables; returns the reasons to stop the newer one."""
    bounds = announced(new, old)
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(revisions.exported(new))
        try:
            theirs = stack.enter_context(revisions.exported(old))
        except revisions.RevisionError as error:
            print(f"gate: nothing to compare with: {error}")
            return []
        trees = compare.Trees(ours, theirs, (revisions.described(new), revisions.described(old)))
        return (requests(trees, bounds) if times else []) + instructions(trees, bounds)


def requests(trees: compare.Trees, bounds: dict[str, float]) -> list[str]:
    """CPU time of requests."""
    stops = []
    for name in SCENARIOS:
        began = time.monotonic()
        scenario = scenarios.load(name)
        assert isinstance(scenario, scenarios.Scenario)
        outcome = compare.compare(scenario, trees, compare.GATE)
        print(compare.text(scenario, outcome, trees, time.monotonic() - began), flush=True)
        if reason := outcome.stops(max(compare.BOUND, bounds.get(name, 0))):
            stops.append(f"{name}: {reason}")
    return stops


def instructions(trees: compare.Trees, bounds: dict[str, float]) -> list[str]:
    """Instructions of the parts in C."""
    parts = scenarios.load("micro")
    assert isinstance(parts, scenarios.Described)
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        try:
            rows, left = micro.compare(parts.data, *trees.both(), Path(folder))
        except verify.InvalidRun as error:
            return [f"micro: {error}"]
    if rows:
        print(f"\n{report.comparison(rows)}")
    for name in left:
        print(f"not compared: {name}")
    return [
        f"{row.name}: {row.ratio.value - 1:+.2%} instructions"
        for row in rows
        if stats.beyond(row.ratio, max(micro.INSTRUCTIONS_BOUND, bounds.get(row.name, 0)))
    ]


def main(arguments: list[str]) -> int:
    """Runs the gate; returns the exit status."""
    times = "--times" in arguments
    others = [word for word in arguments if word != "--times"]
    if missing := sides.missing_programs():
        print(f"gate: missing; apt-get install {' '.join(missing)}", file=sys.stderr)
        return 1
    run.end_on_signals()
    try:
        new = revisions.resolve("HEAD")
        old = revisions.resolve(others[0]) if others else revisions.base()
        if old is None:
            print(f"gate: no revision to compare with; {revisions.alone()}")
            return 0
        if not revisions.differ(old, new, RUNS):
            print(f"gate: nothing that runs has changed since {revisions.described(old)}")
            return 0
        stops = measure(new, old, times)
    except revisions.RevisionError as error:
        print(f"gate: {error}", file=sys.stderr)
        return 1
    except run.Interrupted:
        print("\ngate: interrupted", file=sys.stderr)
        return 130
    print(f"\n{run.setting(new[:7])}")
    for reason in stops:
        print(f"gate: {reason}")
    print("gate: closed" if stops else "gate: open")
    return 1 if stops else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
