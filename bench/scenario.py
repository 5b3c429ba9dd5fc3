"""Scenarios: small TOML files that say what to start, what to ask for and what to expect.

`kind` names who measures them: `proxy`, the default, or one of kinds.KINDS, to
whose module the file's other fields are given as they are.

A `proxy` scenario `<name>.toml` has beside it what does the same job by hand:
`<name>.nginx.conf`, the servers of nginx, and `<name>.haproxy.cfg`, the rules of
HAProxy's frontend, with `<name>.haproxy.map` where they look something up (the
rest, common to all scenarios, is in `nginx/` and `haproxy/`); `<name>.envoy.yaml`
and `<name>.caddy` where these take part as well (peers.py). All are templates
of the same two rules:

- `@word@` is replaced: `@upstream@`, `@listen@` and `@sink@` (a server beside the
  upstream, for what Sluice is to send besides) by addresses, `@port@` by the
  upstream's port, `@entries@` by a folder for log files, a repeat's word by its
  number.
- Something is repeated for the numbers 1 to N: in TOML a table with
  `repeat = { host = 100 }` becomes 100 tables; in the others so do the lines
  between `# repeat host 100` and `# end host`. Repeats nest.
"""

from __future__ import annotations

import copy
import json
import random
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

Data: TypeAlias = Any  # what a TOML file can hold

# Python needs longer for a request than what it asks.
MOST_PROBED = 1000

FOLDER = Path(__file__).resolve().parent / "scenarios"

# What a scenario may have of a peer, by the peer's key (peers.py).
PEER_FILES = {"envoy": ".envoy.yaml", "caddy": ".caddy"}

_REPEAT = re.compile(r"^[ \t]*# repeat (\w+) (\d+)\n(.*?)^[ \t]*# end \1\n", re.M | re.S)
_WORD = re.compile(r"@(\w+)@")


class ScenarioError(Exception):
    """A scenario file that cannot be used; the message names it and says why."""


@dataclass(frozen=True)
class Request:
    """One request without a body, as the bytes that go over the wire."""

    path: str
    host: str
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)

    def head(self) -> bytes:
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: {self.host}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


@dataclass(frozen=True)
class Check:
    """A request that only Sluice is asked, beside the load.

    It is sent `times` times; at least one answer has `status` and `headers`,
    and in a fresh gateway the first one has the status `first`.
    """

    name: str
    request: Request
    status: int
    first: int | None
    times: int
    headers: list[str]


