"""Scriptable upstream servers on raw sockets that remember what they were asked."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from wire import DEADLINE, Headers, Pairs, Stream, chunk, parse_head

BODILESS = (204, 304)

NONE: Pairs = []


@dataclasses.dataclass
class Request:
    """One request as the upstream saw it. Recorded as soon as its head has been read."""

    method: str
    target: str
    version: str
    headers: Headers
    connection: int
    """Number of the connection that it came over, from 0."""
    nth: int
    """Number of the request on that connection, from 0."""
    body: bytes = b""

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


class Exchange(Stream):
    """A request's connection in a handler's hands."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self.request: Request = None  # type: ignore[assignment]
        self.keep = True
        """Cleared by a handler (or an answer framed by its end) to close the connection after."""
        self._pending: Iterator[bytes] = iter(())

    def begin(self, request: Request) -> None:
        """Takes up the next request of the connection."""
        self.request = request
        self._pending = self._body_parts()

    def _body_parts(self) -> Iterator[bytes]:
        headers = self.request.headers
        if (headers.get("expect") or "").lower() == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in (headers.get("transfer-encoding") or "").lower():
            yield from self.read_chunks()
            return
        left = int(headers.get("content-length") or 0)
        while left:
            data = self.read_some(min(left, 65536))
            if not data:
                raise ConnectionError("request body cut short")
            left -= len(data)
            yield data

    def body_part(self) -> bytes:
        """The next piece of the request body as it arrives; b"" at its end."""
        part = next(self._pending, b"")
        self.request.body += part
        return part

    def read_body(self) -> bytes:
        """The whole (rest of the) request body."""
        while self.body_part():
            pass
        return self.request.body

    def head(self, status: int, headers: Pairs = NONE) -> None:
        """Sends a status line and exactly these headers."""
        pairs = list(headers.items()) if isinstance(headers, dict) else list(headers)
        lines = [f"HTTP/1.1 {status} Reason", *(f"{n}: {v}" for n, v in pairs), "", ""]
        self.send("\r\n".join(lines).encode("latin-1"))

    def reply(
        self,
        status: int = 200,
        headers: Pairs = NONE,
        body: bytes = b"",
        chunked: bool = False,
    ) -> None:
        """Answers with a framed response; a HEAD gets the headers only."""
        self.read_body()
        pairs = list(headers.items()) if isinstance(headers, dict) else list(headers)
        if status not in BODILESS and not {n.lower() for n, _ in pairs} & {"content-length"}:
            framing = ("Transfer-Encoding", "chunked") if chunked else None
            pairs.append(framing or ("Content-Length", str(len(body))))
        self.head(status, pairs)
        if self.request.method != "HEAD" and status not in BODILESS:
            self.send(chunk(body) + chunk(b"") if chunked and body else body)


Handler = Callable[[Exchange], None]


