"""Credentials above 1 MiB: refused where they are written, by the name of their field."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from admin_client import Client
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sluice import Gateway

LONG = "x" * (2**20 + 1)
REASON = "is longer than 1 MiB"

# Kind in files, its path, what it has, and the field that is made as long.
CASES = [
    ("keyauth_credentials", "key-auth", {}, "key"),
    ("acls", "acls", {}, "group"),
    ("basicauth_credentials", "basic-auth", {"password": "p"}, "username"),
    ("hmacauth_credentials", "hmac-auth", {"secret": "s"}, "username"),
    ("jwt_secrets", "jwt", {"secret": "s"}, "key"),
    ("jwt_secrets", "jwt", {"key": "k"}, "secret"),
    ("jwt_secrets", "jwt", {"key": "k", "algorithm": "ES256"}, "rsa_public_key"),
]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Of a gateway that has alice."""
    with Gateway(None) as running:
        client = Client(running)
        client.must(201, "POST", "/consumers", {"username": "alice"})
        yield client


def revision(client: Client) -> str | None:
    """Of the state."""
    return client.ask("GET", "/consumers").headers.get("sluice-revision")


def public() -> str:
    """A public key, with more behind it than there may be."""
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem.decode() + "x" * 2**20


@pytest.mark.parametrize(("kind", "path", "more", "field"), CASES)
def test_of_credentials(
    client: Client, kind: str, path: str, more: dict[str, str], field: str
) -> None:
    value: dict[str, Any] = more | {field: public() if field == "rsa_public_key" else LONG}

    before = revision(client)
    refused = client.must(400, "POST", f"/consumers/alice/{path}", value)
    assert refused["fields"] == {field: REASON}
    whole = {"_format_version": "3.0", "consumers": [{"username": "alice", kind: [value]}]}
    reply = client.ask("POST", "/config", whole)
    assert reply.status == 400
    assert f"{field}: {REASON}" in json.dumps(reply.json())
    assert LONG not in reply.text
    assert revision(client) == before
    # Kong has no such limit, and decK compares schemas.
    fields = client.must(200, "GET", f"/schemas/{kind}")["fields"]
    (shown,) = [entry[field] for entry in fields if field in entry]
    assert "len_max" not in shown
