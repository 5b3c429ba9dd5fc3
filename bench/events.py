"""Workers with events of one transport, and rounds of publishing in them.

Each transport runs in an nginx of its own; all are alike but for the transport
(nginx/events.conf, agent.lua). They stand idle side by side while one of them
is asked for a round, so that rounds of different transports alternate.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pwd
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import load
import sides
from probe import Client, ProbeError
from setting import Setting
from verify import InvalidRun

# Every option that is not named has its default.
OPTIONS = {
    "ring": "{}",
    "socket": '{ transport = "socket", listening = "unix:@socket@" }',
    "poll": '{ transport = "poll" }',
    "none": "nil",
}
BROKER = """server {
        listen unix:@socket@;
        location / {
            content_by_lua_block {
                require("agent").broker()
            }
        }
    }"""

SIZES = {64: "64B", 1024: "1KB", 16384: "16KB"}
# What the poll transport's dictionary surely holds: the most that its readers may lag.
WINDOWS = {64: 20_000, 1024: 5_000, 16384: 300}

# The poll transport looks once a second; that is not being late.
POLL_S = 1.1

READY_S = 10.0
PATIENCE_S = 15.0  # beyond the time of publishing
BINDS = 2000  # attempts at a connection to a given worker


@dataclass(frozen=True)
class Order:
    """One round: what the publisher is to do (agent.lua).

    `flood`: as fast as goes without loss for `seconds`. `tick`: `count` events
    each `interval` seconds for `seconds`, and what is refused is lost.
    """

    mode: str
    seconds: float = 0
    size: int = 64
    slice_ms: float = 4
    count: int = 1
    interval: float = 1
    timed: bool = False
    window: int | None = None
    patience: float = PATIENCE_S


@dataclass(frozen=True)
class Round:
    """What came of it."""

    offered: int
    accepted: int
    queued: int
    sum: int
    publish_seconds: float
    drain_seconds: float
    seconds: float
    cpu_ns: int
    planned_seconds: float
    workers: dict[str, dict[str, Any]] = field(repr=False)

    @property
    def rate(self) -> float:
        """Events a second, until the last worker had the last one."""
        return self.accepted / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU time of all workers per event."""
        return self.cpu_ns / self.accepted / 1e3

    @property
    def delivered(self) -> int:
        """Events that reached the worker that was reached by fewest."""
        return min(worker["count"] for worker in self.workers.values())

    @property
    def delivered_in_time(self) -> float:
        """Share of the events due that every worker got, at the rate at which they were due.

        Who publishes late, or reads late, does part of the work after the others' time.
        """
        late = max(0.0, self.seconds - self.planned_seconds)
        return self.delivered / self.offered * self.planned_seconds / (self.planned_seconds + late)

    def samples(self, publisher: int) -> list[float]:
        """Latencies in microseconds, in workers other than the publisher."""
        return [
            float(sample)
            for worker, account in self.workers.items()
            if int(worker) != publisher
            for sample in account["samples"]
        ]

    def lost(self) -> str | None:
        """What of the accepted is missing or not as it was sent, if anything."""
        if self.accepted == 0:
            return "not one event was accepted"
        for worker, account in self.workers.items():
            if account["count"] != self.accepted:
                return f"worker {worker} got {account['count']:.0f} of {self.accepted} events"
            if account["sum"] != self.sum:
                return f"worker {worker} got other contents, or another order, than was sent"
        return None


