"""Asks single requests and looks at every byte: what the load generator has no time for.

`Client` speaks HTTP/1.1 on one kept-alive connection, or has curl speak
HTTP/2; `Recorder` is an upstream that keeps the request heads it gets. Both
are slow and obvious.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass

TIMEOUT_S = 10.0


class ProbeError(Exception):
    """An answer that is not HTTP, or none; the message says what happened."""


@dataclass(frozen=True)
class Answer:
    """A response: status, headers by lower-case name, body, size of all of it on the wire.

    Of HTTP/2 the size is the body's: what headers take depends on those that went before.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    size: int


def parse_head(head: bytes) -> tuple[str, list[tuple[str, str]]]:
    """First line and headers (name in lower case, value) of a request or response head."""
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return first, [(name.lower(), value.strip()) for name, _, value in pairs]


def split_address(address: str) -> tuple[str, int]:
    """`host:port` as the socket module wants it."""
    host, _, port = address.rpartition(":")
    return host, int(port)


class Client:
    """One keep-alive connection to an address; opens it again when the server has closed it.

    With `http2` each request has a connection of its own.
    """

    def __init__(
        self,
        address: str,
        timeout_s: float = TIMEOUT_S,
        scheme: str = "http",
        http2: bool = False,
    ) -> None:
        self._address = address
        self._is_secure = scheme == "https"
        self._http2 = http2
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._buffer = b""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._socket:
            self._socket.close()
        self._socket = None
        self._buffer = b""

    @property
    def own_port(self) -> int:
        """The local port of the connection that is open."""
        assert self._socket
        port: int = self._socket.getsockname()[1]
        return port

    def ask(self, head: bytes) -> Answer:
        """Sends a request (a head, and a body where it has one) and reads its answer."""
        if self._http2:
            return self._ask_by_curl(head)
        if not self._socket:
            self._socket = self._connect()
        try:
            self._socket.sendall(head)
            return self._read_answer()
        except OSError as error:
            self.close()
            raise ProbeError(f"no answer: {error}") from None

    def _ask_by_curl(self, head: bytes) -> Answer:
        first, pairs = parse_head(head)
        method, path, _ = first.split(" ")
        host = dict(pairs)["host"]
        command = ["curl", "--disable", "--silent", "--show-error", "--include", "--insecure"]
        command += ["--http2", "--path-as-is", "--noproxy", "*", "--max-time", f"{self._timeout_s}"]
        command += ["--connect-to", f"::{self._address}", "--request", method]
        for name, value in pairs:
            command += [] if name == "host" else ["--header", f"{name}: {value}"]
        done = subprocess.run([*command, f"https://{host}{path}"], capture_output=True)
        if done.returncode != 0:
            raise ProbeError(f"no answer: {done.stderr.decode(errors='replace').strip()}")
        answer, _, body = done.stdout.partition(b"\r\n\r\n")
        first, pairs = parse_head(answer)
        version, status, *_ = first.split(" ")
        if version != "HTTP/2":
            raise ProbeError(f"not an answer of HTTP/2: {first!r}")
        return Answer(int(status), dict(pairs), body, len(body))

    def _connect(self) -> socket.socket:
        plain = socket.create_connection(split_address(self._address), self._timeout_s)
        if not self._is_secure:
            return plain
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context.wrap_socket(plain)

    def _read_answer(self) -> Answer:
        head = self._take(self._find(b"\r\n\r\n") + 4)
        first, pairs = parse_head(head)
        version, _, status = first.partition(" ")
        if not version.startswith("HTTP/1.") or not status[:3].isdigit():
            raise ProbeError(f"not an HTTP answer: {first!r}")
        headers: dict[str, str] = {}
        for name, value in pairs:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        size = len(head)
        if headers.get("transfer-encoding") == "chunked":
            chunks: list[bytes] = []
            while not chunks or chunks[-1]:
                line = self._take(self._find(b"\r\n") + 2)
                chunk = self._take(int(line.split(b";")[0], 16) + 2)
                size += len(line) + len(chunk)
                chunks.append(chunk[:-2])
            body = b"".join(chunks)
        else:
            body = self._take(int(headers.get("content-length", 0)))
            size += len(body)
        if headers.get("connection") == "close":
            self.close()
        return Answer(int(status[:3]), headers, body, size)

    def _find(self, mark: bytes) -> int:
        while mark not in self._buffer:
            self._receive()
        return self._buffer.index(mark)

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._receive()
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def _receive(self) -> None:
        assert self._socket
        data = self._socket.recv(65536)
        if not data:
            self.close()
            raise ProbeError("the connection was closed instead of an answer")
        self._buffer += data


class Recorder:
    """An upstream that answers everything with 200 and keeps the last request head.

    On an address, and with the same port on any number of other hosts; behind TLS with a context.
    """

    def __init__(
        self,
        address: str,
        body: bytes,
        hosts: Sequence[str] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.head = b""
        self._tls = tls
        self._answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        own, port = split_address(address)
        self._listeners = [socket.create_server((host, port)) for host in (own, *hosts)]
        self._connections: list[socket.socket] = []
        self._closing = False
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes listeners and connections, so that the addresses are free again."""
        self._closing = True
        self._wake.send(b"x")
        self._thread.join()
        for listener in (*self._listeners, self._wake, self._woken):
            listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):  # the other end may have been first
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector:
            for listener in (*self._listeners, self._woken):
                selector.register(listener, selectors.EVENT_READ)
            while not self._closing:
                for key, _ in selector.select():
                    if key.fileobj is not self._woken:
                        self._take(key.fileobj)  # type: ignore[arg-type]

    def _take(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        self._connections.append(connection)
        threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        buffer = b""
        try:
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            while data := connection.recv(65536):
                buffer += data
                while b"\r\n\r\n" in buffer:
                    head, _, buffer = buffer.partition(b"\r\n\r\n")
                    self.head = head + b"\r\n\r\n"
                    connection.sendall(self._answer)
        except OSError:
            pass


def difference(ours: bytes, theirs: bytes, added: list[str]) -> str | None:
    """How two request heads differ, save for headers that we add, or whose text is each one's own.

    Values that name the listener's own port have to be made equal by the
    caller. Returns None for heads that say the same.
    """
    our_line, our_headers = parse_head(ours)
    their_line, their_headers = parse_head(theirs)
    if our_line != their_line:
        return f"request line {our_line!r} against {their_line!r}"
    left = sorted(pair for pair in our_headers if pair[0] not in added)
    right = sorted(pair for pair in their_headers if pair[0] not in added)
    if left != right:
        only_ours = [f"{name}: {value}" for name, value in left if (name, value) not in right]
        only_theirs = [f"{name}: {value}" for name, value in right if (name, value) not in left]
        return f"headers {only_ours} against {only_theirs}"
    return None
