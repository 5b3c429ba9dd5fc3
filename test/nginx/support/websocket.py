"""A small WebSocket client and server (RFC 6455) that do as a case says and note what they saw."""

import base64
import dataclasses
import hashlib
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

from upstream import Exchange
from wire import DEADLINE, Reply, Stream, Wire, request_bytes

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
KEY = base64.b64encode(b"sixteen bytes...").decode()

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10

ASKING = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", KEY),
]
"""The headers of a handshake."""

MASK = b"\x0a\xf5\x3c\x81"


def masked(data: bytes) -> bytes:
    """With the mask, or without it again."""
    pattern = int.from_bytes(MASK * (len(data) // 4 + 1), "big")
    whole = data + b"\0" * (len(MASK) * (len(data) // 4 + 1) - len(data))
    out = (int.from_bytes(whole, "big") ^ pattern).to_bytes(len(whole), "big")
    return out[: len(data)]


def frame(opcode: int, data: bytes = b"", *, fin: bool = True, mask: bool = True) -> bytes:
    """One frame, as a client sends it; a server's has no mask."""
    size = len(data)
    length = size if size < 126 else 126 if size < 65536 else 127
    more = b"" if size < 126 else size.to_bytes(2 if size < 65536 else 8, "big")
    head = bytes([fin << 7 | opcode, mask << 7 | length]) + more
    return head + (MASK + masked(data) if mask else data)


def closing(code: int, reason: bytes = b"", *, mask: bool = True) -> bytes:
    """A close frame."""
    return frame(CLOSE, code.to_bytes(2, "big") + reason, mask=mask)


@dataclasses.dataclass(frozen=True)
class Frame:
    """A frame as it came; of its data the checksum, since it may be long."""

    opcode: int
    fin: bool
    mask: bool
    size: int
    sha256: str


@dataclasses.dataclass
class Side:
    """What one side has seen: the frames, what came of a frame that was cut, how it ended."""

    frames: list[Frame] = dataclasses.field(default_factory=list)
    rest: bytes = b""
    ending: str = ""
    bytes: int = 0
    changed: threading.Condition = dataclasses.field(
        default_factory=threading.Condition, repr=False, compare=False
    )

    def add(self, count: int) -> None:
        """So many bytes more have come."""
        with self.changed:
            self.bytes += count
            self.changed.notify_all()

    def wait(self, count: int) -> None:
        """Until so many bytes have come in all, or nothing more will."""
        with self.changed:
            met = self.changed.wait_for(lambda: self.bytes >= count or self.ending, DEADLINE)
        assert met, f"{self.bytes} of {count} bytes have come"

    def end(self, how: str) -> None:
        """Nothing more will come."""
        with self.changed:
            self.ending = how
            self.changed.notify_all()


@dataclasses.dataclass
class Case:
    """What both do.

    A side writes its pieces, each when the one before has arrived at the other, and answers what
    comes: pings, closes, and the server echoes messages. So that two runs are alike, only one side
    writes pieces unless nothing is answered.
    """

    name: str
    client: list[bytes] = dataclasses.field(default_factory=list)
    server: list[bytes] = dataclasses.field(default_factory=list)
    early: bytes = b""
    """What the client sends in one write with the handshake."""
    greeting: bytes = b""
    """What the server sends in one write with the 101."""
    echoes: bool = True
    waits: int = 0
    """So many bytes have come to the client before it writes its last piece, or ends."""
    client_ends: str = ""
    """"fin" or "rst": without a closing handshake, when all that it wrote has arrived."""
    server_ends: str = ""


class Peer:
    """One side of a connection that has switched."""

    def __init__(self, stream: Stream, seen: Side, other: Side, mask: bool, echoes: bool) -> None:
        self.stream, self.seen, self.other = stream, seen, other
        self.mask, self.echoes = mask, echoes
        self.sent = 0
        self.lock = threading.Lock()
        self.closed = False

    def send(self, data: bytes) -> None:
        """Writes; frames of the reader do not fall between those of one call."""
        with self.lock:
            if not self.closed:
                self.stream.send(data)
                self.sent += len(data)

    def write(self, pieces: list[bytes], waits: int, cut: str) -> None:
        """Each piece when the one before has arrived; then the end, if it is to be cut."""
        try:
            for nth, piece in enumerate(pieces, 1):
                if nth == len(pieces) and not cut:
                    self.seen.wait(waits)
                self.send(piece)
                self.other.wait(self.sent)
            if cut:
                self.seen.wait(waits)
                self.cut(cut)
        except OSError:
            pass  # the other side has ended: what it saw tells

    def cut(self, how: str) -> None:
        """Ends without a closing handshake, when all that was written has arrived."""
        self.other.wait(self.sent)
        self.closed = True
        sock = self.stream.sock
        if how == "rst":
            # Sent by close(); the reader hears of the end here and now.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.shutdown(socket.SHUT_RD)
        else:
            sock.shutdown(socket.SHUT_RDWR)

    def read(self) -> None:
        """Frames until the end, or until one closes."""
        how = "ended"
        try:
            while self._take():
                pass
        except (OSError, ConnectionError):
            # A reset or an end: a gateway makes an end of both.
            self.seen.rest = bytes(self.stream.buffer)
        else:
            how = "closed"
        self.seen.end(how)

    def _need(self, size: int) -> None:
        while len(self.stream.buffer) < size:
            before = len(self.stream.buffer)
            if not self.stream.fill():
                raise ConnectionError("the end")
            self.seen.add(len(self.stream.buffer) - before)

    def _take(self) -> bool:
        """One frame. False: it was the last."""
        buffer = self.stream.buffer
        self._need(2)
        opcode, fin = buffer[0] & 15, buffer[0] >= 128
        mask, size = buffer[1] >= 128, buffer[1] & 127
        start = 2 + (2 if size == 126 else 8 if size == 127 else 0)
        self._need(start)
        if start > 2:
            size = int.from_bytes(buffer[2:start], "big")
        start += 4 * mask
        self._need(start + size)
        data = bytes(buffer[start : start + size])
        del buffer[: start + size]
        data = masked(data) if mask else data
        self.seen.frames.append(Frame(opcode, fin, mask, size, hashlib.sha256(data).hexdigest()))
        return self._answer(opcode, fin, mask, data)

    def _answer(self, opcode: int, fin: bool, mask: bool, data: bytes) -> bool:
        if mask == self.mask or opcode not in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
            self.send(closing(1002, mask=self.mask))
            while self.stream.fill():
                pass
            return False
        if opcode == CLOSE:
            code = int.from_bytes(data[:2], "big") if len(data) >= 2 else 1000
            valid = len(data) != 1 and (
                code in (1000, 1001, 1002, 1003, *range(1007, 1015)) or 3000 <= code < 5000
            )
            if not self._asked_to_close():
                self.send(closing(code if valid else 1002, mask=self.mask))
            return False
        if opcode == PING:
            self.send(frame(PONG, data, mask=self.mask))
        elif opcode != PONG and self.echoes:
            self.send(frame(opcode, data, fin=fin, mask=self.mask))
        return True

    def _asked_to_close(self) -> bool:
        return any(frame.opcode == CLOSE for frame in self.other.frames)


def accept_of(key: str) -> str:
    """What the server makes of the client's key."""
    return base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()


def switched(key: str, more: bytes = b"") -> bytes:
    """The head of a 101."""
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept_of(key).encode() + b"\r\n" + more + b"\r\n"
    )


@dataclasses.dataclass
class Run:
    """One run of a case: serve() is the upstream's handler."""

    case: Case
    client: Side = dataclasses.field(default_factory=Side)
    server: Side = dataclasses.field(default_factory=Side)
    served: threading.Event = dataclasses.field(default_factory=threading.Event)

    def serve(self, exchange: Exchange) -> None:
        """The server's side."""
        case = self.case
        exchange.keep = False
        peer = Peer(exchange, self.server, self.client, mask=False, echoes=case.echoes)
        try:
            key = exchange.request.headers.get("sec-websocket-key") or ""
            self.server.add(len(exchange.buffer))
            exchange.send(switched(key) + case.greeting)
            peer.sent = len(case.greeting)
            self._both(peer, case.server, 0, case.server_ends)
        finally:
            self.served.set()

    def ask(self, port: int) -> tuple[Reply, Side, Side]:
        """The client's side; what both have seen, when both have ended."""
        case = self.case
        with Wire(port) as wire:
            wire.send(request_bytes("/ws", headers=ASKING) + case.early)
            reply = wire.read_head()
            assert reply.status == 101
            self.client.add(len(wire.buffer))
            peer = Peer(wire, self.client, self.server, mask=True, echoes=False)
            peer.sent = len(case.early)
            self._both(peer, case.client, case.waits, case.client_ends)
        assert self.served.wait(DEADLINE), "the server waits on"
        return reply, self.client, self.server

    @staticmethod
    def _both(peer: Peer, pieces: list[bytes], waits: int, cut: str) -> None:
        with ThreadPoolExecutor(1) as writer:
            written = writer.submit(peer.write, pieces, waits, cut)
            peer.read()
            written.result(DEADLINE)
