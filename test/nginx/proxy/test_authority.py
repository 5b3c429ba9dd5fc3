"""The authority that routes a request is the one that everybody sees, in every way to write it."""

import itertools
import json
import re
from collections.abc import Iterator

import pytest
from log_server import LogServer

from sluice import Gateway, Start
from upstream import Upstream
from wire import Reply, wait_until

# How targets are written, in front of the path, and Host headers: None is none. All that is valid
# in both columns is combined with all in the other.
TARGETS = [
    None,
    "http://open.example",
    "HTTP://OPEN.Example",
    "https://open.example",
    "http://open.example.",
    "http://open.example:8443",
    "http://open.example.:8443",
    "http://open.example:",
    "http://open.example:08443",
    "http://open.example:65535",
    "http://admin.example:8443",
    "http://[::1]",
    "http://[::1]:8443",
    "http://[::AB]:81",
    "http://other.example",
    "http://",
    "http://:80",
    "http://.",
    "http://user@open.example",
    "http://user:word@open.example",
    "http://open.example@admin.example",
    "http://open.example:8443@admin.example",
    "http://open..example",
    "http://open.example:65536",
    "http://open.example:999999999999999999999",
    "http://open.example:8x",
    "http://open.example:8:9",
    "http://[::1",
    "http://[::1]x",
    "http:",
    "//open.example",
]
HOSTS = [
    None,
    "",
    "admin.example",
    "ADMIN.Example",
    "admin.example.",
    "admin.example:8443",
    "admin.example.:8443",
    "admin.example:",
    "admin.example:08443",
    "open.example:8443",
    "open.example.8443",
    "[::1]",
    "[::1]:8443",
    "[::ab]",
    "other.example",
    "open.example:8443@admin.example",
    "open.example@admin.example",
    "user:word@admin.example",
    "open.example#admin.example",
    "open.example?admin.example",
    "open.example\\admin.example",
    "open.example/admin.example",
    "open.example admin.example",
    "open.example\tadmin.example",
    "open.example:80:90",
    "open.example:8x",
    "open.example:+80",
    "open.example:65536",
    "open.example:99999999999999999999999",
    "open.example:80,admin.example",
    "open..example",
    "open.example..",
    "[::1]admin.example",
    "[::1].",
    "[::1",
    "::1",
    "admin.example\xff",
    '"admin.example"',
    "<admin.example>",
    "admin.example|x",
    ":80",
    ".",
]

VALID = re.compile(r"(\[[0-9a-f:]+\]|(?!\.)(?:\.?[\w~!$&'()*+,;=%-]+)+)\.?(?::(\d*))?", re.ASCII)


def parse(text: str) -> tuple[str, str] | None:
    """Host and authority of an authority in its one spelling; None if it is none."""
    found = VALID.fullmatch(text.lower())
    if not found or (text.startswith("[") and "]." in text):
        return None
    host, port = found.group(1), found.group(2)
    if port and int(port) > 65535:
        return None
    return host, f"{host}:{int(port)}" if port else host


def expected(target: str | None, hosts: list[str], version: str) -> tuple[str, str] | None:
    """What routes; None if the request is to be refused."""
    if len(hosts) > 1 or (not hosts and version == "1.1"):
        return None
    if target is None or target.startswith("//"):
        return parse(hosts[0]) if hosts else ("sluice", "sluice")
    return parse(target.partition("://")[2])


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


PROBE = """
local pdk = require("gateway.pdk")
return {
    VERSION = "1", PRIORITY = 1, schema = { name = "probe", fields = {
        { config = { type = "record", fields = {} } } } },
    access = function()
        local all = ngx.req.get_headers().host
        ngx.req.set_header("X-Seen", table.concat({
            pdk.header("Host") or "", ngx.var.http_host or "",
            type(all) == "table" and table.concat(all, "+") or all or "" }, " "))
    end,
}
"""

ROUTES = {
    "open": ["open.example"],
    "open-8443": ["open.example:8443"],
    "admin": ["admin.example"],
    "admin-8443": ["admin.example:8443"],
    "six": ["[::1]"],
    "six-8443": ["[::1]:8443"],
}


def by_host(upstream: Upstream, **route: object) -> dict:
    """One service a host, whose path is its name."""
    return {
        "services": [
            {
                "name": name,
                "url": f"{upstream.url}/{name}",
                "routes": [{"name": name, "hosts": hosts, "preserve_host": True} | route],
            }
            for name, hosts in ROUTES.items()
        ]
    }


@pytest.fixture(scope="module")
def running(upstream: Upstream) -> Iterator[Gateway]:
    config = by_host(upstream) | {"plugins": [{"name": "probe"}]}
    with Gateway(config, plugins={"probe": PROBE}) as gateway:
        yield gateway


def ask(gateway: Gateway, target: str | None, hosts: list[str], version: str = "1.1") -> Reply:
    """A request for /x on a connection of its own."""
    lines = [f"GET {target or ''}/x HTTP/{version}", *(f"Host: {host}" for host in hosts), "", ""]
    with gateway.wire() as wire:
        wire.send("\r\n".join(lines).encode("latin-1"))
        return wire.read_reply()


