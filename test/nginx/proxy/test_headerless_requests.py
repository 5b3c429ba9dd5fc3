"""Every plugin with requests that lack what HTTP/1.1 always has: headers, a Host, one pass through
the phases."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from headerless_kit import KIT
from log_server import LogServer

import guard
from certificates import connect, context, make
from sluice import ROOT, Gateway
from upstream import Upstream
from wire import Stream, wait_until

CA_ID = "00000000-0000-4000-8000-000000000001"
ALICE_ID = "6f2c1a30-0000-4000-8000-000000000001"

PLUGIN = """
local pdk = require("gateway.pdk")
local header = require("sluice.header")
return {
    VERSION = "0.1.0", PRIORITY = ORDER,
    schema = { name = "NAME", fields = {
        { protocols = require("gateway.schema.typedefs").protocols_http },
        { config = { type = "record", fields = {} } },
    } },
    BODY
}
"""

# What a plugin may use, each in each of the phases that its docstring names.
EVERYTHING = """
    walk = function(self)
        for _, name in ipairs({ "Host", "X-A", "X-Consumer-Username", "Via" }) do
            pdk.header(name)
            header.new(name):get_request()
        end
        assert(pdk.path():find("/x", 1, true), "no path")
        assert(pdk.client_ip() == "127.0.0.1", "no address")
        pdk.query()
        pdk.route()
        pdk.service()
        pdk.consumer()
        pdk.credential()
        ngx.req.get_headers()
        ngx.req.http_version()
        pdk.store():get("consumers", "alice")
    end,
    access = function(self, conf)
        self:walk()
        assert(#pdk.resolve("127.0.0.1") == 1)
        pdk.authenticate(pdk.store():get("consumers", "alice"), { id = "own" })
        for _, name in ipairs({ "X-Mine", "X-Consumer-Username", "Via", "Host" }) do
            local handle = header.new(name)
            handle:set_request("mine")
            handle:get_request()
            handle:clear_request()
            ngx.req.set_header(name, "mine")
            ngx.req.clear_header(name)
            handle:set_response("mine")
        end
        ngx.req.set_header("Host", "mine")
        pdk.authenticate(pdk.store():get("consumers", "alice"), { id = "own" })
        self:walk()
    end,
    header_filter = function(self) self:walk() end,
    body_filter = function(self) self:walk() end,
    log = function(self) self:walk() assert(#pdk.log_entry() > 100) end,
"""

EXIT = "access = function() return pdk.exit(200, 'own answer', { ['X-A'] = 'b' }) end,"
ERROR = "access = function() return pdk.error(403, 'own answer', { ['X-A'] = 'b' }) end,"
AGAIN = """access = function()
    if not ngx.req.is_internal() then return ngx.exec("/elsewhere", ngx.var.args) end
end,"""


def plugin(name: str, priority: int, body: str) -> str:
    """The source of a plugin without a configuration."""
    source = PLUGIN.replace("NAME", name).replace("ORDER", str(priority))
    return source.replace("BODY", body)


MADE = {
    "everything": plugin("everything", 900, EVERYTHING),
    "again": plugin("again", 1, AGAIN),
    "exits": plugin("exits", 5, EXIT),
    "errors": plugin("errors", 5, ERROR),
}

NOBODY = {"hide_credentials": True, "anonymous": "nobody"}

FUNCTIONS = ("pre-function", "post-function")
FUNCTION_PHASES = ("rewrite", "access", "header_filter", "body_filter", "log")
FUNCTION = ["kong.request.get_header('x'); kong.request.get_headers(); kong.client.get_consumer()"]

# By the name of the route whose plugin it is: name and configuration.
PLUGINS: dict[str, tuple[str, dict[str, Any]]] = {
    "key-auth": ("key-auth", {}),
    "hiding": ("key-auth", NOBODY | {"key_in_body": True}),
    "mtls-auth": ("mtls-auth", {"ca_certificates": [CA_ID]}),
    "basic-auth": ("basic-auth", NOBODY),
    "hmac-auth": ("hmac-auth", NOBODY | {"validate_request_body": True}),
    "jwt": ("jwt", {"anonymous": "nobody", "cookie_names": ["token"]}),
    "acl": ("acl", {"deny": ["nobodys"]}),
    "ip-restriction": ("ip-restriction", {"allow": ["127.0.0.1"]}),
    "bot-detection": ("bot-detection", {"allow": ["own"], "deny": ["evil"]}),
    "cors": ("cors", {"origins": ["a.example", "b.example"], "credentials": True}),
    "correlation-id": ("correlation-id", {"generator": "tracker", "echo_downstream": True}),
    "request-size-limiting": ("request-size-limiting", {"allowed_payload_size": 1}),
    "prometheus": ("prometheus", {"per_consumer": True, "status_code_metrics": True}),
    "file-log": ("file-log", {}),
    "triggered": ("request-termination", {"trigger": "X-Stop", "echo": True}),
    "terminates": ("request-termination", {"message": "own answer", "status_code": 403}),
    "redirect": ("redirect", {"location": "http://a.example/", "keep_incoming_path": True}),
    **{
        f"by-{what}": ("rate-limiting", {"minute": 10000, "limit_by": what} | more)
        for what, more in {
            **{name: {} for name in ("consumer", "credential", "ip", "service")},
            "header": {"header_name": "X-Limit"},
            "path": {"path": "/x"},
        }.items()
    },
    "http-log": ("http-log", {}),
    "access-log": ("access-log", {}),
    "forward-auth": ("forward-auth", {}),
    **{kind: (kind, dict.fromkeys(FUNCTION_PHASES, FUNCTION)) for kind in FUNCTIONS},
    "everything": ("everything", {}),
    "exits": ("exits", {}),
    "errors": ("errors", {}),
    **{name: (name, {}) for name in KIT},
}

# Whose route gets no further.
ENDS = {
    "exits": "own answer",
    "errors": "own answer",
    "kit-exits": "own answer",
    "kit-errors": "own answer",
    "terminates": "own answer",
    "redirect": "redirecting",
    "acl": "Unauthorized",
}

LINES = {
    "0.9": "GET TARGET\r\n",
    "0.9-host": "GET http://localhost:80TARGET\r\n",
    "1.0": "GET TARGET HTTP/1.0\r\n\r\n",
    "1.0-absolute": "GET http://localhostTARGET HTTP/1.0\r\n\r\n",
    # What the internal redirects are compared with.
    "1.1": "GET TARGET HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
}


# By kind: who ends each request, or needs the response as a whole, has no place among others; of
# request-termination the one that ends.
NOT_TOGETHER = {"exits", "errors", "kit-exits", "kit-errors", "kit-whole", "redirect"}
NOT_TOGETHER.add("request-termination")

# Those that see what no route matches.
GLOBAL = ("http-log", "access-log", "file-log", "prometheus", "correlation-id", "cors")


class World:
    """One gateway whose routes have a plugin each, and an accepted client of it."""

    def __init__(self, upstream: Upstream, log: LogServer, folder: Path) -> None:
        root = make("root", is_ca=True)
        self.upstream, self.log, self.folder = upstream, log, folder
        self.client = make("client", issuer=root)
        routes = [*self.routes(), *self.routes(again=True), self.route("all", *PLUGINS)]
        routes.append(self.route("all-again", *PLUGINS, again=True))
        config = {
            "ca_certificates": [{"id": CA_ID, "cert": root.cert}],
            "services": [{"name": "s", "url": upstream.url, "routes": routes}],
            "consumers": [
                {
                    "id": ALICE_ID,
                    "username": "alice",
                    "keyauth_credentials": [{"key": "right"}],
                },
                {"username": "nobody"},
            ],
            # Of what no route matches, and of what nginx refuses.
            "plugins": [self.plugin(name) for name in GLOBAL],
        }
        self.gateway = Gateway(
            config,
            plugins=MADE,
            kong_plugins=KIT,
            tls="ssl",
            ask_client_certificate=True,
            worker_connections=256,
        )

    def plugin(self, name: str) -> dict[str, Any]:
        """A plugin of the table, as configurations have it."""
        kind, config = PLUGINS[name]
        if kind == "http-log":
            url = f"http://{self.log.address}/in"
            config = config | {"http_endpoint": url, "queue": {"max_coalescing_delay": 0.01}}
        elif kind == "forward-auth":
            config = config | {"url": f"{self.upstream.url}/may"}
        elif kind == "file-log":
            config = config | {"path": str(self.folder / "entries")}
        return {"name": kind, "config": config}

    def route(self, path: str, *names: str, again: bool = False) -> dict[str, Any]:
        """A route at a path of its own, that the upstream sees as /x."""
        found = {p["name"]: p for p in map(self.plugin, names)}
        if len(names) > 1:
            found = {kind: p for kind, p in found.items() if kind not in NOT_TOGETHER}
        if again:
            found["again"] = {"name": "again", "config": {}}
        return {
            "name": path,
            "paths": [f"/{path}"],
            "plugins": list(found.values()),
        }

    def routes(self, *, again: bool = False) -> list[dict[str, Any]]:
        """One for each of the table; `again`: with an internal redirect behind its plugin."""
        end = "-again" if again else ""
        return [self.route(name + end, name, again=again) for name in PLUGINS]

    def ask(self, line: str, path: str, *, tls: bool) -> bytes:
        """All that comes back for one line."""
        sent = line.replace("TARGET", f"/{path}/x?apikey=right").encode()
        if not tls:
            with self.gateway.wire() as wire:
                wire.send(sent)
                return wire.read_to_end()
        # No server name: without a Host it would be another than the request's.
        with connect(self.gateway.tls_port, None, context(client=self.client)) as wrapped:
            stream = Stream(wrapped)
            stream.send(sent)
            return stream.read_to_end()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    folder = guard.folder("sluice-headerless-")
    folder.chmod(0o777)
    with Upstream() as upstream, LogServer() as log:
        made = World(upstream, log, folder)
        with made.gateway:
            yield made
    guard.remove(folder)


NAMES = [name + end for name in ("all", *PLUGINS) for end in ("", "-again")]


def answered(world: World, name: str, *, tls: bool) -> tuple[str, str | None]:
    """What a route answers with: a part of the body, and who the upstream is to see."""
    kind = name.removesuffix("-again")
    if kind in ("mtls-auth", "all") and not tls:
        return "No required TLS certificate was sent", None
    if kind in ENDS:
        return ENDS[kind], None
    if kind in ("basic-auth", "hmac-auth", "jwt"):
        return "upstream", "nobody"
    return "upstream", "alice" if kind in ("key-auth", "hiding", "everything", "all") else None


def test_every_plugin_is_here() -> None:
    """One that comes later, too."""
    assert {path.name for path in (ROOT / "plugins").iterdir()} <= {p for p, _ in PLUGINS.values()}


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("version", LINES)
def test_every_plugin(world: World, version: str, tls: bool) -> None:
    before = world.gateway.workers()
    for name in NAMES:
        said = world.ask(LINES[version], name, tls=tls).decode()
        assert world.gateway.workers() == before, f"{name}: the worker has died"
        head, _, body = said.rpartition("\r\n\r\n")
        assert head.startswith("HTTP/1.1 ") == version.startswith("1."), (name, said)
        part, username = answered(world, name, tls=tls)
        assert part in body, (name, said)
        if part != "upstream":
            continue
        headers = {n.lower(): v for n, v in json.loads(body)["headers"]}
        assert headers.get("x-consumer-username") == username, name
        knows = tls and name.startswith(("mtls-auth", "all"))
        assert headers.get("x-client-cert-dn") == ("CN=client" if knows else None), name
        assert len(headers.get("x-client-cert-fingerprint", "")) == (64 if knows else 0), name


REFUSED = {
    "0.9": "GET /%00\r\n",
    "1.0": "GET /%00 HTTP/1.0\r\n\r\n",
    "no version": "GET / HTTX\r\n\r\n",
    "no route": "GET http://elsewhere\r\n",
}


def refused(log: LogServer) -> int:
    """How many entries are of requests that nginx refused, or no route took."""
    return sum(entry["response"]["status"] in (400, 404) for entry in log.entries)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_the_page_of_an_error(world: World, tls: bool) -> None:
    """Where nginx goes internally with what it refuses; global plugins see it there."""
    before = world.gateway.workers()
    for name, line in REFUSED.items():
        # Entries of the test before may still come; none of its requests is refused like this.
        entries = refused(world.log)
        world.ask(line, "", tls=tls)
        assert world.gateway.workers() == before, f"{name}: the worker has died"
        wait_until(lambda n=entries: refused(world.log) > n, "the entry")
