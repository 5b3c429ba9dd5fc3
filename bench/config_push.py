"""The scenario of pushes: a whole configuration as Kong's ingress controller posts it.

The gateway has no database and no file. A push is `POST /config?check_hash=1&flatten_errors=1` with
all routes in JSON, each with the tags by which the controller knows its object: unchanged, as after
a restart of the controller (304), or with one route changed (201). After each change the worker has
to serve the new route and no longer the old one.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import beside
import load
import sides
import stats
from beside import Beside
from config_change import BODY
from probe import Client
from progress import progress
from report import Metric, metric
from setting import Setting
from verify import InvalidRun

ROUTES_A_SERVICE = 10
ANSWER_TIMEOUT_S = 60
SPACE = uuid.UUID("5f2c1a30-0000-4000-8000-000000000000")


class Cluster:
    """So many routes of services with two pods each, as the controller writes them."""

    def __init__(self, routes: int, target: str) -> None:
        self._services, self._upstreams = [], []
        for first in range(0, routes, ROUTES_A_SERVICE):
            name = f"app-{first}"
            host = f"{name}.default.80.svc"
            tags = _tags(name, "Service", "")
            self._upstreams.append(
                {
                    "name": host,
                    "algorithm": "round-robin",
                    "tags": tags,
                    "targets": [{"target": target, "weight": 100}],
                }
            )
            self._services.append(
                {
                    "id": str(uuid.uuid5(SPACE, name)),
                    "name": f"default.{name}.80",
                    "host": host,
                    "path": "/",
                    "port": 80,
                    "protocol": "http",
                    "connect_timeout": 60000,
                    "read_timeout": 60000,
                    "write_timeout": 60000,
                    "retries": 5,
                    "tags": tags,
                    "routes": [_route(n) for n in range(first, first + ROUTES_A_SERVICE)],
                }
            )

    def push(self, version: int) -> bytes:
        """The request that pushes it with the first route of this version."""
        self._services[0]["routes"][0]["paths"] = [f"/version-{version}/"]
        found = {
            "_format_version": "3.0",
            "services": self._services,
            "upstreams": self._upstreams,
        }
        body = json.dumps(found, separators=(",", ":")).encode()
        head = (
            "POST /config?check_hash=1&flatten_errors=1 HTTP/1.1\r\nHost: localhost\r\n"
            "Accept-Encoding: gzip\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


def _tags(name: str, kind: str, group: str) -> list[str]:
    found = {
        "name": name,
        "namespace": "default",
        "kind": kind,
        "uid": str(uuid.uuid5(SPACE, kind + name)),
        "group": group,
        "version": "v1",
    }
    return [f"k8s-{key}:{value}" for key, value in found.items() if value]


def _route(number: int) -> dict[str, Any]:
    name = f"rule-{number}"
    return {
        "id": str(uuid.uuid5(SPACE, name)),
        "name": f"default.{name}.app.example.80",
        "paths": [f"/{name}/", f"~/{name}$"],
        "protocols": ["http", "https"],
        "https_redirect_status_code": 426,
        "path_handling": "v0",
        "preserve_host": True,
        "regex_priority": 0,
        "request_buffering": True,
        "response_buffering": True,
        "strip_path": False,
        "tags": _tags(name, "Ingress", "networking.k8s.io"),
    }


class Pushed(sides.Sluice):
    """A gateway that has nothing but what is pushed."""

    def environment(self) -> dict[str, str]:
        return super().environment() | {"SLUICE_FILE": "", "SLUICE_DATABASE": "off"}


class Nothing:
    """What it is started with."""

    def sluice_file(self, words: dict[str, str]) -> str:
        """A file that nobody reads."""
        return ""

    def changed_file(self, words: dict[str, str]) -> str | None:
        """Nothing is changed before it is measured."""
        return None


class Pushing(Beside):
    """Pushes to a gateway; beside requests, by a timetable."""

    def __init__(self, gateway: Pushed, routes: int, rate: float) -> None:
        super().__init__(rate)
        self._cluster = Cluster(routes, gateway.upstream)
        self._admin = Client(gateway.admin, ANSWER_TIMEOUT_S)
        self._proxy = Client(gateway.address)
        self.version = 0
        self.change()

    def close(self) -> None:
        """Closes its connections."""
        self._admin.close()
        self._proxy.close()

    def _push(self, request: bytes, expected: int) -> float:
        began = time.monotonic()
        answer = self._admin.ask(request)
        took = time.monotonic() - began
        if answer.status != expected:
            start = answer.body[:200].decode(errors="replace")
            raise InvalidRun(f"a push is answered {answer.status}, not {expected}: {start!r}")
        return took * 1000

    def same(self, count: int) -> list[float]:
        """Milliseconds of so many pushes of what is live."""
        request = self._cluster.push(self.version)
        return [self._push(request, 304) for _ in range(count)]

    def change(self) -> float:
        """Milliseconds until the next version is live."""
        self.version += 1
        took = self._push(self._cluster.push(self.version), 201)
        for version, expected in ((self.version, 200), (self.version - 1, 404)):
            path = f"/version-{version}/"
            got = self._proxy.ask(f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()).status
            if got != expected:
                raise InvalidRun(f"{path} is answered {got}, not {expected}, after the push")
        return took

    def once(self) -> None:
        """One changed push."""
        self.change()


@contextlib.contextmanager
def _pushing(setting: Setting, rate: float) -> Iterator[tuple[Pushed, Pushing]]:
    folder, upstream = setting.fresh(), sides.free_address()
    folder.chmod(0o755)  # workers of a master run by root are somebody else
    gateway = Pushed(
        Nothing(),
        folder / "sluice",
        sides.free_address(),
        upstream,
        None,
        root=setting.root,
        count=setting.data["workers"],
        admin=sides.free_address(),
    )
    with sides.Upstream(folder / "upstream", upstream, None, BODY), gateway:
        with contextlib.closing(Pushing(gateway, setting.data["routes"], rate)) as pushing:
            yield gateway, pushing
        if trouble := gateway.trouble():
            raise InvalidRun(f"{gateway.name} logged: {trouble}")


def measure(setting: Setting) -> dict[str, Metric]:
    """Measures the scenario."""
    data = setting.data
    found: dict[str, list[list[float]]] = {"same": [], "changed": []}
    with _pushing(setting, data["load"].get("rate", 1)) as (gateway, pushing):
        parts = 2 if data["load"] else 1
        for order in [list(found), *setting.rounds(list(found), 0, parts)]:
            for case in order:
                if case == "same":
                    found[case].append(pushing.same(data["posts"]))
                else:
                    found[case].append([pushing.change() for _ in range(data["posts"])])
        out = {
            f"{case}_ms_p{share}": metric("ms", stats.pooled_quantile(rounds[1:], share / 100))
            for case, rounds in found.items()
            for share in (50, 99)
        }
        if data["load"]:
            out |= _under_load(setting, gateway, pushing)
    progress("")
    return out


def _under_load(setting: Setting, gateway: Pushed, pushing: Pushing) -> dict[str, Metric]:
    data = setting.data["load"]
    found: dict[str, list[load.Slice]] = {"alone": [], "pushed": []}
    requests = gateway.folder / "requests"
    requests.write_text("GET /rule-1/ HTTP/1.1\r\nHost: bench\r\n\r\n")
    beside.requests(gateway, requests, data, "pushes")  # warm-up
    spent_ms: list[float] = []
    for order in stats.orders(list(found), data["rounds"]):
        for case in order:
            progress(f"{setting.name}: requests, {case}")
            before, began_ns = pushing.version, load.schedstat(gateway.control)[0]
            quiet = contextlib.nullcontext()
            with pushing.at_work() if case == "pushed" else quiet:
                found[case].append(beside.requests(gateway, requests, data, "pushes"))
            if case == "alone":
                continue
            made = pushing.version - before
            if made < data["rate"] * data["seconds"] / 2:
                raise InvalidRun(f"{made} pushes were made in {data['seconds']} s")
            spent_ms.append((load.schedstat(gateway.control)[0] - began_ns) / made / 1e6)
    return beside.noticed(found["pushed"], found["alone"]) | {
        "push_cpu_ms": metric("ms", stats.level(spent_ms))
    }
