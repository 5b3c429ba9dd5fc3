"""Scenarios of the kind `proxy`: two sides that do the same job, in turns.

The sides are Sluice and a hand-written nginx (with HAProxy as a second
yardstick, and peers where they are installed), or Sluice of two revisions. They
run side by side, one worker each on one core; load generator and upstream share
the other core. Slices of a second alternate A B B A, and only ratios of
neighbouring slices are compared.

All sides are started anew every few slices: a process keeps the luck that it
had with its addresses and with what the JIT made of its first requests, and a
run that measured one process for long would be sure of a figure that the next
start does not repeat.
"""

from __future__ import annotations

import contextlib
import os
import random
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import certificate
import load
import peers
import report
import scenario as scenarios
import sides
import stats
import syscalls
import verify
from probe import Recorder
from progress import progress

# Where plugins of the lab's are.
LUA = Path(__file__).resolve().parent / "lua"

SLICE_S = 1
YARDSTICK_WARM_UP_S = 1
PAIRS_A_LIFE = 4
# A port that was free may be somebody else's a moment later.
START_ATTEMPTS = 2
# Fewer say nothing.
FEWEST_LIVES = 2
# More than a slice asks for: of more requests, each slice asks others.
WINDOW = 60_000

# Starts a side: its folder, the addresses of `upstream` and `sink`, its core.
Maker = Callable[[Path, dict[str, str], int], sides.Server]


@dataclass(frozen=True)
class Plan:
    """How long to measure: for `lives` times PAIRS_A_LIFE pairs, or until it is enough.

    Enough is when `limit_s` after the scenario's start is up, or when the interval of the ratio of
    CPU times reaches no farther than `narrow` (a share) from its middle.
    """

    lives: int
    warm_up_s: int
    limit_s: float
    narrow: float = 0
    connections: int = 100


FULL = Plan(lives=20, warm_up_s=2, limit_s=600)
# 90 seconds are for everything, also on a machine that is busy: a life takes up to twenty then.
QUICK = Plan(lives=8, warm_up_s=1, limit_s=66)


@dataclass(frozen=True)
class Lineup:
    """Who takes part: the two that alternate, and who gets one slice after each A B B A.

    `strict`: all have to send the upstream the same, and the second has to answer as the scenario
    says of Sluice, if it is one; not asked of another revision.
    """

    pair: tuple[Maker, Maker]
    yardsticks: dict[str, Maker] = field(default_factory=dict)  # by the end of their metrics' names
    strict: bool = True


def beside_nginx(scenario: scenarios.Scenario) -> Lineup:
    """Sluice of this checkout, and what is hand-written."""
    others = {"haproxy": _haproxy(scenario)}
    others |= {peer.key: _peer(scenario, peer) for peer in peers.of(scenario)}
    return Lineup((sluice(scenario, sides.ROOT), _nginx(scenario)), others)


def against_itself(scenario: scenarios.Scenario) -> Lineup:
    """Hand-written nginx twice: the method's own noise."""
    return Lineup((_nginx(scenario, "hand-written nginx again"), _nginx(scenario)))


def revisions(scenario: scenarios.Scenario, new: Path, old: Path) -> Lineup:
    """Sluice of two checkouts."""
    pair = (sluice(scenario, new, "Sluice, new"), sluice(scenario, old, "Sluice, old"))
    return Lineup(pair, strict=False)


def sluice(scenario: scenarios.Scenario, root: Path, name: str = "Sluice") -> Maker:
    """Starts Sluice of the checkout at `root`."""

    def start(folder: Path, words: dict[str, str], core: int) -> sides.Server:
        address, upstream = sides.free_address(), words["upstream"]
        return sides.Sluice(
            scenario,
            folder,
            address,
            upstream,
            core,
            root=root,
            name=name,
            settings=settings(scenario),
            words=words,
        )

    return start


# Settings that older checkouts do not have, but did all the same: in Kong's spelling, which those
# pass over.
YOUNG = {"headers_upstream"}


