"""Many certificates, many handshakes, many changes: none fails, and each is the right one."""

from __future__ import annotations

import json
import multiprocessing
import random
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import pytest
from seeds import seed_of
from soaks import soak

from certificates import Pair, connect, context, get, make, shown
from sluice import Start
from wire import wait_until

CERTIFICATES = soak(300, 10_000)
HANDSHAKES = soak(1000, 10_000)

VERSIONS = [context(version=v) for v in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)]


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    """Certificates that differ."""
    return [make(f"number {i}") for i in range(8)]


def entity(number: int, pair: Pair, *names: str) -> dict:
    """A certificate with its SNIs, as a file has it."""
    return {
        "id": f"{number:08}-0000-4000-8000-000000000000",
        "cert": pair.cert,
        "key": pair.key,
        "snis": [{"name": name} for name in names],
    }


def model(snis: dict[str, bytes], name: str) -> bytes | None:
    """What docs/tls.md says of a name."""
    _, dot, rest = name.partition(".")
    head = name.rpartition(".")[0]
    wanted = [name, f"*.{rest}", f"{head}.*"] if dot else [name]
    return next((snis[w] for w in [*wanted, "*"] if w in snis), None)


def test_random_names(gateway: Start, pairs: list[Pair]) -> None:
    seed = seed_of("tls_many")
    print(f"SEED={seed}")
    chance = random.Random(seed)
    labels = [f"l{i}" for i in range(max(10, int(CERTIFICATES**0.4)))]

    def draw() -> str:
        return ".".join(chance.choices(labels, k=chance.choice((2, 2, 3))))

    given, snis = [], {}
    while len(given) < CERTIFICATES:
        name = draw()
        kind = chance.choice("===<>")
        name = {"<": f"*.{name}", ">": f"{name}.*"}.get(kind, name)
        if name not in snis:
            pair = chance.choice(pairs)
            snis[name] = pair.der
            given.append(entity(len(given), pair, name))
    running = gateway({"certificates": given}, tls="ssl", workers=2)
    own = shown(running.tls_port, None)
    asked = [draw() for _ in range(HANDSHAKES)]
    for i, name in enumerate(asked):
        expected = model(snis, name) or own
        assert shown(running.tls_port, name, VERSIONS[i % 2]) == expected, name


def test_more_than_is_kept(gateway: Start, pairs: list[Pair]) -> None:
    """Parsed certificates have 96 MiB: what comes after has room, and those before come back."""
    long = "# such as others have before a certificate\n" * 2800 + pairs[0].cert
    given = [
        entity(i, Pair("{vault://env/long}", pairs[0].key), f"{i}.example") for i in range(450)
    ]
    running = gateway({"certificates": given}, tls="ssl", vault_env="LONG", env={"LONG": long})
    for i in [*range(450), 0, 449]:
        assert shown(running.tls_port, f"{i}.example") == pairs[0].der


def test_handshakes_over_reloads(gateway: Start, pairs: list[Pair]) -> None:
    running = gateway({"certificates": [entity(1, pairs[0], "*.example")]}, tls="ssl", workers=2)
    left = threading.Semaphore(HANDSHAKES)
    reloads = 0

    def shake(place: int) -> int:
        done = 0
        while left.acquire(blocking=False) or reloads < 3:
            with connect(running.tls_port, f"{place}.example", VERSIONS[done % 2]) as wrapped:
                assert wrapped.getpeercert(binary_form=True) == pairs[0].der
                assert get(wrapped).startswith(b"HTTP/1.1 404 ")
            done += 1
        return done

    with ThreadPoolExecutor(4) as pool:
        clients = [pool.submit(shake, place) for place in range(4)]
        while not all(client.done() for client in clients):
            assert running.command("reload", "--new-workers").returncode == 0
            reloads += 1
        assert sum(client.result() for client in clients) >= HANDSHAKES
    assert reloads >= 3


class Writers:
    """Changes in a process of their own, whose interpreter no handshake waits for: a connection a
    name, so that several are under way. `begun` and `done` count them by name, in shared memory.
    """

    def __init__(self, port: int, requests: list[list[bytes]]) -> None:
        kinds = multiprocessing.get_context("fork")
        self.begun, self.done = (kinds.RawArray("Q", len(requests)) for _ in range(2))
        self._port, self._requests = port, requests
        self._over = kinds.Event()
        self._failures, ours = kinds.Pipe(duplex=False)
        self._process = kinds.Process(target=self._run, args=(ours,), daemon=True)

    def __enter__(self) -> Writers:
        self._process.start()
        self._start = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._process.join()
        self.rate = sum(self.done) / (time.monotonic() - self._start)
        assert self._failures.recv() == []

    def live(self, place: int, before: int) -> range:
        """The changes that may be live, where `before` were done at first."""
        return range(before, self.begun[place] + 1)

    def _run(self, failures: Connection) -> None:
        with ThreadPoolExecutor(len(self._requests)) as pool:
            writers = [pool.submit(self._write, i) for i in range(len(self._requests))]
            failures.send([repr(w.exception()) for w in writers if w.exception()])

    def _write(self, place: int) -> None:
        requests = self._requests[place]
        with socket.create_connection(("127.0.0.1", self._port), timeout=60) as connection:
            while not self._over.is_set():
                self.begun[place] += 1
                connection.sendall(requests[self.begun[place] % len(requests)])
                answer = connection.recv(65536)
                assert answer.startswith(b"HTTP/1.1 200 "), answer
                while not answer.endswith(b"}"):
                    answer += connection.recv(65536)
                self.done[place] = self.begun[place]


def put(path: str, body: dict) -> bytes:
    """A request of the Admin API's."""
    text = json.dumps(body).encode()
    head = f"PUT /{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text


def test_handshakes_while_certificates_change(gateway: Start, pairs: list[Pair]) -> None:
    """A handshake shows what was live in its time: no older one, none of another name."""
    running = gateway(None, tls="ssl", workers=2)
    ids = [f"{i:08}-0000-4000-8000-000000000000" for i in range(16)]
    # Certificates that are written anew, and names that are given to other ones.
    names = [f"certificate{i}.example" for i in range(4)] + [f"sni{i}.example" for i in range(4)]
    changes = [
        [
            put(f"certificates/{ids[i]}", {"cert": pair.cert, "key": pair.key, "snis": [names[i]]})
            for pair in pairs
        ]
        for i in range(4)
    ] + [
        [put(f"snis/{names[i]}", {"certificate": {"id": identity}}) for identity in ids[8:]]
        for i in range(4, 8)
    ]
    for identity, pair in zip(ids[8:], pairs, strict=True):
        body = {"cert": pair.cert, "key": pair.key}
        answer = running.client.put(f"{running.admin}/certificates/{identity}", json=body)
        assert answer.status_code == 200, answer.text
    with Writers(running.admin_port, changes) as writers:
        wait_until(lambda: all(writers.done), "each name to be there")
        for i in range(HANDSHAKES // 2):
            place = i % len(names)
            before = writers.done[place]
            seen = shown(running.tls_port, names[place], VERSIONS[i // len(names) % 2])
            live = writers.live(place, before)
            assert seen in [pairs[number % len(pairs)].der for number in live]
    print(f"{writers.rate:.0f} changes a second")
