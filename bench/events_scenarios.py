"""The scenarios of events: what to run in which order, and which metrics come of it.

Each takes a scenario file's fields (`bench/scenarios/events-*.toml`).
"""

from __future__ import annotations

import resource
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import load
import stats
import tools
from events import SIZES, Order, Round, Workers, all_started
from report import Metric, metric
from setting import Setting
from verify import InvalidRun

# Events go on for longer than the requests by that much, while wrk starts and ends.
MARGIN_S = 0.3


def throughput(setting: Setting) -> dict[str, Metric]:
    """Sustained events a second, and CPU time per event."""
    out: dict[str, Metric] = {}
    cells = setting.data["cells"]
    for part, cell in enumerate(cells):
        transports, count = cell["transports"], cell["workers"]
        orders = {
            size: Order("flood", setting.data["seconds"], size, setting.data["slice_ms"])
            for size in cell["sizes"]
        }
        found: dict[int, dict[str, list[Round]]] = {
            size: {name: [] for name in transports} for size in orders
        }
        with all_started(setting, transports, count) as workers:
            for size in orders:
                for name in transports:
                    workers[name].run_lossless(orders[size])  # warm-up
            for order in setting.rounds(transports, part, len(cells)):
                for size in orders:
                    for name in order:
                        found[size][name].append(workers[name].run_lossless(orders[size]))
        for size, rounds in found.items():
            out |= _throughput_metrics(f"{SIZES[size]}_w{count}", rounds)
    return out


def _throughput_metrics(suffix: str, rounds: dict[str, list[Round]]) -> dict[str, Metric]:
    out = {}
    rates = {name: [one.rate for one in found] for name, found in rounds.items()}
    cpu = {name: [one.cpu_us for one in found] for name, found in rounds.items()}
    if "ring" in rounds and "socket" in rounds:
        faster = stats.ratio(rates["ring"], rates["socket"])
        cheaper = stats.ratio(cpu["socket"], cpu["ring"])
        out[f"ring_over_socket_{suffix}"] = metric("ratio", faster)
        out[f"socket_over_ring_cpu_{suffix}"] = metric("ratio", cheaper)
    for name in rounds:
        out[f"{name}_eps_{suffix}"] = metric("events/s", stats.level(rates[name]))
        out[f"{name}_cpu_us_{suffix}"] = metric("us/event", stats.level(cpu[name]))
    return out


# The side of events-latency that is no transport: bare processes (floor.c).
FLOOR = "floor"


def latency(setting: Setting) -> dict[str, Metric]:
    """Time from before the publishing to the callback in other workers, at a low rate; in turns
    with what a wakeup of a bare process takes at that rate."""
    out: dict[str, Metric] = {}
    cells = setting.data["cells"]
    rate, seconds = setting.data["rate"], setting.data["seconds"]
    order = Order("tick", seconds, interval=1 / rate, timed=True)
    for part, cell in enumerate(cells):
        transports, count = cell["transports"], cell["workers"]
        found: dict[str, list[list[float]]] = {name: [] for name in (*transports, FLOOR)}
        with all_started(setting, transports, count) as workers:
            for name in transports:
                workers[name].run_lossless(order)  # warm-up
            for names in setting.rounds(list(found), part, len(cells)):
                for name in names:
                    if name == FLOOR:
                        found[name].append(_floor(count - 1, rate, seconds))
                        continue
                    done = workers[name].run_lossless(order)
                    found[name].append(done.samples(workers[name].publisher))
        out |= _latency_metrics(count, found)
    return out


def _latency_metrics(count: int, found: dict[str, list[list[float]]]) -> dict[str, Metric]:
    out = {}
    each = {
        share: {
            name: [stats.quantile(sorted(samples), share / 100) for samples in rounds]
            for name, rounds in found.items()
        }
        for share in (50, 99)
    }
    for share, sides in each.items():
        if "ring" in sides:
            over = stats.ratio(sides["ring"], sides[FLOOR])
            out[f"ring_p{share}_over_floor_w{count}"] = metric("ratio", over)
    for name, rounds in found.items():
        for share, sides in each.items():
            suffix = f"p{share}_us_w{count}"
            out[f"{name}_{suffix}"] = metric("us", stats.level(sides[name]))
            # Nothing left out: also what the machine's other work did.
            pooled = stats.pooled_quantile(rounds, share / 100)
            out[f"{name}_pooled_{suffix}"] = metric("us", pooled)
    return out


