"""What configurations and requests are drawn of, where what nginx decides is compared with what the
judge does (test_decisions_random.py); for test/plugins/*/decisions.py.
"""

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from admin_client import Client, uuid
from log_server import LogServer

from certificates import Pair
from upstream import Request
from wire import Reply, chunk

Heads = list[tuple[str, str]]
Config = dict[str, Any]

WORDS = ["a", "b", "X-Close", "x_close", "Googlebot", "bot/1", "curl/8", "Spider", "%41", "", "="]
TARGETS = ["a", "b/c", "%41", "~", "'\"", "X-Close", "x-close=1", "a=1&b", "?", "%25", "{}"]
ADDRESSES = ["127.0.0.1", "10.1.2.3", "10.1.2.4", "11.0.0.1", "::1", "2001:db8::1", "2001:db9::"]
GROUPS = ["g1", "g2", "g3"]
SECRET = "a secret that is long enough for an HMAC, that of SHA-512 too: 64 bytes"

# Their names, their groups; "ghost" is the anonymous one.
PEOPLE = {"alice": ["g1"], "bob": ["g2", "g3"], "carol": [], "ghost": ["g3"]}
IDS = {name: uuid(number) for number, name in enumerate(PEOPLE, 1)}
CUSTOM_IDS = {"alice": "number 1", "ghost": "nobody's"}

# What a client says in the gateway's name: none of it counts.
LIES = [
    ("X-Consumer-Username", "root"),
    ("x_consumer_id", "1"),
    ("X-Credential-Identifier", "root"),
    ("X-Anonymous-Consumer", "true"),
    ("X-Client-Cert-DN", "CN=root"),
]


@dataclass
class World:
    """What there is beside the plugins."""

    client: Client
    """Of the Admin API."""
    folder: Path
    """Where nginx may write."""
    log: LogServer
    credentials: dict[tuple[str, str], str] = field(default_factory=dict)
    """By plugin and consumer the id of his first credential."""
    route: int = 0
    """The number of the route whose configuration is drawn."""
    nth: int = 0
    """How many configurations of the plugin there are already: what is to occur is not left to
    chance."""


@dataclass
class Handshake:
    """Of a request by TLS: the server's name, and the client's certificate."""

    name: str | None
    pair: Pair | None


@dataclass
class Case:
    """A request, and what it is asked of."""

    number: int
    route: int
    plugin: str
    config: Config
    query: str
    headers: Heads
    address: str
    method: str = "GET"
    body: bytes | None = None
    is_chunked: bool = False
    handshake: Handshake | None = None
    who: str | None = None
    """Whose key another plugin has found: of a plugin that asks who it is."""
    credential: str | None = None
    """The id of that key."""
    groups: list[str] | None = None
    """Those that a plugin in Lua has authenticated."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What the plugin's own decisions.py remembers of it."""

    @property
    def path(self) -> str:
        """As the client asks for it."""
        return f"/{self.route}/a"

    @property
    def target(self) -> str:
        """The path with its query."""
        return self.path + ("?" + self.query if self.query else "")

    @property
    def sent_headers(self) -> Heads:
        """With those that frame a body, as the client sends them."""
        if self.body is None:
            return self.headers
        if self.is_chunked:
            return [*self.headers, ("Transfer-Encoding", "chunked")]
        return [*self.headers, ("Content-Length", str(len(self.body)))]

    @property
    def sent_body(self) -> bytes | None:
        """As the client sends it."""
        if self.body is None or not self.is_chunked:
            return self.body
        return (chunk(self.body) if self.body else b"") + chunk(b"")

    def __str__(self) -> str:
        config = {name: value for name, value in self.config.items() if value is not None}
        config.pop("redis", None)
        lines = [f"{self.plugin} {config}", f"{self.method} {self.target} {self.headers}"]
        lines.append(f"body {self.body!r}, {self.handshake}, {self.who}, {self.groups}")
        return "\n  ".join([*lines, f"{self.notes}"])

    @property
    def identity(self) -> Heads:
        """What a plugin before has put of whose key it is."""
        last = ("X-Credential-Identifier", self.credential)
        values = [
            ("X-Consumer-ID", IDS[self.who or ""]),
            ("X-Consumer-Custom-ID", CUSTOM_IDS.get(self.who or "")),
            ("X-Consumer-Username", self.who),
            last if self.credential else ("X-Anonymous-Consumer", "true"),
        ]
        return [(name, value) for name, value in values if value]

    def header(self, name: str) -> list[str]:
        """What its lines say."""
        return [value for one, value in self.headers if one.lower() == name.lower()]

    def given(self, now: int) -> dict[str, Any]:
        """The same without nginx."""
        known = [pair for pair in self.sent_headers if pair not in LIES]
        known += self.identity if self.who else []
        handshake = self.handshake or Handshake(None, None)
        return {
            "method": self.method,
            "scheme": "https" if self.handshake else "http",
            "host": self.header("Host")[0],
            "path": self.path,
            "query": self.query or False,
            "address": self.address,
            "server_name": handshake.name or False,
            "service": "8 bytes.",
            "headers": [text for pair in known for text in pair],
            "body": self.body.decode() if self.body else False,
            "consumer": IDS[self.who] if self.who else False,
            "credential": self.credential or False,
            "acls": PEOPLE.get(self.who or "", []),
            "authenticated_groups": False if self.groups is None else self.groups,
            "now": now,
            "head": True,
        }


