"""HTTP/2 of clients who attack: each limit holds, is counted, and harms nobody else."""

import contextlib
import ssl
import struct
from collections.abc import Iterator

import h2.errors
import h2.events
import hpack.hpack
import pytest
from http2 import (
    CONTINUATION,
    DATA,
    HEADERS,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Client,
    frame,
    served,
    speaking,
    speaking_plainly,
)

from sluice import Gateway, Start
from upstream import Upstream
from wire import Wire, wait_until

GET = bytes([0x82, 0x87, 0x84, 0x01, 0x01]) + b"h"
"""GET https://h/ in HPACK, without its dynamic table."""


def counted(running: Gateway, name: str, reason: str = "") -> int:
    """A counter of HTTP/2."""
    with Wire(running.admin_port) as wire:
        text = wire.ask("/metrics").text
    label = f'{{reason="{reason}"}}' if reason else ""
    line = f"sluice_http2_{name}_total{label} "
    (value,) = [each.removeprefix(line) for each in text.splitlines() if each.startswith(line)]
    return int(value)


def closed(running: Gateway, reason: str) -> int:
    return counted(running, "closed_connections", reason)


def is_ended(client: Client) -> bool:
    """Whether the gateway ends the connection, after what it still has to say."""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while client.receive():
            pass
    return True


def is_served(running: Gateway, worker: int) -> None:
    assert running.get("/").status_code == 200
    assert running.workers() == [worker]


def test_streams_are_bounded(gateway: Start, upstream: Upstream) -> None:
    running = gateway(served(upstream), tls="ssl http2", http2_max_concurrent_streams=4)
    with speaking(running) as client:
        streams = [client.ask(method="POST", end=False) for _ in range(6)]
        client.flush()
        refused = set()
        for event in client.events():
            if isinstance(event, h2.events.StreamReset):
                assert event.error_code == h2.errors.ErrorCodes.REFUSED_STREAM
                refused.add(event.stream_id)
            if len(refused) == 2:
                break
        assert refused == set(streams[4:])
    wait_until(lambda: counted(running, "refused_streams") == 2, "both to be counted")


def test_headers_are_bounded(gateway: Start, upstream: Upstream) -> None:
    running = gateway(served(upstream), tls="ssl http2")
    with speaking(running) as client:
        fine = client.ask(headers=[("x-a", "a" * 4000)])
        assert client.answers([fine])[fine][0] == 200
        wide = client.ask(headers=[(f"x-{i}", "a" * 1000) for i in range(100)])
        assert client.answers([wide])[wide][0] in (0, 400, 431, 494)
    # It is counted as its stream is logged, when the client has been told.
    wait_until(lambda: closed(running, "header") == 1, "the connection to be counted")


def test_each_connection_is_counted(gateway: Start, upstream: Upstream) -> None:
    """Also where the handshake ends before nginx has waited for the client once."""
    running = gateway(served(upstream), tls="ssl http2")
    for _ in range(100):
        with speaking(running) as client:
            stream = client.ask(end=False, method="POST")
            client.h2.reset_stream(stream)
            last = client.ask()
            assert client.answers([last])[last][0] == 200
    assert counted(running, "resets") == 100


@pytest.fixture(params=["tls", "plain"])
def attacked(
    request: pytest.FixtureRequest, gateway: Start, upstream: Upstream
) -> Iterator[tuple[Gateway, Client]]:
    """A gateway with small limits, and a connection to it."""
    plain = request.param == "plain"
    running = gateway(
        served(upstream),
        tls="http2" if plain else "ssl http2",
        http2_max_resets=20,
        http2_max_control_frames=30,
    )
    with speaking_plainly(running.tls_port) if plain else speaking(running) as client:
        yield running, client


def test_slow_resets(attacked: tuple[Gateway, Client]) -> None:
    """CVE-2023-44487, one by one: what nginx does not bound."""
    running, client = attacked
    (worker,) = running.workers()
    for _ in range(20):
        stream = client.ask(end=False, method="POST")
        client.h2.reset_stream(stream)
        client.flush()
    last = client.ask()
    assert client.answers([last])[last][0] == 200
    assert counted(running, "resets") == 20
    assert closed(running, "resets") == 0
    client.h2.reset_stream(client.ask())
    client.flush()
    assert is_ended(client)
    assert (counted(running, "resets"), closed(running, "resets")) == (21, 1)
    is_served(running, worker)


