"""Credentials of jwt of 1 MB, and tokens of 100 KB: an answer each, and no harm to others."""

from base64 import b64encode
from typing import Any

import jwt
import pytest
from admin_client import Client

from sluice import Gateway
from upstream import Upstream

MB = 1_000_000
SECRET = "a secret of some length, as HS256 asks for one"


def begin(running: Gateway, upstream: Upstream) -> Client:
    """A route behind jwt, and alice."""
    client = Client(running)
    client.must(201, "POST", "/services", {"name": "s", "url": upstream.url})
    client.must(201, "POST", "/services/s/routes", {"paths": ["/"]})
    client.must(201, "POST", "/plugins", {"name": "jwt"})
    client.must(201, "POST", "/consumers", {"username": "alice"})
    client.must(201, "POST", "/consumers/alice/jwt", {"key": "alice", "secret": SECRET})
    return client


def status(running: Gateway, key: str, secret: str, **claims: Any) -> int:
    """What a token is answered."""
    text = jwt.encode({"iss": key} | claims, secret, "HS256")
    return running.ask("/", headers={"Authorization": f"Bearer {text}"}).status


def test_a_secret_of_1_mb(upstream: Upstream) -> None:
    with Gateway(None) as running:
        client = begin(running, upstream)
        long = "s" * MB
        client.must(201, "POST", "/consumers/alice/jwt", {"key": "long", "secret": long})
        assert status(running, "long", long) == 200
        assert status(running, "long", long[:-1]) == 401
        assert status(running, "alice", SECRET) == 200


def test_a_key_of_1_mb(upstream: Upstream) -> None:
    """It can be kept, and found; no head has room for it."""
    with Gateway(None) as running:
        client = begin(running, upstream)
        value = {"key": "k" * MB, "secret": SECRET}
        client.must(201, "POST", "/consumers/alice/jwt", value)
        assert status(running, "k" * MB, SECRET) == 400
        assert status(running, "alice", SECRET) == 200


@pytest.mark.parametrize("kind", ["text", "pem", "der"])
def test_a_public_key_of_1_mb(upstream: Upstream, kind: str) -> None:
    text = {
        "text": "x" * MB,
        "pem": f"-----BEGIN PUBLIC KEY-----\n{'A' * MB}\n-----END PUBLIC KEY-----\n",
        # a sequence that says that it is as long
        "der": "-----BEGIN PUBLIC KEY-----\n"
        + b64encode(b"\x30\x83\x0f\x42\x3f" + bytes(MB - 1)).decode()
        + "\n-----END PUBLIC KEY-----\n",
    }[kind]
    with Gateway(None) as running:
        client = begin(running, upstream)
        value = {"key": "k", "algorithm": "RS256", "rsa_public_key": text}
        reply = client.ask("POST", "/consumers/alice/jwt", value)
        assert reply.status == 400
        assert "rsa_public_key" in reply.text or "key" in reply.json()["message"]
        assert len(reply.text) < 10_000
        assert status(running, "k", SECRET) == 401
        assert status(running, "alice", SECRET) == 200


@pytest.mark.parametrize("claims", ["nested", "wide", "long"])
def test_a_token_of_100_kb(upstream: Upstream, claims: str) -> None:
    """Where heads may be so long, each is as right as a short one."""
    more: dict[str, Any] = {
        "nested": {"a": []},
        "wide": {f"c{n}": n for n in range(7000)},
        "long": {"a": "x" * 100_000},
    }[claims]
    for _ in range(900 if claims == "nested" else 0):
        more = {"a": more}
    with Gateway(None, large_client_header_buffers="4 256k") as running:
        begin(running, upstream)
        assert status(running, "alice", SECRET, **more) == 200
        assert status(running, "bob", SECRET, **more) == 401
        assert status(running, "alice", SECRET) == 200
