"""Many certificates, many handshakes, many changes: none fails, and each is the right one.

`TLS_CERTIFICATES` and `TLS_HANDSHAKES` say how many; 10,000 of each take some minutes.
"""

from __future__ import annotations

import os
import random
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from certificates import Pair, connect, context, get, make, shown
from sluice import Gateway

START = Callable[..., Gateway]

CERTIFICATES = int(os.environ.get("TLS_CERTIFICATES", "300"))
HANDSHAKES = int(os.environ.get("TLS_HANDSHAKES", "1000"))

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


def test_random_names(gateway: START, pairs: list[Pair]) -> None:
    seed = int(os.environ.get("TLS_SEED", random.randrange(2**32)))
    print("TLS_SEED", seed)
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


def test_more_than_is_kept(gateway: START, pairs: list[Pair]) -> None:
    """Parsed certificates have 96 MiB: what comes after has room, and those before come back."""
    long = "# such as others have before a certificate\n" * 2800 + pairs[0].cert
    given = [
        entity(i, Pair("{vault://env/long}", pairs[0].key), f"{i}.example") for i in range(450)
    ]
    running = gateway({"certificates": given}, tls="ssl", vault_env="LONG", env={"LONG": long})
    for i in [*range(450), 0, 449]:
        assert shown(running.tls_port, f"{i}.example") == pairs[0].der


def test_handshakes_over_reloads(gateway: START, pairs: list[Pair]) -> None:
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


def test_handshakes_while_certificates_change(gateway: START, pairs: list[Pair]) -> None:
    """A handshake shows what was live in its time: no older one, none of another name."""
    running = gateway(None, tls="ssl", workers=2)
    own = {"certificate.example": pairs[:4], "sni.example": pairs[4:]}
    begun, done = dict.fromkeys(own, 0), dict.fromkeys(own, 0)

    def put(path: str, body: dict) -> None:
        answer = running.client.put(f"{running.admin}/{path}", json=body)
        assert answer.status_code == 200, answer.text

    def certificate(number: int, pair: Pair, *names: str) -> None:
        body = {"cert": pair.cert, "key": pair.key, "snis": names}
        put(f"certificates/{number:08}-0000-4000-8000-000000000000", body)

    def change(name: str) -> None:
        begun[name] += 1
        place = begun[name] % 4
        if name == "sni.example":
            identity = f"{place:08}-0000-4000-8000-000000000000"
            put(f"snis/{name}", {"certificate": {"id": identity}})
        else:
            certificate(4, own[name][place], name)
        done[name] = begun[name]

    over = threading.Event()

    def change_all() -> float:
        start = time.monotonic()
        while not over.is_set():
            for name in ("certificate.example", *["sni.example"] * 4):
                change(name)
        return sum(done.values()) / (time.monotonic() - start)

    for i, pair in enumerate(own["sni.example"]):
        certificate(i, pair)
    for name in own:
        change(name)
    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(change_all)
        try:
            for i in range(HANDSHAKES // 2):
                name = list(own)[i % 2]
                before = done[name]
                seen = shown(running.tls_port, name, VERSIONS[i // 2 % 2])
                live = range(before, begun[name] + 1)
                assert seen in [own[name][number % 4].der for number in live]
        finally:
            over.set()
        print(f"{writer.result():.0f} changes a second")