def settings(scenario: scenarios.Scenario) -> dict[str, str]:
    """The scenario's settings as Sluice's environment; plugins are the lab's, in all checkouts."""
    named = {
        f"{'KONG' if name in YOUNG else 'SLUICE'}_{name.upper()}": value
        for name, value in scenario.settings.items()
    }
    return named | {"SLUICE_LUA_PACKAGE_PATH": f"{LUA}/?.lua;;"} if named else {}


def _nginx(scenario: scenarios.Scenario, name: str = "hand-written nginx") -> Maker:
    def start(folder: Path, words: dict[str, str], core: int) -> sides.Server:
        address, upstream = sides.free_address(), words["upstream"]
        return sides.HandWritten(scenario, folder, address, upstream, core, name, words)

    return start


def _haproxy(scenario: scenarios.Scenario) -> Maker:
    def start(folder: Path, words: dict[str, str], core: int) -> sides.Server:
        address, upstream = sides.free_address(), words["upstream"]
        return sides.HAProxy(scenario, folder, address, upstream, core, words)

    return start


def _peer(scenario: scenarios.Scenario, peer: type[peers.Peer]) -> Maker:
    def start(folder: Path, words: dict[str, str], core: int) -> sides.Server:
        address, upstream = sides.free_address(), words["upstream"]
        return peer(scenario, folder, address, upstream, core, words)

    return start


@contextlib.contextmanager
def _concerning(index: int) -> Iterator[None]:
    """Notes of an error that it is one of this side."""
    try:
        yield
    except Exception as error:
        error.side = index  # type: ignore[attr-defined]
        raise


def concerns(error: Exception) -> int | None:
    """The side that an error is one of, by its place in the lineup."""
    return getattr(error, "side", None)


@dataclass
class Taken:
    """What was measured of one side: a slice for each pair, or each A B B A.

    Of each life memory and, where they can be counted, system calls per request.
    """

    slices: list[load.Slice] = field(default_factory=list)
    memory: list[load.Memory] = field(default_factory=list)
    syscalls: list[float] = field(default_factory=list)


