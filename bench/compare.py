"""Two revisions of Sluice in turns: is the newer one faster, slower, or the same?

Of a proxy scenario slices of load alternate; of another, whole short runs (the
fields under `compare` in its file): A B B A either way.

The gate is the CPU time of the worker per request, and it is deaf on purpose:
it closes only when the whole interval of the ratio is beyond BOUND. How often
it closes for nothing is in docs/lab.md.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import kinds
import micro
import proxy
import report
import scenario as scenarios
import sides
import stats
import verify
from outcome import LoadError
from probe import ProbeError
from progress import progress

# A slowdown that stops a change: new over old, CPU time per request.
BOUND = 1.05

FULL = proxy.Plan(lives=60, warm_up_s=1, limit_s=300, narrow=0.01)
QUICK = proxy.Plan(lives=60, warm_up_s=1, limit_s=85, narrow=0.015)
# Six minutes are for three of these, for building both revisions, and for a machine that is slow.
GATE = proxy.Plan(lives=60, warm_up_s=1, limit_s=65, narrow=0.015)

# The older one's place in a lineup.
OLD = 1
# Of whole runs: the intervals of fewer are too narrow.
FEWEST_PAIRS = 4 * stats.BLOCK


@dataclass(frozen=True)
class Trees:
    """Two built checkouts, and what to call them."""

    new: Path
    old: Path
    labels: tuple[str, str] = ("new", "old")

    def both(self) -> tuple[Path, Path]:
        """The newer one first."""
        return self.new, self.old


@dataclass
class Outcome:
    """What a comparison came to.

    `left`: metrics that cannot be compared. `blameless`: it is invalid, but by no fault of the
    newer revision: the machine was too busy, or the older one does not run.
    """

    result: report.Result
    rows: list[report.Compared] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    blameless: bool = False

    @property
    def cpu(self) -> report.Compared:
        """The metric that is gated."""
        return next(row for row in self.rows if row.name == "cpu_us")

    def stops(self, bound: float = BOUND) -> str | None:
        """Why a change must not pass, if so."""
        if self.result.invalid:
            return None if self.blameless else self.result.invalid
        if stats.beyond(self.cpu.ratio, bound):
            return f"CPU time per request is more than {bound - 1:.0%} above the old one"
        return None


def why_not(scenario: scenarios.Scenario | scenarios.Described) -> str | None:
    """Why a scenario does not compare two revisions, if so."""
    if isinstance(scenario, scenarios.Scenario):
        return None
    said = scenario.data.get("compare")
    if isinstance(said, str):
        return f"{scenario.name} compares no revisions: {said}"
    if said is None:
        return (
            f"{scenario.name} compares no revisions: {scenario.name}.toml needs the fields of a "
            'short run under [compare], or compare = "why not"'
        )
    return None


def compare(
    scenario: scenarios.Scenario | scenarios.Described, trees: Trees, plan: proxy.Plan
) -> Outcome:
    """Measures a scenario on both; what goes wrong makes the result invalid."""
    outcome = Outcome(report.Result(f"{scenario.name}-compare"))
    try:
        if isinstance(scenario, scenarios.Scenario):
            outcome.rows = _slices(scenario, trees, plan)
        else:
            outcome.rows, outcome.left = _runs(scenario, trees, plan)
        outcome.result.metrics = report.compared_metrics(outcome.rows)
    except (verify.InvalidRun, sides.StartError, LoadError, ProbeError) as error:
        outcome.result.invalid = str(error)
        outcome.blameless = isinstance(error, verify.TooNoisy) or proxy.concerns(error) == OLD
    return outcome


def _slices(scenario: scenarios.Scenario, trees: Trees, plan: proxy.Plan) -> list[report.Compared]:
    lineup = proxy.revisions(scenario, trees.new, trees.old)
    new, old = proxy.Run(scenario, plan, lineup).measure(time.monotonic())
    block = proxy.PAIRS_A_LIFE
    return report.compare(new.slices, old.slices, new.memory, old.memory, block)


def _runs(
    scenario: scenarios.Described, trees: Trees, plan: proxy.Plan
) -> tuple[list[report.Compared], list[str]]:
    """Whole runs, FEWEST_PAIRS of them or more, until all intervals are narrow or the time is up.

    An A B B A is never cut.
    """
    began = time.monotonic()
    found: tuple[list[dict[str, report.Metric]], ...] = ([], [])
    for number, order in enumerate(stats.abba(plan.lives * proxy.PAIRS_A_LIFE)):
        if number % 2 == 0 and number >= FEWEST_PAIRS and _enough(found, plan, began):
            break
        for index in order:
            # The run has progress of its own to tell; this stays where there is no terminal.
            progress(f"{scenario.name}: pair {number + 1}")
            try:
                found[index].append(
                    kinds.measure(scenario, time.monotonic(), "compare", trees.both()[index])
                )
            except (verify.InvalidRun, sides.StartError) as error:
                which = ("new", "old")[index]
                raise verify.InvalidRun(f"the {which} revision: {error}") from None
    rows, left = report.compare_runs(*found)
    if scenario.kind == "micro":
        with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
            more, lacking = micro.compare(scenario.data, *trees.both(), Path(folder))
        rows, left = rows + more, left + lacking
    progress("")
    return rows, left


def _enough(
    found: Sequence[Sequence[dict[str, report.Metric]]], plan: proxy.Plan, began: float
) -> bool:
    pairs, spent = len(found[0]), time.monotonic() - began
    # The next A B B A would end after the time.
    if spent + spent / pairs > plan.limit_s:
        return True
    if not plan.narrow:
        return False
    rows, _ = report.compare_runs(*found)
    return all(stats.is_narrow(row.ratio, plan.narrow) for row in rows)


def text(
    scenario: scenarios.Scenario | scenarios.Described,
    outcome: Outcome,
    trees: Trees,
    seconds: float,
) -> str:
    """An outcome for a reader."""
    lines = [f"\n{outcome.result.scenario}: {scenario.title}"]
    lines += [f"new: {trees.labels[0]}", f"old: {trees.labels[1]}", ""]
    if outcome.result.invalid:
        lines.append(f"INVALID: {outcome.result.invalid}")
        return "\n".join(lines)
    lines.append(report.comparison(outcome.rows))
    lines += [f"not compared: {name}" for name in outcome.left]
    if isinstance(scenario, scenarios.Scenario):
        cpu = outcome.cpu
        lines.append(
            f"\n{cpu.verdict}: CPU time per request, new / old, is {cpu.ratio.value:.3f} "
            f"({cpu.ratio.low:.3f} to {cpu.ratio.high:.3f}); {seconds:.0f} s"
        )
    else:
        lines.append(f"\n{report.summary(outcome.rows)}; {seconds:.0f} s")
    return "\n".join(lines)
