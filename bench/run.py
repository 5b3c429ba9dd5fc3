#!/usr/bin/env python3
"""Measures Sluice: beside hand-written nginx, its events beside older designs, and beside itself.

What is compared runs side by side and in turns, and only neighbours are
compared. docs/lab.md tells how to read it.

    bench/run.py                          all scenarios
    bench/run.py --scenario proxy-plain   one, or several: --scenario a --scenario b
    bench/run.py --quick                  within 90 seconds a scenario
    bench/run.py --self                   proxy scenarios with hand-written nginx on both sides:
                                          the method's own noise
    bench/run.py --compare main           HEAD against another revision
    bench/run.py --record                 adds also a quick run, or one of some, to the log
    bench/run.py --show                   writes the configurations of proxy scenarios and stops
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import compare
import history
import kinds
import outcome
import peers
import proxy
import report
import revisions
import scenario as scenarios
import sides
import verify
from probe import ProbeError

OUTPUT = sides.ROOT / "build" / "bench"

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

AnyScenario = scenarios.Scenario | scenarios.Described


@dataclass(frozen=True)
class Options:
    """How to measure; `pairs` and `against_itself` are for proxy scenarios."""

    quick: bool = False
    pairs: int | None = None
    against_itself: bool = False

    def plan(self) -> proxy.Plan:
        """The same for a proxy scenario."""
        plan = proxy.QUICK if self.quick else proxy.FULL
        if self.pairs:
            lives = max(-(-self.pairs // proxy.PAIRS_A_LIFE), proxy.FEWEST_LIVES)
            plan = replace(plan, lives=lives)
        return plan


class Interrupted(BaseException):
    """A signal asked for the end; a BaseException, so that nothing takes it for a failure."""


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, cwd=sides.ROOT, capture_output=True, text=True)
    except OSError:
        return "?"
    return (done.stdout or done.stderr).strip() if done.returncode == 0 else "?"


def setting(revision: str | None = None) -> str:
    """What was measured and on what, for the reader of the table."""
    revision = revision or _said("git", "describe", "--always", "--dirty")
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    nginx = _said(sides.NGINX, "-v").rpartition(" ")[2]
    machine = f"{len(models)} x {models[0]}" if models else "CPU unknown"
    return f"revision {revision}, {nginx}, Linux {os.uname().release}, {machine}"


def _measure(scenario: AnyScenario, options: Options, began: float) -> dict[str, report.Metric]:
    if isinstance(scenario, scenarios.Scenario):
        make = proxy.against_itself if options.against_itself else proxy.beside_nginx
        if make is proxy.beside_nginx and (note := peers.missing(scenario)):
            print(f"{scenario.name}: {note}")
        lineup = make(scenario)
        taken = proxy.Run(scenario, options.plan(), lineup).measure(began)
        return proxy.metrics(taken, tuple(lineup.yardsticks))
    return kinds.measure(scenario, began, "quick" if options.quick else None)


def run_scenario(scenario: AnyScenario, options: Options, output: Path) -> report.Result:
    """Measures a scenario; what goes wrong makes the result invalid."""
    began = time.monotonic()
    busy = os.getloadavg()[0]
    name = scenario.name
    result = report.Result(f"{name}-self" if options.against_itself else name)
    (output / f"{result.scenario}.json").unlink(missing_ok=True)
    try:
        result.metrics = _measure(scenario, options, began)
    except (verify.InvalidRun, sides.StartError, outcome.LoadError, ProbeError) as error:
        result.invalid = str(error)
    except Interrupted:
        result.invalid = "interrupted"
        result.write(output)
        raise
    path = result.write(output)
    took = time.monotonic() - began
    print(f"\n{result.scenario}: {scenario.title}")
    print(f"{setting()}; {took:.0f} s, load average {busy:.1f} before\n")
    if result.invalid:
        print(f"INVALID: {result.invalid}")
    else:
        bars = {} if options.against_itself else scenario.bars
        print(report.table(result, bars, scenario.limits))
        timetable = isinstance(scenario, scenarios.Scenario) and scenario.rate
        if not timetable and (remark := report.remark(result.metrics)):
            print(f"\n{remark}")
    print(f"\n-> {os.path.relpath(path)}", flush=True)
    return result


def compare_revisions(chosen: Sequence[AnyScenario], options: argparse.Namespace) -> int:
    """Measures HEAD against another revision; returns the exit status."""
    new, old = revisions.resolve("HEAD"), revisions.resolve(options.compare)
    if revisions.changed():
        print("note: changes that are not committed are not measured")
    invalid = False
    with revisions.exported(new) as ours, revisions.exported(old) as theirs:
        labels = (revisions.described(new), revisions.described(old))
        trees = compare.Trees(ours, theirs, labels)
        for scenario in chosen:
            began = time.monotonic()
            plan = compare.QUICK if options.quick else compare.FULL
            if options.pairs:
                lives = max(-(-options.pairs // proxy.PAIRS_A_LIFE), proxy.FEWEST_LIVES)
                plan = replace(plan, lives=lives, narrow=0)
            outcome = compare.compare(scenario, trees, plan)
            outcome.result.write(options.output.resolve())
            print(compare.text(scenario, outcome, trees, time.monotonic() - began), flush=True)
            invalid = invalid or bool(outcome.result.invalid)
    print(f"\n{setting(new[:7])}")
    return 1 if invalid else 0


def show(scenario: scenarios.Scenario, output: Path) -> None:
    """Writes both sides' configurations as a run has them, and checks that they start."""
    folder = output / "show" / scenario.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        lineup = proxy.beside_nginx(scenario)
        for side in proxy.Run(scenario, proxy.QUICK, lineup).start(stack, folder / "sides"):
            print(f"{side.name}: {os.path.relpath(side.folder)}")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", action="append", metavar="NAME", help="only this one")
    parser.add_argument("--quick", action="store_true", help="within 90 seconds a scenario")
    parser.add_argument("--pairs", type=int, help="measure this many pairs of slices")
    parser.add_argument("--self", action="store_true", help="hand-written nginx against itself")
    parser.add_argument("--compare", metavar="REV", help="HEAD against this revision")
    parser.add_argument(
        "--record", action="store_true", help="add a quick run, or one of some, to the log"
    )
    parser.add_argument("--show", action="store_true", help="write the configurations only")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder of the results")
    return parser.parse_args(arguments)


