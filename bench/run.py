#!/usr/bin/env python3
"""Measures Sluice against a hand-written nginx that does the same job.

Both run side by side, one worker each on one core; load generator and upstream
share the other core. Slices of a second alternate A B B A, and only ratios of
neighbouring slices are compared. docs/benchmarks.md tells how to read it.

    bench/run.py                          all scenarios
    bench/run.py --scenario proxy-plain   one
    bench/run.py --quick                  within 90 seconds a scenario
    bench/run.py --self                   hand-written nginx against itself: the method's own noise
    bench/run.py --show                   writes the configurations of both sides and stops
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import load
import report
import scenario as scenarios
import sides
import stats
import verify
from probe import Recorder

OUTPUT = sides.ROOT / "build" / "bench"
SLICE_S = 1


@dataclass(frozen=True)
class Plan:
    """How long to measure: `pairs`, or fewer when `limit_s` after the scenario's start is up."""

    pairs: int
    warm_up_s: int
    limit_s: float
    connections: int = 100


FULL = Plan(pairs=80, warm_up_s=4, limit_s=600)
# 90 seconds are for everything: what comes after the last pair takes five.
QUICK = Plan(pairs=32, warm_up_s=2, limit_s=78)
FEWEST_PAIRS = 8


class Interrupted(BaseException):
    """A signal asked for the end; a BaseException, so that nothing takes it for a failure."""


class Run:
    """One scenario's run, from start-up to metrics."""

    def __init__(self, scenario: scenarios.Scenario, plan: Plan, against_itself: bool) -> None:
        self.scenario = scenario
        self.plan = plan
        self.against_itself = against_itself
        self.cores = _two_cores()
        self.upstream_address = sides.free_address()

    def measure(self, began: float) -> dict[str, report.Metric]:
        """Starts everything, measures, checks, and leaves nothing behind."""
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-bench-")))
            folder.chmod(0o755)  # workers of a master run by root are somebody else
            pair = self.start(stack, folder)
            upstream = sides.Upstream(
                folder / "upstream", self.upstream_address, self.cores[1], self.scenario.body
            )
            stack.enter_context(upstream)
            before = [self._probe(side) for side in pair]
            self._check(pair, fresh=True)
            requests = folder / "requests"
            requests.write_bytes(b"".join(item.head() for item in self.scenario.requests))
            slices, asked = self._slices(pair, upstream, requests, before, began)
            after = [self._probe(side) for side in pair]
            self._check(pair, fresh=False)
            count = len(self.scenario.requests)
            in_flight = 2 * self.plan.connections * (len(slices[0]) + 1)
            for index, side in enumerate(pair):
                # Each probe tells what was left before its own request: the later one counts.
                total = asked[index] + count
                verify.counted_down(side, before[index], after[index], total, in_flight)
                trouble = side.trouble()
                if trouble:
                    raise verify.InvalidRun(f"{side.name} logged: {trouble}")
        return report.measure(slices[0], slices[1])

    def start(self, stack: contextlib.ExitStack, folder: Path) -> list[sides.Server]:
        """Starts both sides and shows that they send the same to the upstream."""
        common = (self.upstream_address, self.cores[0])
        first: sides.Server
        if self.against_itself:
            first = self._hand_written(folder / "nginx-again", *common)
        else:
            first = sides.Sluice(self.scenario, folder / "sluice", sides.free_address(), *common)
        stack.enter_context(first)
        second = self._hand_written(folder / "nginx", *common)
        stack.enter_context(second)
        with Recorder(self.upstream_address, self.scenario.body.encode()) as recorder:
            verify.same_work(self.scenario, recorder, first, second)
        return [first, second]

    def _hand_written(self, folder: Path, upstream: str, core: int) -> sides.HandWritten:
        return sides.HandWritten(self.scenario, folder, sides.free_address(), upstream, core)

    def _probe(self, side: sides.Server) -> verify.Probed:
        return verify.answers(self.scenario, side, added=isinstance(side, sides.Sluice))

    def _check(self, pair: list[sides.Server], fresh: bool) -> None:
        for side in pair:
            if isinstance(side, sides.Sluice):
                verify.checks(self.scenario, side, fresh)

    def _slices(
        self,
        pair: list[sides.Server],
        upstream: sides.Upstream,
        requests: Path,
        probed: list[verify.Probed],
        began: float,
    ) -> tuple[list[list[load.Slice]], list[int]]:
        """Warms up and alternates; also returns how many requests each side was sent."""
        slices: list[list[load.Slice]] = [[], []]
        asked = [0, 0]

        def one(index: int, seconds: int) -> load.Slice:
            side = pair[index]
            before = verify.upstream_count(upstream)
            slice_ = load.run(
                side.address, requests, side.worker, self.cores[1], self.plan.connections, seconds
            )
            reached = verify.upstream_count(upstream) - before
            verify.counted_slice(side, slice_, reached, probed[index].size, self.plan.connections)
            asked[index] += slice_.report.requests
            return slice_

        for index in (0, 1):
            one(index, self.plan.warm_up_s)
        for done, order in enumerate(stats.abba(self.plan.pairs)):
            # Whole A B B A only, so that a steady drift favours neither side.
            if done % 2 == 0 and time.monotonic() - began > self.plan.limit_s:
                break
            _progress(f"{self.scenario.name}: pair {done + 1} of {self.plan.pairs}")
            for index in order:
                slices[index].append(one(index, SLICE_S))
        _progress("")
        if len(slices[0]) < FEWEST_PAIRS:
            raise verify.InvalidRun(f"only {len(slices[0])} pairs in the time allowed")
        return slices, asked


