"""HTTP/2 of real clients: streams, bodies, names, and clients who mean harm."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import h2.config
import h2.connection
import h2.errors
import h2.events
import httpx
import pytest

from certificates import connect, context
from sluice import Gateway
from upstream import Upstream

START = Callable[..., Gateway]

HTTP2 = ("h2", "http/1.1")


class Client:
    """A connection of HTTP/2, event by event."""

    def __init__(self, plain: socket.socket) -> None:
        self.socket = plain
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.local_settings.enable_push = 0
        self.h2.initiate_connection()
        self.flush()

    def flush(self) -> None:
        self.socket.sendall(self.h2.data_to_send())

    def ask(self, path: str = "/", host: str = "h", method: str = "GET", **more: Any) -> int:
        """Begins a request, and ends it unless `end` is False; its stream."""
        stream = self.h2.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "https"), (":authority", host), (":path", path)]
        head += more.get("headers", [])
        self.h2.send_headers(stream, head, end_stream=more.get("end", True))
        return stream

    def events(self) -> Iterator[Any]:
        """What comes, until the gateway closes."""
        while data := self.receive():
            for event in self.h2.receive_data(data):
                if isinstance(event, h2.events.DataReceived):
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                yield event
            self.flush()

    def receive(self) -> bytes:
        with contextlib.suppress(ConnectionError, ssl.SSLError, TimeoutError):
            return self.socket.recv(65536)
        return b""

    def answers(self, streams: list[int]) -> dict[int, tuple[int, bytes]]:
        """Status and body of these streams, when all have ended."""
        self.flush()
        statuses, bodies, open_ = {}, dict.fromkeys(streams, b""), set(streams)
        for event in self.events():
            stream = getattr(event, "stream_id", 0)
            if isinstance(event, h2.events.ResponseReceived):
                statuses[stream] = int(dict(event.headers)[":status"])
            elif isinstance(event, h2.events.DataReceived):
                bodies[stream] += event.data
            elif isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                open_.discard(stream)
            if not open_:
                break
        return {stream: (statuses.get(stream, 0), bodies[stream]) for stream in streams}


@contextlib.contextmanager
def speaking(running: Gateway, name: str | None = "h") -> Iterator[Client]:
    with connect(running.tls_port, name, context(alpn=HTTP2)) as wrapped:
        assert wrapped.selected_alpn_protocol() == "h2"
        yield Client(wrapped)


def served(upstream: Upstream, **more: Any) -> dict:
    """A configuration with a route for all."""
    return {"services": [{"name": "s", "url": upstream.url, "routes": [{"paths": ["/"]} | more]}]}


def test_clients_of_all_kinds(gateway: START, upstream: Upstream) -> None:
    running = gateway(served(upstream), tls="ssl http2")
    url = f"https://127.0.0.1:{running.tls_port}/x?y=1"
    with httpx.Client(http2=True, verify=False, trust_env=False) as client:
        answer = client.post(url, content=b"b" * 200_000, headers={"x-a": "1"})
        assert (answer.status_code, answer.http_version) == (200, "HTTP/2")
    seen = upstream.last
    assert (seen.version, seen.method, seen.target) == ("HTTP/1.1", "POST", "/x?y=1")
    assert seen.body == b"b" * 200_000
    assert seen.headers.get("x-forwarded-proto") == "https"
    assert seen.headers.get("x-forwarded-host") == "127.0.0.1"
    for flag in ("--http2", "--http1.1"):
        done = subprocess.run(
            ["curl", "-sk", "-o", "/dev/null", "-w", "%{http_version} %{http_code}", flag, url],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stdout == ("2 200" if flag == "--http2" else "1.1 200")


def test_many_streams(gateway: START, upstream: Upstream) -> None:
    running = gateway(served(upstream), tls="ssl http2")
    with speaking(running) as client:
        streams = [client.ask(f"/{i}") for i in range(100)]
        answers = client.answers(streams)
    for i, stream in enumerate(streams):
        status, body = answers[stream]
        assert status == 200
        assert json.loads(body)["target"] == f"/{i}"


def test_authority_routes(gateway: START, upstream: Upstream) -> None:
    """:authority is the host, one connection has many; a Host header beside it is no second one."""
    routes = [{"name": n, "hosts": [n], "paths": ["/"]} for n in ("a.example", "b.example")]
    services = [
        {"name": r["name"], "url": f"{upstream.url}/{r['name'][0]}", "routes": [r]} for r in routes
    ]
    running = gateway({"services": services}, tls="ssl http2")
    with speaking(running, "a.example") as client:
        for host, status, path in [
            ("a.example", 200, "/a"),
            ("b.example:99", 200, "/b"),
            ("A.Example", 200, "/a"),
            ("c.example", 404, ""),
        ]:
            stream = client.ask("/", host)
            assert client.answers([stream])[stream][0] == status, host
            assert not path or upstream.last.path == path
        client.h2.config.validate_outbound_headers = False
        stream = client.ask("/", "a.example", headers=[("host", "b.example")])
        status, _ = client.answers([stream])[stream]
        assert status == 400 or upstream.last.path == "/a"


def test_streams_are_bounded(gateway: START, upstream: Upstream) -> None:
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


def test_headers_are_bounded(gateway: START, upstream: Upstream) -> None:
    running = gateway(served(upstream), tls="ssl http2")
    with speaking(running) as client:
        fine = client.ask(headers=[("x-a", "a" * 4000)])
        assert client.answers([fine])[fine][0] == 200
        wide = client.ask(headers=[(f"x-{i}", "a" * 1000) for i in range(100)])
        assert client.answers([wide])[wide][0] in (0, 400, 431, 494)


def test_rapid_resets(gateway: START, upstream: Upstream) -> None:
    """CVE-2023-44487: the connection goes, its worker stays, and others are served."""
    running = gateway(served(upstream), tls="ssl http2")
    (worker,) = running.workers()
    with speaking(running) as client, contextlib.suppress(ConnectionError, ssl.SSLError):
        for _ in range(2000):
            stream = client.ask()
            client.h2.reset_stream(stream)
        # At once: what nginx bounds is the new streams of one turn of its event loop.
        client.flush()
        ended = [e for e in client.events() if isinstance(e, h2.events.ConnectionTerminated)]
        assert ended
    assert running.get("/").status_code == 200
    assert running.workers() == [worker]


@pytest.mark.parametrize(
    "bad",
    [
        ("connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
        ("x-consumer-username", "root"),
        ("x_forwarded_for", "1.2.3.4"),
    ],
)
def test_headers_that_mean_harm(gateway: START, upstream: Upstream, bad: tuple[str, str]) -> None:
    """What HTTP/1.1 loses on its way, HTTP/2 does: framing, and what only the gateway says."""
    running = gateway(served(upstream), tls="ssl http2")
    with speaking(running) as client:
        client.h2.config.validate_outbound_headers = False
        stream = client.ask(headers=[bad])
        status, _ = client.answers([stream])[stream]
    if status == 200:
        assert upstream.last.headers.get(bad[0]) in (None, "")


def test_without_tls_there_is_none(gateway: START, upstream: Upstream) -> None:
    running = gateway(served(upstream), tls="ssl http2")
    with socket.create_connection(("127.0.0.1", running.proxy_port), timeout=20) as plain:
        plain.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert b"HTTP/2" not in plain.recv(65536)