def family_of(host: str) -> socket.AddressFamily:
    """Of a numerical address."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def authority(host: str, port: int) -> str:
    """host:port, as a target is written."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def self_signed(folder: Path) -> ssl.SSLContext:
    """What a server needs for TLS, its key and certificate new, their files in this folder."""
    key, certificate = folder / "key.pem", folder / "cert.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
        f"-subj /CN=test -keyout {key} -out {certificate}"
    )
    subprocess.run(command.split(), check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


class Upstream:
    """An HTTP/1.1 server in threads of its own.

    Answers with a JSON description of the request, or as `handler` does. A handler may read the
    body piece by piece, send raw bytes, wait for events, close or reset: the connection is its.
    """

    def __init__(
        self,
        handler: Handler | None = None,
        name: str = "upstream",
        host: str = "127.0.0.1",
        port: int = 0,
        backlog: int = 512,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.handler: Handler = handler or self.echo
        self.tls = tls
        self.name = name
        self.host = host
        self.requests: list[Request] = []
        self.connections = 0
        """Number of connections accepted so far."""
        self.problems: list[BaseException] = []
        """What handlers threw, connection errors aside; checked when the upstream closes."""
        self._changed = threading.Condition()
        self._open: set[Exchange] = set()
        family = family_of(host)
        self._listener = socket.socket(family)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            self._listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        self._listener.bind((host, port))
        self._listener.listen(backlog)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """host:port, as a target is written."""
        return authority(self.host, self.port)

    @property
    def url(self) -> str:
        """http://host:port, or https."""
        return f"http{'s' if self.tls else ''}://{self.address}"

    @property
    def last(self) -> Request:
        """The latest request."""
        return self.requests[-1]

    def __enter__(self) -> Upstream:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close()
        if kind is None and self.problems:
            raise self.problems[0]

    def reads_little(self) -> None:
        """What it does not read stays with its clients: the kernel keeps little of it."""
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)

    def close(self) -> None:
        """Stops listening and cuts every connection."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_connections()

    def open(self) -> int:
        """Number of open connections."""
        with self._changed:
            return len(self._open)

    def drop_connections(self) -> None:
        """Cuts every open connection, idle ones too."""
        with self._changed:
            for exchange in self._open:
                with contextlib.suppress(OSError):
                    exchange.shut()

    def answer(
        self,
        status: int = 200,
        headers: Pairs = NONE,
        body: bytes = b"",
        chunked: bool = False,
    ) -> None:
        """From now on answers everything alike."""
        self.handler = lambda exchange: exchange.reply(status, headers, body, chunked)

    def hold(self, body: bytes = b"") -> threading.Event:
        """From now on answers nothing before the event that it returns is set."""
        go_on = threading.Event()

        def wait(exchange: Exchange) -> None:
            go_on.wait(DEADLINE)
            exchange.reply(200, body=body)

        self.handler = wait
        return go_on

    def wait_for(self, count: int, deadline: float = DEADLINE) -> list[Request]:
        """Waits until count requests have been seen, and returns all seen."""
        with self._changed:
            met = self._changed.wait_for(lambda: len(self.requests) >= count, deadline)
            assert met, f"{self.name} saw {len(self.requests)} requests, not {count}"
            return list(self.requests)

    def echo(self, exchange: Exchange) -> None:
        """Describes the request in JSON; the default handler."""
        body = exchange.read_body()
        request = exchange.request
        description = {
            "upstream": self.name,
            "method": request.method,
            "target": request.target,
            "headers": list(request.headers),
            "connection": request.connection,
            "nth": request.nth,
            "length": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
        }
        exchange.reply(200, {"Content-Type": "application/json"}, json.dumps(description).encode())

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            number, self.connections = self.connections, self.connections + 1
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        try:
            sock = self._secured(sock)
        except OSError:
            return  # the client went away
        exchange = Exchange(sock)
        with self._changed:
            self._open.add(exchange)
        try:
            nth = 0
            while exchange.keep and self._serve_one(exchange, number, nth):
                nth += 1
        except OSError:
            pass  # the gateway went away, or the handler cut the connection: the tests' business
        except BaseException as problem:  # a mistake in a test's handler must not pass unseen
            self.problems.append(problem)
        finally:
            with self._changed:
                self._open.discard(exchange)
            exchange.close()

    def _secured(self, sock: socket.socket) -> socket.socket:
        """The connection behind its handshake, if it has one."""
        return self.tls.wrap_socket(sock, server_side=True) if self.tls else sock

    def _serve_one(self, exchange: Exchange, number: int, nth: int) -> bool:
        if not exchange.buffer and not exchange.fill():
            return False
        first, headers = parse_head(exchange.read_until(b"\r\n\r\n"))
        method, target, version = first.split(" ")
        request = Request(method, target, version, headers, number, nth)
        exchange.begin(request)
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        self.handler(exchange)
        exchange.read_body()
        return (headers.get("connection") or "").lower() != "close"


class DeadPort:
    """A port that nobody else can take and that refuses every connection."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._sock = socket.socket(family_of(host))
        self._sock.bind((host, 0))
        self.host = host
        self.port: int = self._sock.getsockname()[1]
        self.address = authority(host, self.port)
        self.url = f"http://{self.address}"

    def __enter__(self) -> DeadPort:
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()


class Blackhole:
    """A port whose accept queue is full, so that connecting to it neither succeeds nor fails."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._listener = socket.socket()
        self._listener.bind((host, port))
        self._listener.listen(0)
        self.port: int = self._listener.getsockname()[1]
        self.address = f"{host}:{self.port}"
        self.url = f"http://{self.address}"
        self._fillers: list[socket.socket] = []
        full = False
        while not full:
            filler = socket.socket()
            filler.settimeout(0.2)
            self._fillers.append(filler)
            try:
                filler.connect(("127.0.0.1", self.port))
            except TimeoutError:
                full = True

    def __enter__(self) -> Blackhole:
        return self

    def __exit__(self, *_: object) -> None:
        for sock in (*self._fillers, self._listener):
            sock.close()


def saying(answer: bytes) -> Callable[[Exchange], None]:
    """A handler that sends these bytes and closes."""

    def say(exchange: Exchange) -> None:
        exchange.send(answer)
        exchange.keep = False
        exchange.request.headers.append(("Connection", "close"))

    return say


def in_pieces(*pieces: bytes) -> Handler:
    """A handler that reads the request and sends these bytes, each piece a packet of its own."""

    def say(exchange: Exchange) -> None:
        exchange.read_body()
        for piece in pieces:
            exchange.send(piece)

    return say
