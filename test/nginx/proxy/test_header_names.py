"""Names of headers: those that RFC 9110 permits pass, over HTTP/1.1 and HTTP/2, others do not."""

import string
from collections.abc import Iterator

import pytest
from http2 import served, speaking

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import request_bytes

# RFC 9110, 5.6.2.
TOKEN = set((string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~").encode())
# What nginx refuses a request of HTTP/1.1 for, or reads as the end of a name or of a line.
NO_NAME = {*range(0x21), 0x7F, ord(":")}
WORDS = set((string.ascii_letters + string.digits + "-_").encode())


def name_with(byte: int, where: str) -> bytes:
    """A name with it at its beginning, within, or at its end, or of it alone."""
    return where.encode().replace(b"?", bytes([byte]))


PLACES = ["?", "?name", "na?me", "name?", "x-a-long-name-of-more-than-32-bytes?and-on"]


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Gateway, Upstream]]:
    """As people run it."""
    with Upstream() as upstream, Gateway(served(upstream), tls="ssl http2") as gateway:
        yield gateway, upstream


def passed(upstream: Upstream, mark: str) -> list[bytes]:
    """The names of the latest request whose value begins with this, as they came."""
    return [n.encode("latin-1") for n, v in upstream.last.headers if v.startswith(mark)]


@pytest.mark.parametrize("where", PLACES)
def test_every_byte(running: tuple[Gateway, Upstream], where: str) -> None:
    gateway, upstream = running
    for byte in sorted(set(range(256)) - NO_NAME):
        name = name_with(byte, where)
        with gateway.wire() as wire:
            head = b"GET / HTTP/1.1\r\nHost: h\r\nA: kept\r\n%s: kept or not\r\nB: kept\r\n\r\n"
            wire.send(head % name)
            assert wire.read_reply().status == 200, name
        wanted = [b"A", name, b"B"] if byte in TOKEN else [b"A", b"B"]
        assert passed(upstream, "kept") == wanted


@pytest.mark.parametrize("where", PLACES)
def test_every_byte_over_http_2(running: tuple[Gateway, Upstream], where: str) -> None:
    """Where upper case is malformed, as are controls."""
    gateway, upstream = running
    upper = set(string.ascii_uppercase.encode())
    with speaking(gateway) as client:
        for byte in sorted(set(range(256)) - NO_NAME - upper):
            name = name_with(byte, where)
            fields = [(b"a", b"kept"), (name, b"kept or not"), (b"b", b"kept")]
            stream = client.ask(headers=fields)
            assert client.answers([stream])[stream][0] == 200, name
            wanted = [b"a", name, b"b"] if byte in TOKEN else [b"a", b"b"]
            assert passed(upstream, "kept") == wanted


@pytest.mark.parametrize("byte", sorted(NO_NAME - {0x0A, 0x0D, ord(":")}))
def test_nginx_refuses_the_rest(running: tuple[Gateway, Upstream], byte: int) -> None:
    gateway, upstream = running
    upstream.requests.clear()
    with gateway.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: h\r\nna" + bytes([byte]) + b"me: v\r\n\r\n")
        assert wire.read_reply().status == 400
    assert upstream.requests == []


KNOWN = ["None", "User-Agent", "Authorization", "Content-Type", "X-Real-IP", "Upgrade", "Cookie"]


@pytest.mark.parametrize("name", KNOWN)
def test_a_line_without_a_colon_is_refused(running: tuple[Gateway, Upstream], name: str) -> None:
    """nginx would make a header of it, with an empty value, and may take that for the header."""
    gateway, upstream = running
    upstream.requests.clear()
    for end in (b"\r\n", b"\n"):
        for line in (name.encode() + end, name.encode() + end + name.encode() + b": v" + end):
            with gateway.wire() as wire:
                wire.send(b"GET / HTTP/1.1\r\nHost: h\r\nA:\r\n" + line + b"\r\n")
                assert wire.read_reply().status == 400
    assert upstream.requests == []
    with gateway.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: h\r\nA:\r\nB: \r\n\r\n")
        assert wire.read_reply().status == 200
    assert (upstream.last.headers.get("A"), upstream.last.headers.get("B")) == ("", "")


def test_what_is_dropped_is_in_the_log(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream), log_level="info")
    running.expect_log(r"\[info\]", range(10000))
    assert running.ask("/", headers={"X(bad)": "1"}).status == 200
    assert 'client sent invalid header name: "X(bad)"' in running.error_log()


def test_as_nginx_and_kong_do(gateway: Start, upstream: Upstream) -> None:
    running = gateway(served(upstream), tls="ssl http2", ignore_invalid_headers="on")
    names = [name_with(byte, "n?").decode() for byte in sorted(TOKEN)]
    wanted = [name.encode() for name in names if ord(name[1]) in WORDS]
    assert running.ask("/", headers=[(name, "kept") for name in names]).status == 200
    assert passed(upstream, "kept") == wanted
    with speaking(running) as client:
        fields = [(name, "kept") for name in names if name == name.lower()]
        stream = client.ask(headers=fields)
        assert client.answers([stream])[stream][0] == 200
    assert passed(upstream, "kept") == [name for name in wanted if name == name.lower()]


def test_connection_names_them(running: tuple[Gateway, Upstream]) -> None:
    gateway, upstream = running
    sent = {"Connection": "x.dot, ~", "X.Dot": "1", "X-Dot": "kept", "~": "1", "!": "kept"}
    with gateway.wire() as wire:
        wire.send(request_bytes("/", headers={"Host": "h", **sent}))
        assert wire.read_reply().status == 200
    assert passed(upstream, "kept") == [b"X-Dot", b"!"]
    assert not {"x.dot", "~"} & {n.lower() for n, _ in upstream.last.headers}


def test_none_is_another_ones_spelling(gateway: Start, upstream: Upstream) -> None:
    """A route's header and a key have to come by their own name."""
    routes = [
        {"name": "by-header", "paths": ["/by-header"], "headers": {"X-Team": ["a"]}},
        {
            "name": "by-key",
            "paths": ["/by-key"],
            "plugins": [{"name": "key-auth", "config": {"key_names": ["x-api-key"]}}],
        },
    ]
    config = {
        "services": [{"name": "s", "url": upstream.url, "routes": routes}],
        "consumers": [{"username": "ann", "keyauth_credentials": [{"key": "k"}]}],
    }
    running = gateway(config)
    for mark in "-_.!#$%&'*+^`|~":
        # Routes do not tell an underscore from a dash, as in Kong.
        by_header = running.ask("/by-header", headers={f"X{mark}Team": "a"})
        assert by_header.status == (200 if mark in "-_" else 404), mark
        by_key = running.ask("/by-key", headers={f"X{mark}Api{mark}Key": "k"})
        assert by_key.status == (200 if mark == "-" else 401), mark
