"""identity_realms of key-auth, which Kong's paid edition has: the gateway itself, and no other."""

from typing import Any

import pytest
from admin_client import Client

from sluice import Gateway, Start, proxying
from upstream import Upstream


def protected(upstream: Upstream, realms: object) -> dict[str, Any]:
    """One route behind key-auth, and ann."""
    return proxying(upstream) | {
        "plugins": [{"name": "key-auth", "config": {"identity_realms": realms}}],
        "consumers": [{"username": "ann", "keyauth_credentials": [{"key": "k"}]}],
    }


@pytest.mark.parametrize("realms", [None, [], [{"scope": "cp"}], [{"scope": "cp"}] * 2])
def test_the_gateways_own_consumers_are_found(
    gateway: Start, upstream: Upstream, realms: list[dict[str, str]] | None
) -> None:
    running = gateway(protected(upstream, realms))
    assert running.ask("/", headers={"apikey": "k"}).status == 200
    assert upstream.last.headers.get("X-Consumer-Username") == "ann"
    assert running.ask("/", headers={"apikey": "x"}).status == 401
    [plugin] = Client(running).must(200, "GET", "/plugins")["data"]
    more = {"id": None, "region": None}
    kept = None if realms is None else [realm | more for realm in realms]
    assert plugin["config"]["identity_realms"] == kept


@pytest.mark.parametrize(
    ("realms", "reason"),
    [
        ([{"scope": "realm", "id": "a", "region": "eu"}], "(supported: cp)"),
        ([{"scope": "cp"}, {"scope": "realm"}], "(supported: cp)"),
        ([{"scope": "CP"}], "expected one of: cp, realm"),
        ([{"scope": "cp", "x": 1}], "unknown field"),
        ("cp", "expected an array"),
    ],
)
def test_others_are_refused_by_name(realms: object, reason: str) -> None:
    with Gateway(None) as running:
        client = Client(running)
        plugin = {"name": "key-auth", "config": {"identity_realms": realms}}
        reply = client.ask("POST", "/plugins", plugin)
        assert reply.status == 400
        assert "identity_realms" in reply.text
        assert reason in reply.text
        assert client.must(200, "GET", "/plugins")["data"] == []
