"""Requests that no client should send: refused in words, or cut off; never passed on."""

from collections.abc import Iterator

import pytest

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import ClosedEarly, Reply, Wire

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


def request(line: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    """A request to a host, with these lines as they are."""
    return b"\r\n".join([line, b"Host: a", *headers, b"", body])


def get(target: bytes, *headers: bytes) -> bytes:
    return request(b"GET %s HTTP/1.1" % target, *headers)


def posted(*headers: bytes, body: bytes = b"", version: bytes = b"1.1") -> bytes:
    return request(b"POST /x HTTP/" + version, *headers, body=body)


CHUNKED = b"Transfer-Encoding: chunked"
LAST = b"0\r\n\r\n"

REFUSED = {
    "garbage": b"\x00\x01\x02 nonsense\r\n\r\n",
    "tls hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 40 + b"\r\n\r\n",
    "unknown version": request(b"GET / HTTP/3.7"),
    "no method": request(b"/ HTTP/1.1"),
    "space in the target": get(b"/a b"),
    "control byte in the target": get(b"/a\x01b"),
    "null in the path": get(b"/a%00b"),
    "half an escape": get(b"/a%2"),
    "above the root": get(b"/../../etc/passwd"),
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": get(b"/", b"Host: b"),
    "bad host": b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "null in a header": get(b"/", b"X: a\x00b"),
    "two lengths": posted(b"Content-Length: 1", b"Content-Length: 2", body=b"ab"),
    "length not a number": posted(b"Content-Length: x"),
    "negative length": posted(b"Content-Length: -1"),
    "length and chunked": posted(b"Content-Length: 4", CHUNKED, body=LAST),
    "chunked in http/1.0": posted(CHUNKED, body=LAST, version=b"1.0"),
    "two encodings": posted(CHUNKED, CHUNKED, body=LAST),
    "unknown encoding": posted(b"Transfer-Encoding: xchunked", body=LAST),
    "bad chunk size": posted(CHUNKED, body=b"zz\r\nab\r\n" + LAST),
    "chunk longer than said": posted(CHUNKED, body=b"1\r\nabcdef\r\n" + LAST),
}


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_and_never_passed_on(running: tuple[Gateway, Upstream], name: str) -> None:
    gateway, upstream = running
    before = len(upstream.requests)
    reply = exchange(gateway, REFUSED[name])
    if reply is not None and reply.version.startswith("HTTP/"):
        assert 400 <= reply.status < 600, reply
        assert reply.status != 404, "refused before it is routed"
    assert gateway.ask("/after").status == 200
    assert [request.target for request in upstream.requests[before:]] == ["/after"]


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
        posted(b"Content-Length: %d" % (5 + len(hidden)), CHUNKED, body=LAST),
        posted(b"Content-Length: 5", b"Transfer-Encoding: chunked, identity", body=LAST),
        posted(b"Content-Length: 0", b"Transfer-Encoding : chunked"),
        posted(b"Transfer-Encoding:\x0bchunked", body=LAST),
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
        assert slow.ask("/beside").status == 200
        wire.read_to_end()
    assert [request.target for request in upstream.requests] == ["/beside"]


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
        assert running.ask("/beside").status == 200
    finally:
        for wire in idle:
            wire.close()
    assert [request.target for request in upstream.requests] == ["/beside"]
