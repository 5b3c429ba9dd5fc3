#!/usr/bin/env python3
"""Shows that a comparison sees what it is to see: 3% more CPU time, and not less than nothing.

HEAD is compared with itself, then with a build of itself that spends 3% more
CPU time on each request. Ten minutes at most, on a machine with nothing else to do.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import compare
import report
import revisions
import scenario as scenarios

SCENARIO = "proxy-plain"
SLOWER = 0.03
SLOW = Path(__file__).resolve().parent / "slow.c"
# nginx writes once to the upstream and once to the client.
WRITES_A_REQUEST = 2


def slow_down(tree: Path, ns: float) -> None:
    """Makes a checkout spend so many nanoseconds more on each request."""
    library, start = tree / "slow.so", tree / "bin" / "sluice"
    each = f"-DSLOW_NS={round(ns / WRITES_A_REQUEST)}"
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", each]
    done = subprocess.run([*command, "-o", library, SLOW], capture_output=True, text=True)
    if done.returncode != 0:
        raise revisions.RevisionError(f"slow.c does not compile: {done.stderr.strip()}")
    first, _, rest = start.read_text().partition("\n")
    start.write_text(f"{first}\nexport LD_PRELOAD={library}\n{rest}")


def main() -> int:
    """Runs both comparisons; returns the exit status."""
    scenario = scenarios.load(SCENARIO)
    assert isinstance(scenario, scenarios.Scenario)
    head = revisions.resolve("HEAD")
    with revisions.exported(head) as new, revisions.exported(head) as old:
        same = _compare(scenario, new, old, "the same")
        if same is None:
            return 1
        slow_down(new, same.old * 1e3 * SLOWER)
        slowed = _compare(scenario, new, old, f"{SLOWER:.0%} slower")
    if slowed is None:
        return 1
    right = same.verdict != "slower" and slowed.verdict == "slower"
    has = slowed.ratio.low <= 1 + SLOWER <= slowed.ratio.high
    print(f"\nidentical: {same.verdict}; slowed: {slowed.verdict}")
    print(f"the interval {'has' if has else 'misses'} {1 + SLOWER:.2f}")
    print("selftest: passed" if right else "selftest: FAILED")
    return 0 if right else 1


def _compare(
    scenario: scenarios.Scenario, new: Path, old: Path, label: str
) -> report.Compared | None:
    trees = compare.Trees(new, old, (f"HEAD, {label}", "HEAD"))
    began = time.monotonic()
    outcome = compare.compare(scenario, trees, compare.FULL)
    print(compare.text(scenario, outcome, trees, time.monotonic() - began), flush=True)
    return None if outcome.result.invalid else outcome.cpu


if __name__ == "__main__":
    sys.exit(main())
