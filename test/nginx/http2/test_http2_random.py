"""Random frames of HTTP/2: whatever comes, no worker dies, nothing is alarming in its log, and
others are served. SEED repeats a run."""

import contextlib
import random
import socket
import struct

from http2 import CONTINUATION, DATA, HEADERS, RST_STREAM, WINDOW_UPDATE, frame, served
from seeds import seed_of
from soaks import soak

from sluice import Start
from upstream import Upstream
from wire import DEADLINE

SEED = seed_of("http2_random")
CONNECTIONS = soak(150, 50_000)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

GET = b"\x82\x87\x84\x01\x01h"
POST = b"\x83\x87\x84\x01\x01h"
STREAMED = b"\x83\x87\x04\x09/streamed\x01\x01h"

FLAGS = (0, 0, 1, 4, 5, 5, 8, 9, 0x20, 0x25, 0xFF)
SIZES = (0, 1, 4, 5, 6, 8, 9, 100, 3000)
WORDS = (0, 1, 2, 16, 2**31 - 1, 2**31, 2**32 - 1)


class Chooser:
    """What a client of no good will sends next: mostly what may pass, so that states are many."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.last = -1

    def stream(self) -> int:
        """One that is open, was, or never will be."""
        near = range(max(0, self.last - 8), self.last + 5)
        return self.random.choice([0, *near, 2**31 - 1])

    def request(self) -> bytes:
        """A whole header, or a part of one and what is to stand behind it."""
        self.last += 2
        block = self.random.choice([GET, POST, STREAMED])
        block += b"\x40\x01x" + bytes([5]) + b"value" if self.random.random() < 0.3 else b""
        end = self.random.choice([0, 1])
        if self.random.random() < 0.7:
            return frame(HEADERS, block, self.last, 4 + end)
        at = self.random.randrange(1, len(block))
        return frame(HEADERS, block[:at], self.last, end) + frame(
            CONTINUATION, block[at:], self.last, self.random.choice([0, 4, 4, 4])
        )

    def known(self) -> bytes:
        """A frame of right length on some stream."""
        word = struct.pack("!I", self.random.choice(WORDS))
        kind = self.random.choice([DATA, DATA, RST_STREAM, WINDOW_UPDATE])
        payload = self.random.randbytes(self.random.choice(SIZES)) if kind == DATA else word
        return frame(kind, payload, self.stream(), self.random.choice([0, 0, 1, 8]))

    def any(self) -> bytes:
        """Anything with a frame's head."""
        payload = self.random.randbytes(self.random.choice(SIZES))
        kind = self.random.randrange(12)
        return frame(kind, payload, self.stream(), self.random.choice(FLAGS))

    def connection(self) -> bytes:
        """All that a client sends."""
        kinds = [self.request] * 4 + [self.known] * 4 + [self.any]
        count = self.random.randrange(1, 60)
        sent = b"".join(self.random.choice(kinds)() for _ in range(count))
        if self.random.random() < 0.3:
            at = self.random.randrange(len(sent))
            sent = sent[:at] + self.random.randbytes(1) + sent[at + 1 :]
        return PREFACE + frame(4) + sent

    def pieces(self, sent: bytes) -> list[bytes]:
        """The same, cut as it may arrive."""
        cuts = sorted(
            self.random.randrange(len(sent)) for _ in range(self.random.choice([0, 1, 9]))
        )
        return [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True)]


def test_random_frames(gateway: Start, upstream: Upstream) -> None:
    print(f"SEED={SEED}")
    config = served(upstream)
    config["services"][0]["routes"].append(
        {"name": "streamed", "paths": ["/streamed"], "request_buffering": False}
    )
    running = gateway(config, tls="http2", http2_max_concurrent_streams=8)
    (worker,) = running.workers()
    chooser = Chooser(SEED)
    for number in range(CONNECTIONS):
        chooser.last = -1
        with (
            socket.create_connection(("127.0.0.1", running.tls_port), DEADLINE) as client,
            contextlib.suppress(ConnectionError),
        ):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in chooser.pieces(chooser.connection()):
                client.sendall(piece)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
        if number % 50 == 0:
            assert running.get("/").status_code == 200
    assert running.get("/").status_code == 200
    assert running.workers() == [worker]
