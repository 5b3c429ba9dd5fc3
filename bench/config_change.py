"""The scenario of configuration changes: posted to the admin listener, live on every worker.

A configuration of version N has a route `/version-N`. After `POST /config?wait=1`
is answered, each worker is asked over a connection of its own, and has to know
version N and no longer N - 1. So the time until the answer is one in which
every worker has come to serve the new version.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import load
import sides
import stats
from probe import Client
from report import Metric, metric
from setting import Setting
from verify import InvalidRun

ROUTES_A_SERVICE = 10
BODY = '{"message":"hello from upstream"}'
CONNECTS = 500  # attempts at a connection to each worker


@dataclass(frozen=True)
class Routes:
    """A configuration with so many routes by path, one of them the version's."""

    count: int
    version: int

    def sluice_file(self, words: dict[str, str]) -> str:
        """The declarative file."""
        paths = [f"/version-{self.version}", *(f"/route-{n}" for n in range(1, self.count))]
        services = [
            {
                "name": f"service-{first}",
                "url": f"http://{words['upstream']}",
                "routes": [
                    {"name": path[1:], "paths": [path]}
                    for path in paths[first : first + ROUTES_A_SERVICE]
                ],
            }
            for first in range(0, len(paths), ROUTES_A_SERVICE)
        ]
        return json.dumps({"_format_version": "3.0", "services": services})

    def changed_file(self, words: dict[str, str]) -> str | None:
        """Nothing is changed before it is measured."""
        return None


class Changing:
    """A gateway that gets one configuration after the other."""

    def __init__(self, gateway: sides.Sluice, upstream: str) -> None:
        self.gateway = gateway
        self._words = {"upstream": upstream}
        self._admin = Client(gateway.admin, 30)
        self._each = _client_of_each_worker(gateway)
        self._version = 0

    def close(self) -> None:
        """Closes its connections."""
        for client in (self._admin, *self._each):
            client.close()

    def change(self, routes: int) -> float:
        """Posts the next version; seconds until all workers were said to serve it."""
        self._version += 1
        body = Routes(routes, self._version).sluice_file(self._words).encode()
        head = (
            "POST /config?wait=1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        began = time.monotonic()
        answer = self._admin.ask(head.encode() + body)
        took = time.monotonic() - began
        if answer.status != 201:
            start = answer.body[:200].decode(errors="replace")
            raise InvalidRun(f"POST /config was answered with {answer.status} {start!r}")
        for client in self._each:
            for version, expected in ((self._version, 200), (self._version - 1, 404)):
                got = client.ask(_get(f"/version-{version}")).status
                if got != expected:
                    raise InvalidRun(
                        f"a worker answers for version {version} with {got} instead of {expected} "
                        f"when version {self._version} is said to be live"
                    )
        return took


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()


def _client_of_each_worker(gateway: sides.Sluice) -> list[Client]:
    """A connection to each worker, found by the sockets that the workers have open."""
    found: dict[int, Client] = {}
    for _ in range(CONNECTS):
        client = Client(gateway.address)
        client.ask(_get("/version-0"))
        worker = _worker_of(gateway, client.own_port)
        if worker in found or worker is None:
            client.close()
        else:
            found[worker] = client
        if len(found) == gateway.count:
            return list(found.values())
    raise InvalidRun(f"connections reach only {len(found)} of {gateway.count} workers")


def _worker_of(gateway: sides.Sluice, port: int) -> int | None:
    local = f":{int(gateway.address.rpartition(':')[2]):04X}"
    remote = f":{port:04X}"
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1].endswith(local) and fields[2].endswith(remote):
            wanted = f"socket:[{fields[9]}]"
            break
    else:
        return None
    for pid in gateway.workers:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if str(descriptor.readlink()) == wanted:
                    return pid
    return None


G = TypeVar("G", bound=sides.Sluice)


