"""Headers of the PROXY protocol that are wrong, on every kind of listener: closed and counted."""

import contextlib
import random
import re
import socket
from collections.abc import Iterator

import pytest
from proxy_protocol import (
    GET,
    MOST,
    REASONS,
    RIGHT,
    SIGNATURE,
    Listeners,
    connected,
    ended,
    started,
    tlv,
    v1,
    v2,
)
from seeds import seed_of

from upstream import Upstream
from wire import wait_until

# What is wrong, by the reason that is counted. Nothing follows but the client's end.
WRONG = {
    "missing": [
        GET,
        b"\r\n\r\n\r\n",
        b"PROXZ",
        b"proxy tcp4 1.1.1.1 1.1.1.1 1 1\r\n",
        b"\x16\x03\x01\x00\x05hello",
        SIGNATURE[:-1] + b"\r" + v2()[12:],
        b"\x00",
    ],
    "malformed": [
        b"PROXY \r\n",
        b"PROXY TCP4\r\n",
        v1("192.0.2.256"),
        v1("192.0.2.1.5"),
        v1("2001:db8::1"),
        v1("192.0.2.1", "TCP6", "::1"),
        v1("192.0.2.1", "TCP5"),
        v1("192.0.2.1", own="here"),
        b"PROXY TCP4 192.0.2.1 127.0.0.1 1 65536\r\n",
        b"PROXY TCP4 192.0.2.1 127.0.0.1 01 1\r\n",
        b"PROXY TCP4 192.0.2.1 127.0.0.1 1 -1\r\n",
        b"PROXY TCP4 192.0.2.1 127.0.0.1 1 1 1\r\n",
        b"PROXY TCP4 192.0.2.1 127.0.0.1 1\r\n",
        b"PROXY TCP4  192.0.2.1 127.0.0.1 1 1\r\n",
        b"PROXY TCP4 192.0.2.1 127.0.0.1 1 1\n",
        b"PROXY TCP4 192.0.2.1 127.0.0.1 1\r1\r\n",
        b"PROXY TCP4 192.0.2.1\x00 127.0.0.1 1 1\r\n",
        b"PROXY UNKNOWNS\r\n",
        b"PROXY UNKNOWN\n",
        v2(command=2),
        v2("192.0.2.1", family=0x13),
        v2("192.0.2.1", family=0x41),
        v2(family=0x11),
        v2("192.0.2.1", family=0x21),
        v2("192.0.2.1", family=0x31),
        SIGNATURE + b"\x11" + v2("192.0.2.1")[13:],
    ],
    "cut": [
        b"P",
        b"PROXY TCP4 192.0.2.1 127.0.0.1 1",
        v1("192.0.2.1")[:-1],
        b"\r\n\r\n",
        SIGNATURE,
        v2("192.0.2.1")[:15],
        v2("192.0.2.1")[:-1],
        v2("192.0.2.1", tlvs=tlv(2000))[:-1],
    ],
    "oversized": [
        b"PROXY UNKNOWN " + b"x" * 92 + b"\r\n",
        b"PROXY " + b"y" * 200,
        v2("192.0.2.1", tlvs=tlv(MOST - 27)),
        v2("192.0.2.1", tlvs=tlv(60000)),
    ],
}
ALL_WRONG = [(reason, data) for reason in REASONS for data in WRONG[reason]]


@pytest.fixture(scope="module")
def listeners() -> Iterator[Listeners]:
    with Upstream() as server, started(server) as made:
        yield made


@pytest.mark.parametrize(("reason", "data"), ALL_WRONG)
def test_what_is_wrong_closes_and_is_counted(
    listeners: Listeners, reason: str, data: bytes
) -> None:
    """And closed: on each kind of listener, once for each connection."""
    for port in (listeners.plain, listeners.tls, listeners.clear_h2):
        before = listeners.counts()
        with connected(port) as client:
            client.sendall(data)
            with contextlib.suppress(OSError):  # it may be closed by now
                client.shutdown(socket.SHUT_WR)
            assert ended(client)
        wanted = before | {reason: before[reason] + 1}
        wait_until(lambda wanted=wanted: listeners.counts() == wanted, "one that is counted")


@pytest.mark.parametrize(("reason", "data"), [(r, WRONG[r][0]) for r in REASONS])
def test_listeners_of_the_control_worker(listeners: Listeners, reason: str, data: bytes) -> None:
    before = listeners.counts()
    for port in (listeners.admin, listeners.status):
        with connected(port) as client:
            client.sendall(data)
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_WR)
            assert ended(client)
    wanted = before | {reason: before[reason] + 2}
    wait_until(lambda: listeners.counts() == wanted, "those that are counted")


