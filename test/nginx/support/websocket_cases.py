"""The cases that test_websocket.py runs directly and through Sluice (websocket.Case)."""

import itertools
import random
from collections.abc import Iterator

from websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Case, closing, frame

SIZES = [0, 1, 124, 125, 126, 127, 1000, 4096, 65534, 65535, 65536, 65537, 1 << 20]

CODES = [*range(999, 1017), 2999, 3000, 3999, 4000, 4999, 5000, 65535, 0]

BYE = closing(1000)


def text_of(size: int) -> bytes:
    """Never twice the same piece, so that a lost or doubled one shows."""
    return b"".join(b"%07d," % n for n in range(size // 8 + 1))[:size]


def fragments(opcode: int, parts: list[bytes], between: list[bytes], mask: bool = True) -> bytes:
    """One message of several frames, with other frames between them."""
    out = []
    for nth, part in enumerate(parts):
        fin = nth == len(parts) - 1
        out.append(frame(CONTINUATION if nth else opcode, part, fin=fin, mask=mask))
        if not fin:
            out.extend(between)
    return b"".join(out)


def _sizes() -> Iterator[Case]:
    for size in SIZES:
        for name, opcode in (("text", TEXT), ("binary", BINARY)):
            data = text_of(size) if opcode == TEXT else random.Random(size).randbytes(size)
            yield Case(f"{name}-{size}", client=[frame(opcode, data), BYE])
            server = [frame(opcode, data, mask=False), closing(1000, mask=False)]
            yield Case(f"{name}-{size}-from-server", server=server)


def _fragments() -> Iterator[Case]:
    for count in (2, 3, 10, 100):
        for size in (0, 1, 126, 3000):
            parts = [text_of(size)] * count
            for name, between in (
                ("alone", []),
                ("pings", [frame(PING, b"still there?")]),
                ("pongs", [frame(PONG), frame(PONG, b"yes")]),
            ):
                message = fragments(BINARY, parts, between)
                yield Case(f"fragments-{count}-{size}-{name}", client=[message, BYE])


def _controls() -> Iterator[Case]:
    for size in (0, 1, 125):
        yield Case(f"ping-{size}", client=[frame(PING, text_of(size)), BYE])
        bare = frame(PING, text_of(size), mask=False)
        yield Case(f"ping-{size}-from-server", server=[bare, closing(1000, mask=False)])
        yield Case(f"pong-{size}", client=[frame(PONG, text_of(size)), BYE])
    for code in CODES:
        yield Case(f"close-{code}", client=[closing(code, b"why")])
    for size in (1, 2, 122, 123):
        yield Case(f"close-reason-{size}", client=[closing(1000, text_of(size))])
    for code in (1000, 1001, 1011, 4000):
        yield Case(f"close-{code}-from-server", server=[closing(code, b"why", mask=False)])
    yield Case("close-empty", client=[frame(CLOSE)])
    yield Case("close-one-byte", client=[frame(CLOSE, b"x")])


def _wrong() -> Iterator[Case]:
    for opcode in (TEXT, BINARY, PING, CLOSE):
        yield Case(f"unmasked-{opcode}", client=[frame(opcode, b"\x03\xe8", mask=False)])
        yield Case(f"masked-{opcode}-from-server", server=[frame(opcode, b"\x03\xe8")])
    for opcode in (3, 7, 11, 15):
        yield Case(f"opcode-{opcode}", client=[frame(opcode, b"?")])
        yield Case(f"opcode-{opcode}-from-server", server=[frame(opcode, b"?", mask=False)])
    # Bytes that look like HTTP are the tunnel's as well.
    http = b"GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n"
    yield Case("http-in-a-frame", client=[frame(TEXT, http), BYE])
    yield Case("http-for-a-frame", client=[http], client_ends="fin")
    answer = b"HTTP/1.1 200 OK\r\n\r\n"
    yield Case("http-for-a-frame-from-server", server=[answer], server_ends="fin")


def _ends() -> Iterator[Case]:
    whole, bare = frame(TEXT, text_of(300)), frame(TEXT, text_of(300), mask=False)
    for how in ("fin", "rst"):
        for cut in (0, 1, 2, 3, 4, 7, 8, 9, 150, len(whole) - 1):
            pieces = [whole[:cut]] if cut else []
            yield Case(f"client-{how}-{cut}", client=pieces, client_ends=how)
            pieces = [bare[:cut]] if cut else []
            yield Case(f"server-{how}-{cut}", server=pieces, server_ends=how)
        yield Case(f"client-{how}-echoed", [whole], waits=len(bare), client_ends=how)
        yield Case(f"server-{how}-sent", server=[bare, bare], server_ends=how)


def _splits() -> Iterator[Case]:
    """Two packets, cut at every byte; and one packet for each byte."""
    stream = frame(PING, b"a") + frame(TEXT, b"bcd") + frame(BINARY, b"x" * 130) + closing(1000)
    cuts = [*range(1, 30), *range(len(stream) - 12, len(stream))]
    for at in cuts:
        yield Case(f"split-{at}", client=[stream[:at], stream[at:]])
    yield Case("bytes", client=[stream[at : at + 1] for at in range(len(stream))])
    bare = frame(PING, b"a", mask=False) + frame(TEXT, b"b" * 130, mask=False)
    bare += closing(1000, mask=False)
    for at in [*range(1, 12), *range(len(bare) - 6, len(bare))]:
        yield Case(f"split-{at}-from-server", server=[bare[:at], bare[at:]])
    yield Case("bytes-from-server", server=[bare[at : at + 1] for at in range(len(bare))])


def _early() -> Iterator[Case]:
    """With the handshake, and with the 101, in one packet."""
    for count in (1, 2, 3, 10, 100, 1000):
        many = b"".join(frame(TEXT, b"%d" % n) for n in range(count))
        yield Case(f"early-{count}", early=many, client=[BYE])
        bare = b"".join(frame(TEXT, b"%d" % n, mask=False) for n in range(count))
        yield Case(f"greeting-{count}", greeting=bare, client=[BYE], waits=len(bare))
        both = Case(f"both-{count}", early=many, greeting=bare, client=[BYE], echoes=False)
        both.waits = len(bare)
        yield both
    for size in (900, 1024, 4096, 16384, 100_000):
        yield Case(f"early-of-{size}", early=frame(BINARY, text_of(size)), client=[BYE])
        bare = frame(BINARY, text_of(size), mask=False)
        yield Case(f"greeting-of-{size}", greeting=bare, client=[BYE], waits=len(bare))
    whole = frame(TEXT, text_of(200))
    for cut in (1, 2, 5, 100):
        yield Case(f"early-{cut}-bytes", early=whole[:cut], client=[whole[cut:], BYE])
    yield Case("early-close", early=BYE)


def _both_ways() -> Iterator[Case]:
    """At once, and nothing is answered."""
    for count, size in ((10, 10), (100, 1000), (10, 65536), (3, 1 << 20)):
        ours = [frame(BINARY, text_of(size))] * count
        theirs = [frame(BINARY, text_of(size), mask=False)] * count
        yield Case(
            f"both-ways-{count}-{size}",
            client=[*ours, BYE],
            server=theirs,
            echoes=False,
            waits=sum(map(len, theirs)),
        )


def _random() -> Iterator[Case]:
    for seed in range(40):
        dice = random.Random(seed)
        stream = bytearray()
        for _ in range(dice.randint(1, 12)):
            data = dice.randbytes(dice.choice([0, 5, 125, 126, 2000, 70000]))
            if dice.random() < 0.3:
                parts = [data[at : at + 500] for at in range(0, min(len(data), 4000), 500)]
                stream += fragments(TEXT, parts or [b"", b""], [frame(PING, b"%d" % seed)])
            elif dice.random() < 0.3:
                stream += frame(dice.choice([PING, PONG]), data[:125])
            else:
                stream += frame(dice.choice([TEXT, BINARY]), data)
        stream += closing(dice.choice([1000, 1001, 3000, 4999]), b"done")
        cuts = sorted(dice.sample(range(len(stream)), min(len(stream) - 1, dice.randint(0, 9))))
        edges = [0, *cuts, len(stream)]
        pieces = [bytes(stream[a:b]) for a, b in itertools.pairwise(edges) if b > a]
        yield Case(f"random-{seed}", client=pieces)


CASES = [
    *_sizes(),
    *_fragments(),
    *_controls(),
    *_wrong(),
    *_ends(),
    *_splits(),
    *_early(),
    *_both_ways(),
    *_random(),
]