def _floor(readers: int, rate: float, seconds: float) -> list[float]:
    """A round of bare processes; microseconds."""
    command = [str(tools.built(FLOOR)), str(readers), str(rate), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise InvalidRun(f"floor.c failed: {done.stderr.strip()}")
    return [float(line) for line in done.stdout.split()]


def burst(setting: Setting) -> dict[str, Metric]:
    """A burst from one worker without a pause: what is accepted, what arrives, how long it takes.

    The time is from the first event's publishing to the last worker's last event. Metrics without
    a transport's name are the ring's.
    """
    found: dict[str, list[Round]] = {name: [] for name in setting.data["transports"]}
    order = Order("tick", count=setting.data["count"])
    with all_started(setting, list(found), setting.data["workers"]) as workers:
        for name in found:
            workers[name].run(order)  # warm-up
        for names in setting.rounds(list(found), 0, 1):
            for name in names:
                found[name].append(workers[name].run(order))
    out = {}
    for name, rounds in found.items():
        prefix = "" if name == "ring" else f"{name}_"
        for what in ("accepted", "delivered"):
            counts = [float(getattr(one, what)) for one in rounds]
            label = "delivered_min" if what == "delivered" else what
            out[prefix + label] = Metric(min(counts), "events", min(counts), max(counts))
        for what in ("drain", "publish"):
            times = [one.seconds if what == "drain" else one.publish_seconds for one in rounds]
            out[f"{prefix}{what}_ms"] = metric("ms", stats.level([time * 1e3 for time in times]))
    return out


def interference(setting: Setting) -> dict[str, Metric]:
    """What events do to requests that have nothing to do with them, and the other way round."""
    out: dict[str, Metric] = {}
    parts = [
        (transport, connections)
        for connections in setting.data["connections"]
        for transport in setting.data["transports"]
        if connections < _most_connections()
    ]
    for part, (transport, connections) in enumerate(parts):
        suffix = "" if connections == setting.data["connections"][0] else f"_c{connections}"
        with all_started(setting, [transport], setting.data["workers"]) as workers:
            traffic = Traffic(workers[transport], setting, connections)
            found: dict[str, list[Busy]] = {case: [] for case in CASES}
            for case in CASES:
                traffic.slice(case)  # warm-up
            for cases in setting.rounds(list(CASES), part, len(parts)):
                for case in cases:
                    found[case].append(traffic.slice(case))
        out |= _interference_metrics(transport, suffix, found)
    return out


@dataclass(frozen=True)
class Busy:
    """A slice of requests, and the events meanwhile if there were any."""

    slice: load.Slice
    round: Round | None

    @property
    def cpus(self) -> float:
        """CPUs that the workers used."""
        return self.slice.cpu_ns / self.slice.report.duration_us / 1e3


# Events, and how often.
CASES = {"none": None, "1000_500ms": (1000, 0.5), "10000_100ms": (10_000, 0.1)}


class Traffic:
    """Requests for a static answer to workers with events."""

    def __init__(self, workers: Workers, setting: Setting, connections: int) -> None:
        self.workers = workers
        self.seconds = setting.data["seconds"]
        self.connections = connections
        self.requests = workers.folder / "requests"
        self.requests.write_bytes(b"GET / HTTP/1.1\r\nHost: bench\r\n\r\n")

    def slice(self, case: str) -> Busy:
        """A slice of load; the events begin a little before it, as long as connections are made."""
        done: list[Round] = []
        failed: list[BaseException] = []

        def publish(count: int, interval: float) -> None:
            order = Order("tick", self.seconds + MARGIN_S, count=count, interval=interval)
            try:
                done.append(self.workers.run(order))
            except Exception as error:
                failed.append(error)

        event = CASES[case]
        thread = threading.Thread(target=publish, args=event) if event else None
        if thread:
            thread.start()
        try:
            slice_ = load.run(
                self.workers.address,
                self.requests,
                self.workers.workers,
                None,
                self.connections,
                self.seconds,
            )
        finally:
            if thread:
                thread.join()
        if failed:
            raise failed[0]
        errors = slice_.report.errors()
        if errors or not slice_.report.requests:
            problem = errors or "not one answer in a slice"
            raise InvalidRun(f"{self.workers.name}, {self.connections} connections: {problem}")
        return Busy(slice_, done[0] if done else None)


def _interference_metrics(
    transport: str, suffix: str, found: dict[str, list[Busy]]
) -> dict[str, Metric]:
    out = {}
    none = found["none"]
    for case, busy in found.items():
        prefix = f"{transport}_{case}{suffix}"
        out[f"{prefix}_rps"] = metric("requests/s", stats.level([one.slice.rps for one in busy]))
        out[f"{prefix}_p99_ms"] = metric("ms", stats.level([one.slice.p99_ms for one in busy]))
        out[f"{prefix}_cpus"] = metric("CPUs", stats.level([one.cpus for one in busy]))
        if case == "none":
            continue

        def against(read: Callable[[Busy], float], busy: list[Busy] = busy) -> Metric:
            return metric(
                "ratio", stats.ratio([read(one) for one in busy], [read(one) for one in none])
            )

        out[f"{prefix}_rps_share"] = against(lambda one: one.slice.rps)
        out[f"{prefix}_p99_ratio"] = against(lambda one: one.slice.p99_ms)
        out[f"{prefix}_cpu_share"] = against(lambda one: one.cpus)
        shares = [one.round.delivered_in_time for one in busy if one.round]
        out[f"{prefix}_delivered_share"] = metric("share", stats.mean(shares))
    return out


def _most_connections() -> int:
    # Of wrk, and of the worker that gets all of them; some descriptors are for other things.
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 1000


def idle(setting: Setting) -> dict[str, Metric]:
    """Wakeups of a worker without an event, beyond those of one without this library."""
    transports = [*setting.data["transports"], "none"]
    found: dict[str, list[float]] = {name: [] for name in transports}
    with all_started(setting, transports, setting.data["workers"]) as workers:
        for name in setting.data["transports"]:
            workers[name].run_lossless(Order("tick", count=100))  # it does work
        time.sleep(setting.data["settle_s"])
        for _ in range(setting.data["rounds"]):
            before = {name: _switches(one.workers) for name, one in workers.items()}
            time.sleep(setting.data["seconds"])
            for name, one in workers.items():
                switches = _switches(one.workers) - before[name]
                found[name].append(switches / setting.data["seconds"] / len(one.workers))
    out = {}
    bare = sum(found.pop("none")) / setting.data["rounds"]
    for name, rates in found.items():
        beyond = [max(rate - bare, 0.0) for rate in rates]
        value = sum(beyond) / len(beyond)
        out[f"{name}_wakeups_per_s"] = Metric(value, "1/s", min(beyond), max(beyond))
    return out


def many(setting: Setting) -> dict[str, Metric]:
    """CPU time a delivery with many workers: in ticks, and in bursts, in turns."""
    rate, seconds, count = (setting.data[name] for name in ("rate", "seconds", "workers"))
    orders = {
        case: Order("tick", seconds, count=round(rate * interval), interval=interval)
        for case in ("ticks", "bursts")
        for interval in [setting.data[f"{case}_s"]]
    }
    found: dict[str, list[Round]] = {case: [] for case in orders}
    with all_started(setting, ["ring"], count) as workers:
        for order in orders.values():
            workers["ring"].run(order)  # warm-up
        for cases in setting.rounds(list(orders), 0, 1):
            for case in cases:
                found[case].append(workers["ring"].run(orders[case]))
    done = [one for rounds in found.values() for one in rounds]
    lost = [one.offered - one.delivered for one in done]
    wrong = [reason for one in done if (reason := one.lost())]
    if wrong and not any(lost):
        raise InvalidRun(f"{count} workers: {wrong[0]}")
    # All of them, the publisher too, hear everything.
    cpu = {case: [one.cpu_us / count for one in rounds] for case, rounds in found.items()}
    out = {f"{case}_cpu_us": metric("us", stats.level(cpu[case])) for case in cpu}
    return out | {
        "ticks_over_bursts": metric("ratio", stats.ratio(cpu["ticks"], cpu["bursts"])),
        "lost": Metric(max(lost), "events", min(lost), max(lost)),
    }


def _switches(pids: list[int]) -> int:
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total


MEASURES: dict[str, Callable[[Setting], dict[str, Metric]]] = {
    "events-throughput": throughput,
    "events-latency": latency,
    "events-burst": burst,
    "events-interference": interference,
    "events-idle": idle,
    "events-many": many,
}