class Run:
    """One scenario's run, from start-up to what was measured."""

    def __init__(self, scenario: scenarios.Scenario, plan: Plan, lineup: Lineup) -> None:
        self.scenario = scenario
        self.plan = plan
        self.lineup = lineup
        self.makers = (*lineup.pair, *lineup.yardsticks.values())
        self.cores = two_cores()
        self.words = {"upstream": sides.free_address(), "sink": sides.free_address()}
        # By a timetable a worker is idle now and then, and what it pays for wakes is its latency.
        self.awake = scenario.rate is None
        self.way = load.Way(
            scenario.scheme, scenario.rate, scenario.handshake, scenario.streams, self.awake
        )
        self.taken = [Taken() for _ in self.makers]

    def measure(self, began: float) -> list[Taken]:
        """Starts everything, measures, checks, and leaves nothing behind."""
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-bench-")))
            folder.chmod(0o755)  # workers of a master run by root are somebody else
            sink = self._sink(stack, folder)
            with contextlib.ExitStack() as rehearsal:
                self.start(rehearsal, folder / "rehearsal")
            upstream = sides.Upstream(
                folder / "upstream",
                self.words["upstream"],
                self.cores[1],
                self.scenario.body,
                self.scenario.listens,
                self.words if self.scenario.secure == "upstream" else None,
                load.awake() if self.awake else None,
            )
            stack.enter_context(upstream)
            requests = Requests(folder / "requests", self.scenario.requests)
            lives, repeated = self._lives()
            for number in range(lives):
                if number and repeated == 1 and self._enough(began):
                    break
                progress(f"{self.scenario.name}: life {number + 1} of {lives}")
                with contextlib.ExitStack() as life:
                    running = self._start(life, folder / f"life-{number}")
                    for _ in range(repeated):
                        Life(self, running, upstream, requests).measure()
            if sink and not verify.upstream_count(sink):
                raise verify.InvalidRun("nothing came where everything was to be logged")
        progress("")
        if len(self.taken[0].slices) < FEWEST_LIVES * PAIRS_A_LIFE:
            raise verify.TooNoisy(f"only {len(self.taken[0].slices)} pairs in the time allowed")
        # A full handshake costs a client more than the worker (it verifies what that signs): one
        # core of clients never fills a worker, of either side.
        if self.scenario.handshake != "full":
            for taken in self.taken:
                report.check_generator(taken.slices)
        return self.taken

    def _sink(self, stack: contextlib.ExitStack, folder: Path) -> sides.Upstream | None:
        """A server that takes whatever a plugin has to say, if the scenario sends it any."""
        if not self.scenario.has_sink():
            return None
        sink = sides.Upstream(folder / "sink", self.words["sink"], self.cores[1], "")
        stack.enter_context(sink)
        return sink

    def start(self, stack: contextlib.ExitStack, folder: Path) -> list[sides.Server]:
        """Starts all sides and shows that they send the same to the upstream."""
        self.words["entries"] = sides.entries(folder)
        if self.scenario.secure:
            self.words |= certificate.words(folder)
        running = self._start(stack, folder)
        address, body = self.words["upstream"], self.scenario.body.encode()
        with Recorder(address, body, self.scenario.listens, self._tls()) as recorder:
            for other in running[1:] if self.lineup.strict else []:
                verify.same_work(self.scenario, recorder, running[0], other)
        return running

    def _tls(self) -> ssl.SSLContext | None:
        """The upstream's, if it has any."""
        if self.scenario.secure != "upstream":
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.words["chain_and_key"])
        return context

    def _start(self, stack: contextlib.ExitStack, folder: Path) -> list[sides.Server]:
        for attempt in range(START_ATTEMPTS):
            place = folder / f"{attempt}"
            place.mkdir(parents=True)
            with contextlib.ExitStack() as started:
                try:
                    running = []
                    for index, make in enumerate(self.makers):
                        with _concerning(index):
                            side = make(place / str(index), self.words, self.cores[0])
                            running.append(started.enter_context(side))
                except sides.StartError:
                    if attempt == START_ATTEMPTS - 1:
                        raise
                    continue
                stack.push(started.pop_all())
                return running
        raise AssertionError("not reached")

    def _lives(self) -> tuple[int, int]:
        """How often all is started, and how often each of these is measured."""
        if not self.scenario.starts:
            return self.plan.lives, 1
        starts = min(self.scenario.starts, self.plan.lives)
        return starts, -(-self.plan.lives // starts)

    def _enough(self, began: float) -> bool:
        spent = time.monotonic() - began
        if spent + spent / (len(self.taken[0].memory) + 1) / 2 > self.plan.limit_s:
            return True
        pairs = len(self.taken[0].slices)
        if not self.plan.narrow or pairs < 2 * FEWEST_LIVES * PAIRS_A_LIFE:
            return False
        new, old = ([slice_.cpu_us for slice_ in side.slices] for side in self.taken[:2])
        return stats.is_narrow(stats.ratio(new, old, PAIRS_A_LIFE), self.plan.narrow)


class Requests:
    """The file that the generator reads: all requests, or so many of them that begin anywhere.

    A generator begins each slice with the file's first request, so one of a million would never
    ask for most of them.
    """

    def __init__(self, path: Path, requests: Sequence[scenarios.Request]) -> None:
        self.path = path
        self._heads = [request.head() for request in requests]
        self._random = random.Random(1)
        if len(self._heads) <= WINDOW:
            self._write(self._heads)

    def next(self) -> Path:
        """The file for another slice."""
        count = len(self._heads)
        if count > WINDOW:
            first = self._random.randrange(count)
            past = first + WINDOW
            self._write(self._heads[first:past] + self._heads[: max(past - count, 0)])
        return self.path

    def _write(self, heads: Sequence[bytes]) -> None:
        self.path.write_bytes(b"".join(heads))


class Life:
    """Four pairs of all sides, once they are started."""

    def __init__(
        self,
        run: Run,
        running: Sequence[sides.Server],
        upstream: sides.Upstream,
        requests: Requests,
    ) -> None:
        self.run = run
        self.running = running
        self.upstream = upstream
        self.requests = requests
        # Those whose answers are what the scenario says of Sluice.
        strict = running if run.lineup.strict else running[:1]
        self.described = [side for side in strict if isinstance(side, sides.Sluice)]

    def measure(self) -> None:
        """Warms up, alternates, and looks at answers before and after."""
        plan, scenario, taken = self.run.plan, self.run.scenario, self.run.taken
        self.probed = self._probe()
        self.asked = [0] * len(self.running)
        self._check(fresh=True)
        for index, side in enumerate(self.running):
            with syscalls.counted(side.worker) as count:
                warm = self._slice(index, plan.warm_up_s if index < 2 else YARDSTICK_WARM_UP_S)
            if count.calls is not None:
                taken[index].syscalls.append(count.calls / warm.report.requests)
        for done, order in enumerate(stats.abba(PAIRS_A_LIFE)):
            for index in order:
                taken[index].slices.append(self._slice(index, SLICE_S))
            # Whole A B B A only, so that a steady drift favours neither side.
            for index in range(2, len(self.running)) if done % 2 else []:
                taken[index].slices.append(self._slice(index, SLICE_S))
        for index, side in enumerate(self.running):
            taken[index].memory.append(load.memory(side.workers))
        after = self._probe()
        self._check(fresh=False)
        in_flight = 2 * plan.connections * (PAIRS_A_LIFE + 1)
        for index, side in enumerate(self.running):
            # Each probe tells what was left before its own request: the later one counts.
            total = self.asked[index] + len(scenario.probed())
            with _concerning(index):
                verify.counted_down(side, self.probed[index], after[index], total, in_flight)
                if trouble := side.trouble():
                    raise verify.InvalidRun(f"{side.name} logged: {trouble}")

    def _probe(self) -> list[verify.Probed]:
        found = []
        for index, side in enumerate(self.running):
            with _concerning(index):
                added = side in self.described
                found.append(verify.answers(self.run.scenario, side, added=added))
        return found

    def _check(self, fresh: bool) -> None:
        for side in self.described:
            with _concerning(self.running.index(side)):
                verify.checks(self.run.scenario, side, fresh)

    def _slice(self, index: int, seconds: int) -> load.Slice:
        side, connections = self.running[index], self.run.plan.connections
        before = verify.upstream_count(self.upstream)
        slice_ = load.run(
            side.address,
            self.requests.next(),
            side.counted(),
            self.run.cores[1],
            connections,
            seconds,
            self.upstream.workers,
            self.run.way,
        )
        reached = verify.upstream_count(self.upstream) - before
        with _concerning(index):
            verify.counted_slice(side, slice_, reached, self.probed[index].size, connections)
        self.asked[index] += slice_.report.requests
        return slice_


def metrics(taken: Sequence[Taken], yardsticks: Sequence[str] = ()) -> dict[str, report.Metric]:
    """Metrics of Sluice, beside hand-written nginx and whoever else took part."""
    ours, theirs, *others = taken
    out = report.measure(ours.slices, theirs.slices, PAIRS_A_LIFE)
    out |= report.memory(ours.memory) | report.memory(theirs.memory, "_nginx")
    out |= report.syscalls(ours.syscalls) | report.syscalls(theirs.syscalls, "_nginx")
    for name, other in zip(yardsticks, others, strict=True):
        out |= report.yardstick(ours.slices, other.slices, name, PAIRS_A_LIFE)
        out |= report.memory(other.memory, f"_{name}")
        out |= report.syscalls(other.syscalls, f"_{name}")
    return out


def two_cores() -> tuple[int, int]:
    """The core of the workers, and that of everything else."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise sides.StartError("a bench needs two CPU cores: one for the worker, one for the load")
    return cores[0], cores[1]
