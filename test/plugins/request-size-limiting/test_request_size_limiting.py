"""The request-size-limiting plugin: how long a body may be, whatever it says, however it comes:
false lengths, none, `Expect`, HTTP/2, other readers of the body."""

import contextlib
import socket
from typing import Any

import pytest
from admin_client import Client
from http2 import speaking
from plugin_pages import example

from sluice import Gateway, Start, proxying
from upstream import Exchange, Upstream
from wire import Pairs, chunk, outcome, request_bytes

JSON = {"Accept": "application/json"}
CHUNKED = JSON | {"Transfer-Encoding": "chunked"}
EXPECTING = {"Expect": "100-continue"}

KILOBYTE = 1024
LARGE = (413, "Request size limit exceeded")
UNEXPECTED = (417, "Request size limit exceeded")
LENGTHLESS = (411, "A valid Content-Length header is required")
PASSES = (200, None)


def limited(upstream: Upstream, *more: dict[str, Any], **config: Any) -> dict[str, Any]:
    """One route with the plugin."""
    plugins = [{"name": "request-size-limiting", "config": config}, *more]
    return proxying(upstream) | {"plugins": plugins}


def kilobyte(upstream: Upstream, *more: dict[str, Any], **config: Any) -> dict[str, Any]:
    """The same with a limit of one kilobyte."""
    sizes = {"allowed_payload_size": 1, "size_unit": "kilobytes"}
    return limited(upstream, *more, **(sizes | config))


def pieces(*sizes: int, end: bool = True) -> bytes:
    """A body in chunks."""
    return b"".join(chunk(b"x" * size) for size in sizes) + (chunk(b"") if end else b"")


def send(running: Gateway, body: bytes, headers: Pairs = CHUNKED) -> tuple[int, str | None]:
    """A POST, its body as it is, on a connection of its own."""
    with running.wire() as wire:
        wire.send(request_bytes("/", "POST", headers) + body)
        return outcome(wire.read_reply())


SIZES = [
    ({"allowed_payload_size": 5, "size_unit": "bytes"}, 5),
    ({"allowed_payload_size": 1, "size_unit": "kilobytes"}, KILOBYTE),
    ({"allowed_payload_size": 1, "size_unit": "megabytes"}, KILOBYTE**2),
    ({"allowed_payload_size": 2}, 2 * KILOBYTE**2),
    ({"allowed_payload_size": 0}, 0),
]


@pytest.mark.parametrize(("config", "limit"), SIZES)
def test_sizes(serving: Start, upstream: Upstream, config: dict[str, Any], limit: int) -> None:
    running = serving(limited(upstream, **config), client_max_body_size="8m")
    for size, expected in ((limit, PASSES), (limit + 1, LARGE)):
        assert outcome(running.ask("/", "POST", JSON, b"x" * size)) == expected
        assert send(running, pieces(*([size] if size else []))) == expected
    assert outcome(running.ask("/", headers=JSON)) == PASSES
    assert {len(request.body) for request in upstream.requests} <= {0, limit}


def test_the_limit_of_kong_is_128_megabytes(serving: Start, upstream: Upstream) -> None:
    running = serving(limited(upstream), client_max_body_size="0")
    limit = 128 * KILOBYTE**2
    assert send(running, b"", JSON | {"Content-Length": str(limit + 1)}) == LARGE
    with running.wire() as wire:
        wire.send(request_bytes("/", "POST", JSON | EXPECTING | {"Content-Length": str(limit)}))
        assert wire.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100")


