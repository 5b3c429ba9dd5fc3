"""The scenario of plugins: what each costs a request, beside the same route without it.

One gateway has two routes for each plugin that there is, `/a/NAME` without and `/b/NAME` with it;
slices of load on both alternate, with the same request. CPU time is that of all processes of the
instance. Where hand-written nginx or HAProxy can do the same in a line or two, its ratio stands
beside.

What each plugin is measured with stands with its tests, in test/plugins/<name>/cost.toml: tables as
`[plugins.NAME]`, or `left_out` and why. The scenario's file has what several do together. Plugins
are found by listing their folders, so that one without such a file fails the run.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import hashlib
import hmac
import json
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import load
import proxy
import sides
import stats
from probe import Client
from progress import progress
from report import Metric, metric
from scenario import ScenarioError, fill
from setting import Setting
from verify import InvalidRun

from processes import children

HOST = "api.example.com"
BODY = '{"message":"hello from upstream"}'
# What stands for the sides in paths.
WITHOUT, WITH = "a", "b"
# A measured name that ends so is that of hand-written nginx, or HAProxy.
NGINX = "_nginx"
HAPROXY = "_haproxy"
# Of several ways to use one plugin, the metric of the plugin is the worst.
WAYS = "@"

# For ip-restriction; clients are in none of them.
RANGES = [f"10.{n >> 8}.{n & 255}.0/24" for n in range(65536)]

SERVER = """server {{
    listen @listen@;
    server_name {host};
{locations}}}
"""
LOCATION = """    location /{side}/{word} {{
        include forwarded.conf;
        proxy_set_header X-Forwarded-Prefix /{side}/{word};
        {lines}
        proxy_pass http://backend/;
    }}
"""


@dataclasses.dataclass(frozen=True)
class Subject:
    """A plugin, or several together, and how they are used.

    `name` may have a way behind the plugin: `jwt@rs256`. `plugins` are those of the route with
    them, `both` those of both routes. `headers` come with each request, answered by `status` and
    a header `adds`; without them the answer is `refuses`. `nginx` are lines of a location that do
    the same, `nginx_http` those around it, and `haproxy` rules of a frontend, `@on@` being the
    condition that a request is for the route.
    """

    name: str
    plugins: list[dict[str, Any]]
    both: list[dict[str, Any]]
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    status: int = 200
    adds: str = ""
    refuses: int = 0
    nginx: str = ""
    nginx_http: str = ""
    haproxy: str = ""

    @property
    def word(self) -> str:
        """Its name in paths and names of routes."""
        return self.name.replace(WAYS, "-")

    def head(self, side: str, bare: bool = False) -> bytes:
        """A request for a side; `bare`: without what it asks for."""
        lines = [f"GET /{side}/{self.word} HTTP/1.1", f"Host: {HOST}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items() if not bare]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")

    def route(self, side: str) -> dict[str, Any]:
        """The gateway's route for a side."""
        plugins = [*self.both, *(self.plugins if side == WITH else [])]
        path = f"/{side}/{self.word}"
        return {"name": f"{side}-{self.word}", "paths": [path], "plugins": plugins}

    def rules(self) -> str:
        """The same for hand-written HAProxy, of the side with it."""
        on = f"{{ path -m beg /{WITH}/{self.word} }}"
        return fill(self.haproxy, {"on": on})

    def location(self, side: str) -> str:
        """The same for hand-written nginx."""
        lines = self.nginx if side == WITH else ""
        return LOCATION.format(side=side, word=self.word, lines=lines)


def native(root: Path) -> set[str]:
    """The plugins in C that a checkout has."""
    return {path.parent.name for path in (root / "plugins").glob("*/ngx_http_sluice_*.c")}


def described(data: dict[str, Any]) -> dict[str, Any]:
    """The scenario with what the plugins' folders say: `plugins`, and of others `left_out`.

    What has `left_out` already is whole.
    """
    if "left_out" in data:
        return data
    plugins, left_out = dict(data["plugins"]), {}
    for path in sorted((sides.ROOT / "test" / "plugins").glob("*/cost.toml")):
        found = tomllib.loads(path.read_text())
        plugins |= found.get("plugins", {})
        if "left_out" in found:
            left_out[path.parent.name] = found["left_out"]
    return data | {"plugins": plugins, "left_out": left_out}


