#!/usr/bin/env python3
"""Counts the user-space instructions of Sluice's worker for a request, by callgrind.

    bench/instructions.py                                    proxy-plain and proxy-plugins
    bench/instructions.py --scenario proxy-lua-plugin        any proxy scenario by HTTP/1.1
    bench/instructions.py --compare main                     HEAD against another revision

The whole gateway runs under callgrind. One client on one kept-alive connection asks N times and
then 2N times; the difference is what N requests cost and has nothing else in it. After each of the
two a request that nginx refuses has callgrind write down what it has counted, and begin at 0.

Nothing is timed, so other work on the machine does not matter. The kernel's part is not counted.
The JIT is on, as for users: what Lua there is runs as it would.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import callgrind
import proxy
import report
import revisions
import run
import scenario as scenarios
import sides
import stats
import verify
from probe import Client, ProbeError
from progress import progress
from report import Metric

from processes import children

SCENARIOS = ("proxy-plain", "proxy-plugins")
UNIT = "instructions/request"
WITHOUT_HEAP = "without_malloc"
TOP = 10
# Called once for each request that nginx refuses by itself, and for no other here.
MARK = "ngx_http_special_response_handler"
REFUSED = b"GET / HTTP/1.1\r\n\r\n"  # no Host

# The gateway itself; what asks for nginx's version or tests a configuration is none.
WRAPPER = """\
#!/bin/sh
case " $* " in
*" daemon off;"*) exec valgrind --quiet --vgdb=no --tool=callgrind --dump-before={mark} \\
    --callgrind-out-file={dumps}/%p {nginx} "$@" ;;
esac
exec {nginx} "$@"
"""


@dataclass(frozen=True)
class Plan:
    """How often the gateway is started, and by how many requests each of these is counted: by
    `warm_up` before, then by `requests` and twice as many.

    All are fewer than a connection may carry, to the gateway (keepalive_requests) and to the
    upstream: no connection is opened while it counts.
    """

    lives: int = 4
    warm_up: int = 2000
    requests: int = 1000


PLAN = Plan()


@dataclass
class Counted:
    """Instructions of a request in each life, and of malloc and free among them; of all `requests`
    together by function."""

    values: list[float] = field(default_factory=list)
    heap: list[float] = field(default_factory=list)
    requests: int = 0
    functions: callgrind.Counts = field(default_factory=callgrind.Counts)

    def add(self, functions: callgrind.Counts, requests: int) -> None:
        """Takes in what a life has counted."""
        self.values.append(functions.total() / requests)
        self.heap.append(callgrind.heap(functions) / requests)
        self.functions.update(functions)
        self.requests += requests

    @property
    def metrics(self) -> dict[str, Metric]:
        """The median of the lives, the least and the most."""
        rest = [value - heap for value, heap in zip(self.values, self.heap, strict=True)]
        values = {"instructions": self.values, WITHOUT_HEAP: rest}
        return {name: report.spread(UNIT, each) for name, each in values.items()}

    @property
    def each(self) -> dict[tuple[str, str], float]:
        """Own instructions of a function, by its file and name."""
        return {name: count / self.requests for name, count in self.functions.items()}


class UnderCallgrind(sides.Sluice):
    """Sluice whose nginx runs under callgrind; a process dumps its counts into `dumps`."""

    # valgrind keeps some open files to itself, and lets no process change the limit.
    harmless = ("setrlimit(RLIMIT_NOFILE",)
    dumps: Path

    def write(self) -> None:
        super().write()
        self.dumps = self.folder / "dumps"
        self.dumps.mkdir()
        self.dumps.chmod(0o777)  # for workers of another user
        self._wrapper = self.folder / "nginx"
        quoted = {"dumps": shlex.quote(str(self.dumps)), "nginx": shlex.quote(sides.NGINX)}
        self._wrapper.write_text(WRAPPER.format(mark=MARK, **quoted))
        self._wrapper.chmod(0o755)

    def environment(self) -> dict[str, str]:
        return super().environment() | {"SLUICE_NGINX_BINARY": str(self._wrapper)}

    def find_workers(self, master: int) -> list[int]:
        # Under valgrind no process can change its title. Who serves is known by its dumps.
        return children(master)

    def dumped(self) -> callgrind.Counts:
        """Has the worker dump what it has counted since the last time."""
        before = set(self.dumps.glob("*.*"))
        with Client(self.address) as client:
            status = client.ask(REFUSED).status
        new = set(self.dumps.glob("*.*")) - before
        if status != 400 or len(new) != 1:
            raise verify.InvalidRun(
                f"{self.name}: a request to be refused was answered {status} and made "
                f"{len(new)} dumps instead of one"
            )
        return callgrind.parse(new.pop().read_text())


def why_not(scenario: scenarios.Scenario | scenarios.Described) -> str | None:
    """Why a scenario's instructions cannot be counted here, if so."""
    if not isinstance(scenario, scenarios.Scenario):
        return f"{scenario.name} is no proxy scenario"
    if scenario.secure or scenario.handshake or scenario.streams:
        return f"{scenario.name} has TLS or HTTP/2; requests are HTTP/1.1 in plain text here"
    return None