def test_rapid_resets(gateway: Start, upstream: Upstream) -> None:
    """CVE-2023-44487, at once: the connection goes, its worker stays, and others are served."""
    running = gateway(served(upstream), tls="ssl http2")
    (worker,) = running.workers()
    with speaking(running) as client, contextlib.suppress(ConnectionError, ssl.SSLError):
        pairs = range(1, 4001, 2)
        reset = struct.pack("!I", 8)
        client.socket.sendall(
            b"".join(
                frame(HEADERS, GET, stream, 5) + frame(RST_STREAM, reset, stream)
                for stream in pairs
            )
        )
        assert is_ended(client)
    assert closed(running, "resets") + closed(running, "streams") == 1
    assert counted(running, "resets") > 100
    is_served(running, worker)


@pytest.mark.parametrize(
    "wrong",
    [
        frame(WINDOW_UPDATE, struct.pack("!I", 2**31 - 1)),
        frame(DATA, b"behind the end"),
    ],
    ids=["window", "data"],
)
def test_provoked_resets(
    attacked: tuple[Gateway, Client], upstream: Upstream, wrong: bytes
) -> None:
    """CVE-2025-8671: the client breaks the protocol in a stream, and nginx resets it. The upstream
    has the request by then, as it has where the client resets."""
    running, client = attacked
    (worker,) = running.workers()
    upstream.handler = lambda exchange: exchange.fill()
    for i in range(21):
        stream = client.ask(f"/{i}")
        client.flush()
        upstream.wait_for(i + 1)
        if i == 20:
            assert (counted(running, "resets"), closed(running, "resets")) == (20, 0)
        client.socket.sendall(wrong[:5] + struct.pack("!I", stream) + wrong[9:])
    assert is_ended(client)
    assert (counted(running, "resets"), closed(running, "resets")) == (21, 1)
    upstream.handler = upstream.echo
    is_served(running, worker)


def test_what_came_with_it_is_answered(attacked: tuple[Gateway, Client]) -> None:
    """GOAWAY names the last stream that was taken: no client asks for that again."""
    running, client = attacked
    client.h2.data_to_send()
    stream = client.ask()
    asked = client.h2.data_to_send()
    client.socket.sendall(frame(PING, b"12345678") * 30 + asked)
    assert client.answers([stream])[stream][0] == 200
    assert client.last_stream == stream
    assert is_ended(client)
    assert closed(running, "frames") == 1


@pytest.mark.parametrize(
    "flood",
    [
        frame(PING, b"12345678"),
        frame(SETTINGS),
        frame(PRIORITY, struct.pack("!IB", 0, 1), 1),
        frame(SETTINGS, flags=1),
    ],
)
def test_floods(attacked: tuple[Gateway, Client], flood: bytes) -> None:
    """Of frames without a request: none is needed."""
    running, client = attacked
    (worker,) = running.workers()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        for _ in range(100):
            client.socket.sendall(flood)
    assert is_ended(client)
    assert closed(running, "frames") == 1
    is_served(running, worker)


def test_empty_data(attacked: tuple[Gateway, Client]) -> None:
    running, client = attacked
    (worker,) = running.workers()
    stream = client.ask(method="POST", end=False)
    client.flush()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        for _ in range(100):
            client.socket.sendall(frame(DATA, stream=stream))
    assert is_ended(client)
    assert closed(running, "frames") == 1
    is_served(running, worker)


def test_continuations(attacked: tuple[Gateway, Client]) -> None:
    """The class of CVE-2024-27316: a header without an end, in small frames."""
    running, client = attacked
    (worker,) = running.workers()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        client.socket.sendall(frame(HEADERS, GET, 1, 1))
        for i in range(200):
            field = b"\x00\x04x%03d\x01a" % i
            client.socket.sendall(frame(CONTINUATION, field, 1))
    assert is_ended(client)
    wait_until(lambda: closed(running, "frames") == 1, "the connection to be counted")
    is_served(running, worker)


def test_frames_in_pieces(attacked: tuple[Gateway, Client]) -> None:
    """Frames are what they are, however their bytes come."""
    running, client = attacked
    sent = frame(PING, b"12345678") * 5 + frame(RST_STREAM, struct.pack("!I", 8), 1)
    stream = client.ask()
    assert client.answers([stream])[stream][0] == 200
    for i in range(len(sent)):
        client.socket.sendall(sent[i : i + 1])
    stream = client.ask()
    assert client.answers([stream])[stream][0] == 200
    assert counted(running, "resets") == 1
    assert closed(running, "frames") == 0