@dataclass
class Seen:
    """What nginx has done of a case."""

    reply: Reply
    request: Request | None
    """That the upstream has got."""
    now: int
    """When it was asked."""


@dataclass
class Done:
    """A case with all that has come of it."""

    case: Case
    seen: Seen
    answer: dict[str, Any]
    """The judge's last one (test/unit/support/judge.lua)."""


def some(draw: random.Random, values: list[str], least: int = 0) -> list[str]:
    """A few of them."""
    return draw.choices(values, k=draw.randint(least, 3))


def flag(draw: random.Random) -> bool:
    """One of the two."""
    return draw.random() < 0.5


def somebody(draw: random.Random) -> str:
    """A name that somebody has, or nobody."""
    return draw.choice([*PEOPLE, "nobody"])


def authenticator(draw: random.Random, world: World) -> Config:
    """What all of them have."""
    config = [{}, {"anonymous": "ghost"}, {}, {"anonymous": IDS["ghost"]}][world.nth % 4]
    return config | {"realm": draw.choice(["here", 'a "b"']), "hide_credentials": flag(draw)}


def known(draw: random.Random, case: Case, world: World) -> None:
    """Somebody's key for key-auth, or nobody's: who then is anonymous (NAMED)."""
    case.who = draw.choice([*PEOPLE])
    if case.who != "ghost":
        case.headers.append(("apikey", f"{case.who}-key"))
        case.credential = world.credentials["key-auth", case.who]


# The plugin beside one that asks who it is.
NAMED = {"name": "key-auth", "config": {"anonymous": "ghost"}}


def post(draw: random.Random, case: Case, fields: list[tuple[str, str]]) -> None:
    """Fields in a body, in one of the three forms, or in another that nobody reads."""
    case.method = "POST"
    kind = draw.choice(["form", "json", "multipart", "text"])
    if kind == "json":
        text, form = json.dumps(dict(fields)), "application/json"
    elif kind == "multipart":
        form = "multipart/form-data; boundary=xx"
        lines = [
            f'--xx\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields
        ]
        text = "".join(lines) + "--xx--\r\n"
    else:
        text = "&".join(f"{name}={value}" for name, value in fields)
        form = "application/x-www-form-urlencoded" if kind == "form" else "text/plain"
    case.headers.append(("Content-Type", form))
    case.body = text.encode()
    case.is_chunked = draw.random() < 0.3


def draw_case(draw: random.Random, number: int, route: int, plugin: str, config: Config) -> Case:
    """A request that has nothing yet of what the plugin asks for."""
    query = draw.choice(["", "&".join(some(draw, TARGETS))])
    address = draw.choice(ADDRESSES)
    headers = [("Accept", "application/json"), ("Host", "h"), ("X-Forwarded-For", address)]
    headers.append(("X-Case", str(number)))
    for name in some(draw, ["User-Agent", "user-agent", "X-Close", "X_Close", "x-closed"]):
        headers.append((name, draw.choice(WORDS)))
    headers += draw.choices(LIES, k=draw.choice([0, 0, 1, 2]))
    return Case(number, route, plugin, config, query, headers, address)


def near(found: dict[str, Any], wanted: dict[str, Any], names: list[str], most: int) -> None:
    """Makes numbers in headers of the response equal that differ by at most that."""
    numbers = dict(wanted["headers"])
    for at, (name, value) in enumerate(found["headers"]):
        if name in names and abs(int(value) - int(numbers.get(name, "-99"))) <= most:
            found["headers"][at] = (name, numbers[name])