def subjects(data: dict[str, Any], there: set[str]) -> list[Subject]:
    """What can be measured of what the file describes; fails if nothing says how for a plugin."""
    found, described = [], set(data["left_out"])
    for name, fields in data["plugins"].items():
        own = name.partition(WAYS)[0]
        described.add(own)
        config = fields.get("config", {}) | {
            field: RANGES[:count] for field, count in fields.get("ranges", {}).items()
        }
        plugins = fields.get("together") or [{"name": own, "config": config}]
        both = fields.get("both", [])
        if {plugin["name"] for plugin in [*plugins, *both]} <= there:
            rest = {
                field: value
                for field, value in fields.items()
                if field not in ("both", "config", "ranges", "together")
            }
            found.append(Subject(name, plugins, both, **rest))
    if missing := there - described:
        names = ", ".join(sorted(missing))
        raise ScenarioError(f"no cost.toml says how to measure {names}")
    return found


class Configuration:
    """That of the gateway, two routes a subject, and those of nginx and HAProxy where they can."""

    scheme = "http"
    secure = ""
    http2 = False
    haproxy_map = ""

    def __init__(self, subjects: list[Subject], consumers: list[Any]) -> None:
        self._subjects = subjects
        self._consumers = consumers

    def sluice_file(self, words: dict[str, str]) -> str:
        """The declarative file."""
        routes = [each.route(side) for each in self._subjects for side in (WITHOUT, WITH)]
        service = {"name": "api", "url": "http://@upstream@", "routes": routes}
        document = {"services": [service], "consumers": self._consumers}
        return json.dumps(fill({"_format_version": "3.0"} | document, words))

    def changed_file(self, _: dict[str, str]) -> None:
        """It stays as it is."""

    @property
    def haproxy(self) -> str:
        """The rules of hand-written HAProxy, which asks the upstream for / as all others do."""
        rules = "".join(each.rules() for each in self._subjects if each.haproxy)
        return rules + "    http-request set-path /"

    def nginx_conf(self, words: dict[str, str]) -> str:
        """The servers of hand-written nginx."""
        by_hand = [each for each in self._subjects if each.nginx]
        around = "".join(each.nginx_http for each in by_hand)
        inside = "".join(each.location(side) for each in by_hand for side in (WITHOUT, WITH))
        text: str = fill(around + SERVER.format(host=HOST, locations=inside), words)
        return text


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _token(algorithm: str, issuer: str, sign: Callable[[bytes], bytes]) -> str:
    parts = ({"alg": algorithm, "typ": "JWT"}, {"iss": issuer, "exp": int(time.time()) + 86400})
    text = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
    return f"{text}.{_encoded(sign(text.encode()))}"


def credentials(folder: Path) -> dict[str, str]:
    """What clients send and the gateway knows, made anew for each run."""
    secret = b"alices-secret"
    key = folder / "rsa.pem"

    def openssl(*arguments: str, text: bytes = b"") -> bytes:
        command = ["openssl", *arguments]
        return subprocess.run(command, input=text, check=True, capture_output=True).stdout

    def sign_rsa(text: bytes) -> bytes:
        return openssl("dgst", "-sha256", "-sign", str(key), text=text)

    def sign_hmac(text: bytes) -> bytes:
        return hmac.digest(secret, text, "sha256")

    openssl("genrsa", "-out", str(key), "2048")
    date = formatdate(usegmt=True)
    public = openssl("rsa", "-in", str(key), "-pubout")
    (folder / "rsa_public.pem").write_bytes(public)
    password = folder / "passwords"
    digest = base64.b64encode(hashlib.sha1(secret).digest()).decode()
    password.write_text(f"alice:{{SHA}}{digest}\n")
    password.chmod(0o644)
    return {
        "secret": secret.decode(),
        "basic": base64.b64encode(b"alice:" + secret).decode(),
        "date": date,
        "signature": base64.b64encode(sign_hmac(f"date: {date}".encode())).decode(),
        "hs256": _token("HS256", "alice-hs256", sign_hmac),
        "rs256": _token("RS256", "alice-rs256", sign_rsa),
        "rsa_public_key": public.decode(),
        "rsa_public_file": str(folder / "rsa_public.pem"),
        "passwords": str(password),
        "ranges": "".join(f"{each} 1;\n" for each in RANGES[:10_000]),
    }