@pytest.mark.parametrize(
    "flood",
    [
        frame(WINDOW_UPDATE, struct.pack("!I", 1)),
        frame(WINDOW_UPDATE, struct.pack("!I", 1), 1),
        frame(0xEE, b"", 1),
        frame(DATA, b"\xff" + bytes(256), 1, 8),
    ],
    ids=["window", "window of a stream", "unknown", "padding"],
)
def test_other_floods(gateway: Start, upstream: Upstream, flood: bytes) -> None:
    """They have no limit by number: honest clients send some with each answer. nginx ends a
    connection that has carried 8 MiB of what is no request and no response."""
    running = gateway(served(upstream), tls="ssl http2")
    (worker,) = running.workers()
    with speaking(running) as client:
        client.ask(method="POST", end=False)
        client.flush()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            client.socket.sendall(flood * (10_000_000 // len(flood)))
        assert is_ended(client)
    wait_until(lambda: closed(running, "frames") == 1, "the connection to be counted")
    is_served(running, worker)


def literal(name: bytes, value: bytes, kind: int = 0x40) -> bytes:
    """A field in HPACK that is no reference; 0x40: the dynamic table has it from here on."""
    return bytes([kind]) + b"".join(
        hpack.hpack.encode_integer(len(t), 7) + t for t in (name, value)
    )


NEWEST = b"\xbe"
"""HPACK's reference to the latest entry of the dynamic table."""


def test_references(gateway: Start, upstream: Upstream) -> None:
    """HPACK says a long field in one byte: fields count as they are, not as they are said."""
    running = gateway(served(upstream), tls="ssl http2")
    with speaking(running) as client:
        long = literal(b"x", b"a" * 3900)
        block = GET + long + NEWEST * 7
        client.socket.sendall(frame(HEADERS, block, 1, 5))
        wait_until(lambda: len(upstream.requests) == 1, "the request")
        assert upstream.last.headers.all("x") == ["a" * 3900] * 8
        client.socket.sendall(frame(HEADERS, GET + NEWEST * 9, 3, 5))
        assert is_ended(client)
    # It is counted as its stream is logged, when the client has been told.
    wait_until(lambda: closed(running, "header") == 1, "the connection to be counted")
    assert len(upstream.requests) == 1


def test_many_references(gateway: Start, upstream: Upstream) -> None:
    """Short fields are at most 1,000: each takes memory of its own, and one byte to say."""
    running = gateway(served(upstream), tls="ssl http2")
    (worker,) = running.workers()
    for count, status in ((900, 200), (1100, 400), (30_000, 400)):
        with speaking(running) as client:
            stream = client.ask("/", headers=[("x", "")])
            assert client.answers([stream])[stream][0] == 200
            stream = client.h2.get_next_available_stream_id()
            client.h2.send_headers(stream, [(":method", "GET")], end_stream=True)
            client.h2.clear_outbound_data_buffer()
            block = GET + NEWEST * count
            whole = [block[i : i + 16_000] for i in range(0, len(block), 16_000)]
            kinds = [HEADERS] + [CONTINUATION] * (len(whole) - 1)
            for i, (kind, part) in enumerate(zip(kinds, whole, strict=True)):
                last = 4 if part is whole[-1] else 0
                client.socket.sendall(frame(kind, part, stream, last + (i == 0)))
            assert client.answers([stream])[stream][0] in (status, 494 if status == 400 else status)
    is_served(running, worker)


@pytest.mark.parametrize(
    "block",
    [
        b"\x3f\xe2\x1f" + GET,
        b"\x3f\xff\xff\xff\x7f" + GET,
        GET + b"\xff\xff\xff\xff\x7f",
        GET + b"\xbe",
        GET + b"\x80",
        GET + b"\x40\x7f\xff\xff\xff\x7f",
        GET + b"\x40\x81\x00\x00",
    ],
    ids=["table", "huge table", "huge index", "no entry", "index 0", "huge name", "huffman"],
)
def test_bad_compression(gateway: Start, upstream: Upstream, block: bytes) -> None:
    """The connection ends: what stands behind can no longer be read."""
    running = gateway(served(upstream), tls="ssl http2")
    (worker,) = running.workers()
    with speaking(running) as client:
        client.socket.sendall(frame(HEADERS, block, 1, 5))
        assert is_ended(client)
    # It is counted as its stream is logged, when the client has been told.
    wait_until(lambda: closed(running, "header") == 1, "the connection to be counted")
    assert upstream.requests == []
    is_served(running, worker)


def test_settings_of_a_client(gateway: Start, upstream: Upstream) -> None:
    """Huge ones are taken, and cost nothing; nginx keeps no table for what it sends."""
    running = gateway(served(upstream), tls="ssl http2")
    (worker,) = running.workers()
    huge = b"".join(
        struct.pack("!HI", code, value)
        for code, value in ((1, 2**32 - 1), (3, 2**32 - 1), (5, 2**24 - 1), (6, 2**32 - 1), (99, 7))
    )
    with speaking(running) as client:
        client.socket.sendall(frame(SETTINGS, huge * 500))
        stream = client.ask()
        assert client.answers([stream])[stream][0] == 200
    is_served(running, worker)
