"""The scenario of hostile routes: what the router takes of a worker's time, whatever is written.

Each case is a gateway of its own, whose worker is asked one request after the other: CPU time of
the worker, less that of requests that no route is looked at for. So it is the real way of a
request. The patterns of a fresh worker are compiled before the first one, as they are in use; of
what is written afterwards they are compiled in turns, of which the longest counts.

`neighbour_p99_ratio` is what another tenant notices of clients who ask for routes that take long to
compile: 43 MB of them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import admin
import config_change
import load
import sides
from probe import Client
from progress import progress
from report import Metric, spread
from setting import Setting
from verify import InvalidRun

# No case has a route for it that takes any time.
PLAIN = b"GET /0 HTTP/1.1\r\nHost: bench\r\n\r\n"

# A worker maps the images, and looks again a second later.
STARTED_S = 1.5
# A request counts, and is logged, just after its answer.
SETTLED_S = 0.002
SETTLING_S = 0.2
# A turn is over: the next one begins a millisecond later.
IDLE_S = 0.0002
REFUSED = 500
CREATED = 201
WRITTEN_S = 30


@dataclass(frozen=True)
class Case:
    """Routes, a request on them, and the status it must have; None: it may be refused."""

    name: str
    routes: list[dict[str, object]]
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    status: int | None = None
    written: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    """What is posted when it runs, and so stands in deltas beside the image: paths and bodies."""

    def head(self) -> bytes:
        """The request."""
        lines = [f"GET {self.path} HTTP/1.1", "Host: bench"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def sluice_file(self, words: dict[str, str]) -> str:
        """The declarative file."""
        service = {"name": "bench", "url": f"http://{words['upstream']}", "routes": self.routes}
        return json.dumps({"_format_version": "3.0", "services": [service]})

    def changed_file(self, words: dict[str, str]) -> str | None:
        """Nothing is changed before it is measured."""
        return None


def paths(count: int, pattern: str) -> list[dict[str, object]]:
    """Routes of one pattern each, `@` being their number."""
    return [{"paths": [pattern.replace("@", str(n))]} for n in range(1, count + 1)]


def cases(routes: int, patterns: int) -> Iterator[Case]:
    """What the issue names, and neighbours of it."""
    long = "/api/" + "a/" * 3900 + "0123456789xyz"
    yield Case(
        "beginning", paths(100, "~/api/(.+)/(.+)/x@$"), "/api/" + "a/" * 300 + "x0123456789!"
    )
    yield Case("long", paths(1, "~/api/(?<a>.+)/items/(?<id>.+)/xyz$"), long + "/items" * 10)
    yield Case("nested", paths(3, "~/@?(?:(?:a|aa)+b?)+$"), "/" + "a" * 2000 + "!")
    yield Case("scans", paths(20, "~/.*c{0,3}a{2000}b@?$"), "/" + "a" * 7900 + "!")
    yield Case("squares", paths(50, "~/[^b]*(?:a{0,9})*a*x@$"), "/" + "a" * 3000 + "!x0123456789!")
    groups = "".join(f"((?{n + 3}))" for n in range(25))
    calls = f"~/@(?(DEFINE)(){groups}(a(?2)|{'(?1)' * 300}b))(?2)"
    yield Case("recursion", paths(3, calls.replace("@", "@?")), "/" + "a" * 120 + "!b")
    yield Case(
        "fresh", paths(patterns, "~/api/[^/]+/x@/(?<id>\\d+)$"), f"/api/a/x{patterns}/7", status=200
    )
    compiling = "~/api/(?:" + "|".join(f"w@x{n}" for n in range(300)) + ")$"
    yield Case("compiling", paths(patterns // 10, compiling), "/api/none")
    yield Case(
        "header",
        [{"headers": {"x-a": [f"~*(?:[a-z]+[0-9]?)+{n}$"]}} for n in range(20)],
        "/",
        {"X-A": "a" * 7900 + "!"},
    )
    crowd = [{"paths": ["/p"], "headers": {"x-t": [f"tenant-{n}"]}} for n in range(routes)]
    yield Case("crowd", crowd, "/p", {"X-T": "tenant-none"})
    names = [{"paths": ["/p"], "headers": {f"x-{n % 50}": ["a" * 500]}} for n in range(routes)]
    many = {f"X-{n}": "a" * 499 + "b" for n in range(12)}
    yield Case("names", names, "/p", many)
    yield from written(patterns)


def written(patterns: int) -> Iterator[Case]:
    """Routes and a plugin of which a worker has compiled nothing before it is asked."""
    slow = "(?J)" + "(?<a>)" * 99 + r"\k<a>" * 600  # half a millisecond
    count = patterns // 20
    routes = [{"paths": [f"~/{n}?{slow}x$"], "service": {"name": "bench"}} for n in range(count)]
    yield Case("delta", [], "/none", written=[("/routes", route) for route in routes])
    cors = {"name": "cors", "config": {"origins": [f"{slow}x{n}" for n in range(count)]}}
    origin = {"Origin": "https://a.example"}
    yield Case("plugin", [], "/none", origin, written=[("/plugins", cors)])


def crowded(hosts: int, routes: int) -> Case:
    """Routes of hosts whose patterns take some 24 KB compiled each, and one of somebody else."""
    words = "|".join(f"w@x{n:04}" for n in range(360))
    crowd = [
        {"hosts": [f"h{host}"], "paths": [f"~/x/[0-9]?{n}-(?:{words.replace('@', f'{host}{n}')})$"]}
        for host in range(hosts)
        for n in range(routes)
    ]
    return Case("neighbour", [*crowd, {"paths": ["/plain"]}], "/plain")


def _neighbour(setting: Setting) -> float:
    """The 99th percentile of another tenant's requests beside such clients, by that without."""
    data = setting.data["neighbour"]
    case = crowded(data["hosts"], data["routes"])
    gateway, upstream = config_change.sides_of(setting, case, sides.Sluice)
    with upstream, gateway:
        time.sleep(STARTED_S)
        plain, hostile = gateway.folder / "plain", gateway.folder / "hostile"
        plain.write_bytes(case.head())
        heads = [f"GET /x/none HTTP/1.1\r\nHost: h{n}\r\n\r\n" for n in range(data["hosts"])]
        hostile.write_text("".join(heads))

        def ask(file: Path, connections: int, rate: int) -> load.Slice:
            way = load.Way(rate=rate)
            seconds = data["seconds"]
            workers = gateway.workers
            return load.run(gateway.address, file, workers, None, connections, seconds, way=way)

        def neighbour() -> float:
            slice_ = ask(plain, data["own_connections"], data["own_rate"])
            if errors := slice_.report.errors():
                raise InvalidRun(f"neighbour: {errors}")
            return slice_.p99_ms

        crowd: list[load.Slice] = []
        thread = threading.Thread(
            target=lambda: crowd.append(ask(hostile, data["connections"], data["rate"]))
        )
        alone = neighbour()
        thread.start()
        beside = neighbour()
        thread.join()
        # All of them are answered 404.
        if not crowd or crowd[0].report.status != data["rate"] * data["seconds"]:
            raise InvalidRun(f"neighbour: not all clients were answered: {crowd}")
        return 2 * beside / (alone + neighbour())


