"""A client of HTTP/2, event by event, and by frames that no library sends."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import h2.config
import h2.connection
import h2.events

from certificates import Pair, connect, context
from sluice import Gateway
from upstream import Upstream
from wire import DEADLINE

HTTP2 = ("h2", "http/1.1")

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = range(5)
PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(6, 10)
FRAME_HEAD = 9


def frame(kind: int, payload: bytes = b"", stream: int = 0, flags: int = 0) -> bytes:
    """The bytes of a frame."""
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return head + payload


class Client:
    """A connection of HTTP/2, event by event. What it sends may be wrong, what it gets may not."""

    def __init__(self, plain: socket.socket) -> None:
        self.socket = plain
        self.heads: dict[int, dict[str, str]] = {}
        """Of the responses that have come, by stream."""
        self.hints: dict[int, list[dict[str, str]]] = {}
        """Of the interim responses."""
        self.last_stream: int | None = None
        """The last that the gateway has taken, where it has said GOAWAY."""
        self._pending = b""
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(
                header_encoding="utf-8",
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self.h2.local_settings.enable_push = 0
        self.h2.initiate_connection()
        self.flush()

    def flush(self) -> None:
        self.socket.sendall(self.h2.data_to_send())

    def ask(self, path: str = "/", host: str = "h", method: str = "GET", **more: Any) -> int:
        """Begins a request, and ends it unless `end` is False; its stream."""
        head = [(":method", method), (":scheme", "https"), (":authority", host), (":path", path)]
        return self.send(head + more.get("headers", []), more.get("end", True))

    def send(self, head: list[tuple[Any, Any]], end: bool = True) -> int:
        """Begins a request with just these fields; its stream."""
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, head, end_stream=end)
        return stream

    def events(self) -> Iterator[Any]:
        """What comes, until the gateway closes."""
        while data := self.receive():
            self._pending += data
            for whole in self.frames():
                for event in self.h2.receive_data(whole):
                    if isinstance(event, h2.events.DataReceived):
                        self.h2.acknowledge_received_data(
                            event.flow_controlled_length, event.stream_id
                        )
                    yield event
            self.flush()

    def frames(self) -> Iterator[bytes]:
        """What has come in whole frames. Not GOAWAY: the library takes nothing more after one."""
        while len(self._pending) >= FRAME_HEAD:
            size = FRAME_HEAD + int.from_bytes(self._pending[:3], "big")
            if len(self._pending) < size:
                return
            whole, self._pending = self._pending[:size], self._pending[size:]
            if whole[3] == GOAWAY:
                self.last_stream = int.from_bytes(whole[9:13], "big")
            else:
                yield whole

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
                self.heads[stream] = dict(event.headers)
                statuses[stream] = int(self.heads[stream][":status"])
            elif isinstance(event, h2.events.InformationalResponseReceived):
                self.hints.setdefault(stream, []).append(dict(event.headers))
            elif isinstance(event, h2.events.DataReceived) and stream in bodies:
                bodies[stream] += event.data
            elif isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                open_.discard(stream)
            if not open_:
                break
        return {stream: (statuses.get(stream, 0), bodies[stream]) for stream in streams}


@contextlib.contextmanager
def speaking_plainly(port: int) -> Iterator[Client]:
    """HTTP/2 without TLS, of a client who knows beforehand."""
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as plain:
        yield Client(plain)


@contextlib.contextmanager
def speaking(
    running: Gateway, name: str | None = "h", client: Pair | None = None
) -> Iterator[Client]:
    """HTTP/2 by ALPN, for a server name; `client`: the certificate to show."""
    with connect(running.tls_port, name, context(alpn=HTTP2, client=client)) as wrapped:
        assert wrapped.selected_alpn_protocol() == "h2"
        yield Client(wrapped)


def served(upstream: Upstream, **more: Any) -> dict:
    """A configuration with a route for all."""
    return {"services": [{"name": "s", "url": upstream.url, "routes": [{"paths": ["/"]} | more]}]}