def test_nothing_that_came_is_in_the_log(listeners: Listeners) -> None:
    """A request without the header may hold a token."""
    with connected(listeners.plain) as client:
        client.sendall(GET)
        assert ended(client)
    log = listeners.gateway.error_log
    wait_until(lambda: "PROXY protocol is missing" in log(), "its line")
    assert "hidden-token" not in log()
    assert "broken header" not in log()


def test_who_only_looks_is_not_counted(listeners: Listeners) -> None:
    """Balancers do, to see whether somebody listens."""
    before = listeners.counts()
    for port in (listeners.plain, listeners.tls, listeners.status):
        connected(port).close()
        with connected(port) as client:
            client.shutdown(socket.SHUT_WR)
            assert ended(client)
    assert listeners.counts() == before


@pytest.mark.parametrize("sent", [b"", b"PROXY TCP4 ", SIGNATURE])
def test_who_stalls_has_the_time_of_a_header(upstream: Upstream, sent: bytes) -> None:
    """It begins once: who sends a byte now and then has no more of it."""
    with started(upstream, client_header_timeout="1s") as made:
        with connected(made.plain) as plain, connected(made.tls) as tls:
            for client in (plain, tls):
                client.sendall(sent)
            assert ended(plain)
            assert ended(tls)
        counted = 2 if sent else 0
        assert made.counts() == dict.fromkeys(REASONS, 0) | {"cut": counted}


PORT = r"(?:0|[1-9][0-9]{0,4})"
ENDS = rf"TCP([46]) ([^ ]+) ([^ ]+) ({PORT}) ({PORT})"
LINE = re.compile(rf"PROXY (?:UNKNOWN(?: [^\r]*)?|{ENDS})\r".encode(), re.DOTALL)
SIZES = {0: 0, 1: 12, 2: 36, 3: 216}


def is_line(line: bytes) -> bool:
    """Whether it is one of version 1, as a slow and obvious reader reads it."""
    found = LINE.fullmatch(line)
    if not found or not found[1]:
        return found is not None
    family = socket.AF_INET if found[1] == b"4" else socket.AF_INET6
    try:
        for address in found.group(2, 3):
            socket.inet_pton(family, address.decode("latin-1"))
    except (OSError, ValueError):
        return False
    return all(int(port) <= 65535 for port in found.group(4, 5))


def wrong(data: bytes) -> str | None:
    """Why a connection is closed on which no more comes than this."""
    if b"PROXY ".startswith(data[:6]):
        line, end, _ = data[:107].partition(b"\n")
        if not end:
            return "cut" if len(data) < 107 else "oversized"
        return None if is_line(line) else "malformed"
    if not SIGNATURE.startswith(data[:12]):
        return "missing"
    if len(data) < 16:
        return "cut"
    version, command, family, transport = data[12] >> 4, data[12] & 15, data[13] >> 4, data[13] & 15
    length = int.from_bytes(data[14:16])
    if version != 2 or command > 1 or family > 3 or transport > 2:
        return "malformed"
    if command == 1 and length < SIZES[family]:
        return "malformed"
    if 16 + length > MOST:
        return "oversized"
    return "cut" if len(data) < 16 + length else None


@pytest.mark.parametrize(("reason", "data"), ALL_WRONG)
def test_the_reader_that_others_are_compared_with(reason: str, data: bytes) -> None:
    assert wrong(data) == reason


def test_random_headers(listeners: Listeners) -> None:
    """Right ones with bytes changed, cut or put in: closed and counted, or read."""
    seed = seed_of("proxy_protocol_wrong")
    rng = random.Random(seed)
    wanted = listeners.counts()
    before = dict(wanted)
    for _ in range(1000):
        header = bytearray(rng.choice(list(RIGHT.values()))[0])
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(min(len(header), 60))
            value = rng.choice(b" \r\n\x00.:019fPROXYTCPUNKNOWN\x11\x20\x21\xff")
            header[at : at + rng.randrange(2)] = [[], [value]][rng.randrange(2)]
        data = bytes(header) + GET
        reason = wrong(data)
        if reason:
            wanted[reason] += 1
        with connected(listeners.plain) as client:
            client.sendall(data)
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_WR)
            assert ended(client) or not reason, (seed, data)
    assert listeners.counts() == wanted, seed
    assert all(wanted[reason] > before[reason] for reason in ("missing", "malformed", "cut")), seed
