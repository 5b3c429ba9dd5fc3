"""Scenarios of the Admin API: entities written and listed over HTTP, as its clients do.

The store is the truth (no file). A PUT changes the second path of a route. `admin-write`: one after
another, beside bare commits of the row in the control worker (`lua/plugins/bench-store`).
`admin-bulk`: clients at the same time, each with a connection and a route of its own.
`admin-under-load`: what requests notice of paced writes. `admin-refused`: writes beside large files
that are refused. `admin-list`: first page and last page.
"""

from __future__ import annotations

import contextlib
import json
import random
import selectors
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import Any

import beside
import load
import sides
import stats
from beside import Beside
from ordered import Ordered, changed, with_plugin
from probe import Client, split_address
from progress import progress
from report import Metric, metric
from setting import Setting
from verify import InvalidRun

RECEIVE_BYTES = 65536
ANSWER_TIMEOUT_S = 30
# Of the writes that were to be made; a machine that is too busy makes fewer.
FEWEST_DONE = 0.9
PAGE = 1000


class Stored(Ordered):
    """A gateway that serves its store, which has what the declared file says."""

    def write(self) -> None:
        super().write()
        command = [*self.program, "import", str(self.folder / "sluice.json")]
        done = subprocess.run(
            command, env=self.environment(), cwd=self.folder, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise sides.StartError(f"{self.name} did not import: {done.stderr.strip()}")

    def environment(self) -> dict[str, str]:
        return super().environment() | {"SLUICE_FILE": ""}


@dataclass(frozen=True)
class Route:
    """What a PUT of a route has to say again."""

    id: str
    name: str
    service: str

    def put(self, number: int) -> bytes:
        """The request that makes it the change of this number."""
        body = json.dumps(
            {
                "name": self.name,
                "paths": [f"/{self.name}", f"/changed-{number}"],
                "service": {"id": self.service},
            }
        )
        return (
            f"PUT /routes/{self.id} HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        ).encode()


def _get(client: Client, path: str) -> dict[str, Any]:
    answer = client.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    if answer.status != 200:
        raise InvalidRun(f"{path} is answered {answer.status}")
    found: dict[str, Any] = json.loads(answer.body)
    return found


def _route(client: Client, number: int) -> Route:
    found = _get(client, f"/routes/route-{number}")
    return Route(found["id"], found["name"], found["service"]["id"])


def _put(client: Client, route: Route, number: int) -> float:
    """Milliseconds until it is live on every worker."""
    request = route.put(number)
    began = time.monotonic()
    answer = client.ask(request)
    took = time.monotonic() - began
    if answer.status != 200:
        raise InvalidRun(f"a PUT is answered {answer.status}: {answer.body[:200]!r}")
    return took * 1000


def write(setting: Setting) -> dict[str, Metric]:
    """Measures one PUT beside a bare commit."""
    data = setting.data
    found: dict[str, list[list[float]]] = {"put": [], "commit": []}
    with (
        changed(setting, data["routes"], Stored, with_plugin("bench-store")) as gateway,
        Client(gateway.admin, ANSWER_TIMEOUT_S) as client,
    ):
        route, number = _route(client, 1), 0
        for order in [list(found), *setting.rounds(list(found), 0, 1)]:
            for case in order:
                progress(f"{setting.name}: {case}")
                if case == "commit":
                    found[case].append(gateway.order(case, data["changes"]))
                    continue
                took = []
                for _ in range(data["changes"]):
                    number += 1
                    took.append(_put(client, route, number))
                found[case].append(took)
    progress("")
    found = {case: rounds[1:] for case, rounds in found.items()}  # without the warm-up
    medians = [
        stats.quantile(sorted(put), 0.5) - stats.quantile(sorted(bare), 0.5)
        for put, bare in zip(found["put"], found["commit"], strict=True)
    ]
    return {
        f"{case}_ms_p{share}": metric("ms", stats.pooled_quantile(rounds, share / 100))
        for case, rounds in found.items()
        for share in (50, 99)
    } | {"put_minus_commit_ms_p50": metric("ms", stats.mean(medians))}


class Writer:
    """One connection that writes its route again and again, a request at a time."""

    def __init__(self, address: str, route: Route, first: int) -> None:
        self.socket = socket.create_connection(split_address(address), ANSWER_TIMEOUT_S)
        self.route = route
        self.done = 0
        self._number = first
        self._answer = b""

    def send(self) -> None:
        """The next request."""
        self._number += 1
        self.socket.sendall(self.route.put(self._number))

    def receive(self) -> bool:
        """Takes what has come; whether that is the whole answer."""
        part = self.socket.recv(RECEIVE_BYTES)
        if not part:
            raise InvalidRun("the admin listener closed a connection")
        self._answer += part
        head, end, body = self._answer.partition(b"\r\n\r\n")
        if not end:
            return False
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        if len(body) < length:
            return False
        if not head.startswith(b"HTTP/1.1 200 "):
            raise InvalidRun(f"a PUT is answered {self._answer[:300]!r}")
        self._answer = b""
        self.done += 1
        return True


def _write_all(writers: list[Writer], seconds: float) -> float:
    """Lets them write for so long; writes a second."""
    began = time.monotonic()
    ends = began + seconds
    before = sum(writer.done for writer in writers)
    with selectors.DefaultSelector() as selector:
        for writer in writers:
            selector.register(writer.socket, selectors.EVENT_READ, writer)
            writer.send()
        busy = len(writers)
        while busy:
            ready = selector.select(ANSWER_TIMEOUT_S)
            if not ready:
                raise InvalidRun("a PUT is not answered")
            for key, _ in ready:
                if not key.data.receive():
                    continue
                if time.monotonic() < ends:
                    key.data.send()
                else:
                    busy -= 1
    return (sum(writer.done for writer in writers) - before) / (time.monotonic() - began)


def bulk(setting: Setting) -> dict[str, Metric]:
    """Measures writes by clients at the same time."""
    data = setting.data
    clients: int = data["clients"]
    found: list[float] = []
    with changed(setting, data["routes"], Stored, {}) as gateway:
        with Client(gateway.admin, ANSWER_TIMEOUT_S) as client:
            routes = [_route(client, number + 1) for number in range(clients)]
        writers = [Writer(gateway.admin, route, 1000 * n) for n, route in enumerate(routes)]
        _write_all(writers, data["seconds"])  # warm-up
        for _ in setting.rounds(["puts"], 0, 1):
            found.append(_write_all(writers, data["seconds"]))
        for writer in writers:
            writer.socket.close()
    progress("")
    return {"puts_per_s": metric("1/s", stats.level(found))}


class Paced(Beside):
    """Writes routes at a fixed rate as long as it is entered."""

    def __init__(self, client: Client, rate: float, routes: list[Route]) -> None:
        super().__init__(rate)
        self.done = 0
        self._client, self._routes = client, routes

    def once(self) -> None:
        """One write."""
        _put(self._client, self._routes[self.done % len(self._routes)], self.done)
        self.done += 1


def under_load(setting: Setting) -> dict[str, Metric]:
    """Measures what requests notice of writes."""
    data = setting.data
    routes, rate, seconds = data["routes"], data["rate"], data["seconds"]
    found: dict[str, list[load.Slice]] = {"alone": [], "written": []}
    spent_us: list[float] = []
    some = random.Random(1).sample(range(1, routes), k=min(routes - 1, 1000))
    with (
        changed(setting, routes, Stored, {}) as gateway,
        Client(gateway.admin, ANSWER_TIMEOUT_S) as client,
    ):
        requests = gateway.folder / "requests"
        heads = (f"GET /route-{n} HTTP/1.1\r\nHost: bench\r\n\r\n" for n in some)
        requests.write_text("".join(heads))
        paced = Paced(client, rate, [_route(client, n) for n in some[:100]])
        beside.requests(gateway, requests, data, "writes")  # warm-up
        for order in setting.rounds(list(found), 0, 1):
            for name in order:
                progress(f"{setting.name}: {name}")
                before, began_ns = paced.done, load.schedstat(gateway.control)[0]
                quiet = contextlib.nullcontext()
                with paced.at_work() if name == "written" else quiet:
                    found[name].append(beside.requests(gateway, requests, data, "writes"))
                if name == "alone":
                    continue
                made = paced.done - before
                if made < rate * seconds * FEWEST_DONE:
                    raise InvalidRun(f"{made} writes were made of {rate * seconds}")
                spent_us.append((load.schedstat(gateway.control)[0] - began_ns) / made / 1e3)
    progress("")
    return beside.noticed(found["written"], found["alone"]) | {
        "write_cpu_us": metric("us", stats.level(spent_us))
    }


class Refused(Beside):
    """Posts a large file that is wrong at its end, again and again, as long as it is entered."""

    def __init__(self, client: Client, megabytes: int) -> None:
        super().__init__(1)
        self.done = 0
        service = json.dumps(
            {"name": "service-%08d", "host": "127.0.0.1", "tags": ["some", "more"]}
        )
        services = ",".join(service % n for n in range(megabytes * 1_000_000 // len(service)))
        route = '{"paths":["/"],"service":{"name":"nobody"}}'
        body = f'{{"_format_version":"3.0","services":[{services}],"routes":[{route}]}}'
        self._client = client
        self._request = (
            "POST /config HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        ).encode()

    def once(self) -> None:
        """One file."""
        answer = self._client.ask(self._request)
        if answer.status != 400 or b"nobody" not in answer.body:
            raise InvalidRun(f"the file is answered {answer.status}: {answer.body[:200]!r}")
        self.done += 1


def refused(setting: Setting) -> dict[str, Metric]:
    """Measures writes beside large files that are refused."""
    data = setting.data
    found: dict[str, list[list[float]]] = {"alone": [], "beside": []}
    with (
        changed(setting, data["routes"], Stored, {}) as gateway,
        Client(gateway.admin, ANSWER_TIMEOUT_S) as client,
        Client(gateway.admin, data["check_s"]) as other,
    ):
        route, files, number = _route(client, 1), Refused(other, data["megabytes"]), 0
        for order in [list(found), *setting.rounds(list(found), 0, 1)]:
            for case in order:
                progress(f"{setting.name}: {case}")
                before, took = files.done, []
                with files.at_work() if case == "beside" else contextlib.nullcontext():
                    ends = time.monotonic() + data["seconds"]
                    while time.monotonic() < ends or (case == "beside" and files.done == before):
                        number += 1
                        took.append(_put(client, route, number))
                found[case].append(took)
    progress("")
    found = {case: rounds[1:] for case, rounds in found.items()}  # without the warm-up
    longest = [max(took) for took in found["beside"]]
    return {
        f"write_ms_p{share}_{case}": metric("ms", stats.pooled_quantile(rounds, share / 100))
        for case, rounds in found.items()
        for share in (50, 99)
    } | {"write_ms_max": metric("ms", stats.level(longest))}


@dataclass(frozen=True)
class Consumers:
    """A configuration with so many consumers and nothing else."""

    count: int

    def sluice_file(self, words: dict[str, str]) -> str:
        """The declarative file."""
        consumers = [{"username": f"consumer-{number}"} for number in range(self.count)]
        return json.dumps({"_format_version": "3.0", "consumers": consumers})

    def changed_file(self, words: dict[str, str]) -> str | None:
        """Nothing is changed before it is measured."""
        return None


def listed(setting: Setting) -> dict[str, Metric]:
    """Measures the first and the last page of a long list."""
    data = setting.data
    folder = setting.fresh()
    folder.chmod(0o755)  # workers of a master run by root are somebody else
    gateway = Stored(
        Consumers(data["consumers"]),
        folder / "sluice",
        sides.free_address(),
        sides.free_address(),
        None,
        root=setting.root,
        count=data["workers"],
        admin=sides.free_address(),
    )
    found: dict[str, list[float]] = {"first": [], "last": []}
    with gateway, Client(gateway.admin, ANSWER_TIMEOUT_S) as client:
        pages = {"first": f"/consumers?size={PAGE}", "last": _last_page(client, data["consumers"])}
        for order in [list(found), *setting.rounds(list(found), 0, 1)]:
            for name in order:
                began = time.monotonic()
                if len(_get(client, pages[name])["data"]) != PAGE:
                    raise InvalidRun(f"the {name} page is not full")
                found[name].append((time.monotonic() - began) * 1000)
        if trouble := gateway.trouble():
            raise InvalidRun(f"{gateway.name} logged: {trouble}")
    progress("")
    found = {name: values[1:] for name, values in found.items()}  # without the warm-up
    return {f"{name}_ms": metric("ms", stats.level(values)) for name, values in found.items()} | {
        "page_ratio": metric("ratio", stats.ratio(found["last"], found["first"]))
    }


def _last_page(client: Client, count: int) -> str:
    path, number = f"/consumers?size={PAGE}", 1
    while True:
        found = _get(client, path)
        following = found.get("next")
        if not following:
            break
        path, number = following, number + 1
        progress(f"page {number}")
    if number * PAGE != count:
        raise InvalidRun(f"{number} pages of {PAGE} for {count} consumers")
    return path


MEASURES = {
    "admin-write": write,
    "admin-bulk": bulk,
    "admin-under-load": under_load,
    "admin-refused": refused,
    "admin-list": listed,
}
