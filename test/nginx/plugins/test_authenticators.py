"""One behaviour over all authenticators: several at once, anonymous consumers, groups, what is
hidden, what is challenged, who is who upstream."""

from itertools import combinations, permutations

import pytest
from authenticators import (
    ALICE,
    BOB,
    JSON,
    NAMES,
    config_of,
    identifying,
    named,
    protected,
    seen,
)
from tls_clients import OTHER_ID, ROOT_ID, World, asked, start

from sluice import Start
from upstream import Upstream
from wire import Pairs


def test_all_are_here() -> None:
    assert {*NAMES} == identifying()


@pytest.mark.parametrize("name", NAMES)
def test_each(serving: Start, upstream: Upstream, name: str) -> None:
    """Who passes, what is told upstream, and what a client forged of it."""
    plugin = named(name)
    running = serving(protected(upstream, config_of(name)))
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


REALM = 'a "b" \\'


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("realm", "told"), [(REALM, ' realm="a \\"b\\" \\\\"'), ("here", ' realm="here"'), (None, "")]
)
def test_realm(serving: Start, upstream: Upstream, name: str, realm: str | None, told: str) -> None:
    """What a browser shows, escaped as a quoted string; null leaves out all but a default."""
    plugin = named(name)
    running = serving(protected(upstream, config_of(name, realm=realm)))
    scheme = plugin.challenge.partition(" ")[0]
    for headers in ({}, plugin.wrong):
        reply = running.ask("/", headers=JSON | headers)
        assert reply.status == 401
        is_bad_token = name == "jwt" and headers
        more = ' error="invalid_token"' if is_bad_token else ""
        shown = told or (' realm="service"' if name == "basic-auth" else "")
        assert reply.headers.all("WWW-Authenticate") == [scheme + shown + more]


@pytest.mark.parametrize("name", [name for name in NAMES if named(name).hidden])
@pytest.mark.parametrize("anonymous", [False, True])
def test_hide_credentials(serving: Start, upstream: Upstream, name: str, anonymous: bool) -> None:
    plugin = named(name)
    more = {"anonymous": "anonymous-all"} if anonymous else {}
    running = serving(protected(upstream, config_of(name, hide_credentials=True, **more)))
    for headers in (plugin.proof("alice"), plugin.wrong):
        reply = running.ask("/", headers=headers)
        assert reply.status == (200 if anonymous or headers is not plugin.wrong else 401)
        assert plugin.hidden not in upstream.last.headers


@pytest.mark.parametrize("name", NAMES)
def test_anonymous(serving: Start, upstream: Upstream, name: str) -> None:
    """By id or by name; without a credential, or with a wrong one."""
    plugin = named(name)
    for anonymous in (BOB, "bob"):
        running = serving(protected(upstream, config_of(name, anonymous=anonymous)))
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
    serving: Start, upstream: Upstream, name: str
) -> None:
    running = serving(protected(upstream, config_of(name, anonymous="ghost")))
    running.expect_log("anonymous consumer ghost is configured but doesn't exist", 1)
    reply = running.ask("/", headers=JSON)
    assert reply.status == 500
    assert reply.json()["message"] == "anonymous consumer ghost is configured but doesn't exist"


PAIRS = list(permutations(NAMES, 2))


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_two_of_which_both_are_needed(
    serving: Start, upstream: Upstream, first: str, second: str
) -> None:
    """Without an anonymous consumer each has to be passed; the last in their order counts."""
    running = serving(protected(upstream, config_of(first), config_of(second)))
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
    serving: Start, upstream: Upstream, first: str, second: str
) -> None:
    """With anonymous consumers the first that is passed counts; of none the last one's."""
    running = serving(
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


THREES = list(combinations(sorted(PRIORITY, key=lambda name: -PRIORITY[name]), 3))


@pytest.mark.parametrize("names", THREES, ids="-".join)
def test_three_at_once(gateway: Start, upstream: Upstream, names: tuple[str, ...]) -> None:
    """Each has to be passed, and the last counts; with anonymous consumers one is enough."""
    proofs = [named(name).proof(who) for name, who in zip(names, WHO, strict=True)]
    every = proofs[0] | proofs[1] | proofs[2]
    running = gateway(protected(upstream, *map(config_of, names)))
    assert running.ask("/", headers=every).status == 200
    assert seen(upstream)["X-Consumer-Username"] == WHO[-1]
    for one, two in combinations(proofs, 2):
        assert running.ask("/", headers=one | two).status == 401
    for name in names:
        assert running.ask("/", headers=every | named(name).wrong).status == 401
    assert len(upstream.requests) == 1

    more = [config_of(name, anonymous=f"anonymous-{name}") for name in names]
    running.reload(protected(upstream, *more))
    wrong = named(names[0]).wrong | named(names[1]).wrong | named(names[2]).wrong
    cases = [({}, f"anonymous-{names[-1]}"), (wrong, f"anonymous-{names[-1]}"), (every, WHO[0])]
    for proof, who in zip(proofs, WHO, strict=True):
        cases += [(proof, who), (wrong | proof, who)]
    for headers, who in cases:
        assert running.ask("/", headers=headers).status == 200
        told = seen(upstream)
        assert told["X-Consumer-Username"] == who
        assert (told["X-Anonymous-Consumer"] == "true") == who.startswith("anonymous-")


WHO = ("alice", "alice", "bob")
"""Whose credentials are shown, in the plugins' order."""


@pytest.mark.parametrize("name", NAMES)
def test_the_consumers_own_plugins_run(serving: Start, upstream: Upstream, name: str) -> None:
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
    running = serving(document)
    for who, limit in (("alice", "7"), ("bob", "9")):
        reply = running.ask("/", headers=named(name).proof(who))
        assert reply.status == 200
        assert reply.headers.get("X-RateLimit-Limit-Minute") == limit


@pytest.fixture(scope="module")
def world() -> World:
    """Client certificates."""
    return World()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("anonymous", [False, True])
def test_a_client_certificate_beside_each(
    serving: Start, upstream: Upstream, world: World, name: str, anonymous: bool
) -> None:
    """mtls-auth names no consumer and has no anonymous one: it has to be passed in any case."""
    plugin = named(name)
    more = {"anonymous": "anonymous-all"} if anonymous else {}
    mutual = {"name": "mtls-auth", "config": {"ca_certificates": [ROOT_ID]}}
    document = protected(upstream, config_of(name, **more), mutual)
    document["ca_certificates"] = [
        {"id": ROOT_ID, "cert": world.root.cert},
        {"id": OTHER_ID, "cert": world.other.cert},
    ]
    running = start(serving, document)
    proof = [f"{key}: {value}" for key, value in plugin.proof("alice").items()]
    wrong = [f"{key}: {value}" for key, value in plugin.wrong.items()]
    for client in (None, world.foreign):
        for lines in (proof, wrong, []):
            assert asked(running, client, headers=tuple(lines)).startswith(b"HTTP/1.1 401 ")
    assert upstream.requests == []
    for lines, status, who in (
        (proof, 200, "alice"),
        (wrong, 200 if anonymous else 401, "anonymous-all"),
        ([], 200 if anonymous else 401, "anonymous-all"),
    ):
        count = len(upstream.requests)
        answer = asked(running, world.good, headers=tuple(lines))
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())
        assert len(upstream.requests) - count == (status == 200)
        if status == 200:
            assert upstream.last.headers.get("X-Client-Cert-DN") == "CN=good client"
            assert seen(upstream)["X-Consumer-Username"] == who