def sides_of(
    setting: Setting,
    routes: int | sides.Declared,
    kind: type[G],
    *,
    admin: str = "off",
    settings: dict[str, str] | None = None,
) -> tuple[G, sides.Upstream]:
    """A gateway with so many routes, or these, and its upstream, neither started yet."""
    folder, upstream = setting.fresh(), sides.free_address()
    folder.chmod(0o755)  # workers of a master run by root are somebody else
    gateway = kind(
        Routes(routes, 0) if isinstance(routes, int) else routes,
        folder / "sluice",
        sides.free_address(),
        upstream,
        None,
        root=setting.root,
        count=setting.data["workers"],
        admin=admin,
        settings=settings,
    )
    return gateway, sides.Upstream(folder / "upstream", upstream, None, BODY)


@contextlib.contextmanager
def _changing(setting: Setting, routes: int) -> Iterator[Changing]:
    gateway, upstream = sides_of(setting, routes, sides.Sluice, admin=sides.free_address())
    with upstream, gateway:
        changing = Changing(gateway, gateway.upstream)
        try:
            yield changing
        finally:
            changing.close()
        if trouble := gateway.trouble():
            raise InvalidRun(f"{gateway.name} logged: {trouble}")


def measure(setting: Setting) -> dict[str, Metric]:
    """Measures the scenario."""
    out = _live(setting)
    if setting.data["load"]:
        out |= _under_load(setting, setting.data["load"])
    return out


def _live(setting: Setting) -> dict[str, Metric]:
    sizes = {f"{routes}": routes for routes in setting.data["routes"]}
    found: dict[str, list[list[float]]] = {name: [] for name in sizes}
    cpu: dict[str, list[float]] = {name: [] for name in sizes}
    posts = setting.data["posts"]
    with _changing(setting, 10) as changing:
        for routes in sizes.values():
            for _ in range(posts):
                changing.change(routes)  # warm-up
        for order in setting.rounds(list(sizes), 0, 1):
            for name in order:
                before, _ = load.schedstats(changing.gateway.workers)
                found[name].append([changing.change(sizes[name]) * 1e3 for _ in range(posts)])
                after, _ = load.schedstats(changing.gateway.workers)
                cpu[name].append((after - before) / posts / 1e6)
    out = {}
    for name, rounds in found.items():
        for share in (50, 99):
            estimate = stats.pooled_quantile(rounds, share / 100)
            out[f"live_ms_p{share}_{name}"] = metric("ms", estimate)
        out[f"cpu_ms_{name}"] = metric("ms", stats.level(cpu[name]))
    return out


def _under_load(setting: Setting, wanted: dict[str, Any]) -> dict[str, Metric]:
    found: dict[str, list[load.Slice]] = {"still": [], "changing": []}
    with _changing(setting, wanted["routes"]) as changing:
        requests = changing.gateway.folder / "requests"
        requests.write_bytes(_get("/route-1"))
        for case in found:
            _slice(changing, requests, case, wanted)  # warm-up
        for order in stats.orders(list(found), wanted["rounds"]):
            for case in order:
                found[case].append(_slice(changing, requests, case, wanted))
    rps = {case: [slice_.rps for slice_ in slices] for case, slices in found.items()}
    p99 = {case: [slice_.p99_ms for slice_ in slices] for case, slices in found.items()}
    return {
        "rps_share_10hz": metric("ratio", stats.ratio(rps["changing"], rps["still"])),
        "p99_ratio_10hz": metric("ratio", stats.ratio(p99["changing"], p99["still"])),
    }


def _slice(changing: Changing, requests: Path, case: str, wanted: dict[str, Any]) -> load.Slice:
    over = threading.Event()
    failed: list[BaseException] = []

    def post() -> None:
        first = time.monotonic()
        for number in itertools.count():
            if over.wait(max(0, first + number / wanted["rate"] - time.monotonic())):
                return
            try:
                changing.change(wanted["routes"])
            except Exception as error:
                failed.append(error)
                return

    thread = threading.Thread(target=post) if case == "changing" else None
    if thread:
        thread.start()
    gateway = changing.gateway
    try:
        slice_ = load.run(
            gateway.address,
            requests,
            gateway.workers,
            None,
            wanted["connections"],
            wanted["seconds"],
        )
    finally:
        over.set()
        if thread:
            thread.join()
    if failed:
        raise failed[0]
    if errors := slice_.report.errors():
        raise InvalidRun(f"requests, {case}: {errors}")
    return slice_
