"""HTTP/1.1 on raw sockets: what a polished client library hides is what these tests look at."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
import struct
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

DEADLINE = 40.0
"""Seconds after which a wait for anything fails; generous, for a busy machine."""

POLL = 0.005

T = TypeVar("T")

Pairs = dict[str, str] | list[tuple[str, str]]
"""Header lines to send."""


class ClosedEarly(ConnectionError):
    """The peer closed the connection before what was being read was complete."""


def wait_until(condition: Callable[[], T], what: str, deadline: float = DEADLINE) -> T:
    """Polls until condition() is true and returns its value; fails after deadline seconds."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"gave up waiting after {deadline:g} s: {what}")
        time.sleep(POLL)


class Headers(list[tuple[str, str]]):
    """Header lines as they came: order, spelling and repetitions kept."""

    def get(self, name: str, default: str | None = None) -> str | None:
        """The first value of a header, whatever its case."""
        return next((v for n, v in self if n.lower() == name.lower()), default)

    def all(self, name: str) -> list[str]:
        """Every value of a header, in order."""
        return [v for n, v in self if n.lower() == name.lower()]

    def names(self) -> set[str]:
        """The lower-case names."""
        return {n.lower() for n, _ in self}

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self.names()


def parse_head(head: bytes) -> tuple[str, Headers]:
    """Splits a message head into its first line and its headers."""
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = Headers()
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            headers.append((name, value.strip()))
    return first, headers


class Stream:
    """A buffered reader and a plain writer over one connected socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.buffer = bytearray()

    def fill(self) -> bool:
        """Reads once more; False at the end of the stream."""
        data = self.sock.recv(65536)
        self.buffer += data
        return bool(data)

    def read_until(self, mark: bytes) -> bytes:
        """What comes before mark; the mark is consumed. ClosedEarly at the end of the stream."""
        start = 0
        while (at := self.buffer.find(mark, start)) < 0:
            start = max(0, len(self.buffer) - len(mark) + 1)
            if not self.fill():
                raise ClosedEarly(f"closed after {bytes(self.buffer[:200])!r}")
        data = bytes(self.buffer[:at])
        del self.buffer[: at + len(mark)]
        return data

    def read_some(self, limit: int = 65536) -> bytes:
        """At least one byte, at most limit; b"" at the end of the stream."""
        if not self.buffer and not self.fill():
            return b""
        data = bytes(self.buffer[:limit])
        del self.buffer[:limit]
        return data

    def read_exactly(self, size: int) -> bytes:
        """size bytes. ClosedEarly at the end of the stream."""
        while len(self.buffer) < size:
            if not self.fill():
                raise ClosedEarly(f"closed {size - len(self.buffer)} bytes early")
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data

    def read_to_end(self) -> bytes:
        """Everything until the peer closes."""
        while self.fill():
            pass
        data = bytes(self.buffer)
        self.buffer.clear()
        return data

    def read_chunks(self) -> Iterator[bytes]:
        """The chunks of a chunked body, trailers dropped."""
        while size := int(self.read_until(b"\r\n").split(b";")[0], 16):
            yield self.read_exactly(size)
            assert self.read_exactly(2) == b"\r\n", "chunk without its CRLF"
        while self.read_until(b"\r\n"):
            pass

    def send(self, data: bytes) -> None:
        """Writes all of data."""
        self.sock.sendall(data)

    def shut(self) -> None:
        """Ends both directions, below TLS: what was there to read is still deciphered, since an
        SSLSocket's own shutdown makes a plain socket of it."""
        socket.socket.shutdown(self.sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes in the polite way."""
        self.sock.close()

    def abort(self) -> None:
        """Closes with a reset (RST) instead of a FIN."""
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def ended(self, deadline: float = DEADLINE) -> bool:
        """True when the peer closes with nothing more sent; waits for it up to deadline."""
        self.sock.settimeout(deadline)
        try:
            return not self.buffer and not self.fill()
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False


@dataclasses.dataclass
class Reply:
    """One response as it came over the wire."""

    version: str
    status: int
    reason: str
    headers: Headers
    body: bytes = b""
    hints: list[Reply] = dataclasses.field(default_factory=list)
    """The interim responses before it."""
    chunked: bool = False

    @property
    def interim(self) -> list[int]:
        """The statuses of the interim responses."""
        return [hint.status for hint in self.hints]

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    def json(self) -> dict:
        """The body parsed as JSON."""
        return json.loads(self.body)


class Wire(Stream):
    """A raw client connection."""

    def __init__(self, port: int, host: str = "127.0.0.1", timeout: float = DEADLINE) -> None:
        super().__init__(socket.create_connection((host, port), timeout=timeout))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read_head(self) -> Reply:
        """The status line and headers of the next final response; notes 1xx ones on the way."""
        hints: list[Reply] = []
        while True:
            first, headers = parse_head(self.read_until(b"\r\n\r\n"))
            version, status, *reason = first.split(" ", 2)
            reply = Reply(version, int(status), "".join(reason), headers, b"", hints)
            reply.chunked = "chunked" in (headers.get("transfer-encoding") or "").lower()
            if reply.status >= 200 or reply.status == 101:
                return reply
            hints.append(reply)

    def read_reply(self, method: str = "GET") -> Reply:
        """The next whole response, framed as RFC 9112 says for this method."""
        reply = self.read_head()
        if method == "HEAD" or reply.status in (204, 304):
            return reply
        if reply.chunked:
            reply.body = b"".join(self.read_chunks())
        elif (length := reply.headers.get("content-length")) is not None:
            reply.body = self.read_exactly(int(length))
        else:
            reply.body = self.read_to_end()
        return reply

    def ask(
        self,
        target: str,
        method: str = "GET",
        headers: Pairs | None = None,
        body: bytes | None = None,
    ) -> Reply:
        """Sends one request as given (Host and Content-Length added) and reads its reply."""
        self.send(request_bytes(target, method, headers, body))
        return self.read_reply(method)


def request_bytes(
    target: str,
    method: str = "GET",
    headers: Pairs | None = None,
    body: bytes | None = None,
) -> bytes:
    """A request; Host is added where missing, Content-Length where there is a body."""
    pairs = list(headers.items()) if isinstance(headers, dict) else list(headers or [])
    names = {name.lower() for name, _ in pairs}
    if "host" not in names:
        pairs.insert(0, ("Host", "localhost"))
    if body is not None and not names & {"content-length", "transfer-encoding"}:
        pairs.append(("Content-Length", str(len(body))))
    lines = [f"{method} {target} HTTP/1.1", *(f"{n}: {v}" for n, v in pairs), "", ""]
    return "\r\n".join(lines).encode("latin-1") + (body or b"")


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; the last chunk for b""."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def outcome(reply: Reply) -> tuple[int, str | None]:
    """Status and message of an answer."""
    return reply.status, None if reply.status == 200 else reply.json()["message"]