def _two_cores() -> tuple[int, int]:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise sides.StartError("a bench needs two CPU cores: one for the worker, one for the load")
    return cores[0], cores[1]


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, cwd=sides.ROOT, capture_output=True, text=True)
    except OSError:
        return "?"
    return (done.stdout or done.stderr).strip() if done.returncode == 0 else "?"


def _setting() -> str:
    """What was measured and on what, for the reader of the table."""
    revision = _said("git", "describe", "--always", "--dirty")
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    nginx = _said(sides.NGINX, "-v").rpartition(" ")[2]
    machine = f"{len(models)} x {models[0]}" if models else "CPU unknown"
    return f"revision {revision}, {nginx}, Linux {os.uname().release}, {machine}"


def run_scenario(name: str, plan: Plan, against_itself: bool, output: Path) -> report.Result:
    """Measures a scenario; what goes wrong makes the result invalid."""
    began = time.monotonic()
    scenario = scenarios.load(name)
    result = report.Result(f"{name}-self" if against_itself else name)
    (output / f"{result.scenario}.json").unlink(missing_ok=True)
    try:
        result.metrics = Run(scenario, plan, against_itself).measure(began)
    except (verify.InvalidRun, sides.StartError, load.LoadError) as error:
        result.invalid = str(error)
    except Interrupted:
        result.invalid = "interrupted"
        result.write(output)
        raise
    path = result.write(output)
    took = time.monotonic() - began
    print(f"\n{result.scenario}: {scenario.title}")
    print(f"{_setting()}; {took:.0f} s\n")
    if result.invalid:
        print(f"INVALID: {result.invalid}")
    else:
        print(report.table(result, {} if against_itself else scenario.bars))
        if remark := report.remark(result.metrics):
            print(f"\n{remark}")
    print(f"\n-> {os.path.relpath(path)}", flush=True)
    return result


def show(name: str, output: Path) -> None:
    """Writes both sides' configurations as a run has them, and checks that they start."""
    folder = output / "show" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        pair = Run(scenarios.load(name), QUICK, against_itself=False).start(stack, folder)
        for side in pair:
            print(f"{side.name}: {os.path.relpath(side.folder)}")


def main(arguments: list[str]) -> int:
    """Runs what the command line asks for; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", choices=scenarios.names(), help="only this one")
    parser.add_argument("--quick", action="store_true", help="within 90 seconds a scenario")
    parser.add_argument("--pairs", type=int, help="measure this many pairs of slices")
    parser.add_argument("--self", action="store_true", help="hand-written nginx against itself")
    parser.add_argument("--show", action="store_true", help="write the configurations only")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder of the results")
    options = parser.parse_args(arguments)
    missing = sides.missing_programs()
    if missing:
        print(f"bench: missing; apt-get install {' '.join(missing)}", file=sys.stderr)
        return 1
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    plan = QUICK if options.quick else FULL
    if options.pairs:
        plan = Plan(max(options.pairs, FEWEST_PAIRS), plan.warm_up_s, plan.limit_s)
    chosen = [options.scenario] if options.scenario else scenarios.names()
    try:
        if options.show:
            for name in chosen:
                show(name, options.output.resolve())
            return 0
        results = [
            run_scenario(name, plan, options.self, options.output.resolve()) for name in chosen
        ]
    except (sides.StartError, verify.InvalidRun, scenarios.ScenarioError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except Interrupted:
        print("\nbench: interrupted", file=sys.stderr)
        return 130
    return 1 if any(result.invalid for result in results) else 0


def _interrupt(number: int, _: FrameType | None) -> None:
    # A second signal must not cut the cleaning up short.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise Interrupted(signal.Signals(number).name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
