"""Bodies that are wrong in every way: refused, nothing changed, nobody else held up.

SEED: of an earlier run.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from admin_client import FORM, JSON, Client, uuid
from seeds import seed_of
from soaks import soak
from turns import WATCH

import guard
from sluice import Gateway
from wire import Reply, wait_until

BODIES = soak(600, 6000)
SEED = seed_of("admin_malformed")

HELD_SECONDS = 0.5
"""Of the control worker's processor, in one turn of its loop: others wait for so long."""

KINDS = (
    "services", "routes", "upstreams", "consumers", "plugins", "consumer_groups", "certificates",
    "snis", "ca_certificates", "vaults", "key-auths", "key-sets", "keys",
)  # fmt: skip

VALUES: tuple[object, ...] = (
    None, True, False, 0, -1, 1.5, 1e308, 2**53, 2**63, 10**400, -(2**31), "", " ", "a", "\u0000",
    "a\u0000b", "\ud7ff", "\U0010ffff", "x" * 5000, "{vault://env/HOME}", "../..", "%00", "'", '"',
    "a;b", "--", [], {}, [None], [[]], [{}], {"": ""}, {"id": 1}, {"id": None}, {"id": "x"},
    {"name": {"a": 1}}, {"name": 1}, {"name": []}, {"id": []}, {"id": uuid(9)}, {"username": True},
    {"1": "a"}, [1, "a", None, {}, []], ["a"] * 300, {"a": {"b": {"c": [{"d": {}}]}}},
    ["/a", "/a"], "http://", "http://[::1", "https://a:99999999/", "~(", "~[", "~(a*)*b", "/~",
)  # fmt: skip

FIELDS = (
    "id", "name", "host", "url", "port", "path", "protocol", "protocols", "paths", "hosts",
    "methods",
    "headers", "sources", "destinations", "snis", "service", "route", "consumer",
    "consumer_group",
    "upstream", "certificate", "tags", "config", "key", "cert", "cert_alt", "key_alt", "username",
    "custom_id", "target", "weight", "healthchecks", "algorithm", "slots", "hash_on", "prefix",
    "created_at", "updated_at", "enabled", "instance_name", "ordering", "ca_certificates",
    "client_certificate", "tls_verify_depth", "retries", "regex_priority", "ttl", "__undated",
    "__references", "snis", "kid", "jwk", "pem", "public_key", "private_key", "set",
    "@entity", "", "a.b", "1",
)  # fmt: skip

# What would make an entity, but for what is put into it.
WHOLE: dict[str, dict[str, object]] = {
    "services": {"host": "127.0.0.1"},
    "routes": {"paths": ["/a"]},
    "upstreams": {"name": "u"},
    "consumers": {"username": "u"},
    "plugins": {"name": "rate-limiting", "config": {"minute": 1}},
    "consumer_groups": {"name": "g"},
    "vaults": {"name": "env", "prefix": "my"},
    "key-sets": {"name": "s"},
    "keys": {"kid": "k", "jwk": "{}"},
}


@pytest.fixture(scope="module")
def turns() -> Iterator[Path]:
    """Where the plugin says how long the control worker's loop works without a pause."""
    folder = guard.folder("sluice-malformed-")
    folder.chmod(0o777)
    yield folder / "turns"
    guard.remove(folder)


@pytest.fixture(scope="module")
def running(turns: Path) -> Iterator[Gateway]:
    """A gateway with one service."""
    with Gateway(None, plugins={"turns": WATCH.replace("@path@", str(turns))}) as gateway:
        Client(gateway).must(200, "PUT", "/services/stays", {"host": "127.0.0.1"})
        Client(gateway).must(200, "PUT", "/consumers/stays", {})
        Client(gateway).must(200, "PUT", "/upstreams/stays", {})
        yield gateway


