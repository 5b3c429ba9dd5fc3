"""Interim responses of an upstream to clients of HTTP/2."""

import socket
import threading
from collections.abc import Iterator

import h2.events
import h2.settings
import pytest
from http2 import served, speaking

from sluice import Gateway, Start
from upstream import Exchange, Upstream, in_pieces
from wire import DEADLINE

HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nX-Early: \xc3\xa9\r\n\r\n"
FINAL = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Final: yes\r\n\r\nbody"
HEAD = {":status": "103", "link": "</a.css>; rel=preload", "x-early": "\u00e9"}
TLS = "ssl http2"
BUFFERS = {"proxy_buffer_size": "256k", "proxy_buffers": "8 256k"}


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Gateway, Upstream]]:
    with (
        Upstream() as upstream,
        Gateway(served(upstream), tls=TLS, **BUFFERS) as gateway,
    ):
        yield gateway, upstream


@pytest.mark.parametrize("together", [True, False], ids=["together", "apart"])
def test_each_stream_gets_its_own(running: tuple[Gateway, Upstream], together: bool) -> None:
    """The first head of a connection is one: it says that nginx's table has no room."""
    gateway, upstream = running
    upstream.handler = in_pieces(*([HINT + FINAL] if together else [HINT, FINAL]))
    for method, body in (("GET", b"body"), ("HEAD", b"")):
        with speaking(gateway) as client:
            for _ in range(5):
                stream = client.ask("/", method=method)
                assert client.answers([stream]) == {stream: (200, body)}
                assert client.hints.pop(stream) == [HEAD]
                assert client.heads[stream]["x-final"] == "yes"


def test_an_interim_response_comes_before_the_final_one(
    running: tuple[Gateway, Upstream],
) -> None:
    gateway, upstream = running
    go = threading.Event()

    def say(exchange: Exchange) -> None:
        exchange.send(HINT)
        assert go.wait(DEADLINE)
        exchange.send(FINAL)

    upstream.handler = say
    with speaking(gateway) as client:
        stream = client.ask("/")
        client.flush()
        for event in client.events():
            if isinstance(event, h2.events.InformationalResponseReceived):
                assert event.stream_id == stream
                break
        go.set()
        assert client.answers([stream]) == {stream: (200, b"body")}


def test_many_streams_at_once(running: tuple[Gateway, Upstream]) -> None:
    """Hints are sent or dropped; nothing else changes."""
    gateway, upstream = running
    upstream.handler = in_pieces(HINT + HINT + FINAL)
    with speaking(gateway) as client:
        for _ in range(10):
            streams = [client.ask("/") for _ in range(50)]
            assert client.answers(streams) == {stream: (200, b"body") for stream in streams}
        assert client.hints
        assert all(hint == HEAD for hints in client.hints.values() for hint in hints)


def test_one_that_is_larger_than_a_frame(running: tuple[Gateway, Upstream]) -> None:
    """It goes on in CONTINUATION; and the memory of one is that of the next."""
    gateway, upstream = running
    with speaking(gateway) as client:
        for size in (10, 16_000, 16_384, 20_000, 100, 30_000):
            # "#" is longer in Huffman's code than it is.
            text = "#" * size
            upstream.handler = in_pieces(
                f"HTTP/1.1 103 \r\nX-Long: {text}\r\n\r\n".encode() + FINAL
            )
            stream = client.ask("/")
            assert client.answers([stream]) == {stream: (200, b"body")}
            assert client.hints.pop(stream) == [{":status": "103", "x-long": text}]


def test_lines_that_would_end_the_stream_are_dropped(running: tuple[Gateway, Upstream]) -> None:
    gateway, upstream = running
    wrong = [b"\xc3\xa9: x", b"a(b): x", b"X-Control: a\x01b", b"Connection: x", b"Upgrade: h2c"]
    said = b"".join(line + b"\r\n" for line in [*wrong, b"X-Upper: 1"])
    upstream.handler = in_pieces(b"HTTP/1.1 103 \r\n" + said + b"\r\n" + FINAL)
    with speaking(gateway) as client:
        stream = client.ask("/")
        assert client.answers([stream]) == {stream: (200, b"body")}
        assert client.hints[stream] == [{":status": "103", "x-upper": "1"}]


def test_a_stream_that_ends_after_its_hint(running: tuple[Gateway, Upstream]) -> None:
    gateway, upstream = running
    go = threading.Event()

    def say(exchange: Exchange) -> None:
        exchange.send(HINT)
        go.wait(DEADLINE)

    with speaking(gateway) as client:
        for _ in range(20):
            upstream.handler = say
            stream = client.ask("/")
            client.flush()
            client.h2.reset_stream(stream)
            client.flush()
            upstream.handler = in_pieces(HINT + FINAL)
            stream = client.ask("/")
            assert client.answers([stream])[stream] == (200, b"body")
            go.set()


def test_a_client_who_does_not_read(gateway: Start, upstream: Upstream) -> None:
    """What waits of one goes first; the others are dropped, and nothing is counted wrongly."""
    started = gateway(served(upstream), tls=TLS, workers=1, **BUFFERS)
    text = "#" * 250_000
    upstream.handler = in_pieces(f"HTTP/1.1 103 \r\nX-Long: {text}\r\n\r\n".encode() + HINT + FINAL)
    with speaking(started) as client:
        client.h2.decoder.max_header_list_size = 2 * len(text)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        streams = [client.ask("/") for _ in range(60)]
        client.flush()
        upstream.wait_for(60)
        assert client.answers(streams) == {stream: (200, b"body") for stream in streams}
        sent = sum(len(hints) for hints in client.hints.values())
        assert 0 < sent < 120, sent
        for hints in client.hints.values():
            assert all(hint in (HEAD, {":status": "103", "x-long": text}) for hint in hints)
        stream = client.ask("/")
        assert client.answers([stream]) == {stream: (200, b"body")}
