"""The basic-auth plugin: who is let in by a name and a password, what is stored, what is seen."""

import hashlib
from base64 import b64encode
from typing import Any

import pytest
from admin_client import Client, uuid

from sluice import Start, proxying
from upstream import Upstream
from wire import Reply

JSON = {"Accept": "application/json"}
ALICE = uuid(1)
CHALLENGE = 'Basic realm="service"'

CONSUMERS = [
    {
        "id": ALICE,
        "username": "alice",
        "basicauth_credentials": [
            {"username": "alice", "password": "right"},
            {"username": "\u00dcn\u00efcode", "password": "p\u00e4ssw\u00f6rd"},
            {"username": "empty", "password": ":"},
        ],
    },
    {"username": "bob", "basicauth_credentials": [{"username": "bob", "password": "right"}]},
    {"username": "nobody"},
]


def protected(upstream: Upstream, **config: Any) -> dict[str, Any]:
    """One route behind basic-auth, and three consumers."""
    plugin = {"name": "basic-auth", "config": config}
    return proxying(upstream) | {"consumers": CONSUMERS, "plugins": [plugin]}


def basic(text: str) -> str:
    """A header's value."""
    return "Basic " + b64encode(text.encode()).decode()


def kept(password: str, consumer: str = ALICE) -> str:
    """What Kong stores of a password."""
    return hashlib.sha1((password + consumer).encode()).hexdigest()


def assert_refused(reply: Reply, challenge: str = CHALLENGE) -> None:
    """Kong's 401."""
    assert reply.status == 401
    assert reply.headers.all("www-authenticate") == [challenge]
    assert reply.json()["message"] == "Unauthorized"


GOOD = [
    basic("alice:right"),
    basic("alice:right").replace("Basic", "basic"),
    basic("alice:right").replace("Basic ", "Basic   "),
    basic("alice:right").replace("Basic ", "Basic"),
    "Bearer x " + basic("alice:right"),
    basic("alice:right\nmore"),
    basic(":alice:right"),
    basic("alice:right").rstrip("="),
    basic("\u00dcn\u00efcode:p\u00e4ssw\u00f6rd"),
    basic("empty::"),
]


@pytest.mark.parametrize("value", GOOD)
def test_who_is_let_in(serving: Start, upstream: Upstream, value: str) -> None:
    """As Kong reads the header, though it would read some with less patience."""
    running = serving(protected(upstream))
    for name in ("Authorization", "Proxy-Authorization"):
        assert running.ask("/", headers={name: value}).status == 200
        headers = upstream.last.headers
        assert headers.get("X-Consumer-ID") == ALICE
        assert headers.get("X-Consumer-Username") == "alice"
        assert headers.get("X-Credential-Identifier") not in (None, "")
        assert headers.get("Authorization") == (value if name == "Authorization" else None)


BAD = [
    "",
    "Basic",
    "Basic ",
    "Basic =",
    "Basic ====",
    "Basic A",
    "Basic a-_b",
    "BASIC " + b64encode(b"alice:right").decode(),
    "Bearer " + b64encode(b"alice:right").decode(),
    basic("alice"),
    basic(":"),
    basic("alice:"),
    basic("alice:Right"),
    basic("alice:right "),
    basic("Alice:right"),
    basic("alice :right"),
    basic("alice:" + kept("right")),
    basic("bob:" + "x" * 4000),
    basic("nobody:right"),
    basic("alice\x00:right"),
    basic("alice:right\x00"),
    basic("alice:right") + "x",
    basic("alice:right") + ", " + basic("bob:right"),
]


@pytest.mark.parametrize("value", BAD)
def test_who_is_refused(serving: Start, upstream: Upstream, value: str) -> None:
    running = serving(protected(upstream))
    for name in ("Authorization", "Proxy-Authorization"):
        assert_refused(running.ask("/", headers=JSON | {name: value}))
    assert upstream.requests == []


def test_a_hash_is_of_one_consumer(serving: Start, upstream: Upstream) -> None:
    """Bob's hash differs from Alice's though both have the same password."""
    document = protected(upstream) | {"_transform": False}
    document["consumers"] = [
        {
            "id": ALICE,
            "username": "alice",
            "basicauth_credentials": [{"username": "a", "password": kept("right")}],
        },
        {
            "id": uuid(2),
            "username": "bob",
            "basicauth_credentials": [{"username": "b", "password": kept("right")}],
        },
    ]
    running = serving(document)
    assert running.ask("/", headers={"Authorization": basic("a:right")}).status == 200
    assert_refused(running.ask("/", headers=JSON | {"Authorization": basic("b:right")}))
    assert_refused(running.ask("/", headers=JSON | {"Authorization": basic(f"a:{kept('right')}")}))


