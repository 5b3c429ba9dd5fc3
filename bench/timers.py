"""Scenarios of the kind `timers-load`: what recurrent timers cost, and what they do to requests.

No timers, those of `ngx.timer.every` and ours, each in a worker of its own of
the same nginx with the same module, one after the other: who is not measured
stands still (SIGSTOP).
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import events
import load
import sides
import stats
from probe import Client
from report import Metric, metric
from setting import Setting
from verify import InvalidRun

# Each running timer of nginx takes a connection, those of the yielding callbacks as well.
CONNECTIONS = "65536"
# What a worker gets to recover from having stood still.
SETTLE_S = 0.2
# Of ours: with less of the fires that were due, a run says nothing.
FEWEST_FIRES = 0.99
# The core of the workers, and that of the load.
CORES = (0, 1)


@dataclass(frozen=True)
class Order:
    """The recurrent timers of a worker (timer_agent.lua): `interval` in seconds, 0 is the mix."""

    timers: int = 0
    interval: float = 0
    callbacks: int = 1
    yielding: bool = False
    contexts: int = 128

    def lua(self) -> str:
        """The same as a table."""
        fields = (f"{name} = {json.dumps(value)}" for name, value in vars(self).items())
        return f"{{ {', '.join(fields)} }}"


class Worker(sides.Nginx):
    """An nginx with one worker; `side` is none, ngx or sluice."""

    files: ClassVar = {"timers.conf": "nginx.conf"}

    def __init__(
        self,
        side: str,
        folder: Path,
        order: Order,
        core: int | None = None,
        root: Path = sides.ROOT,
    ) -> None:
        self.side = side
        words = {
            "modules": events.load_modules(root),
            "user": events.user(),
            "bench": str(sides.NGINX_FOLDER.parent),
            "root": str(root),
            "connections": CONNECTIONS,
            "side": side,
            "order": order.lua(),
        }
        name = f"{side}, {order.timers} timers"
        super().__init__(name, folder, sides.free_address(), core, **words)

    def stop(self) -> None:
        # What stands still does not end either.
        for pid in self.workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        super().stop()

    def ask(self, what: str, count: int = 0) -> dict[str, Any]:
        """Asks the agent, over a connection of its own."""
        with Client(self.address, 60) as client:
            request = f"GET /ask/{what}?count={count} HTTP/1.1\r\nHost: bench\r\n\r\n"
            answer = client.ask(request.encode())
        if answer.status != 200:
            raise InvalidRun(f"{self.name}: {what} was answered with {answer.status}")
        parsed: dict[str, Any] = json.loads(answer.body)
        return parsed

    def stand_still(self) -> None:
        """Stops the worker until it is `awake`."""
        os.kill(self.worker, signal.SIGSTOP)

    @contextlib.contextmanager
    def awake(self) -> Iterator[None]:
        """The time in which the worker runs."""
        os.kill(self.worker, signal.SIGCONT)
        time.sleep(SETTLE_S)
        try:
            yield
        finally:
            self.stand_still()

    def check(self) -> None:
        """Fails if an error was logged."""
        if trouble := self.trouble():
            raise InvalidRun(f"{self.name} logged: {trouble}")


@dataclass(frozen=True)
class Window:
    """What a worker did in a time: fires, those that were due, its CPU time; and requests."""

    fired: int
    expected: int
    cpu_ns: int
    slice: load.Slice | None = None


def watch(worker: Worker, during: Callable[[], load.Slice | None]) -> Window:
    """Counts what a worker does during something."""
    before, began_ns = worker.ask("fires"), load.schedstat(worker.worker)[0]
    slice_ = during()
    after, ended_ns = worker.ask("fires"), load.schedstat(worker.worker)[0]
    counts = (after[name] - before[name] for name in ("fired", "expected"))
    return Window(*counts, ended_ns - began_ns, slice_)


def delivered(windows: Sequence[Window]) -> stats.Estimate:
    """Fires of those that were due, in all windows; the ends are the least and the most of one."""
    due = sum(window.expected for window in windows)
    if not due:
        raise InvalidRun("no timer was due in any slice")
    each = [window.fired / window.expected for window in windows if window.expected]
    total = sum(window.fired for window in windows) / due
    return stats.Estimate(total, min(each), max(each))


def cpu_per_fire(windows: Sequence[Window], without: Sequence[Window]) -> list[float]:
    """Nanoseconds of each fire above what goes without timers; at least 1, which noise may hide."""
    return [
        max((window.cpu_ns - bare.cpu_ns) / max(window.fired, 1), 1.0)
        for window, bare in zip(windows, without, strict=True)
    ]


Found = dict[str, list[Window]]


def idle_metrics(suffix: str, found: Found) -> dict[str, Metric]:
    """Of slices without requests: CPU time of a fire."""
    out = {}
    costs = {
        side: cpu_per_fire(found[side], found["none"])
        for side in ("ngx", "sluice")
        if side in found
    }
    if len(costs) == 2:
        out[f"cpu_ratio_{suffix}"] = metric("ratio", stats.ratio(costs["ngx"], costs["sluice"]))
    for side, values in costs.items():
        out[f"cpu_ns_{_prefix(side)}{suffix}"] = metric("ns/fire", stats.level(values))
    return out


def load_metrics(suffix: str, found: Found) -> dict[str, Metric]:
    """Of slices with requests: what timers leave of RPS, and add to p99."""
    taken = {
        side: [window.slice for window in windows if window.slice]
        for side, windows in found.items()
    }
    rps = {side: [one.rps for one in slices] for side, slices in taken.items()}
    p99 = {side: [one.p99_ms for one in slices] for side, slices in taken.items()}
    out = {
        f"rps_none_{suffix}": metric("requests/s", stats.level(rps["none"])),
        f"p99_ms_none_{suffix}": metric("ms", stats.level(p99["none"])),
    }
    for side in ("sluice", "ngx"):
        if side in found:
            end = f"{_prefix(side)}{suffix}"
            out[f"rps_{end}"] = metric("requests/s", stats.level(rps[side]))
            out[f"rps_share_{end}"] = metric("ratio", stats.ratio(rps[side], rps["none"]))
            out[f"p99_ratio_{end}"] = metric("ratio", stats.ratio(p99[side], p99["none"]))
            out[f"p99_ms_{end}"] = metric("ms", stats.level(p99[side]))
    return out


def fires_metrics(suffix: str, found: Found) -> dict[str, Metric]:
    """Of all slices; fails where ours delivered too little to be compared."""
    out = {}
    for side in ("sluice", "ngx"):
        if side in found:
            share = delivered(found[side])
            if side == "sluice" and share.value < FEWEST_FIRES:
                raise InvalidRun(f"{suffix}: {share.value:.4f} of the timers that were due fired")
            out[f"fires_{_prefix(side)}{suffix}"] = metric("share", share)
    return out


def _prefix(side: str) -> str:
    return "" if side == "sluice" else f"{side}_"


def _cell(setting: Setting, part: int, cell: dict[str, Any]) -> dict[str, Metric]:
    """One number of timers with one interval: each side idle, then under load, in turns."""
    order = Order(**cell["order"])
    fields = setting.data | cell
    requests = setting.folder / "requests"
    requests.write_bytes(b"GET / HTTP/1.1\r\nHost: bench\r\n\r\n")
    kinds = {kind: cell.get(kind, setting.data["sides"]) for kind in ("idle", "load")}
    found: dict[str, Found] = {kind: {side: [] for side in names} for kind, names in kinds.items()}

    def slice_(kind: str, worker: Worker) -> load.Slice | None:
        if kind == "load":
            return _requests(worker, requests, fields["connections"], fields["load_s"])
        time.sleep(fields["idle_s"])
        return None

    folder = setting.fresh()
    with contextlib.ExitStack() as stack:
        workers = {}
        for side in dict.fromkeys([*kinds["idle"], *kinds["load"]]):
            workers[side] = stack.enter_context(
                Worker(side, folder / side, order, CORES[0], setting.root)
            )
            workers[side].stand_still()
        for names in setting.rounds(list(workers), part, len(setting.data["cells"])):
            for kind, measured in kinds.items():
                for side in (name for name in names if name in measured):
                    with workers[side].awake():
                        during = functools.partial(slice_, kind, workers[side])
                        found[kind][side].append(watch(workers[side], during))
        for worker in workers.values():
            worker.check()
    return metrics(cell["name"], found)


def _requests(worker: Worker, requests: Path, connections: int, seconds: int) -> load.Slice:
    taken = load.run(worker.address, requests, worker.workers, CORES[1], connections, seconds)
    report = taken.report
    # What the other's overload does to requests is a finding; ours answers in time.
    if errors := (report if worker.side != "ngx" else replace(report, timeout=0)).errors():
        raise InvalidRun(f"{worker.name}: {errors}")
    if not report.requests:
        raise InvalidRun(f"{worker.name}: not one answer in a slice")
    return taken


def metrics(suffix: str, found: dict[str, Found]) -> dict[str, Metric]:
    """All that was found of a case: by idle and load, by side."""
    out: dict[str, Metric] = {}
    both: Found = {}
    for kind, read in (("idle", idle_metrics), ("load", load_metrics)):
        if found[kind]:
            out |= read(suffix, found[kind])
        for side, windows in found[kind].items():
            both.setdefault(side, []).extend(windows)
    return out | fires_metrics(suffix, both)


def measure(setting: Setting) -> dict[str, Metric]:
    """Measures the scenario."""
    out: dict[str, Metric] = {}
    for part, cell in enumerate(setting.data["cells"]):
        out |= _cell(setting, part, cell)
    return out
