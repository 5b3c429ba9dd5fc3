"""Requests that no client should send: refused in words, or cut off; never passed on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from sluice import Gateway, proxying
from upstream import Upstream
from wire import ClosedEarly, Reply, Wire

Start = Callable[..., Gateway]

HOST = b"Host: a\r\n"
JSON = b"Accept: application/json\r\n"


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Gateway, Upstream]]:
    """One gateway for all of these: none of them may hurt it."""
    with Upstream() as upstream, Gateway(proxying(upstream)) as gateway:
        gateway.expect_log("client sent invalid chunked body", range(0, 3))
        yield gateway, upstream


def exchange(gateway: Gateway, data: bytes) -> Reply | None:
    """The reply to raw bytes; None if the connection is closed without one."""
    with gateway.wire() as wire:
        wire.send(data)
        try:
            return wire.read_reply()
        except (ClosedEarly, ConnectionResetError):
            return None


REFUSED = {
    "garbage": b"\x00\x01\x02 nonsense\r\n\r\n",
    "tls hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 40 + b"\r\n\r\n",
    "unknown version": b"GET / HTTP/3.7\r\n" + HOST + b"\r\n",
    "no method": b"/ HTTP/1.1\r\n" + HOST + b"\r\n",
    "space in the target": b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n",
    "control byte in the target": b"GET /a\x01b HTTP/1.1\r\n" + HOST + b"\r\n",
    "null in the path": b"GET /a%00b HTTP/1.1\r\n" + HOST + b"\r\n",
    "half an escape": b"GET /a%2 HTTP/1.1\r\n" + HOST + b"\r\n",
    "above the root": b"GET /../../etc/passwd HTTP/1.1\r\n" + HOST + b"\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\n" + HOST + b"Host: b\r\n\r\n",
    "bad host": b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "null in a header": b"GET / HTTP/1.1\r\n" + HOST + b"X: a\x00b\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length not a number": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: x\r\n\r\n",
    "negative length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
    "length and chunked": b"POST / HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked in http/1.0": b"POST / HTTP/1.0\r\n"
    + HOST
    + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two encodings": b"POST / HTTP/1.1\r\n"
    + HOST
    + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "unknown encoding": b"POST / HTTP/1.1\r\n"
    + HOST
    + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "bad chunk size": b"POST / HTTP/1.1\r\n"
    + HOST
    + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n",
    "chunk longer than said": b"POST / HTTP/1.1\r\n"
    + HOST
    + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabcdef\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_and_never_passed_on(running: tuple[Gateway, Upstream], name: str) -> None:
    gateway, upstream = running
    before = len(upstream.requests)
    reply = exchange(gateway, REFUSED[name])
    if reply is not None and reply.version.startswith("HTTP/"):
        assert 400 <= reply.status < 600, reply
        assert reply.status != 404, "refused before it is routed"
    assert len(upstream.requests) == before
    assert gateway.ask("/after").status == 200


def test_refusal_is_in_the_format_of_accept(running: tuple[Gateway, Upstream]) -> None:
    data = b"POST / HTTP/1.1\r\n" + JSON + HOST + b"Content-Length: x\r\n\r\n"
    reply = exchange(running[0], data)
    assert reply is not None
    assert (reply.status, reply.json()["message"]) == (400, "Bad request")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n", 501),
        (b"GET / HTTP/3.0\r\n", 505),
    ],
)
def test_what_this_http_has_not_is_refused_in_json(
    running: tuple[Gateway, Upstream], data: bytes, status: int
) -> None:
    reply = exchange(running[0], data + JSON + HOST + b"\r\n")
    assert reply is not None
    assert reply.status == status
    assert "<html" not in reply.text


def test_http_0_9_becomes_http_1_1(running: tuple[Gateway, Upstream]) -> None:
    """nginx still takes the one-line request of 1991; the upstream gets a modern one."""
    with running[0].wire() as wire:
        wire.send(b"GET /ancient\r\n")
        body = wire.read_to_end()
    assert b"/ancient" in body
    assert (running[1].last.method, running[1].last.version) == ("GET", "HTTP/1.1")


def test_smuggled_request_is_not_seen(running: tuple[Gateway, Upstream]) -> None:
    """The classic: a second request hidden behind two opinions on the body's length."""
    gateway, upstream = running
    hidden = b"GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"
    tries = [
        b"POST /x HTTP/1.1\r\n"
        + HOST
        + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % (5 + len(hidden)),
        b"POST /x HTTP/1.1\r\n"
        + HOST
        + b"Content-Length: 5\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"POST /x HTTP/1.1\r\n"
        + HOST
        + b"Content-Length: 0\r\nTransfer-Encoding : chunked\r\n\r\n",
        b"POST /x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    ]
    for data in tries:
        before = len(upstream.requests)
        with gateway.wire() as wire:
            wire.send(data + hidden)
            try:
                first = wire.read_reply()
            except (ClosedEarly, ConnectionResetError):
                continue
            if first.status >= 400:
                assert wire.ended(), "after a refusal nothing more is read of the connection"
                assert len(upstream.requests) == before
            else:
                # Passed on: then one opinion only, and the same one on both sides.
                sent = upstream.requests[before]
                lengths = sent.headers.all("content-length")
                encodings = sent.headers.all("transfer-encoding")
                assert len(lengths) + len(encodings) == 1


def test_absolute_form(running: tuple[Gateway, Upstream]) -> None:
    data = b"GET http://b.example.com/p?q=1 HTTP/1.1\r\nHost: a\r\n\r\n"
    reply = exchange(running[0], data)
    assert reply is not None
    assert (reply.status, reply.json()["target"]) == (200, "/p?q=1")
    assert running[1].last.headers.get("x-forwarded-host") == "b.example.com"


def test_absolute_form_without_a_path(running: tuple[Gateway, Upstream]) -> None:
    for target, seen in ((b"http://b.example.com", "/"), (b"http://b.example.com?q=1", "/?q=1")):
        reply = exchange(running[0], b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n\r\n")
        assert reply is not None
        assert (reply.status, reply.json()["target"]) == (200, seen)


@pytest.mark.parametrize("line", [b"CONNECT a:80 HTTP/1.1", b"OPTIONS * HTTP/1.1"])
def test_other_forms_are_refused(running: tuple[Gateway, Upstream], line: bytes) -> None:
    reply = exchange(running[0], line + b"\r\n" + HOST + b"\r\n")
    assert reply is None or 400 <= reply.status < 500


def test_trace_is_refused(running: tuple[Gateway, Upstream]) -> None:
    reply = exchange(running[0], b"TRACE / HTTP/1.1\r\n" + HOST + JSON + b"\r\n")
    assert reply is not None
    assert (reply.status, reply.json()["message"]) == (405, "Method not allowed")


def test_http_1_0_without_host(running: tuple[Gateway, Upstream]) -> None:
    reply = exchange(running[0], b"GET /old HTTP/1.0\r\n\r\n")
    assert reply is not None
    assert (reply.status, reply.json()["target"]) == (200, "/old")


def test_bare_line_feeds_are_read_as_line_ends(running: tuple[Gateway, Upstream]) -> None:
    reply = exchange(running[0], b"GET /lf HTTP/1.1\nHost: a\n\n")
    assert reply is not None
    assert (reply.status, reply.json()["target"]) == (200, "/lf")


def test_header_timeout_closes_the_connection(gateway: Start, upstream: Upstream) -> None:
    slow = gateway(proxying(upstream), client_header_timeout="1s")
    with slow.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: ")
        assert slow.ask("/").status == 200
        wire.read_to_end()


def test_body_timeout(gateway: Start, upstream: Upstream) -> None:
    slow = gateway(proxying(upstream), client_body_timeout="1s")
    with slow.wire() as wire:
        wire.send(b"POST / HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: 10\r\n\r\nabc")
        rest = wire.read_to_end()
    assert rest == b"" or rest.startswith(b"HTTP/1.1 408 ")
    assert upstream.requests == []


def test_many_connections_that_say_nothing(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream))
    idle = [Wire(running.proxy_port) for _ in range(200)]
    try:
        assert running.ask("/").status == 200
    finally:
        for wire in idle:
            wire.close()