def life(
    scenario: scenarios.Scenario,
    root: Path,
    plan: Plan = PLAN,
    added: dict[str, str] | None = None,
) -> tuple[callgrind.Counts, int]:
    """Starts the gateway of the checkout at `root`; instructions of so many requests.

    `added` goes into its environment. Raises verify.InvalidRun if an answer is wrong or an error
    is in its log.
    """
    upstream, sink = sides.free_address(), sides.free_address()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-bench-")))
        folder.chmod(0o755)  # workers of a master run by root are somebody else
        up = sides.Upstream(folder / "up", upstream, None, scenario.body, scenario.listens)
        stack.enter_context(up)
        if scenario.has_sink():
            stack.enter_context(sides.Upstream(folder / "sink", sink, None, ""))
        side = UnderCallgrind(
            scenario,
            folder / "sluice",
            sides.free_address(),
            upstream,
            None,
            root=root,
            settings=proxy.settings(scenario) | (added or {}),
            words={"sink": sink, "entries": sides.entries(folder)},
        )
        stack.enter_context(side)
        found = _counted(scenario, side, plan)
        if trouble := side.trouble():
            raise verify.InvalidRun(f"{side.name} logged: {trouble}")
    return found


def _counted(
    scenario: scenarios.Scenario, side: UnderCallgrind, plan: Plan
) -> tuple[callgrind.Counts, int]:
    heads = itertools.cycle(request.head() for request in scenario.probed())
    body = scenario.body.encode()

    def ask(client: Client, times: int) -> callgrind.Counts:
        for head in itertools.islice(heads, times):
            answer = client.ask(head)
            if answer.status != 200 or answer.body != body:
                line = head.partition(b"\r\n")[0].decode()
                raise verify.InvalidRun(f"{side.name} answers {line} with {answer.status}")
        return side.dumped()

    # Of several requests, each as often as the others.
    distinct = len(scenario.probed())
    requests = -(-plan.requests // distinct) * distinct
    with side.client() as client:
        ask(client, plan.warm_up)
        once, twice = ask(client, requests), ask(client, 2 * requests)
    twice.subtract(once)
    return callgrind.named(twice), requests


def count(scenario: scenarios.Scenario, trees: Sequence[Path], plan: Plan = PLAN) -> list[Counted]:
    """Counts one checkout, or two in turns, A B B A."""
    found = [Counted() for _ in trees]
    for number in range(plan.lives):
        order = range(len(trees))
        for index in reversed(order) if number % 2 else order:
            progress(f"{scenario.name}: start {number + 1} of {plan.lives}")
            found[index].add(*life(scenario, trees[index], plan))
    progress("")
    return found


def compared(new: Counted, old: Counted) -> list[report.Compared]:
    """Two revisions; an interval is from the least over the most to the most over the least."""
    rows = []
    for name, after in new.metrics.items():
        before = old.metrics[name]
        ends = after.low / before.high, after.high / before.low
        ratio = stats.Estimate(after.value / before.value, *ends)
        word = stats.verdict(ratio)
        word = {"slower": "more", "faster": "fewer"}.get(word, word)
        rows.append(report.Compared(name, UNIT, before.value, after.value, ratio, word))
    return rows


def text(scenario: scenarios.Scenario, found: Sequence[Counted], labels: Sequence[str] = ()) -> str:
    """What was counted of one checkout, or of two with the newer one first, for a reader."""
    lines = [f"\n{scenario.name}: {scenario.title}", *labels, ""]
    rows = [("", "instructions a request", "least and most", "repeats within")]
    for counted, label in zip(found, ("", ", old"), strict=False):
        for name, metric in counted.metrics.items():
            spread = (metric.high - metric.low) / metric.value
            ends = f"{metric.low:,.0f} to {metric.high:,.0f}"
            rows.append((f"{name}{label}", f"{metric.value:,.0f}", ends, f"{spread:.2%}"))
    lines += [report.grid(rows), ""]
    if len(found) == 1:
        return "\n".join([*lines, _most_expensive(found[0])])
    for row in compared(*found):
        ends = f"{row.ratio.low:.4f} to {row.ratio.high:.4f}"
        lines.append(f"{row.name}: {row.verdict}, new / old is {row.ratio.value:.4f} ({ends})")
    return "\n".join([*lines, "", _most_changed(*found)])


def _most_expensive(counted: Counted) -> str:
    each = counted.each
    rows = [("function", "its own instructions", "file")]
    for name in sorted(each, key=lambda name: -each[name])[:TOP]:
        rows.append((f"`{name[1]}`", f"{each[name]:,.0f}", name[0]))
    return report.grid(rows)


def _most_changed(new: Counted, old: Counted) -> str:
    before, after = old.each, new.each
    change = {
        name: after.get(name, 0) - before.get(name, 0) for name in before.keys() | after.keys()
    }
    rows = [("function", "old", "new", "change", "file")]
    for name in sorted(change, key=lambda name: (-abs(change[name]), name))[:TOP]:
        counts = (f"{side.get(name, 0):,.0f}" for side in (before, after))
        rows.append((f"`{name[1]}`", *counts, f"{change[name]:+,.0f}", name[0]))
    return report.grid(rows)


def result(name: str, found: Sequence[Counted]) -> report.Result:
    """The same for `<name>-instructions.json`."""
    metrics = found[0].metrics
    if len(found) > 1:
        metrics = report.compared_metrics(compared(*found))
    return report.Result(f"{name}-instructions", metrics=metrics)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", action="append", metavar="NAME", help="only this one")
    parser.add_argument("--compare", metavar="REV", help="HEAD against this revision")
    parser.add_argument("--output", type=Path, default=run.OUTPUT, help="folder of the results")
    return parser.parse_args(arguments)


def choose(names: Iterable[str]) -> list[scenarios.Scenario]:
    """The scenarios of these names; raises ScenarioError for one that cannot be counted."""
    chosen = []
    for name in names:
        scenario = scenarios.load(name)
        if reason := why_not(scenario):
            raise scenarios.ScenarioError(reason)
        assert isinstance(scenario, scenarios.Scenario)
        chosen.append(scenario)
    return chosen


def _measure(options: argparse.Namespace) -> None:
    chosen = choose(options.scenario or SCENARIOS)
    with contextlib.ExitStack() as stack:
        trees, labels = [sides.ROOT], []
        if options.compare:
            revs = [revisions.resolve(name) for name in ("HEAD", options.compare)]
            trees = [stack.enter_context(revisions.exported(rev)) for rev in revs]
            labels = [
                f"{s}: {revisions.described(r)}" for s, r in zip(("new", "old"), revs, strict=True)
            ]
            if revisions.changed():
                print("note: changes that are not committed are not counted")
        for scenario in chosen:
            found = count(scenario, trees)
            result(scenario.name, found).write(options.output.resolve())
            print(text(scenario, found, labels), flush=True)
    print(f"\n{run.setting()}")


def main(arguments: list[str]) -> int:
    """Counts what the command line asks for; returns the exit status."""
    options = parse(arguments)
    lacking = [name for name in ("valgrind", "setpriv") if not shutil.which(name)]
    if lacking:
        print(f"instructions: missing: {' '.join(lacking)}; scripts/setup bench", file=sys.stderr)
        return 1
    run.end_on_signals()
    try:
        _measure(options)
    except (
        callgrind.CallgrindError,
        sides.StartError,
        verify.InvalidRun,
        ProbeError,
        revisions.RevisionError,
        scenarios.ScenarioError,
    ) as error:
        print(f"instructions: {error}", file=sys.stderr)
        return 1
    except run.Interrupted:
        print("\ninstructions: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
