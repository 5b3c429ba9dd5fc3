"""Authenticators by other ways than a request of HTTP/1.1: HTTP/2, HTTP/1.0, a switch to WebSocket,
a page of an error, and by names that only look like those of their headers."""

import re
from typing import Any

import pytest
from authenticators import ALL, NAMES, SECRET, config_of, named, protected
from http2 import speaking
from websocket import ASKING, KEY, switched

from sluice import Start
from upstream import Exchange, Upstream
from wire import Pairs, request_bytes, wait_until


def lines(headers: Pairs) -> str:
    """As they stand in a head."""
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


@pytest.mark.parametrize("name", NAMES)
def test_http2(gateway: Start, upstream: Upstream, name: str) -> None:
    """Several on one connection, of which each is asked; cookies come in pieces there."""
    plugin = named(name)
    more = {"hide_credentials": True} if plugin.hidden else {}
    running = gateway(protected(upstream, config_of(name, **more)), tls="ssl http2")
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
def test_http_1_0(gateway: Start, upstream: Upstream, name: str) -> None:
    plugin = named(name)
    running = gateway(protected(upstream, config_of(name)))
    for headers, status in ((plugin.proof("alice"), 200), ({}, 401), (plugin.wrong, 401)):
        with running.wire() as wire:
            wire.send(f"GET / HTTP/1.0\r\n{lines(headers)}\r\n".encode())
            assert wire.read_head().status == status, headers
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_switch_to_websocket(gateway: Start, upstream: Upstream, name: str) -> None:
    """Whoever is refused gets no tunnel, also where bytes follow the head."""
    plugin = named(name)

    def switch(exchange: Exchange) -> None:
        exchange.send(switched(KEY))
        exchange.keep = False

    upstream.handler = switch
    running = gateway(protected(upstream, config_of(name)))
    for headers in ({}, plugin.wrong):
        with running.wire() as wire:
            wire.send(request_bytes("/", headers=[*ASKING, *headers.items()]) + b"\x81\x80abcd")
            assert wire.read_head().status == 401
    assert upstream.requests == []
    with running.wire() as wire:
        wire.send(request_bytes("/", headers=[*ASKING, *plugin.proof("alice").items()]))
        assert wire.read_head().status == 101
    assert upstream.last.headers.get("X-Consumer-Username") == "alice"


@pytest.mark.parametrize("name", [plugin.name for plugin in ALL if plugin.name != "jwt"])
def test_names_that_look_alike(gateway: Start, upstream: Upstream, name: str) -> None:
    """A header with "_" or "." in place of "-", or with more, proves nothing, and hides with it."""
    plugin = named(name)
    more: dict[str, Any] = {"key_names": ["api-key"]} if name == "key-auth" else {}
    running = gateway(protected(upstream, config_of(name, **more)))
    proof = {
        "api-key" if key == "apikey" else key: value for key, value in plugin.proof("alice").items()
    }
    assert running.ask("/", headers=proof).status == 200
    for old, new in (("-", "_"), ("-", "."), ("Authorization", "Authorization-"), ("api", "xapi")):
        headers = {key.replace(old, new): value for key, value in proof.items()}
        if headers != proof:
            assert running.ask("/", headers=headers).status == 401, headers
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("name", NAMES)
def test_no_secret_is_in_a_log(gateway: Start, upstream: Upstream, name: str) -> None:
    """Neither what proves somebody nor a guess, at the lowest level, whatever it was answered."""
    plugin = named(name)
    running = gateway(protected(upstream, config_of(name)), log_level="debug")
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