def is_logged(options: argparse.Namespace) -> bool:
    """Whether a run goes into the log: a full one of all scenarios, or one that is asked to."""
    if options.pairs or options.self:
        return False
    return options.record or not (options.scenario or options.quick)


def choose(options: argparse.Namespace) -> list[AnyScenario]:
    """The scenarios that are asked for, or all that can do what is asked; in the order of names."""
    able = []
    for name in options.scenario or scenarios.names():
        scenario = scenarios.load(name)
        if reason := _why_not(scenario, options):
            if options.scenario:
                raise scenarios.ScenarioError(reason)
            if options.compare:
                print(f"note: {reason}")
        else:
            able.append(scenario)
    return able


def _why_not(scenario: AnyScenario, options: argparse.Namespace) -> str | None:
    """Why a scenario cannot do what is asked, if so."""
    if isinstance(scenario, scenarios.Described):
        kinds.check(scenario)
        if options.show or options.self:
            what = "--show" if options.show else "--self"
            return f"{what} is for scenarios of the kind proxy; {scenario.name} is none"
    return compare.why_not(scenario) if options.compare else None


def record(results: list[report.Result], quick: bool) -> None:
    """Adds a run to the log."""
    said = _said("git", "log", "-1", "--format=%H %s")
    revision, _, subject = said.partition(" ")
    log = os.path.relpath(history.LOG, sides.ROOT)
    if _said("git", "status", "--porcelain", "--untracked-files=no", "--", ".", f":!{log}"):
        subject = f"{subject} (with changes)"
    date = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    machine = setting(revision[:7]).partition(", ")[2]
    found = history.collect(results)
    history.append(history.Record(revision, subject, date, machine, found, quick))
    print(f"\n-> {log}; `make bench-report` and `make bench-docs` draw it")


def main(arguments: list[str]) -> int:
    """Runs what the command line asks for; returns the exit status."""
    options = parse(arguments)
    missing = sides.missing_programs()
    if missing:
        print(f"bench: missing; apt-get install {' '.join(missing)}", file=sys.stderr)
        return 1
    end_on_signals()
    how = Options(options.quick, options.pairs, options.self)
    try:
        # All are read before the first is measured: a mistake in the last is told now.
        chosen = choose(options)
        if options.show:
            for scenario in chosen:
                assert isinstance(scenario, scenarios.Scenario)
                show(scenario, options.output.resolve())
            return 0
        if options.compare:
            return compare_revisions(chosen, options)
        results = [run_scenario(each, how, options.output.resolve()) for each in chosen]
        if is_logged(options):
            record(results, options.quick)
    except (
        sides.StartError,
        verify.InvalidRun,
        scenarios.ScenarioError,
        revisions.RevisionError,
    ) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except Interrupted:
        print("\nbench: interrupted", file=sys.stderr)
        return 130
    return 1 if any(result.invalid for result in results) else 0


def end_on_signals() -> None:
    """Has a signal raise Interrupted from now on."""
    for number in ENDS:
        signal.signal(number, interrupt)


def interrupt(number: int, _: FrameType | None) -> None:
    """A handler of signals: ends a run, which then cleans up."""
    # A second signal must not cut the cleaning up short.
    for each in ENDS:
        signal.signal(each, signal.SIG_IGN)
    raise Interrupted(signal.Signals(number).name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
