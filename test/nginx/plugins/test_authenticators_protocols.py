"""Authenticators by other ways than a request of HTTP/1.1: HTTP/2, HTTP/1.0, a switch to WebSocket,
a page of an error, by names that only look like those of their headers, and by lines that are there
twice."""

import re
from typing import Any

import jwt
import pytest
from authenticators import JSON, NAMES, SECRET, basic, config_of, named, protected, signature
from http2 import speaking
from websocket import ASKING, KEY, switched

from sluice import Start
from upstream import Exchange, Upstream
from wire import Pairs, request_bytes, wait_until


def lines(headers: Pairs) -> str:
    """As they stand in a head."""
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


@pytest.mark.parametrize("name", NAMES)
def test_http2(serving: Start, upstream: Upstream, name: str) -> None:
    """Several on one connection, of which each is asked; cookies come in pieces there."""
    plugin = named(name)
    more = {"hide_credentials": True} if plugin.hidden else {}
    running = serving(protected(upstream, config_of(name, **more)), tls="ssl http2")
    heads: list[tuple[Pairs, int]] = [
        (plugin.proof("alice"), 200),
        ({}, 401),
        (plugin.wrong, 401),
        (plugin.proof("bob"), 200),
        ({"Cookie": "a=b"} | plugin.proof("alice"), 200),
    ]
    with speaking(running) as client:
        for headers, status in heads:
            fields = [(key.lower(), value) for key, value in headers.items()]
            if name == "jwt" and len(fields) == 1:
                # in front of it another one, in a field of its own
                fields = [("cookie", "a=b"), *fields]
            stream = client.ask(headers=fields)
            client.flush()
            assert client.answers([stream])[stream][0] == status, headers
            if status == 401:
                assert client.heads[stream]["www-authenticate"].startswith(plugin.challenge)
            elif plugin.hidden:
                assert plugin.hidden not in upstream.last.headers
    assert [each.headers.get("X-Consumer-Username") for each in upstream.requests] == [
        "alice",
        "bob",
        "alice",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_http_1_0(serving: Start, upstream: Upstream, name: str) -> None:
    plugin = named(name)
    running = serving(protected(upstream, config_of(name)))
    for headers, status in ((plugin.proof("alice"), 200), ({}, 401), (plugin.wrong, 401)):
        with running.wire() as wire:
            wire.send(f"GET / HTTP/1.0\r\n{lines(headers)}\r\n".encode())
            assert wire.read_head().status == status, headers
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_switch_to_websocket(serving: Start, upstream: Upstream, name: str) -> None:
    """Whoever is refused gets no tunnel, also where bytes follow the head."""
    plugin = named(name)

    def switch(exchange: Exchange) -> None:
        exchange.send(switched(KEY))
        exchange.keep = False

    upstream.handler = switch
    running = serving(protected(upstream, config_of(name)))
    for headers in ({}, plugin.wrong):
        with running.wire() as wire:
            wire.send(request_bytes("/", headers=[*ASKING, *headers.items()]) + b"\x81\x80abcd")
            assert wire.read_head().status == 401
    assert upstream.requests == []
    with running.wire() as wire:
        wire.send(request_bytes("/", headers=[*ASKING, *plugin.proof("alice").items()]))
        assert wire.read_head().status == 101
    assert upstream.last.headers.get("X-Consumer-Username") == "alice"


def token(who: str, secret: str = SECRET) -> str:
    """What jwt takes."""
    return jwt.encode({"iss": who}, secret)


def custom(name: str) -> tuple[dict[str, Any], str, str, str]:
    """A plugin that looks in a header of a name made up, and that of alice, of bob, of nobody."""
    if name == "jwt":
        config = {"header_names": ["X-Token"], "cookie_names": [], "uri_param_names": []}
        tokens = token("alice"), token("bob"), token("alice", SECRET[::-1])
        alice, bob, wrong = (f"Bearer {each}" for each in tokens)
        return {"name": name, "config": config}, alice, bob, wrong
    return {"name": name, "config": {"key_names": ["X-Token"]}}, "alice-key", "bob-key", "wrong"


@pytest.mark.parametrize("name", NAMES)
def test_names_that_look_alike(serving: Start, upstream: Upstream, name: str) -> None:
    """A header with "_" or "." in place of "-", or with more, proves nothing, and hides with it."""
    plugin, proof = config_of(name), named(name).proof("alice")
    if name in ("jwt", "key-auth"):
        plugin, alice, *_ = custom(name)
        proof = {"X-Token": alice}
    running = serving(protected(upstream, plugin))
    assert running.ask("/", headers=proof).status == 200
    for old, new in (("-", "_"), ("-", "."), ("Authorization", "Authorization-"), ("X-", "XX-")):
        headers = {key.replace(old, new): value for key, value in proof.items()}
        if headers != proof:
            assert running.ask("/", headers=headers).status == 401, headers
    assert len(upstream.requests) == 1


AUTHORIZED = {
    "basic-auth": basic("alice", SECRET)["Authorization"],
    "hmac-auth": None,
    "jwt": f"Bearer {token('alice')}",
    "key-auth": "alice-key",
}


@pytest.mark.parametrize("name", NAMES)
def test_two_lines_of_authorization(gateway: Start, upstream: Upstream, name: str) -> None:
    """nginx takes only one, also of HTTP/2: nobody has to say which of them counts."""
    config = {"key_names": ["authorization"]} if name == "key-auth" else {}
    running = gateway(protected(upstream, {"name": name, "config": config}), tls="ssl http2")
    more: Pairs = JSON
    right = AUTHORIZED[name]
    if not right:
        proof = signature("alice", SECRET)
        more, right = {"X-Date": proof["X-Date"]}, proof["Proxy-Authorization"]
    with speaking(running) as client:
        for values, status in (
            ([right], 200),
            ([right, right], 400),
            ([right, "wrong"], 400),
            (["wrong", right], 400),
        ):
            heads: Pairs = [*more.items(), *(("Authorization", value) for value in values)]
            assert running.ask("/", headers=heads).status == status
            stream = client.ask(headers=[(key.lower(), value) for key, value in heads])
            assert client.answers([stream])[stream][0] == status
    assert len(upstream.requests) == 2


@pytest.mark.parametrize("name", ["basic-auth", "hmac-auth"])
def test_two_lines_of_proxy_authorization(gateway: Start, upstream: Upstream, name: str) -> None:
    """The first counts, as in Kong; none of them is left to an upstream to read another one."""
    running = gateway(protected(upstream, config_of(name, hide_credentials=True)))
    made = {}
    for who, secret in (("alice", SECRET), ("bob", SECRET), ("nobody", "wrong")):
        if name == "basic-auth":
            made[who] = {"Proxy-Authorization": basic(who, secret)["Authorization"]}
        else:
            made[who] = signature(who, secret)
    for first in made:
        for second in made:
            heads = [*made[first].items(), *made[second].items(), *JSON.items()]
            count = len(upstream.requests)
            assert running.ask("/", headers=heads).status == (401 if first == "nobody" else 200)
            assert len(upstream.requests) - count == (first != "nobody")
            if first != "nobody":
                assert upstream.last.headers.get("X-Consumer-Username") == first
                assert "Proxy-Authorization" not in upstream.last.headers


@pytest.mark.parametrize("name", ["jwt", "key-auth"])
def test_two_lines_of_a_header_by_a_name_made_up(
    gateway: Start, upstream: Upstream, name: str
) -> None:
    """As in Kong: jwt reads the first and no other one; to key-auth two keys are none."""
    plugin, alice, bob, wrong = custom(name)
    running = gateway(protected(upstream, plugin))
    for first, who in ((alice, "alice"), (bob, "bob"), (wrong, None)):
        for second in (alice, bob, wrong):
            heads = [("X-Token", first), ("x-token", second), *JSON.items()]
            count = len(upstream.requests)
            reply = running.ask("/", headers=heads)
            if name == "jwt" and who:
                assert reply.status == 200
                assert upstream.last.headers.get("X-Consumer-Username") == who
                continue
            assert reply.status == 401
            assert len(upstream.requests) == count
            expected = "Invalid signature" if name == "jwt" else "Duplicate API key found"
            assert reply.json()["message"] == expected


def test_two_lines_of_cookies(gateway: Start, upstream: Upstream) -> None:
    """Together they are one: its first cookie of the name counts, also where that is empty."""
    running = gateway(protected(upstream, config_of("jwt")), tls="ssl http2")
    alice, bob = f"jwt={token('alice')}", f"jwt={token('bob')}"
    wrong = f"jwt={token('alice', SECRET[::-1])}"
    with speaking(running) as client:
        for first, second, who in (
            (alice, bob, "alice"),
            (bob, alice, "bob"),
            (alice, wrong, "alice"),
            (wrong, alice, None),
            ("jwt=", alice, None),
            ("a=b", alice, "alice"),
            ("a=b; xjwt=c", bob, "bob"),
        ):
            heads = [("cookie", first), ("cookie", second)]
            count = len(upstream.requests)
            status = 200 if who else 401
            assert running.ask("/", headers=heads).status == status, heads
            stream = client.ask(headers=heads)
            assert client.answers([stream])[stream][0] == status, heads
            told = [each.headers.get("X-Consumer-Username") for each in upstream.requests[count:]]
            assert told == ([who, who] if who else [])


@pytest.mark.parametrize("name", NAMES)
def test_no_secret_is_in_a_log(serving: Start, upstream: Upstream, name: str) -> None:
    """Neither what proves somebody nor a guess, at the lowest level, whatever it was answered."""
    plugin = named(name)
    running = serving(protected(upstream, config_of(name)), log_level="debug")
    secrets = {SECRET}
    for headers in (plugin.proof("alice"), plugin.wrong):
        running.ask("/?n=1", headers=headers)
        # of a token, a signature: the part that cannot be made
        proofs = [value for key, value in headers.items() if key != "X-Date"]
        secrets |= {re.split(r'[ .]|signature="', value)[-1].rstrip('"') for value in proofs}
    running.ask("/?n=last")
    wait_until(lambda: "n=last" in running.access_log(), "the last line of the access log")
    assert len(secrets) == 3
    for secret in secrets:
        assert secret not in running.access_log() + running.error_log()
