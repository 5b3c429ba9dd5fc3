"""Every plugin with requests that lack what HTTP/1.1 always has: headers, a Host, one pass through
the phases."""

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from headerless_kit import KIT
from log_server import LogServer
from plugin_facts import PLUGINS, Route, facts, with_texts

import guard
from certificates import connect, context, make
from sluice import Gateway
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

# The routes of those, as facts.json has them for a plugin of ours.
OWN: dict[str, Route] = {
    "everything": {"config": {}, "consumer": "alice"},
    **{
        name: {"config": {}, "says": "own answer", "is_alone": True}
        for name in ("exits", "errors", "kit-exits", "kit-errors")
    },
    "kit-walks": {"config": {}},
    # It needs the response as a whole.
    "kit-whole": {"config": {}, "is_alone": True},
}


@functools.cache
def table() -> dict[str, tuple[str, Route]]:
    """By the name of the route whose plugin it is: its name, and what is known of it."""
    found: dict[str, tuple[str, Route]] = {}
    for plugin in PLUGINS:
        for name, route in facts(plugin)["routes"].items():
            assert name not in found, f"{found[name][0]} and {plugin} have a route {name}"
            found[name] = (plugin, route)
    return found | {name: (name, route) for name, route in OWN.items()}


@functools.cache
def together() -> dict[str, Route]:
    """Those of plugins that stand beside all others."""
    return {name: route for name, (_, route) in table().items() if not route.get("is_alone")}


LINES = {
    "0.9": "GET TARGET\r\n",
    "0.9-host": "GET http://localhost:80TARGET\r\n",
    "1.0": "GET TARGET HTTP/1.0\r\n\r\n",
    "1.0-absolute": "GET http://localhostTARGET HTTP/1.0\r\n\r\n",
    # What the internal redirects are compared with.
    "1.1": "GET TARGET HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
}


class World:
    """One gateway whose routes have a plugin each, and an accepted client of it."""

    def __init__(self, upstream: Upstream, log: LogServer, folder: Path) -> None:
        root = make("root", is_ca=True)
        self.upstream, self.log, self.folder = upstream, log, folder
        self.client = make("client", issuer=root)
        made = [*self.routes(), *self.routes(again=True), self.route("all", *together())]
        made.append(self.route("all-again", *together(), again=True))
        config = {
            "ca_certificates": [{"id": CA_ID, "cert": root.cert}],
            "services": [{"name": "s", "url": upstream.url, "routes": made}],
            "consumers": [
                {
                    "id": ALICE_ID,
                    "username": "alice",
                    "keyauth_credentials": [{"key": "right"}],
                },
                {"username": "nobody"},
            ],
            # Of what no route matches, and of what nginx refuses.
            "plugins": [
                self.plugin(name) for name, (_, route) in table().items() if route.get("is_global")
            ],
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
        kind, route = table()[name]
        config = with_texts(
            route["config"],
            ca_certificate=CA_ID,
            folder=str(self.folder),
            log=str(self.log.address),
            upstream=self.upstream.url,
        )
        return {"name": kind, "config": config}

    def route(self, path: str, *names: str, again: bool = False) -> dict[str, Any]:
        """A route at a path of its own, that the upstream sees as /x."""
        found = {p["name"]: p for p in map(self.plugin, names)}
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
        return [self.route(name + end, name, again=again) for name in table()]

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


def known(name: str) -> Route:
    """What is known of a route, `all` of them and those with a redirect included."""
    name = name.removesuffix("-again")
    if name != "all":
        return table()[name][1]
    found: Route = {"config": {}, "consumer": "alice"}
    for route in together().values():
        if "says_without_tls" in route:
            found["says_without_tls"] = route["says_without_tls"]
        if route.get("shows_certificate"):
            found["shows_certificate"] = True
    return found


def answered(route: Route, *, tls: bool) -> tuple[str, str | None]:
    """What a route answers with: a part of the body, and who the upstream is to see."""
    if "says_without_tls" in route and not tls:
        return route["says_without_tls"], None
    if "says" in route:
        return route["says"], None
    return "upstream", route.get("consumer")


def test_every_plugin_is_here() -> None:
    """One that comes later, too."""
    assert {*PLUGINS} | {*MADE} | {*KIT} == {kind for kind, _ in table().values()} | {"again"}


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("version", LINES)
def test_every_plugin(world: World, version: str, tls: bool) -> None:
    before = world.gateway.workers()
    for name in [name + end for name in ("all", *table()) for end in ("", "-again")]:
        route = known(name)
        said = world.ask(LINES[version], name, tls=tls).decode()
        assert world.gateway.workers() == before, f"{name}: the worker has died"
        head, _, body = said.rpartition("\r\n\r\n")
        assert head.startswith("HTTP/1.1 ") == version.startswith("1."), (name, said)
        part, username = answered(route, tls=tls)
        assert part in body, (name, said, "see `routes` in facts.json of its plugin's tests")
        if part != "upstream":
            continue
        headers = {n.lower(): v for n, v in json.loads(body)["headers"]}
        assert headers.get("x-consumer-username") == username, name
        knows = tls and route.get("shows_certificate", False)
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
