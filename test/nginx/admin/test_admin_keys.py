"""Keys and sets of keys: as Kong's clients write them, in files, and what is not a key."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from admin_client import Client
from admin_kinds import JWK, Pair
from admin_tokens import send, with_token

from sluice import Gateway, Start

TOKEN, READ_TOKEN = "correct-horse-battery", "stable-horse-reading"

# As go-kong's tests send it.
MODULUS = (
    "v2KAzzfruqctVHaE9WSCWIg1xAhMwxTIK-i56WNqPtpWBo9AqxcVea8NyVctEjUNq_mix5CklNy3ru7ARh7rBG_LU65f"
    "zs4fY_uYalul3QZSnr61Gj-cTUB3Gy4PhA63yXCbYRR3gDy6WR_wfis1MS61j0R_AjgXuVufmmC0F7R9qSWfR8ft0CbQ"
    "gemEHY3ddKeW7T7fKv1jnRwYAkl5B_xtvxRFIYT-uR9NNftixNpUIW7q8qvOH7D9icXOg4_wIVxTRe5QiRYwEFoUbV1V"
    "9bFtu5FLal0vZnLaWwg5tA6enhzBpxJNdrS0v1RcPpyeNP-9r3cUDGmeftwz9v95UQ"
)
RSA = f"""{{
    "kty": "RSA",
    "kid": "foo-1",
    "n": "{MODULUS}",
    "e": "AQAB",
    "alg": "A256GCM"
}}"""


def jwk(kid: str) -> str:
    """A key with its private part."""
    return json.dumps(JWK | {"kid": kid})


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    with Gateway(None, workers=2) as gateway:
        yield gateway


@pytest.fixture
def client(running: Gateway) -> Client:
    client = Client(running)
    client.must(201, "POST", "/config", {"_format_version": "3.0"})
    return client


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Pair(tmp_path_factory.mktemp("pair"))


def test_a_key_as_a_client_writes_it(client: Client) -> None:
    made = client.must(201, "POST", "/keys", {"name": "foo", "kid": "foo-1", "jwk": RSA})
    assert made == made | {"name": "foo", "kid": "foo-1", "jwk": RSA}
    assert (made["set"], made["pem"], made["tags"]) == (None, None, None)
    assert client.must(200, "GET", f"/keys/{made['id']}") == made
    assert client.must(200, "GET", "/keys/foo") == made
    # It sends back all that is not null.
    sent = {name: value for name, value in made.items() if value is not None} | {"name": "bar"}
    changed = client.must(200, "PATCH", f"/keys/{made['id']}", sent)
    assert (changed["name"], changed["jwk"]) == ("bar", RSA)
    assert [each["name"] for each in client.must(200, "GET", "/keys?size=1000")["data"]] == ["bar"]
    client.must(204, "DELETE", f"/keys/{made['id']}")
    number = "6f2c1a30-0000-4000-8000-000000000001"
    made = client.must(200, "PUT", f"/keys/{number}", {"kid": "foo-1", "jwk": RSA})
    assert made["id"] == number
    client.must(204, "DELETE", "/keys/foo")
    client.must(404, "GET", "/keys/foo")


def test_keys_of_sets(client: Client, pair: Pair) -> None:
    issuer = client.must(201, "POST", "/key-sets", {"name": "issuer", "tags": ["a"]})
    client.must(201, "POST", "/key-sets", {"name": "other"})
    body = {"name": "one", "kid": "1", "set": {"id": issuer["id"]}, "jwk": jwk("1")}
    one = client.must(201, "POST", "/keys", body)
    assert one["set"] == {"id": issuer["id"]}
    pem = {"public_key": pair.public, "private_key": pair.key}
    two = client.must(201, "POST", "/key-sets/issuer/keys", {"kid": "2", "pem": pem})
    assert two["pem"] == pem
    assert two["set"] == {"id": issuer["id"]}
    listed = client.must(200, "GET", "/key-sets/issuer/keys")["data"]
    assert {each["kid"] for each in listed} == {"1", "2"}
    assert client.must(200, "GET", "/key-sets/issuer/keys/one") == one
    assert client.must(200, "GET", "/keys/one/set") == issuer
    client.must(404, "GET", "/key-sets/other/keys/one")

    # An id is one in its set, and among keys without a set.
    wrong = client.must(409, "POST", "/key-sets/issuer/keys", {"kid": "1", "jwk": jwk("1")})
    assert wrong["name"] == "unique constraint violation"
    client.must(201, "POST", "/key-sets/other/keys", {"kid": "1", "jwk": jwk("1")})
    client.must(201, "POST", "/keys", {"kid": "1", "jwk": jwk("1")})
    client.must(409, "POST", "/keys", {"kid": "1", "jwk": jwk("1")})
    client.must(409, "POST", "/keys", {"name": "one", "kid": "9", "jwk": jwk("9")})
    client.must(409, "PATCH", "/keys/one", {"set": None})
    client.must(400, "POST", "/keys", {"kid": "9", "set": {"id": one["id"]}, "jwk": jwk("9")})

    client.must(204, "DELETE", "/key-sets/issuer")
    left = client.must(200, "GET", "/keys")["data"]
    assert len(left) == 2
    assert issuer["id"] not in json.dumps(left)


def test_a_key_may_change_its_form(client: Client, pair: Pair) -> None:
    client.must(201, "POST", "/keys", {"name": "k", "kid": "1", "jwk": jwk("1")})
    pem = {"public_key": pair.public}
    client.must(400, "PATCH", "/keys/k", {"pem": pem})
    found = client.must(200, "PATCH", "/keys/k", {"pem": pem, "jwk": None})
    assert (found["jwk"], found["pem"]) == (None, pem | {"private_key": None})
    client.must(400, "PATCH", "/keys/k", {"pem": {"public_key": None}})
    found = client.must(200, "PATCH", "/keys/k", {"kid": "2"})
    assert (found["kid"], found["pem"]) == ("2", pem | {"private_key": None})


def wrong_keys(pair: Pair, other: Pair) -> dict[str, dict[str, Any]]:
    """What is no key, by what is said of it."""
    broken = pair.public.replace("MF", "MG", 1)
    encrypted = pair.key.replace("PRIVATE", "ENCRYPTED PRIVATE")
    return {
        "could not json decode jwk string": {"jwk": "{"},
        "kid in jwk.kid must be equal to keys.kid": {"jwk": jwk("2")},
        "could not load JWK, likely not a valid key": {"jwk": '{"kid": "1"}'},
        "jwk.secret: unknown field": {"jwk": json.dumps(JWK | {"kid": "1", "secret": "a"})},
        "jwk is longer than 65536 bytes": {"jwk": json.dumps({"kid": "1", "n": "A" * 70_000})},
        "expected a string": {"jwk": JWK},
        "only one or none of these fields must be set: 'jwk', 'pem'": {
            "jwk": jwk("1"),
            "pem": {"public_key": pair.public},
        },
        "at least one of these fields must be non-empty: 'jwk', 'pem'": {},
        "at least one of these fields must be non-empty: 'private_key', 'public_key'": {"pem": {}},
        "could not load public key": {"pem": {"public_key": broken}},
        "could not load public key ": {"pem": {"public_key": pair.key}},
        "could not load public key  ": {"pem": {"public_key": pair.cert}},
        "could not load private key": {"pem": {"private_key": pair.public}},
        "could not load private key ": {"pem": {"private_key": encrypted}},
        "public key does not match private key": {
            "pem": {"public_key": other.public, "private_key": pair.key}
        },
        "unknown field": {"pem": {"public_key": pair.public, "certificate": pair.cert}},
    }


def test_what_is_no_key_is_refused(client: Client, pair: Pair, tmp_path: Path) -> None:
    for message, fields in wrong_keys(pair, Pair(tmp_path)).items():
        refused = client.must(400, "POST", "/keys", {"kid": "1"} | fields)
        assert message.strip() in refused["message"], message
        assert refused["name"] == "schema violation"
        text = json.dumps(refused)
        assert not [line for line in pair.secrets() if line in text]
        assert JWK["d"] not in text
        # A file says the same.
        document = {"_format_version": "3.0", "keys": [{"kid": "1"} | fields]}
        refused = client.must(400, "POST", "/config", document)
        assert message.strip() in refused["message"], message
        assert not [line for line in pair.secrets() if line in json.dumps(refused)]
    client.must(400, "POST", "/keys", {"jwk": jwk("1")})
    assert client.must(200, "GET", "/keys")["data"] == []
    valid = {"kid": "1", "jwk": jwk("1")}
    client.must(200, "POST", "/schemas/keys/validate", valid)
    client.must(400, "POST", "/schemas/keys/validate", valid | {"kid": "2"})


def test_files_have_them_and_exports_bring_them_back(client: Client, pair: Pair) -> None:
    document = {
        "_format_version": "3.0",
        "key_sets": [{"name": "issuer"}],
        "keys": [
            # A set by its name as decK has it, and as Kong's files do.
            {"name": "a", "kid": "1", "set": {"name": "issuer"}, "jwk": jwk("1")},
            {"name": "b", "kid": "2", "set": "issuer", "pem": {"public_key": pair.public}},
            {"kid": "1", "jwk": jwk("1")},
        ],
    }
    client.must(201, "POST", "/config", document)
    (issuer,) = client.must(200, "GET", "/key-sets")["data"]
    keys = client.must(200, "GET", "/keys")["data"]
    assert {each["name"]: each["set"] and each["set"]["id"] for each in keys} == {
        "a": issuer["id"],
        "b": issuer["id"],
        None: None,
    }
    client.must(201, "POST", "/config", document)
    again = client.must(200, "GET", "/keys")["data"]
    assert {each["id"] for each in again} == {each["id"] for each in keys}
    exported = client.running.command("export")
    assert exported.returncode == 0
    client.must(201, "POST", "/config", {"_format_version": "3.0"})
    client.must(201, "POST", "/config", json.loads(exported.stdout))
    again = client.must(200, "GET", "/keys")["data"]
    assert {json.dumps(each) for each in again} == {json.dumps(each) for each in keys}
    lines = client.running.command("get", "key-sets/issuer/keys").stdout
    assert JWK["d"] not in lines


def test_secrets_of_keys_are_secrets(gateway: Start, pair: Pair) -> None:
    running = gateway(
        None, admin_token=TOKEN, admin_read_token=READ_TOKEN, vault_env="A_JWK", env=ENVIRONMENT
    )
    writes, reads = with_token(TOKEN), with_token(READ_TOKEN)
    pem = {"public_key": pair.public, "private_key": pair.key}
    for value in (
        {"name": "a", "kid": "1", "jwk": jwk("1")},
        {"name": "b", "kid": "2", "pem": pem},
        {"name": "c", "kid": "env", "jwk": "{vault://env/A_JWK}"},
    ):
        reply = send(running, "POST", "/keys", headers=writes, json=value)
        assert reply.status_code == 201, reply.text
        assert send(running, "GET", f"/keys/{value['kid']}", headers=reads).status_code == 404
    wrong = {"name": "d", "kid": "other", "jwk": "{vault://env/A_JWK}"}
    reply = send(running, "POST", "/keys", headers=writes, json=wrong)
    assert (reply.status_code, JWK["d"] in reply.text) == (400, False)
    shown = {
        each["name"]: each for each in send(running, "GET", "/keys", headers=reads).json()["data"]
    }
    assert [shown[name]["jwk"] for name in "abc"] == [None, None, None]
    assert shown["b"]["pem"] == {"public_key": pair.public, "private_key": None}
    found = send(running, "GET", "/keys/c", headers=writes).json()
    assert found["jwk"] == "{vault://env/A_JWK}"
    for text in (running.error_log(), running.access_log()):
        assert JWK["d"] not in text


ENVIRONMENT = {"A_JWK": jwk("env")}