@pytest.mark.parametrize("size", [-1, -(10**6)])
def test_below_nothing_nothing_passes(serving: Start, upstream: Upstream, size: int) -> None:
    running = serving(limited(upstream, allowed_payload_size=size))
    for body in (None, b"", b"x"):
        assert outcome(running.ask("/", headers=JSON, body=body)) == LARGE
    assert send(running, chunk(b"")) == LARGE
    assert not upstream.requests


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        (JSON, b"", LENGTHLESS),
        (JSON | {"Content-Length": "0"}, b"", PASSES),
        (JSON | {"Content-Length": "3"}, b"abc", PASSES),
        (CHUNKED, pieces(3), PASSES),
        (JSON | {"Transfer-Encoding": "Chunked"}, pieces(3), PASSES),
        (CHUNKED, pieces(KILOBYTE + 1), LARGE),
    ],
)
def test_a_length_is_required(
    serving: Start,
    upstream: Upstream,
    headers: Pairs,
    body: bytes,
    expected: tuple[int, str | None],
) -> None:
    running = serving(kilobyte(upstream, require_content_length=True))
    assert send(running, body, headers) == expected


def test_the_pages_example(serving: Start, upstream: Upstream) -> None:
    running = serving(example("request-size-limiting", upstream.url))
    for size, expected in ((64 * KILOBYTE, PASSES), (64 * KILOBYTE + 1, LARGE)):
        assert outcome(running.ask("/uploads", "POST", JSON, b"x" * size)) == expected


# Who does not know how long it will be


def reads(exchange: Exchange) -> None:
    """Until the gateway ends the connection."""
    with contextlib.suppress(ConnectionError):
        exchange.read_body()