@contextlib.contextmanager
def _servers(setting: Setting, declared: Configuration) -> Iterator[dict[str, sides.Server]]:
    """The gateway, hand-written nginx and HAProxy, before one upstream."""
    core, others = proxy.two_cores()
    upstream = sides.free_address()
    folder, address = setting.folder, sides.free_address
    server = sides.Upstream(folder / "upstream", upstream, others, BODY, added=load.awake())
    gateway = sides.Sluice(
        declared, folder / "sluice", address(), upstream, core, root=setting.root
    )
    by_hand = sides.HandWritten(declared, folder / "nginx", address(), upstream, core)
    haproxy = sides.HAProxy(declared, folder / "haproxy", address(), upstream, core, {})
    with server, gateway, by_hand, haproxy:
        yield {"": gateway, NGINX: by_hand, HAPROXY: haproxy}


def processes(server: sides.Server) -> list[int]:
    """All processes of an instance."""
    master = server.master()
    assert master is not None
    return [master, *children(master)]


def _probe(server: sides.Server, subject: Subject) -> None:
    """Shows that the plugin is at work on one route, and not on the other."""
    asked = [(WITHOUT, False, 200), (WITH, False, subject.status)]
    asked += [(WITH, True, subject.refuses)] if subject.refuses else []
    for side, bare, status in asked:
        with Client(server.address) as client:
            answer = client.ask(subject.head(side, bare))
        has_header = subject.adds in answer.headers
        # The others need not say what they limit.
        is_odd = isinstance(server, sides.Sluice) and subject.adds and has_header != (side == WITH)
        if answer.status != status or is_odd:
            raise InvalidRun(
                f"{server.name}: /{side}/{subject.word} is answered {answer.status} with "
                f"{', '.join(answer.headers)}"
            )


def _slice(
    server: sides.Server, subject: Subject, side: str, data: dict[str, Any], folder: Path
) -> load.Slice:
    requests = folder / f"{side}-{subject.word}"
    requests.write_bytes(subject.head(side))
    slice_ = load.run(
        server.address,
        requests,
        processes(server),
        proxy.two_cores()[1],
        data["connections"],
        data["seconds"],
        way=load.Way(awake=True),
    )
    if errors := slice_.report.errors():
        raise InvalidRun(f"{server.name}: /{side}/{subject.word}: {errors}")
    return slice_


def named(ratios: dict[tuple[str, str], Metric]) -> dict[str, Metric]:
    """Metrics of subjects and their ends; of several ways to use a plugin the worst is its own."""
    out, ways = {}, {}
    for (name, end), found in ratios.items():
        plugin, way, _ = name.partition(WAYS)
        if way:
            ways.setdefault(plugin + end, []).append(found)
        out[name.replace(WAYS, "-") + end] = found
    out |= {name: max(each, key=lambda one: one.value) for name, each in ways.items()}
    return {f"{name.replace('-', '_')}_cpu_ratio": found for name, found in out.items()}


def measure(setting: Setting) -> dict[str, Metric]:
    """Measures the scenario."""
    data = fill(described(dict(setting.data)), credentials(setting.folder))
    found = subjects(data, native(setting.root))
    parts = [(each, "") for each in found] + [(each, NGINX) for each in found if each.nginx]
    parts += [(each, HAPROXY) for each in found if each.haproxy]
    ratios = {}
    with _servers(setting, Configuration(found, data["consumers"])) as servers:
        for number, (subject, end) in enumerate(parts):
            server = servers[end]
            _probe(server, subject)
            taken: dict[str, list[float]] = {WITHOUT: [], WITH: []}
            for side in taken:
                _slice(server, subject, side, data, setting.folder)  # warm-up
            for order in setting.rounds(list(taken), number, len(parts)):
                for side in order:
                    taken[side].append(_slice(server, subject, side, data, setting.folder).cpu_us)
            ratios[subject.name, end] = metric("ratio", stats.ratio(taken[WITH], taken[WITHOUT]))
        for server in servers.values():
            if trouble := server.trouble():
                raise InvalidRun(f"{server.name} logged: {trouble}")
    progress("")
    return named(ratios)