def test_the_second_header_counts_where_the_first_is_of_nobody(
    serving: Start, upstream: Upstream
) -> None:
    running = serving(protected(upstream))

    def ask(proxy: str, own: str) -> Reply:
        return running.ask(
            "/", headers=JSON | {"Proxy-Authorization": basic(proxy), "Authorization": basic(own)}
        )

    assert ask("ghost:x", "alice:right").status == 200
    assert ask("bob:right", "ghost:x").status == 200
    assert upstream.last.headers.get("X-Consumer-Username") == "bob"
    assert_refused(ask("bob:wrong", "alice:right"))


def test_hidden_credentials_do_not_reach_the_upstream(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream, hide_credentials=True, anonymous="nobody"))
    for value in (basic("alice:right"), basic("alice:wrong"), "Bearer token"):
        assert running.ask("/", headers={"Authorization": value}).status == 200
        assert "Authorization" not in upstream.last.headers


@pytest.mark.parametrize("value", [None, basic("alice:wrong"), "Bearer x"])
def test_anonymous_requests_pass_as_that_consumer(
    serving: Start, upstream: Upstream, value: str | None
) -> None:
    running = serving(protected(upstream, anonymous="nobody"))
    headers = {"Authorization": value} if value else {}
    assert running.ask("/", headers=headers).status == 200
    assert upstream.last.headers.get("X-Consumer-Username") == "nobody"
    assert upstream.last.headers.get("X-Anonymous-Consumer") == "true"
    assert "X-Credential-Identifier" not in upstream.last.headers


def test_the_realm_stays_between_its_quotes(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream, realm='a "b"'))
    assert_refused(running.ask("/", headers=JSON), r'Basic realm="a \"b\""')


def test_only_the_hash_is_kept(client: Client, upstream: Upstream) -> None:
    """By every verb; what is not sent stays what it is."""
    client.must(201, "POST", "/services", {"name": "s", "url": upstream.url})
    client.must(201, "POST", "/services/s/routes", {"name": "r", "paths": ["/"]})
    client.must(201, "POST", "/plugins", {"name": "basic-auth"})
    client.must(200, "PUT", f"/consumers/{ALICE}", {"username": "alice"})

    def lets_in(text: str) -> bool:
        reply = client.running.ask("/", headers={"Authorization": basic(text)})
        return reply.status == 200

    at = "/consumers/alice/basic-auth"
    made = client.must(201, "POST", at, {"username": "a", "password": "one"})
    assert made["password"] == kept("one")
    assert lets_in("a:one")
    path = f"{at}/{made['id']}"
    assert client.must(200, "PATCH", path, {"tags": ["t"]})["password"] == kept("one")
    assert lets_in("a:one")
    assert client.must(200, "PATCH", path, {"password": "two"})["password"] == kept("two")
    assert lets_in("a:two")
    assert not lets_in("a:one")
    moved = client.ask("PATCH", path, {"consumer": {"id": ALICE}})
    assert moved.status == 400
    assert "all or none of these fields must be set" in moved.json()["message"]
    assert lets_in("a:two")
    again = {"username": "a", "password": kept("two")}
    assert client.must(200, "PUT", path, again)["password"] == kept(kept("two"))
    reply = client.form("POST", at, "username=b&password=three")
    assert reply.json()["password"] == kept("three")
    assert client.must(200, "GET", "/basic-auths/b")["password"] == kept("three")
    assert client.ask("POST", at, {"username": "b", "password": "x"}).status == 409
    assert client.ask("POST", at, {"username": "c"}).status == 400
    assert client.ask("DELETE", f"{at}/b").status == 204
    assert not lets_in("b:three")


def test_no_log_has_the_password(gateway: Start, upstream: Upstream) -> None:
    running = gateway(protected(upstream))
    value = basic("alice:planted-wrong")
    assert_refused(running.ask("/planted", headers=JSON | {"Authorization": value}))
    running.stop("quit")
    assert "/planted" in running.access_log()
    for log in (running.access_log(), running.error_log()):
        assert "planted-wrong" not in log
        assert value.split()[1] not in log


@pytest.mark.parametrize("line", [b"GET /\r\n", b"GET / HTTP/1.0\r\n\r\n"])
def test_requests_without_headers(serving: Start, upstream: Upstream, line: bytes) -> None:
    running = serving(protected(upstream))
    with running.wire() as wire:
        wire.send(line)
        assert b"Unauthorized" in wire.read_to_end()
    assert upstream.requests == []


def test_a_password_of_a_megabyte(gateway: Start, upstream: Upstream) -> None:
    """Of any password as much is stored."""
    password = "p" * (1 << 20)
    config = protected(upstream, hide_credentials=True)
    credential = {"username": "alice", "password": password}
    config["consumers"] = [{"username": "alice", "basicauth_credentials": [credential]}]
    running = gateway(config, large_client_header_buffers="4 2m")
    for shown, status in ((password, 200), (password[1:], 401), (password + "p", 401)):
        reply = running.ask("/", headers=JSON | {"Authorization": basic(f"alice:{shown}")})
        assert reply.status == status
    assert len(upstream.requests) == 1
