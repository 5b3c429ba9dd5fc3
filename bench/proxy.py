"""Scenarios of the kind `proxy`: Sluice against a hand-written nginx that does the same job.

Both run side by side, one worker each on one core; load generator and upstream
share the other core. Slices of a second alternate A B B A, and only ratios of
neighbouring slices are compared.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import load
import report
import scenario as scenarios
import sides
import stats
import verify
from probe import Recorder
from progress import progress

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


class Run:
    """One scenario's run, from start-up to metrics."""

    def __init__(self, scenario: scenarios.Scenario, plan: Plan, against_itself: bool) -> None:
        self.scenario = scenario
        self.plan = plan
        self.against_itself = against_itself
        self.cores = two_cores()
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
                side.address, requests, side.workers, self.cores[1], self.plan.connections, seconds
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
            progress(f"{self.scenario.name}: pair {done + 1} of {self.plan.pairs}")
            for index in order:
                slices[index].append(one(index, SLICE_S))
        progress("")
        if len(slices[0]) < FEWEST_PAIRS:
            raise verify.InvalidRun(f"only {len(slices[0])} pairs in the time allowed")
        return slices, asked


def two_cores() -> tuple[int, int]:
    """The core of the workers, and that of everything else."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise sides.StartError("a bench needs two CPU cores: one for the worker, one for the load")
    return cores[0], cores[1]
