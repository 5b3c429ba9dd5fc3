"""One behaviour over all authenticators: several at once, anonymous consumers, groups, what is
hidden, what is challenged, who is who upstream."""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from itertools import permutations
from time import time
from typing import Any

import jwt
import pytest
from admin_client import uuid

from sluice import Start, proxying
from upstream import Upstream
from wire import Pairs

JSON = {"Accept": "application/json"}
SECRET = "a secret that is long enough for an HMAC of SHA-256"
ALICE, BOB = uuid(1), uuid(2)


def basic(name: str, secret: str) -> Pairs:
    """Credentials of basic-auth."""
    return {"Authorization": "Basic " + b64encode(f"{name}:{secret}".encode()).decode()}


def signature(name: str, secret: str) -> Pairs:
    """Credentials of hmac-auth, at the place that no other plugin looks at."""
    date = formatdate(time(), usegmt=True)
    digest = hmac.new(secret.encode(), f"x-date: {date}".encode(), hashlib.sha256).digest()
    text = (
        f'hmac username="{name}", algorithm="hmac-sha256", headers="x-date", '
        f'signature="{b64encode(digest).decode()}"'
    )
    return {"X-Date": date, "Proxy-Authorization": text}


@dataclass(frozen=True)
class Authenticator:
    """How a plugin is proven to, and where it keeps what proves it."""

    name: str
    collection: str
    credential: Callable[[str], dict[str, Any]]
    proof: Callable[[str], Pairs]
    wrong: Pairs
    hidden: str | None
    challenge: str
    identifier: str | None = None


ALL = [
    Authenticator(
        "key-auth",
        "keyauth_credentials",
        lambda who: {"id": uuid(7 if who == "alice" else 8), "key": f"{who}-key"},
        lambda who: {"apikey": f"{who}-key"},
        {"apikey": "wrong"},
        "apikey",
        "Key",
        uuid(7),
    ),
    Authenticator(
        "basic-auth",
        "basicauth_credentials",
        lambda who: {"username": who, "password": SECRET},
        lambda who: basic(who, SECRET),
        basic("alice", "wrong"),
        "Authorization",
        'Basic realm="service"',
        "alice",
    ),
    Authenticator(
        "hmac-auth",
        "hmacauth_credentials",
        lambda who: {"username": who, "secret": SECRET},
        lambda who: signature(who, SECRET),
        signature("alice", "wrong"),
        "Proxy-Authorization",
        "hmac",
        "alice",
    ),
    Authenticator(
        "jwt",
        "jwt_secrets",
        lambda who: {"key": who, "secret": SECRET},
        lambda who: {"Cookie": "jwt=" + jwt.encode({"iss": who}, SECRET)},
        {"Cookie": "jwt=" + jwt.encode({"iss": "alice"}, SECRET[::-1])},
        None,
        "Bearer",
        "alice",
    ),
]

NAMES = [plugin.name for plugin in ALL]


def named(name: str) -> Authenticator:
    """One of them."""
    return next(plugin for plugin in ALL if plugin.name == name)


def config_of(name: str, **config: Any) -> dict[str, Any]:
    """A configuration of a plugin, in which none looks where another one does."""
    if name == "jwt":
        config |= {"cookie_names": ["jwt"], "header_names": [], "uri_param_names": []}
    return {"name": name, "config": config}


def protected(upstream: Upstream, *plugins: dict[str, Any]) -> dict[str, Any]:
    """A route behind plugins; alice and bob, who have a credential of each."""
    consumers: list[dict[str, Any]] = [
        {"username": who, "id": number, "custom_id": f"{who}-custom"}
        | {plugin.collection: [plugin.credential(who)] for plugin in ALL}
        for who, number in (("alice", ALICE), ("bob", BOB))
    ]
    consumers += [{"username": f"anonymous-{name}"} for name in (*NAMES, "all")]
    return proxying(upstream) | {"consumers": consumers, "plugins": list(plugins)}


def seen(upstream: Upstream) -> dict[str, str | None]:
    """Who the upstream was told that asks."""
    headers = upstream.last.headers
    names = (
        "X-Consumer-ID",
        "X-Consumer-Username",
        "X-Consumer-Custom-ID",
        "X-Credential-Identifier",
        "X-Anonymous-Consumer",
    )
    assert all(len(headers.all(name)) <= 1 for name in names)
    return {name: headers.get(name) for name in names}


