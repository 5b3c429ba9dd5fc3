"""Two revisions of Sluice in turns: is the newer one faster, slower, or the same?

The gate is the CPU time of the worker per request, and it is deaf on purpose:
it closes only when the whole interval of the ratio is beyond BOUND. How often
it closes for nothing is in docs/lab.md.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import load
import proxy
import report
import scenario as scenarios
import sides
import stats
import verify
from probe import ProbeError

# A slowdown that stops a change: new over old, CPU time per request.
BOUND = 1.05

FULL = proxy.Plan(lives=60, warm_up_s=1, limit_s=300, narrow=0.01)
QUICK = proxy.Plan(lives=60, warm_up_s=1, limit_s=85, narrow=0.015)
# Six minutes are for three of these, for building both revisions, and for a machine that is slow.
GATE = proxy.Plan(lives=60, warm_up_s=1, limit_s=65, narrow=0.015)


@dataclass(frozen=True)
class Trees:
    """Two built checkouts, and what to call them."""

    new: Path
    old: Path
    labels: tuple[str, str] = ("new", "old")


@dataclass
class Outcome:
    """What a comparison came to; `noisy`: it is invalid, but by no fault of a revision."""

    result: report.Result
    rows: list[report.Compared] = field(default_factory=list)
    noisy: bool = False

    @property
    def cpu(self) -> report.Compared:
        """The metric that is gated."""
        return next(row for row in self.rows if row.name == "cpu_us")

    def stops(self) -> str | None:
        """Why a change must not pass, if so."""
        if self.result.invalid:
            return None if self.noisy else self.result.invalid
        if stats.beyond(self.cpu.ratio, BOUND):
            return f"CPU time per request is more than {BOUND - 1:.0%} above the old one"
        return None


def compare(scenario: scenarios.Scenario, trees: Trees, plan: proxy.Plan) -> Outcome:
    """Measures a proxy scenario on both; what goes wrong makes the result invalid."""
    outcome = Outcome(report.Result(f"{scenario.name}-compare"))
    lineup = proxy.revisions(scenario, trees.new, trees.old)
    try:
        new, old = proxy.Run(scenario, plan, lineup).measure(time.monotonic())
        outcome.rows = report.compare(
            new.slices, old.slices, new.memory, old.memory, proxy.PAIRS_A_LIFE
        )
        outcome.result.metrics = report.compared_metrics(outcome.rows)
    except (verify.InvalidRun, sides.StartError, load.LoadError, ProbeError) as error:
        outcome.result.invalid = str(error)
        outcome.noisy = isinstance(error, verify.TooNoisy)
    return outcome


def text(scenario: scenarios.Scenario, outcome: Outcome, trees: Trees, seconds: float) -> str:
    """An outcome for a reader."""
    lines = [f"\n{outcome.result.scenario}: {scenario.title}"]
    lines += [f"new: {trees.labels[0]}", f"old: {trees.labels[1]}", ""]
    if outcome.result.invalid:
        lines.append(f"INVALID: {outcome.result.invalid}")
        return "\n".join(lines)
    cpu = outcome.cpu
    lines.append(report.comparison(outcome.rows))
    lines.append(
        f"\n{cpu.verdict}: CPU time per request, new / old, is {cpu.ratio.value:.3f} "
        f"({cpu.ratio.low:.3f} to {cpu.ratio.high:.3f}); {seconds:.0f} s"
    )
    return "\n".join(lines)