def name_of(authority: str) -> str:
    """What a route for it would be called."""
    return authority.replace(".example", "").replace("[::1]", "six").replace(":8443", "-8443")


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize("target", TARGETS)
def test_what_routes_is_what_everybody_sees(
    running: Gateway, upstream: Upstream, target: str | None, version: str
) -> None:
    pairs = [["admin.example", "open.example"], ["admin.example", "admin.example"]]
    for hosts in [[] if host is None else [host] for host in HOSTS] + pairs:
        before = len(upstream.requests)
        reply = ask(running, target, hosts, version)
        wanted = expected(target, hosts, version)
        said = f"{target} with {hosts} in {version}: {reply.status}"
        if wanted is None:
            assert reply.status == 400, said
            assert len(upstream.requests) == before, said
            continue
        if reply.status == 400 and hosts and parse(hosts[0]) is None:
            continue  # a Host that counts for nothing may be refused all the same
        host, authority = wanted
        route = next((n for n in (name_of(authority), name_of(host)) if n in ROUTES), None)
        if route is None:
            assert reply.status == 404, said
            continue
        assert reply.status == 200, said
        seen = upstream.last
        assert seen.path.split("/")[1] == route, said
        assert seen.headers.all("host") == [authority], said
        assert seen.headers.all("x-forwarded-host") == [host], said
        assert seen.headers.get("x-seen") == " ".join([authority] * 3), said


def test_the_walk_has_both_kinds() -> None:
    """Of the spellings above some are refused and some are not, so that none passes by accident."""
    outcomes = [
        expected(target, [host], "1.1") is None
        for target, host in itertools.product(TARGETS, HOSTS)
        if host is not None
    ]
    assert 100 < sum(outcomes) < len(outcomes) - 100


@pytest.mark.parametrize("name", ["host", "HOST", "x_host"])
def test_lines_before_and_behind_do_not_matter(
    running: Gateway, upstream: Upstream, name: str
) -> None:
    """The header is found wherever it stands, and no other is taken for it."""
    lines = [("X-1", "1"), ("Connection", f"{name}, X-2"), ("Host", "admin.example"), ("X-2", "2")]
    reply = running.ask("http://open.example:8443/x", headers=lines)
    assert reply.status == 200
    assert upstream.last.headers.all("host") == ["open.example:8443"]
    assert "x-2" not in upstream.last.headers


def test_a_redirect_goes_where_it_was_routed(gateway: Start, upstream: Upstream) -> None:
    running = gateway(by_host(upstream, protocols=["https"], https_redirect_status_code=301))
    reply = ask(running, "http://open.example", ["admin.example"])
    assert (reply.status, reply.headers.get("location")) == (301, "https://open.example/x")


def test_the_log_names_what_routed(gateway: Start, upstream: Upstream) -> None:
    with LogServer() as server:
        plugin = {"name": "http-log", "config": {"http_endpoint": server.url}}
        running = gateway(
            by_host(upstream) | {"plugins": [plugin]}, access_log_format="$host $http_host"
        )
        assert ask(running, "http://open.example:8443", ["admin.example"]).status == 200
        (entry,) = wait_until(lambda: server.entries, "the entry")
        assert entry["request"]["headers"]["host"] == "open.example:8443"
        assert entry["request"]["url"].startswith("http://open.example:")
        assert entry["route"]["name"] == "open-8443"
        assert "admin.example" not in json.dumps(entry["request"])
        running.stop("quit")
    assert running.access_log().split() == ["open.example", "open.example:8443"]


@pytest.mark.parametrize("size", [*range(880, 1060, 4), 7900, 8100])
def test_wherever_the_line_lies_in_nginxs_buffers(
    running: Gateway, upstream: Upstream, size: int
) -> None:
    """nginx moves a request line that does not fit where it is; here behind another request."""
    first = b"GET http://open.example:8443/first HTTP/1.1\r\nHost: admin.example\r\n\r\n"
    path = b"/" + b"p" * (size - len(first))
    second = b"GET http://admin.example:8443" + path + b" HTTP/1.1\r\nHost: open.example\r\n"
    third = b"X-Long: " + b"h" * 3000 + b"\r\n\r\n"
    before = len(upstream.requests)
    with running.wire() as wire:
        wire.send(first + second + third)
        assert [wire.read_reply().status for _ in range(2)] == [200, 200]
    hosts = [request.headers.get("host") for request in upstream.requests[before:]]
    assert hosts == ["open.example:8443", "admin.example:8443"]


def test_http_0_9_has_no_headers(running: Gateway, upstream: Upstream) -> None:
    before = len(upstream.requests)
    with running.wire() as wire:
        wire.send(b"GET http://open.example/x\r\n")
        wire.read_to_end()
    assert [r.headers.get("host") for r in upstream.requests[before:]] == ["open.example"]