@pytest.mark.parametrize("name", NAMES)
def test_each(gateway: Start, upstream: Upstream, name: str) -> None:
    """Who passes, what is told upstream, and what a client forged of it."""
    plugin = named(name)
    running = gateway(protected(upstream, config_of(name)))
    forged = {"X-Consumer-ID": BOB, "X-Credential-Identifier": "x", "X-Anonymous-Consumer": "true"}
    assert running.ask("/", headers=plugin.proof("alice") | forged).status == 200
    assert seen(upstream) == {
        "X-Consumer-ID": ALICE,
        "X-Consumer-Username": "alice",
        "X-Consumer-Custom-ID": "alice-custom",
        "X-Credential-Identifier": plugin.identifier,
        "X-Anonymous-Consumer": None,
    }
    for headers in ({}, plugin.wrong):
        reply = running.ask("/", headers=JSON | headers)
        assert reply.status == 401
        [challenge] = reply.headers.all("WWW-Authenticate")
        assert challenge.startswith(plugin.challenge)
        assert reply.json()["message"]
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("name", [name for name in NAMES if named(name).hidden])
@pytest.mark.parametrize("anonymous", [False, True])
def test_hide_credentials(gateway: Start, upstream: Upstream, name: str, anonymous: bool) -> None:
    plugin = named(name)
    more = {"anonymous": "anonymous-all"} if anonymous else {}
    running = gateway(protected(upstream, config_of(name, hide_credentials=True, **more)))
    for headers in (plugin.proof("alice"), plugin.wrong):
        reply = running.ask("/", headers=headers)
        assert reply.status == (200 if anonymous or headers is not plugin.wrong else 401)
        assert plugin.hidden not in upstream.last.headers


@pytest.mark.parametrize("name", NAMES)
def test_anonymous(gateway: Start, upstream: Upstream, name: str) -> None:
    """By id or by name; without a credential, or with a wrong one."""
    plugin = named(name)
    for anonymous in (BOB, "bob"):
        running = gateway(protected(upstream, config_of(name, anonymous=anonymous)))
        for headers in ({}, plugin.wrong):
            assert running.ask("/", headers=headers).status == 200
            told = seen(upstream)
            assert told["X-Consumer-ID"] == BOB
            assert told["X-Anonymous-Consumer"] == "true"
            assert told["X-Credential-Identifier"] is None
        assert running.ask("/", headers=plugin.proof("alice")).status == 200
        assert seen(upstream)["X-Anonymous-Consumer"] is None


@pytest.mark.parametrize("name", NAMES)
def test_an_anonymous_consumer_that_is_not_there(
    gateway: Start, upstream: Upstream, name: str
) -> None:
    running = gateway(protected(upstream, config_of(name, anonymous="ghost")))
    running.expect_log("anonymous consumer ghost is configured but doesn't exist", 1)
    reply = running.ask("/", headers=JSON)
    assert reply.status == 500
    assert reply.json()["message"] == "anonymous consumer ghost is configured but doesn't exist"


PAIRS = list(permutations(NAMES, 2))


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_two_of_which_both_are_needed(
    gateway: Start, upstream: Upstream, first: str, second: str
) -> None:
    """Without an anonymous consumer each has to be passed; the last in their order counts."""
    running = gateway(protected(upstream, config_of(first), config_of(second)))
    one, two = named(first), named(second)
    assert running.ask("/", headers=one.proof("alice") | two.proof("bob")).status == 200
    last = min(one, two, key=lambda plugin: PRIORITY[plugin.name])
    who = "alice" if last is one else "bob"
    assert seen(upstream)["X-Consumer-Username"] == who
    for headers in (
        {},
        one.proof("alice"),
        two.proof("alice"),
        one.proof("alice") | two.wrong,
        one.wrong | two.proof("alice"),
    ):
        assert running.ask("/", headers=headers).status == 401
    assert len(upstream.requests) == 1


PRIORITY = {"jwt": 1450, "key-auth": 1250, "basic-auth": 1100, "hmac-auth": 1030}


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_two_of_which_one_is_enough(
    gateway: Start, upstream: Upstream, first: str, second: str
) -> None:
    """With anonymous consumers the first that is passed counts; of none the last one's."""
    running = gateway(
        protected(
            upstream,
            config_of(first, anonymous=f"anonymous-{first}"),
            config_of(second, anonymous=f"anonymous-{second}"),
        )
    )
    one, two = named(first), named(second)
    last = min(one, two, key=lambda plugin: PRIORITY[plugin.name])

    def who(headers: Pairs) -> str | None:
        assert running.ask("/", headers=headers).status == 200
        return seen(upstream)["X-Consumer-Username"]

    assert who({}) == f"anonymous-{last.name}"
    assert who(one.wrong | two.wrong) == f"anonymous-{last.name}"
    assert who(one.proof("alice")) == "alice"
    assert who(two.proof("bob")) == "bob"
    assert who(one.proof("alice") | two.wrong) == "alice"
    assert who(one.wrong | two.proof("bob")) == "bob"
    assert who(one.proof("alice") | two.proof("bob")) == ("bob" if last is one else "alice")


@pytest.mark.parametrize("name", NAMES)
def test_the_consumers_own_plugins_run(gateway: Start, upstream: Upstream, name: str) -> None:
    """Those of the consumer, and of the group that he is in."""
    document = protected(
        upstream, config_of(name), {"name": "rate-limiting", "config": {"minute": 100}}
    )
    limited = {"name": "rate-limiting", "config": {"minute": 7}}
    document["consumers"][0]["plugins"] = [limited]
    document["consumer_groups"] = [
        {"name": "gold", "plugins": [{"name": "rate-limiting", "config": {"minute": 9}}]}
    ]
    document["consumers"][1]["groups"] = [{"name": "gold"}]
    running = gateway(document)
    for who, limit in (("alice", "7"), ("bob", "9")):
        reply = running.ask("/", headers=named(name).proof(who))
        assert reply.status == 200
        assert reply.headers.get("X-RateLimit-Limit-Minute") == limit