def measure(setting: Setting) -> dict[str, Metric]:
    """Measures the scenario."""
    data = setting.data
    ratios: list[float] = []
    found: dict[str, list[float]] = {}
    most = 0.0
    for number in range(data["rounds"]):
        if number and time.monotonic() > setting.began + data["limit_s"]:
            break
        progress(f"{setting.name}: neighbour")
        ratios.append(_neighbour(setting))
        for case in cases(data["routes"], data["patterns"]):
            progress(f"{setting.name}: {case.name}")
            took = _ask(setting, case)
            found.setdefault(case.name, []).append(max(took))
            most = max(most, *took)
    out = {f"router_ms_{name}": spread("ms", worst) for name, worst in found.items()}
    out["neighbour_p99_ratio"] = spread("ratio", ratios)
    return out | {"router_ms_max": Metric(most, "ms", most, most)}


def _write(gateway: sides.Sluice, case: Case) -> None:
    """Writes what the case has beside its image."""
    with Client(gateway.admin, WRITTEN_S) as client:
        for path, body in case.written:
            text = json.dumps(body)
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            answer = client.ask(f"{head}Content-Length: {len(text)}\r\n\r\n{text}".encode())
            if answer.status != CREATED:
                start = answer.body[:200].decode(errors="replace")
                raise InvalidRun(f"{case.name}: {path} is answered {answer.status} {start!r}")


def _ask(setting: Setting, case: Case) -> list[float]:
    """CPU time in the router of each request, in ms; the first is a fresh worker's."""
    admin_address = sides.free_address() if case.written else "off"
    kind = admin.Stored if case.written else sides.Sluice
    gateway, upstream = config_change.sides_of(setting, case, kind, admin=admin_address)
    cost = _longest if case.written else _cost
    took = []
    with upstream, gateway, Client(gateway.address) as client:
        (worker,) = gateway.workers
        time.sleep(STARTED_S)
        _write(gateway, case)
        for number in range(setting.data["asks"]):
            spent, status = cost(client, worker, case.head())
            if status != case.status and (case.status or status == 200 or status > REFUSED):
                raise InvalidRun(f"{case.name}: request {number} is answered {status}")
            took.append(spent)
        floor = min(cost(client, worker, PLAIN)[0] for _ in range(5))
    return [(each - floor) * 1e3 for each in took]


def _cost(client: Client, worker: int, head: bytes) -> tuple[float, int]:
    before = _cpu(worker)
    status = client.ask(head).status
    return _cpu(worker) - before, status


def _longest(client: Client, worker: int, head: bytes) -> tuple[float, int]:
    """The same of the longest turn: between two the worker has nothing to do."""
    clock, status = _clock(worker), []
    thread = threading.Thread(target=lambda: status.append(client.ask(head).status))
    most, first, last = 0, time.clock_gettime_ns(clock), 0
    changed = time.monotonic()
    thread.start()
    while thread.is_alive() or time.monotonic() - changed < SETTLED_S:
        spent, now = time.clock_gettime_ns(clock), time.monotonic()
        if spent != last:
            last, changed = spent, now
            most = max(most, spent - first)
        elif now - changed > IDLE_S:
            first = spent
    thread.join()
    if not status:
        raise InvalidRun("a request is not answered")
    return most / 1e9, status[0]


def _clock(worker: int) -> int:
    return ~worker << 3 | 2  # as clock_getcpuclockid(3) says


def _cpu(worker: int) -> float:
    """CPU time of a process in seconds, once it has none to do."""
    clock = _clock(worker)
    deadline = time.monotonic() + SETTLING_S
    spent = time.clock_gettime_ns(clock)
    while time.monotonic() < deadline:
        time.sleep(SETTLED_S)
        later = time.clock_gettime_ns(clock)
        if later == spent:
            break
        spent = later
    return spent / 1e9
