#!/usr/bin/env python3
"""Shows that a comparison sees what it is to see, and how often it sees what is not there.

    bench/selftest.py             HEAD beside itself, then beside a build of itself that spends 3%
                                  more CPU time on each request; ten minutes at most
    bench/selftest.py --same 20   HEAD beside itself, 20 times, as the gate compares: how often it
                                  would have closed for nothing; 70 seconds at most each

On a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import compare
import report
import revisions
import run
import scenario as scenarios
import sides
import stats

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


def main(arguments: list[str]) -> int:
    """Runs what the command line asks for; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--same", type=int, metavar="N", help="count false alarms in so many")
    parser.add_argument("--scenario", default=SCENARIO, metavar="NAME", help="a proxy scenario")
    options = parser.parse_args(arguments)
    if missing := sides.missing_programs():
        print(f"selftest: missing; apt-get install {' '.join(missing)}", file=sys.stderr)
        return 1
    run.end_on_signals()
    try:
        scenario = scenarios.load(options.scenario)
        if not isinstance(scenario, scenarios.Scenario):
            raise scenarios.ScenarioError(f"{scenario.name} is no proxy scenario")
        head = revisions.resolve("HEAD")
        with revisions.exported(head) as new, revisions.exported(head) as old:
            if options.same:
                return _same(scenario, new, old, options.same)
            return _both(scenario, new, old)
    except (revisions.RevisionError, scenarios.ScenarioError) as error:
        print(f"selftest: {error}", file=sys.stderr)
        return 1
    except run.Interrupted:
        print("\nselftest: interrupted", file=sys.stderr)
        return 130


def _both(scenario: scenarios.Scenario, new: Path, old: Path) -> int:
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


def _same(scenario: scenarios.Scenario, new: Path, old: Path, times: int) -> int:
    """Compares a revision with itself so often; fails if the gate would have closed once."""
    found, invalid, began = [], 0, time.monotonic()
    for number in range(times):
        outcome = compare.compare(scenario, compare.Trees(new, old), compare.GATE)
        if outcome.result.invalid:
            invalid += 1
            print(f"{number + 1}: INVALID: {outcome.result.invalid}", flush=True)
            continue
        ratio = outcome.cpu.ratio
        found.append(ratio)
        print(
            f"{number + 1}: {ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f}), "
            f"{outcome.cpu.verdict}; {time.monotonic() - began:.0f} s",
            flush=True,
        )
    print(f"\n{run.setting()}\n{scenario.name} beside itself: {told(found)}; {invalid} invalid")
    return 1 if invalid or not found or alarms(found) else 0


def alarms(ratios: Sequence[stats.Estimate]) -> int:
    """How often the gate would have closed."""
    return sum(stats.beyond(ratio, compare.BOUND) for ratio in ratios)


def told(ratios: Sequence[stats.Estimate]) -> str:
    """What comparisons of equals came to."""
    if not ratios:
        return "nothing was measured"
    words = [stats.verdict(ratio) for ratio in ratios]
    widest = max(ratios, key=lambda ratio: ratio.high - ratio.low)
    low = max(ratio.low for ratio in ratios)
    return (
        f"{alarms(ratios)} false alarms in {len(ratios)} (a lower end above {compare.BOUND}; the "
        f"highest is {low:.3f}); {words.count('slower')} called slower, {words.count('faster')} "
        f"faster; the widest interval is {widest.low:.3f} to {widest.high:.3f}"
    )


def _compare(
    scenario: scenarios.Scenario, new: Path, old: Path, label: str
) -> report.Compared | None:
    trees = compare.Trees(new, old, (f"HEAD, {label}", "HEAD"))
    began = time.monotonic()
    outcome = compare.compare(scenario, trees, compare.FULL)
    print(compare.text(scenario, outcome, trees, time.monotonic() - began), flush=True)
    return None if outcome.result.invalid else outcome.cpu


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