class Workers(sides.Nginx):
    """An nginx whose workers hear and publish events; `transport` may be "none"."""

    files: ClassVar = {"events.conf": "nginx.conf"}

    def __init__(self, transport: str, count: int, folder: Path, root: Path = sides.ROOT) -> None:
        self.transport = transport
        self.control = sides.free_address()
        self._rounds = itertools.count(1)
        # Not the broker, which is worker 0.
        self.publisher = count - 1
        self._publisher: Client | None = None
        words = {
            "modules": load_modules(root),
            "user": user(),
            "workers": str(count),
            "bench": str(sides.NGINX_FOLDER.parent),
            "root": str(root),
            "control": self.control,
            "options": _filled(OPTIONS[transport], folder),
            "broker": _filled(BROKER, folder) if transport == "socket" else "",
        }
        super().__init__(
            f"{transport}, {count} workers", folder, sides.free_address(), None, count, **words
        )

    def __enter__(self) -> Workers:
        super().__enter__()
        try:
            self._publisher = self._reach_publisher()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._publisher:
            self._publisher.close()
        super().__exit__()

    def write(self) -> None:
        super().write()
        (self.folder / "events").mkdir(mode=0o700)

    def run(self, order: Order) -> Round:
        """Runs a round; whatever an event's fate, the accounts must be there in time."""
        assert self._publisher
        body = asdict(order) | {"round": f"{next(self._rounds)}"}
        if self.transport == "poll" and order.mode == "flood":
            body["window"] = WINDOWS[order.size]
        before, _ = load.schedstats(self.workers)
        answer = _ask(self._publisher, "/run", {k: v for k, v in body.items() if v is not None})
        after, _ = load.schedstats(self.workers)
        if "failed" in answer:
            raise InvalidRun(f"{self.name}: {answer['failed']}")
        planned = order.seconds + (POLL_S if self.transport == "poll" else 0)
        return Round(**answer, cpu_ns=after - before, planned_seconds=planned)

    def run_lossless(self, order: Order) -> Round:
        """Runs a round in which every event has to reach every worker as it was sent."""
        done = self.run(order)
        if lost := done.lost():
            raise InvalidRun(f"{self.name}: {lost}")
        return done

    def _reach_publisher(self) -> Client:
        """A connection to the publisher, once all workers hear events."""
        deadline = time.monotonic() + READY_S
        for _ in range(BINDS):
            client = Client(self.control, 60)
            try:
                answer = _ask(client, "/who")
            except (ProbeError, OSError):
                answer = {"ready": False}
            if answer["ready"] and answer["worker"] == self.publisher:
                return client
            client.close()
            if not answer["ready"]:
                time.sleep(0.01)
            if time.monotonic() > deadline:
                break
        raise sides.StartError(f"{self.name}: not ready: {self.trouble() or 'no error is logged'}")


@contextlib.contextmanager
def all_started(
    setting: Setting, transports: Sequence[str], count: int
) -> Iterator[dict[str, Workers]]:
    """One nginx a transport; no error may be in their logs in the end."""
    folder = setting.fresh()
    with contextlib.ExitStack() as stack:
        started = {
            transport: stack.enter_context(
                Workers(transport, count, folder / transport, setting.root)
            )
            for transport in transports
        }
        yield started
        for workers in started.values():
            if trouble := workers.trouble():
                raise InvalidRun(f"{workers.name} logged: {trouble}")


def _ask(client: Client, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    data = json.dumps(body).encode() if body else b""
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Length: {len(data)}\r\n\r\n"
    answer = client.ask(head.encode() + data)
    if answer.status != 200:
        raise InvalidRun(f"{path} was answered with {answer.status}")
    parsed: dict[str, Any] = json.loads(answer.body)
    return parsed


def load_modules(root: Path) -> str:
    """Lines of nginx.conf: the modules of Lua, and that of a checkout."""
    ours = root / "build" / "module" / "ngx_sluice_module.so"
    paths = [*sides.platform("nginx_modules"), str(ours)]
    return "\n".join(f'load_module "{path}";' for path in paths)


def user() -> str:
    """Line of nginx.conf: workers are the caller, also where that is root."""
    # Workers of the caller's own, so that they may read the checkout, wherever it is.
    return f"user {pwd.getpwuid(os.geteuid()).pw_name};\n" if os.geteuid() == 0 else ""


def _filled(text: str, folder: Path) -> str:
    return text.replace("@socket@", str(folder / "events" / "broker.sock"))
