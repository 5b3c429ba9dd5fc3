"""HTTP/2 of clients who begin and do not go on: what they hold is bounded, and ends in its time."""

import contextlib
import ssl
from pathlib import Path

import h2.events
import h2.settings
import pytest
from http2 import HEADERS, PING, Client, frame, served, speaking

from sluice import Start
from upstream import Upstream
from wire import wait_until

TLS = "ssl http2"

SIZE = 100_000
"""Bytes of a response: it fits what the gateway keeps of one in memory."""

STREAMS = 50


def held_bytes(pid: int) -> int:
    """Memory of a worker that is its own."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("RssAnon:")[2].split()[0]) * 1024


def without_a_window(client: Client) -> None:
    """From here on no stream may be sent a byte of a body."""
    codes = h2.settings.SettingCodes
    client.h2.update_settings({codes.INITIAL_WINDOW_SIZE: 0})


def ended(client: Client, streams: list[int]) -> bool:
    """Whether the gateway resets all of these, and nothing of a body has come."""
    left = set(streams)
    for event in client.events():
        assert not isinstance(event, h2.events.DataReceived)
        if isinstance(event, h2.events.StreamReset):
            left.discard(event.stream_id)
        if not left:
            return True
    return False


def is_closed(client: Client) -> bool:
    """Whether the gateway ends the connection, all by itself."""
    for _ in client.events():
        pass
    return True


def test_streams_without_a_window(gateway: Start, upstream: Upstream) -> None:
    """Each holds its response's buffers and no connection to the upstream, for `send_timeout`; the
    connection then ends by `keepalive_timeout`."""
    upstream.answer(200, body=bytes(SIZE))
    running = gateway(
        served(upstream),
        tls=TLS,
        send_timeout="1s",
        keepalive_timeout="1s",
        http2_max_concurrent_streams=STREAMS,
    )
    (worker,) = running.workers()
    assert running.get("/").status_code == 200
    with speaking(running) as client:
        before = held_bytes(worker)
        without_a_window(client)
        streams = [client.ask(f"/{i}") for i in range(STREAMS)]
        client.flush()
        upstream.wait_for(1 + STREAMS)
        assert ended(client, streams)
        grown = held_bytes(worker) - before
        assert is_closed(client)
    assert grown < STREAMS * (SIZE + 64 * 1024)
    assert running.get("/").status_code == 200


@pytest.mark.parametrize("path", ["/", "/nowhere"])
def test_own_answers_without_a_window(gateway: Start, upstream: Upstream, path: str) -> None:
    """404 of no route, and what is refused for its header: they wait as long."""
    running = gateway(
        served(upstream, paths=["/here"]), tls=TLS, send_timeout="1s", keepalive_timeout="1s"
    )
    lines = [(f"x{i}", "") for i in range(1100)] if path == "/" else []
    with speaking(running) as client:
        without_a_window(client)
        streams = [client.ask(path, headers=lines) for _ in range(10)]
        client.flush()
        assert ended(client, streams)
        assert is_closed(client)
    assert upstream.requests == []


def test_who_reads_nothing(gateway: Start, upstream: Upstream) -> None:
    """Windows are wide, but nobody takes what comes: the connection ends by `send_timeout`."""
    upstream.answer(200, body=bytes(4_000_000))
    running = gateway(served(upstream, response_buffering=False), tls=TLS, send_timeout="1s")
    with speaking(running) as client:
        client.h2.increment_flow_control_window(2**30)
        codes = h2.settings.SettingCodes
        client.h2.update_settings({codes.INITIAL_WINDOW_SIZE: 2**30})
        for i in range(10):
            client.ask(f"/{i}")
        client.flush()
        upstream.wait_for(10)
        wait_until(lambda: upstream.open() == 0, "connections to the upstream to end")
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            wait_until(lambda: not client.receive(), "the end")


def test_pings_keep_no_connection(gateway: Start, upstream: Upstream) -> None:
    """One without requests ends by `keepalive_timeout`, one that never had any, too."""
    running = gateway(served(upstream), tls=TLS, keepalive_timeout="2s", client_header_timeout="2s")
    for asks in (True, False):
        with speaking(running) as client:
            if asks:
                stream = client.ask()
                assert client.answers([stream])[stream][0] == 200
            client.socket.settimeout(0.1)
            with contextlib.suppress(ConnectionError, ssl.SSLEOFError):
                while is_open(client):
                    client.socket.sendall(frame(PING, b"12345678"))


def is_open(client: Client) -> bool:
    try:
        return bool(client.socket.recv(65536))
    except TimeoutError:
        return True


def test_a_header_without_an_end(gateway: Start, upstream: Upstream) -> None:
    """`client_header_timeout`, then `keepalive_timeout`."""
    running = gateway(served(upstream), tls=TLS, client_header_timeout="1s", keepalive_timeout="1s")
    with speaking(running) as client:
        client.socket.sendall(frame(HEADERS, b"\x82\x87\x84", 1, 1))
        assert is_closed(client)
    with speaking(running) as client:
        client.socket.sendall(frame(HEADERS, b"\x82\x87\x84\x01\x01h", 1, 5)[:11])
        assert is_closed(client)
    assert upstream.requests == []


def test_a_body_without_an_end(gateway: Start, upstream: Upstream) -> None:
    """`client_body_timeout` of each stream, then `keepalive_timeout`."""
    running = gateway(served(upstream), tls=TLS, client_body_timeout="1s", keepalive_timeout="1s")
    with speaking(running) as client:
        streams = [client.ask(method="POST", end=False) for _ in range(10)]
        for stream in streams[5:]:
            client.h2.send_data(stream, b"begun")
        answers = client.answers(streams)
        assert {status for status, _ in answers.values()} <= {0, 408}
        assert is_closed(client)
    assert upstream.requests == []
