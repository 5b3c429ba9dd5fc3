"""The broker against raw clients: frames by hand, good ones and bad ones."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from seeds import seed_of

from events_nginx import Events, names, over_socket
from nginx import LIB
from processes import ran
from sluice import alive
from wire import DEADLINE, Stream, wait_until

HEAD = struct.Struct("=IBBHHHII")
MARK = 0xD5
HELLO, WELCOME, BYE, ALL, WORKER, UNIQUE = range(1, 7)
NOBODY = 1023
PROTOCOL, VERSION = b"sluice-events", b"1"
SEED = seed_of("events_socket_frames")

# What LuaJIT makes of the number 7 with its string buffer: a tag, a double.
SEVEN = struct.pack("=Bd", 7, 7)

AS_ROOT = os.geteuid() == 0


def frame(
    kind: int,
    source: bytes = b"",
    event: bytes = b"",
    payload: bytes = b"",
    *,
    key: bytes = b"",
    sender: int = NOBODY,
    target: int = 0,
    timeout_ms: int = 0,
    mark: int = MARK,
) -> bytes:
    body = key + source + event + payload
    if kind == UNIQUE:
        target = len(key)
    head = HEAD.pack(len(body), mark, kind, sender, len(source), len(event), target, timeout_ms)
    return head + body


def hello(sender: int = NOBODY, pid: int | None = None) -> bytes:
    return frame(
        HELLO, PROTOCOL, VERSION, sender=sender, target=os.getpid() if pid is None else pid
    )


class Client(Stream):
    """A connection to the broker: as a worker makes it, or raw."""

    def __init__(self, events: Events, raw: bool = True) -> None:
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(DEADLINE)
        connected.connect(str(events.socket))
        super().__init__(connected)
        if raw:
            self.send(b"GET /raw HTTP/1.0\r\n\r\n")
        else:
            self.send(
                b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
                b"Upgrade: sluice-events/1\r\n\r\n"
            )
            answer = self.read_until(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 101 "), answer
            assert b"Upgrade: sluice-events/1" in answer

    def read_frame(self) -> tuple[int, int, bytes, bytes, bytes]:
        """Kind, sender, source, event, payload."""
        head = HEAD.unpack(self.read_exactly(HEAD.size))
        size, mark, kind, sender, source, event, target, _ = head
        assert mark == MARK
        body = self.read_exactly(size)
        at = target if kind == UNIQUE else 0
        return (
            kind,
            sender,
            body[at : at + source],
            body[at + source : at + source + event],
            body[at + source + event :],
        )

    def greet(self, sender: int = NOBODY) -> Client:
        self.send(hello(sender))
        kind, _, source, event, payload = self.read_frame()
        assert (kind, source, event, payload) == (WELCOME, PROTOCOL, VERSION, b"")
        return self


@pytest.fixture
def events() -> Iterator[Events]:
    with over_socket("max_payload_len = 100000") as running:
        yield running.ready()


@pytest.mark.parametrize("raw", [False, True], ids=["upgrade", "raw"])
def test_handshake_and_frames(events: Events, raw: bool) -> None:
    client = Client(events, raw).greet()
    client.send(frame(ALL, b"python", b"one", SEVEN))
    assert client.read_frame() == (ALL, NOBODY, b"python", b"one", SEVEN)
    for heard in events.heard(1).values():
        assert heard == [{"source": "python", "event": "one", "data": 7}]
    events.publish_at(1, source="lua", event="two")
    assert client.read_frame()[:4] == (ALL, 1, b"lua", b"two")
    client.close()


def test_frames_may_come_in_any_portions(events: Events) -> None:
    generator = random.Random(SEED)
    frames = [frame(ALL, b"s", b"%d" % i, SEVEN * (i % 40 == 7) or SEVEN) for i in range(300)]
    bytes_left = hello() + b"".join(frames)
    client = Client(events)
    while bytes_left:
        size = generator.choice([1, 2, 19, 20, 21, 100, 5000])
        client.send(bytes_left[:size])
        bytes_left = bytes_left[size:]
    for heard in events.heard(300).values():
        assert names(heard) == [str(i) for i in range(300)], f"seed {SEED}"
    client.close()


def test_kinds_are_routed(events: Events) -> None:
    client = Client(events).greet()
    client.send(
        frame(WORKER, b"s", b"for one", SEVEN, target=1)
        + frame(ALL, b"s", b"for all", SEVEN)
        + frame(UNIQUE, b"s", b"once", SEVEN, key=b"k", timeout_ms=60000) * 3
        + frame(ALL, b"s", b"end", SEVEN)
    )
    heard = events.heard_through("end")
    everything = names(heard[0]) + names(heard[1])
    if everything.count("once") == 0:
        kinds = [client.read_frame()[0] for _ in range(3)]
        assert kinds == [ALL, UNIQUE, ALL]
    else:
        assert everything.count("once") == 1
    assert names(heard[1])[:2] == ["for one", "for all"]
    assert names(heard[0])[0] == "for all"
    client.close()


BAD_FRAMES = {
    "mark": frame(ALL, b"s", b"e", SEVEN, mark=0),
    "kind 0": frame(0, b"s", b"e"),
    "kind 7": frame(7, b"s", b"e"),
    "names beyond the body": HEAD.pack(3, MARK, ALL, NOBODY, 2, 2, 0, 0) + b"abc",
    "key beyond the body": HEAD.pack(3, MARK, UNIQUE, NOBODY, 1, 1, 2, 0) + b"abc",
    "huge key": HEAD.pack(1 << 20, MARK, UNIQUE, NOBODY, 1, 1, 1 << 20, 0),
    "wrapping key": HEAD.pack(3, MARK, UNIQUE, NOBODY, 1, 1, (1 << 32) - 1, 0) + b"abc",
    "a sender that it is not": frame(ALL, b"s", b"e", SEVEN, sender=0),
    "a second hello": hello(),
    "a welcome": frame(WELCOME, PROTOCOL, VERSION),
    "a hello with a payload": frame(HELLO, PROTOCOL, VERSION, b"x"),
}

OVERSIZED = {
    "by one byte": HEAD.pack(100003, MARK, ALL, NOBODY, 1, 1, 0, 0),
    "by far": HEAD.pack((1 << 32) - 1, MARK, ALL, NOBODY, 1, 1, 0, 0),
}


@pytest.mark.parametrize("bad", BAD_FRAMES)
def test_a_malformed_frame_closes_its_connection(events: Events, bad: str) -> None:
    events.expect_log("malformed frame from process", 1)
    check_that_it_closes(events, BAD_FRAMES[bad])


@pytest.mark.parametrize("bad", OVERSIZED)
def test_an_oversized_frame_closes_its_connection(events: Events, bad: str) -> None:
    events.expect_log("oversized frame from process", 1)
    check_that_it_closes(events, OVERSIZED[bad])


def check_that_it_closes(events: Events, bad: bytes) -> None:
    """And nothing else happens: what came before counts, others go on."""
    client, other = Client(events).greet(), Client(events).greet()
    client.send(frame(ALL, b"s", b"before", SEVEN) + bad + frame(ALL, b"s", b"after", SEVEN))
    wait_until(lambda: events.at(0, "/stats")["broker_malformed"] == 1, "the frame to be found")
    client.read_to_end()
    other.send(frame(ALL, b"s", b"other", SEVEN))
    for heard in events.heard(2).values():
        assert names(heard) == ["before", "other"]
    assert other.read_frame()[3] == b"before"
    assert other.read_frame()[3] == b"other"
    other.close()


@pytest.mark.parametrize("left", [1, 19, 20, 22])
def test_a_truncated_frame(events: Events, left: int) -> None:
    events.expect_log("truncated frame from process", 1)
    client = Client(events).greet()
    client.send(frame(ALL, b"s", b"e", SEVEN)[:left])
    client.close()
    wait_until(lambda: events.at(0, "/stats")["broker_malformed"] == 1, "the end to be found")
    events.publish(event="on")
    assert all(names(heard) == ["on"] for heard in events.heard(1).values())


BAD_HELLOS = {
    "no frame": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "an event": frame(ALL, b"s", b"e", SEVEN),
    "another protocol": frame(HELLO, b"others", VERSION, target=os.getpid()),
    "another version": frame(HELLO, PROTOCOL, b"2", target=os.getpid()),
    "another process": hello(pid=1),
}


@pytest.mark.parametrize("bad", BAD_HELLOS)
def test_a_bad_hello_is_refused(events: Events, bad: str) -> None:
    events.expect_log("connection refused: ", 1)
    client = Client(events)
    client.send(BAD_HELLOS[bad])
    client.read_to_end()
    assert not client.buffer
    wait_until(lambda: events.at(0, "/stats")["broker_refused"] == 1, "it to be counted")


def test_a_payload_that_is_none(events: Events) -> None:
    """The broker does not look at it; each reader says so, and goes on."""
    events.expect_log("event s/bad cannot be decoded", 2)
    client = Client(events).greet()
    client.send(frame(ALL, b"s", b"bad", b"\xff\xff") + frame(ALL, b"s", b"good", SEVEN))
    for heard in events.heard(1).values():
        assert names(heard) == ["good"]
    client.close()


def test_fuzz(events: Events) -> None:
    """Random damage to heads and names: each connection ends with one line at most, others go on.

    Payloads stay whole: LuaJIT's decoder believes the sizes of tables.
    """
    events.expect_log("(malformed|oversized|truncated) frame from process|refused: ", range(1, 999))
    generator = random.Random(SEED)
    events.expect_log("cannot be decoded", range(20))
    runs = 150
    for _ in range(runs):
        parts = [bytearray(hello())]
        parts += [bytearray(frame(ALL, b"s", b"e%d" % i)) for i in range(5)]
        for _ in range(generator.randint(1, 3)):
            head = generator.choice(parts)
            at = generator.randrange(len(head))
            how = generator.random()
            if how < 0.6:
                head[at] = generator.randrange(256)
            elif how < 0.8:
                del head[at : at + generator.randint(1, 30)]
            else:
                head[at:at] = generator.randbytes(generator.randint(1, 30))
            if not head:
                parts.remove(head)
        stream = b"".join(bytes(part) for part in parts)
        client = Client(events)
        try:
            client.send(bytes(stream))
            client.sock.shutdown(socket.SHUT_WR)
            client.read_to_end()
        except (ConnectionResetError, BrokenPipeError):
            pass
        client.close()
    wait_until(lambda: events.at(0, "/stats")["broker_connections"] == 2, "all to be closed")
    events.forget()
    assert events.publish_at(0, event="on", count=10) == {"true": 10}, f"seed {SEED}"
    events.publish_at(0, event="end")
    for heard in events.heard_through("end").values():
        assert names(heard)[-11:] == ["on"] * 10 + ["end"], f"seed {SEED}"


def test_a_hello_while_the_broker_leaves(events: Events) -> None:
    """Everybody was told goodbye before it came: it must not stay, and the worker must not."""
    early, late = Client(events).greet(), Client(events)
    # Until it is served by the broker that will leave: the next in line was served after it.
    Client(events).greet().close()
    os.kill(events.master(), signal.SIGHUP)
    while early.read_frame()[0] != BYE:
        pass
    late.send(hello())
    assert late.ended(), "no welcome"
    early.close()
    wait_until(lambda: not events.retiring(), "the old workers to leave")
    events.ready()


@pytest.mark.skipif(not AS_ROOT, reason="needs root to be another user")
def test_another_user_is_refused(events: Events) -> None:
    events.expect_log(r"connection refused: process \d+ of user 65534", 1)
    events.socket.parent.chmod(0o755)  # the first wall, taken down
    program = (
        "import os, socket, sys\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(sys.argv[1])\n"
        "s.sendall(b'GET /raw HTTP/1.0\\r\\n\\r\\n')\n"
        "got = s.recv(1000)\n"
        "sys.exit(0 if b'403' in got.split(b'\\r\\n')[0] else 'got %r' % got)\n"
    )
    done = ran([sys.executable, "-c", program, str(events.socket)])
    assert done.returncode == 0, done.stderr


def clean(path: Path) -> str:
    """What `clean` says, run without nginx as the command line does."""
    program = (
        f'package.path = "{LIB}/?.lua;" .. package.path\n'
        'local ok, err = require("sluice.events.socket").clean(arg[1]) print(ok, err)'
    )
    script = path.parent / "clean.lua"
    script.write_text(program)
    done = ran(["luajit", str(script), str(path)], check=True)
    script.unlink()
    return done.stdout.strip()


def test_clean(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    path = tmp_path / "broker.sock"
    assert clean(path) == "true\tnil", "nothing there"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(0)
    assert clean(path) == "nil\talive"
    # A full backlog is no proof of death.
    waiting = []
    for _ in range(3):
        one = socket.socket(socket.AF_UNIX)
        one.setblocking(False)
        one.connect_ex(str(path))
        waiting.append(one)
    assert clean(path) == "nil\talive"
    for one in [*waiting, listener]:
        one.close()
    assert stat.S_ISSOCK(path.stat().st_mode)
    tmp_path.chmod(0o711)
    assert clean(path) == "nil\topen directory"
    tmp_path.chmod(0o700)
    assert clean(path) == "true\tnil"
    assert not path.exists()
    path.write_text("precious")
    assert clean(path) == "nil\tno socket"
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    assert clean(path) == "nil\tno socket"
    path.unlink()


def test_a_killed_nginx_can_start_again() -> None:
    """nginx trips over the socket that a killed one left, until `clean` removes it."""
    events = over_socket()
    events.expect_log(r"bind\(\) to unix:.* failed|still could not bind", range(1, 20))
    events.start()
    events.ready()
    killed = [events.master(), *events.workers()]
    for pid in killed:
        os.kill(pid, 9)
    events.started = False
    Events.live.remove(events)
    assert events.socket.exists()
    assert events.nginx().returncode != 0
    wait_until(lambda: not any(map(alive, killed)), "all to be gone")
    assert clean(events.socket) == "true\tnil"
    with events:
        events.ready()


def test_sizes_fit_the_head() -> None:
    assert ctypes.sizeof(ctypes.c_uint32) * 5 == HEAD.size