@pytest.mark.parametrize("is_buffered", [True, False])
def test_a_body_without_end_is_bounded(
    serving: Start, upstream: Upstream, is_buffered: bool
) -> None:
    """While it comes: nobody waits for its end, and the upstream never sees more than the bound."""
    document = kilobyte(upstream)
    document["services"][0]["routes"][0]["request_buffering"] = is_buffered
    if not is_buffered:
        upstream.handler = reads
    running = serving(document)
    with running.wire() as wire:
        wire.send(request_bytes("/", "POST", CHUNKED) + chunk(b"x"))
        if not is_buffered:
            upstream.wait_for(1)
        for _ in range(KILOBYTE // 64):
            wire.send(chunk(b"x" * 64))
        reply = wire.read_reply()
        assert outcome(reply) == LARGE
        assert reply.headers.get("Connection") == "close"
        wire.sock.shutdown(socket.SHUT_WR)
        assert wire.ended()
    assert len(upstream.requests) == (not is_buffered)
    assert all(len(request.body) <= KILOBYTE for request in upstream.requests)


def test_who_sends_on_is_not_read_on(serving: Start, upstream: Upstream) -> None:
    """A megabyte of chunks, sent before the answer is read, costs no memory and breaks nothing."""
    running = serving(kilobyte(upstream))
    with running.wire() as wire:
        wire.send(request_bytes("/", "POST", CHUNKED))
        wire.send(pieces(*[KILOBYTE] * 1024, end=False))
        assert outcome(wire.read_reply()) == LARGE
    assert outcome(running.ask("/", headers=JSON)) == PASSES
    assert len(upstream.requests) == 1


def test_chunks_of_one_byte(serving: Start, upstream: Upstream) -> None:
    running = serving(kilobyte(upstream))
    assert send(running, pieces(*[1] * KILOBYTE)) == PASSES
    assert len(upstream.last.body) == KILOBYTE
    assert send(running, pieces(*[1] * (KILOBYTE + 1))) == LARGE


def test_a_chunk_that_says_it_is_huge(serving: Start, upstream: Upstream) -> None:
    """What was received counts, not what is announced: nothing is reserved for it."""
    running = serving(kilobyte(upstream), client_max_body_size="0")
    huge = b"7fffffffff\r\n" + b"x" * (KILOBYTE + 1)
    assert send(running, huge) == LARGE


def test_trailers_are_no_body(serving: Start, upstream: Upstream) -> None:
    running = serving(kilobyte(upstream))
    body = pieces(KILOBYTE, end=False) + b"0\r\nX-Trailer: 1\r\n\r\n"
    assert send(running, body) == PASSES


# Who says something else


def test_bodies_that_are_longer_than_they_say(serving: Start, upstream: Upstream) -> None:
    """What is beyond is the next request, and none that the upstream gets."""
    running = serving(kilobyte(upstream))
    running.expect_log("client sent invalid method|invalid request line", range(3))
    with running.wire() as wire:
        headers = JSON | {"Content-Length": "4"}
        wire.send(request_bytes("/", "POST", headers) + b"x" * 100 * KILOBYTE + b"\r\n\r\n")
        assert outcome(wire.read_reply()) == PASSES
        assert wire.read_reply().status == 400
    assert [request.body for request in upstream.requests] == [b"xxxx"]


LIES: list[tuple[Pairs, bytes]] = [
    ([("Content-Length", "4"), ("Content-Length", "4000")], b"xxxx"),
    ([("Content-Length", "4"), ("Transfer-Encoding", "chunked")], pieces(4)),
    ({"Content-Length": "-1"}, b""),
    ({"Content-Length": "0x1"}, b"x"),
    ({"Content-Length": "1e3"}, b"x"),
    ({"Content-Length": "99999999999999999999"}, b"x"),
    ({"Content-Length": ""}, b""),
]


@pytest.mark.parametrize(("headers", "body"), LIES)
def test_lengths_that_are_none(
    serving: Start, upstream: Upstream, headers: Pairs, body: bytes
) -> None:
    running = serving(kilobyte(upstream))
    with running.wire() as wire:
        wire.send(request_bytes("/", "POST", headers) + body)
        assert wire.read_reply().status == 400
    assert not upstream.requests


def test_an_underscore_is_no_length(serving: Start, upstream: Upstream) -> None:
    running = serving(kilobyte(upstream))
    headers = CHUNKED | {"Content_Length": "1"}
    assert send(running, pieces(KILOBYTE + 1), headers) == LARGE


# Expect


def test_who_asks_first_is_told_before_the_body(serving: Start, upstream: Upstream) -> None:
    """Without 100, by Kong's status; and with 100 where nobody knows the length."""
    running = serving(kilobyte(upstream))
    with running.wire() as wire:
        headers = JSON | EXPECTING | {"Content-Length": str(KILOBYTE + 1)}
        wire.send(request_bytes("/", "POST", headers))
        reply = wire.read_reply()
        assert (outcome(reply), reply.interim) == (UNEXPECTED, [])
        assert reply.headers.get("Connection") == "close"
    with running.wire() as wire:
        wire.send(request_bytes("/", "POST", CHUNKED | {"Expect": "100-Continue"}))
        wire.send(pieces(KILOBYTE + 1))
        reply = wire.read_reply()
        assert (outcome(reply), reply.interim) == (UNEXPECTED, [100])
        assert reply.headers.get("Connection") == "close"
    with running.wire() as wire:
        wire.send(request_bytes("/", "POST", CHUNKED | EXPECTING) + pieces(KILOBYTE))
        reply = wire.read_reply()
        assert (reply.status, reply.interim) == (200, [100])
    assert len(upstream.requests) == 1


def test_a_connection_goes_on(serving: Start, upstream: Upstream) -> None:
    """The body of a refused request is read, and no part of it is taken for a request."""
    running = serving(kilobyte(upstream))
    body = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n" * 100
    with running.wire() as wire:
        for _ in range(3):
            assert outcome(wire.ask("/", "POST", JSON, body)) == LARGE
            assert outcome(wire.ask("/fine", headers=JSON)) == PASSES
    assert [request.path for request in upstream.requests] == ["/fine"] * 3


# Whoever else has to do with the body


def test_http2_without_a_length(serving: Start, upstream: Upstream) -> None:
    running = serving(kilobyte(upstream), tls="ssl http2")
    with speaking(running) as client:
        streams = []
        for size in (KILOBYTE, KILOBYTE + 1):
            stream = client.ask(method="POST", end=False, headers=[("accept", "application/json")])
            client.h2.send_data(stream, b"x" * size, end_stream=size == KILOBYTE)
            streams.append(stream)
        answers = client.answers(streams)
        assert [answers[stream][0] for stream in streams] == [200, 413]
        assert b"Request size limit exceeded" in answers[streams[1]][1]
        said = client.ask(method="POST", end=False, headers=[("content-length", "1025")])
        assert client.answers([said])[said][0] == 413
    assert [len(request.body) for request in upstream.requests] == [KILOBYTE]


READS = """
return {
    VERSION = "1", PRIORITY = %d,
    schema = { name = "reads", fields = { { config = { type = "record", fields = {} } } } },
    access = function()
        ngx.req.read_body()
        ngx.req.set_header("X-Read", "yes")
    end,
}
"""


@pytest.mark.parametrize("priority", [2000, 5])
def test_bodies_that_a_plugin_reads(serving: Start, upstream: Upstream, priority: int) -> None:
    """Before, it is counted afterwards; behind, while that plugin reads it."""
    document = kilobyte(upstream, {"name": "reads"})
    running = serving(document, plugins={"reads": READS % priority})
    assert send(running, pieces(KILOBYTE)) == PASSES
    assert upstream.last.headers.get("X-Read") == "yes"
    for sizes in ([KILOBYTE + 1], [KILOBYTE] * 64):
        assert send(running, pieces(*sizes)) == LARGE
    assert len(upstream.requests) == 1


HMAC = {"name": "hmac-auth", "config": {"validate_request_body": True, "anonymous": "somebody"}}


def test_bodies_that_a_native_plugin_reads(serving: Start, upstream: Upstream) -> None:
    document = kilobyte(upstream, HMAC) | {"consumers": [{"username": "somebody"}]}
    running = serving(document)
    assert send(running, pieces(KILOBYTE)) == PASSES
    assert send(running, pieces(KILOBYTE + 1)) == LARGE


def test_the_most_specific_configuration_counts(serving: Start, upstream: Upstream) -> None:
    """For a consumer, too: who he is, is known before."""
    document = kilobyte(upstream, {"name": "key-auth"}) | {
        "consumers": [
            {
                "username": "big",
                "keyauth_credentials": [{"key": "big"}],
                "plugins": [
                    {"name": "request-size-limiting", "config": {"allowed_payload_size": 1}}
                ],
            },
            {"username": "small", "keyauth_credentials": [{"key": "small"}]},
        ]
    }
    running = serving(document)
    for key, expected in (("big", PASSES), ("small", LARGE)):
        assert send(running, pieces(2 * KILOBYTE), CHUNKED | {"apikey": key}) == expected
        reply = running.ask("/", "POST", JSON | {"apikey": key}, b"x" * 2 * KILOBYTE)
        assert outcome(reply) == expected


@pytest.mark.parametrize("line", [b"GET /\r\n", b"POST / HTTP/1.0\r\n\r\n"])
@pytest.mark.parametrize("is_required", [True, False])
def test_requests_without_headers(
    serving: Start, upstream: Upstream, line: bytes, is_required: bool
) -> None:
    running = serving(kilobyte(upstream, require_content_length=is_required))
    with running.wire() as wire:
        wire.send(line)
        said = wire.read_to_end()
    assert (b"Content-Length header is required" in said) is is_required
    assert len(upstream.requests) == (not is_required)


def test_an_upgrade_has_no_body(serving: Start, upstream: Upstream) -> None:
    """What comes behind the handshake is none."""

    def tunnel(exchange: Exchange) -> None:
        exchange.head(101, {"Connection": "Upgrade", "Upgrade": "websocket"})
        exchange.send(exchange.read_exactly(3 * KILOBYTE))

    upstream.handler = tunnel
    running = serving(kilobyte(upstream))
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    with running.wire() as wire:
        wire.send(request_bytes("/", headers=headers))
        assert wire.read_head().status == 101
        wire.send(b"x" * 3 * KILOBYTE)
        assert wire.read_exactly(3 * KILOBYTE) == b"x" * 3 * KILOBYTE


@pytest.mark.parametrize("value", ["1", 1.5])
def test_configurations_that_are_none(client: Client, value: object) -> None:
    reply = client.ask(
        "POST",
        "/plugins",
        {"name": "request-size-limiting", "config": {"allowed_payload_size": value}},
    )
    assert reply.status == 400
    assert "allowed_payload_size" in reply.json()["message"]
    assert client.must(200, "GET", "/plugins")["data"] == []