@dataclass(frozen=True)
class Described:
    """A scenario of another kind than `proxy`: what its file says, for the module of its kind.

    `bars` are the least that a metric may be, `limits` the most.
    """

    name: str
    kind: str
    title: str
    bars: dict[str, float]
    limits: dict[str, float]
    data: dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """A loaded `proxy` scenario; `sluice` and all hand-written are still templates of addresses.

    `rate`: requests a second by a timetable, instead of as many as are answered. `settings`: those
    of Sluice, by name. `listens`: further addresses of the upstream, without the port. `changed`:
    how many routes Sluice is told of anew once it runs, so that they stand in its delta. `starts`:
    how often all is started anew, whatever time that takes; 0: as often as the run's time allows.
    `secure`: who speaks TLS with the sides, `clients` or the `upstream`; nobody where it is empty.
    `handshake`: each request on a connection of its own, `full` or `resumed`. `streams`: HTTP/2,
    with so many requests at once on each connection; 0: HTTP/1.1.
    """

    kind = "proxy"
    limits: ClassVar[dict[str, float]] = {}

    name: str
    title: str
    bars: dict[str, float]
    body: str
    requests: list[Request]
    checks: list[Check]
    added_upstream: list[str]
    added_response: list[str]
    counted_down: str | None
    sluice: dict[str, Any]
    nginx: str
    haproxy: str
    haproxy_map: str
    peers: dict[str, str]
    rate: int | None
    settings: dict[str, str]
    listens: list[str]
    changed: int
    starts: int
    secure: str
    handshake: str
    streams: int

    @property
    def http2(self) -> bool:
        """Whether clients speak HTTP/2."""
        return self.streams > 0

    @property
    def scheme(self) -> str:
        """What the sides are asked by."""
        return "https" if self.secure == "clients" else "http"

    def probed(self) -> list[Request]:
        """The requests that are looked at in full: all, or so many evenly chosen ones."""
        stride = -(-len(self.requests) // MOST_PROBED)
        return self.requests[::stride]

    def has_sink(self) -> bool:
        """Whether Sluice is to send something elsewhere than to the upstream: logs."""
        return "@sink@" in json.dumps(self.sluice)

    def sluice_file(self, words: dict[str, str]) -> str:
        """Declarative configuration of Sluice for these addresses."""
        return json.dumps(fill(self.sluice, words), indent=2) + "\n"

    def changed_file(self, words: dict[str, str]) -> str | None:
        """The same with another tag on `changed` of its routes, evenly chosen."""
        if not self.changed:
            return None
        filled = copy.deepcopy(fill(self.sluice, words))
        routes = [route for service in filled["services"] for route in service["routes"]]
        for route in routes[:: max(len(routes) // self.changed, 1)][: self.changed]:
            route["tags"] = ["changed"]
        # A running gateway takes 128 MiB at most: a million routes, without white space.
        return json.dumps(filled, separators=(",", ":"))

    def nginx_conf(self, words: dict[str, str]) -> str:
        """Hand-written configuration for these addresses."""
        text: str = fill(self.nginx, words)
        left = unfilled(text)
        if left:
            raise ScenarioError(f"{self.name}.nginx.conf: nothing to put for {left}")
        return text


def names() -> list[str]:
    """All scenarios, in the order of their names."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def describe(name: str, folder: Path = FOLDER) -> Described:
    """What a scenario's file says of itself, nothing repeated yet: quick for a million routes."""
    path = folder / f"{name}.toml"
    if not path.exists():
        raise ScenarioError(f"no scenario {name!r}; there are {', '.join(names())}")
    try:
        data = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path.name}: {error}") from None
    if "title" not in data:
        raise ScenarioError(f"{path.name}: 'title' is missing")
    kind = data.pop("kind", Scenario.kind)
    title, bars, limits = data.pop("title"), data.pop("bars", {}), data.pop("limits", {})
    return Described(name, kind, title, bars, limits, data)


def load(name: str, folder: Path = FOLDER) -> Scenario | Described:
    """Reads a scenario and repeats what is to be repeated."""
    path = folder / f"{name}.toml"
    described = describe(name, folder)
    if described.kind != Scenario.kind:
        return described
    try:
        nginx = path.with_suffix(".nginx.conf").read_text()
        haproxy = path.with_suffix(".haproxy.cfg").read_text()
        haproxy_map = path.with_suffix(".haproxy.map")
    except FileNotFoundError as error:
        lacking = Path(error.filename).name
        raise ScenarioError(f"{path.name}: {lacking} is missing beside it") from None
    data = expand(described.data)
    if data.pop("shuffled", False):
        random.Random(1).shuffle(data.get("requests", []))
    try:
        scenario = Scenario(
            name=name,
            title=described.title,
            bars=described.bars,
            body=data.pop("body"),
            requests=[Request(**request) for request in data.pop("requests")],
            checks=[_check(check) for check in data.pop("checks", [])],
            added_upstream=data.pop("added_upstream", []),
            added_response=data.pop("added_response", []),
            counted_down=data.pop("counted_down", None),
            rate=data.pop("rate", None),
            settings=data.pop("settings", {}),
            listens=[each["address"] for each in data.pop("listens", [])],
            changed=data.pop("changed", 0),
            starts=data.pop("starts", 0),
            secure=data.pop("secure", ""),
            handshake=data.pop("handshake", ""),
            streams=data.pop("streams", 0),
            sluice=data.pop("sluice"),
            nginx=expand_text(nginx),
            haproxy=expand_text(haproxy),
            haproxy_map=expand_text(haproxy_map.read_text()) if haproxy_map.exists() else "",
            peers=_peers(path),
        )
    except KeyError as error:
        raise ScenarioError(f"{path.name}: {error} is missing") from None
    except TypeError as error:
        raise ScenarioError(f"{path.name}: {error}") from None
    if scenario.counted_down and len(scenario.requests) > MOST_PROBED:
        raise ScenarioError(
            f"{path.name}: counted_down needs all of at most {MOST_PROBED} requests"
        )
    if data:
        raise ScenarioError(f"{path.name}: unknown fields: {', '.join(sorted(data))}")
    return scenario


def _peers(path: Path) -> dict[str, str]:
    """What stands beside a scenario's file for peers."""
    files = {key: path.with_suffix(end) for key, end in PEER_FILES.items()}
    return {key: expand_text(file.read_text()) for key, file in files.items() if file.exists()}


def _check(data: dict[str, Any]) -> Check:
    return Check(
        name=data["name"],
        request=Request(**data["request"]),
        status=data["status"],
        first=data.get("first"),
        times=data.get("times", 1),
        headers=data.get("headers", []),
    )


def fill(value: Data, words: dict[str, str]) -> Data:
    """Replaces `@word@` in all strings of a value; words it has no value for stay."""
    if isinstance(value, str):
        return _WORD.sub(lambda found: words.get(found.group(1), found.group()), value)
    if isinstance(value, dict):
        return {key: fill(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, words) for item in value]
    return value


def unfilled(text: str) -> str | None:
    """The first `@word@` still in a text."""
    found = _WORD.search(text)
    return found.group() if found else None


def expand(value: Data) -> Data:
    """Repeats the tables of lists that ask for it, outer ones first."""
    if isinstance(value, dict):
        return {key: expand(item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    out = []
    for item in value:
        repeat = item.get("repeat", {}) if isinstance(item, dict) else {}
        if repeat:
            item = {key: inner for key, inner in item.items() if key != "repeat"}
        copies = [item]
        for word, count in repeat.items():
            copies = [
                fill(copy, {word: str(number)}) for copy in copies for number in range(1, count + 1)
            ]
        out += [expand(copy) for copy in copies]
    return out


def expand_text(text: str) -> str:
    """Repeats the parts of a text between `# repeat word N` and `# end word`."""

    def copies(found: re.Match[str]) -> str:
        word, count, inner = found.group(1), int(found.group(2)), found.group(3)
        return "".join(
            expand_text(fill(inner, {word: str(number)})) for number in range(1, count + 1)
        )

    return _REPEAT.sub(copies, text)