def hostile_value(rng: random.Random, depth: int = 0) -> object:
    """A value of any type."""
    if depth < 3 and rng.random() < 0.2:
        return [hostile_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if depth < 3 and rng.random() < 0.2:
        return {rng.choice(FIELDS): hostile_value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return rng.choice(VALUES)


def entity(rng: random.Random, kind: str) -> dict[str, object]:
    """An entity of a kind, with a few fields of a wrong type, or of another kind."""
    value = dict(WHOLE.get(kind, {})) if rng.random() < 0.8 else {}
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        value[rng.choice(FIELDS)] = hostile_value(rng)
    return value


def text_of(value: object) -> bytes:
    """Its JSON; half of it with other bytes than ASCII."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def cut(rng: random.Random, kind: str) -> bytes:
    """JSON that ends too early."""
    text = text_of(entity(rng, kind))
    return text[: rng.randrange(1, len(text))]


def spoiled(rng: random.Random, kind: str) -> bytes:
    """JSON with bytes that do not belong there."""
    text = bytearray(text_of(entity(rng, kind)))
    for _ in range(rng.randrange(1, 6)):
        text[rng.randrange(len(text))] = rng.choice(b'\x00\xff\xc0\x80"{}[]:,\\0eE-+.n')
    return bytes(text)


def deep(rng: random.Random, _: str) -> bytes:
    """Lists and objects in others."""
    count = rng.choice((99, 100, 101, 1000, 100_000))
    return rng.choice((b"[" * count, b'{"a":' * count, b"[" * count + b"]" * count))


def doubled(rng: random.Random, kind: str) -> bytes:
    """A key that stands twice."""
    name = json.dumps(rng.choice(FIELDS)).encode()
    return b"{" + name + b":1," + name + b":" + text_of(entity(rng, kind)) + b"}"


def bare(rng: random.Random, _: str) -> bytes:
    """What is no object."""
    words = (b"null", b"1", b'"a"', b"true", b"[]", b"[1]", b"NaN", b"Infinity", b"-", b"1e999",
             b"{", b"}", b"\xef\xbb\xbf{}", b"0x10", b"{'a':1}", b"{a:1}", b"//", b"\x00", b" ",
             b"9" * 100_000, b'"' + b"\\u0000" * 10 + b'"', b'{"a":"\\ud800"}',
             b'{"a":1}x')  # fmt: skip
    return rng.choice(words)


def as_json(rng: random.Random, kind: str) -> bytes:
    """JSON of an entity that is wrong."""
    return text_of(entity(rng, kind))


NAMES = (
    "paths[]", "paths[1]", "paths[2]", "paths[1000]", "paths[1001]", "paths[0]", "paths[-1]",
    "paths[a]", "paths[1].a", "paths.a", "config.minute", "config[minute]", "config.", ".config",
    "config..minute", "a[", "a]", "[1]", "[]", "", "a" * 3000, "a." * 30 + "a", "headers.a[]",
    "headers.a[1]", "sources[1].ip", "sources[1].port", "sources[].ip", "service.id",
    "service.name", "service", "tags[]", "tags", "%00", "%ff", "protocols[]", "healthchecks.active",
    "healthchecks.active.headers.a[]",
)  # fmt: skip


def form_fields(rng: random.Random) -> list[tuple[str, str]]:
    """Names and values of a form."""
    texts = ("", "a", "/a", "1", "-1", "1e999", "true", "null", "%00", "%ff%fe", "%zz", "x" * 3000)
    count = rng.choice((1, 2, 3, 6, 1001))
    return [(rng.choice(NAMES + FIELDS), rng.choice(texts)) for _ in range(count if count else 1)]


def form(rng: random.Random, _: str) -> bytes:
    """A form, urlencoded."""
    between = rng.choice(("&", "&", "&", "&&", ";"))
    return between.join(f"{name}={value}" for name, value in form_fields(rng)).encode()


def multipart(rng: random.Random, _: str) -> bytes:
    """A form, multipart, whole or not."""
    parts = [
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in form_fields(rng)
    ]
    text = ("".join(parts) + "--b--\r\n").encode()
    return text if rng.random() < 0.5 else text[: rng.randrange(1, len(text))]


MULTIPART = {"Content-Type": "multipart/form-data; boundary=b"}
Maker = Callable[[random.Random, str], bytes]
MAKERS: tuple[tuple[Maker, dict[str, str]], ...] = (
    (as_json, JSON), (as_json, JSON), (as_json, JSON), (cut, JSON), (spoiled, JSON), (deep, JSON),
    (doubled, JSON), (bare, JSON), (form, FORM), (form, FORM), (multipart, MULTIPART),
    (form, MULTIPART), (multipart, FORM), (as_json, FORM), (form, JSON),
    (as_json, {"Content-Type": "text/plain"}), (as_json, {"Content-Type": "multipart/form-data"}),
    (as_json, {"Content-Type": "application/json; charset=utf-16"}),
)  # fmt: skip


def target_of(rng: random.Random, kind: str) -> tuple[str, str]:
    """Where a body is sent."""
    return rng.choice((
        ("POST", f"/{kind}"),
        ("POST", f"/{kind}"),
        ("PUT", f"/{kind}/{uuid(rng.randrange(5))}"),
        ("PUT", f"/{kind}/name"),
        ("PATCH", f"/{kind}/stays"),
        ("POST", "/services/stays/routes"),
        ("POST", "/services/stays/plugins"),
        ("POST", "/consumers/stays/key-auth"),
        ("PUT", "/upstreams/stays/targets/127.0.0.1:1"),
        ("POST", "/upstreams/stays/targets"),
        ("POST", "/batch"),
        ("POST", "/config"),
        ("POST", "/rollback"),
    ))  # fmt: skip


class Beside(threading.Thread):
    """Reads all the time."""

    def __init__(self, client: Client) -> None:
        super().__init__(daemon=True)
        self.client, self.ends = client, threading.Event()
        self.statuses: set[int] = set()

    def run(self) -> None:
        while not self.ends.is_set():
            self.statuses.add(self.client.ask("GET", "/plugins/enabled").status)
            time.sleep(0.002)

    def end(self) -> None:
        """Ends it."""
        self.ends.set()
        self.join()


def check_answer(sent: str, reply: Reply) -> None:
    """A refusal has a message; nothing is a fault of the gateway's."""
    assert reply.status < 500, f"{sent}: {reply}"
    if reply.status >= 400:
        assert isinstance(reply.json()["message"], str), sent
    elif reply.body:
        assert isinstance(reply.json(), dict | list), sent


def test_malformed_bodies(running: Gateway, turns: Path) -> None:
    """A refused one changes nothing: not the revision, which is that of all entities."""
    print(f"seed {SEED}")
    turns.unlink(missing_ok=True)
    wait_until(turns.exists, "the plugin to begin anew")
    rng = random.Random(SEED)
    client, beside = Client(running), Beside(Client(running))
    beside.start()
    revision = client.ask("GET", "/").headers.get("sluice-revision")
    statuses: dict[int, int] = {}
    try:
        for number in range(BODIES):
            kind = rng.choice(KINDS)
            maker, headers = rng.choice(MAKERS)
            method, target = target_of(rng, kind)
            body = maker(rng, kind)
            reply = client.ask(method, target, body, headers)
            sent = f"seed {SEED}, {number}: {method} {target} {headers} {body[:600]!r}"
            check_answer(sent, reply)
            statuses[reply.status] = statuses.get(reply.status, 0) + 1
            now = client.ask("GET", "/").headers.get("sluice-revision")
            if reply.status >= 400:
                assert now == revision, sent
            revision = now
    finally:
        beside.end()
    longest_us = int(turns.read_text().split()[1])
    print(statuses, f"longest turn {longest_us / 1000:.0f} ms")
    assert statuses[400] > BODIES // 3
    assert beside.statuses == {200}
    assert longest_us < HELD_SECONDS * 1e6
