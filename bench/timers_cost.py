"""Scenarios of the kind `timers-cost`: making, keeping and ending timers, how late, and idle.

Each round starts an nginx of each side anew, fills it with timers that are not
due, and ends it gracefully with them. Lateness and wakeups are those of a worker
that has nothing else to do.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Sequence

import load
import stats
from report import Metric, metric
from setting import Setting
from timers import Order, Worker
from verify import InvalidRun

QUIT_LIMIT_S = 60

UNITS = {
    "create_ns": "ns",
    "cancel_ns": "ns",
    "bytes_per_timer": "B",
    "collect_ms_100k": "ms",
    "quit_ms_100k": "ms",
}


def life(setting: Setting, side: str) -> dict[str, float]:
    """One worker's: what timers cost from their creation to a graceful exit with them."""
    count = setting.data["timers"]
    with _worker(setting, side, side) as worker:
        worker.ask("room", count)
        empty = load.memory(worker.workers).rss
        found = {"create_ns": worker.ask("create", count)["ns"]}
        found["collect_ms_100k"] = worker.ask("collect")["ms"]
        found["bytes_per_timer"] = (load.memory(worker.workers).rss - empty) / count
        if side == "sluice":  # nginx's own cannot be cancelled
            found["cancel_ns"] = worker.ask("cancel", count)["ns"]
            worker.ask("create", count)
        found["quit_ms_100k"] = quit_ms(worker)
        worker.check()
    return found


def _worker(setting: Setting, side: str, name: str) -> Worker:
    return Worker(side, setting.fresh() / name, Order(), root=setting.root)


def quit_ms(worker: Worker) -> float:
    """Milliseconds from the signal to the master until the worker's end."""
    master, end = worker.master(), os.pidfd_open(worker.worker)
    assert master
    try:
        poll = select.poll()
        poll.register(end, select.POLLIN)
        began = time.monotonic()
        os.kill(master, signal.SIGQUIT)
        if not poll.poll(QUIT_LIMIT_S * 1000):
            raise InvalidRun(f"{worker.name} has not ended in {QUIT_LIMIT_S} s")
        return (time.monotonic() - began) * 1e3
    finally:
        os.close(end)


def lives(setting: Setting) -> dict[str, Metric]:
    """All that a worker's life tells, of each side."""
    data = setting.data
    found: dict[str, list[dict[str, float]]] = {side: [] for side in data["sides"]}
    for names in setting.rounds(data["sides"], 0, 2):
        for side in names:
            found[side].append(life(setting, side))
    out = {}
    for side, taken in found.items():
        for name in taken[0]:
            value = stats.mean([one[name] for one in taken])
            out[_named(name, side)] = metric(UNITS[name], value)
    return out


def lateness(setting: Setting) -> dict[str, Metric]:
    """Of one-shot timers at random times, in a worker that is idle otherwise."""
    data = setting.data
    out: dict[str, Metric] = {}
    with contextlib.ExitStack() as stack:
        workers = {
            side: stack.enter_context(_worker(setting, side, side)) for side in data["sides"]
        }
        found: dict[str, list[list[float]]] = {side: [] for side in workers}
        for names in setting.rounds(list(workers), 1, 2):
            for side in names:
                found[side].append(workers[side].ask("lateness", data["fires"])["late"])
        for worker in workers.values():
            worker.check()
    for side, rounds in found.items():
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            each = [stats.quantile(sorted(late), share) * 1e3 for late in rounds]
            out[_named(f"late_{name}_ms", side)] = metric("ms", stats.mean(each))
        out[_named("early", side)] = early(rounds)
    return out


def early(rounds: Sequence[Sequence[float]]) -> Metric:
    """How many fired before they were due: of the worst round; the least and the most of one."""
    counts = [sum(late < 0 for late in round_) for round_ in rounds]
    return Metric(max(counts), "timers", min(counts), max(counts))


def wakeups(setting: Setting) -> dict[str, Metric]:
    """Of a worker without timers, and with one an hour away, beyond those of one without ours."""
    data = setting.data
    with contextlib.ExitStack() as stack:
        workers = {}
        for case in ("bare", "empty", "hour"):
            side = "none" if case == "bare" else "sluice"
            workers[case] = stack.enter_context(_worker(setting, side, case))
        workers["hour"].ask("lateness", 100)  # it has had work
        workers["hour"].ask("hour")
        time.sleep(data["settle_s"])
        rates: dict[str, list[float]] = {case: [] for case in workers}
        for _ in range(data["idle_rounds"]):
            before = {case: load.switches(one.workers) for case, one in workers.items()}
            time.sleep(data["idle_s"])
            for case, one in workers.items():
                count = load.switches(one.workers) - before[case]
                rates[case].append(count / data["idle_s"])
        for worker in workers.values():
            worker.check()
    beyond = beyond_bare(rates)
    return {"wakeups_idle": Metric(sum(beyond) / len(beyond), "1/s", min(beyond), max(beyond))}


def beyond_bare(rates: dict[str, list[float]]) -> list[float]:
    """Wakeups a second of the busier one of ours beyond those of the bare worker, by round."""
    columns = zip(rates["bare"], rates["empty"], rates["hour"], strict=True)
    return [max(empty - bare, hour - bare, 0.0) for bare, empty, hour in columns]


def _named(name: str, side: str) -> str:
    return name if side == "sluice" else f"{name}_{side}"


def measure(setting: Setting) -> dict[str, Metric]:
    """Measures the scenario."""
    return lives(setting) | lateness(setting) | wakeups(setting)
