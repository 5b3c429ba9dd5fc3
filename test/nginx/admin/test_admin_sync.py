"""What a declarative tool does: PUT in the order of references, read, again, and delete.

What there should be is computed here, from /schemas alone.
"""

import copy
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from admin_client import Client, uuid
from admin_kinds import JWK, Pair
from plugin_facts import facts, with_texts

from sluice import Gateway

CLIENTS = 10
# Kinds whose schemas have other names than their collections.
CREDENTIALS = {
    "key-auths": "keyauth_credentials",
    "jwts": "jwt_secrets",
    "hmac-auths": "hmacauth_credentials",
    "key-sets": "key_sets",
}
COUNT = 12

Entity = dict[str, Any]
Level = list[tuple[str, str, Entity]]
"""Kind, path of the collection, entity with its id."""


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A client of a gateway that begins with nothing."""
    with Gateway(None, workers=2) as running:
        yield Client(running)


def number_of(kind: int, n: int) -> str:
    """An id for the nth of a kind."""
    return uuid(kind * 1000 + n)


def credentials(consumer: str, n: int) -> Level:
    """One of each kind, of one consumer."""
    return [
        (kind, f"/consumers/{consumer}/{path}", {
            "id": number_of(number, n), "consumer": {"id": consumer}, **fields,
        })
        for kind, path, number, fields in (
            ("key-auths", "key-auth", 10, {"key": f"key{n}"}),
            ("acls", "acls", 14, {"group": f"g{n}"}),
            ("jwts", "jwt", 15, {"key": f"k{n}", "secret": "s"}),
            ("hmac-auths", "hmac-auth", 16, {"username": f"h{n}", "secret": "s"}),
        )
    ]  # fmt: skip


def levels(folder: Path, plugins: list[str]) -> list[Level]:
    """Entities of every kind, and each plugin; what one refers to is in a level before."""
    pair, other = Pair(folder), Pair(folder, "rsa")
    first: Level = [
        ("certificates", "/certificates", {
            "id": number_of(1, 0), "cert": pair.cert, "key": pair.key, "tags": ["edge"],
        }),
        ("certificates", "/certificates", {
            "id": number_of(1, 1), "cert": pair.cert, "key": pair.key,
            "cert_alt": other.cert, "key_alt": other.key,
        }),
        ("ca_certificates", "/ca_certificates", {"id": number_of(2, 0), "cert": pair.cert}),
        ("vaults", "/vaults", {
            "id": number_of(3, 0), "name": "env", "prefix": "my-env", "config": {"prefix": "APP_"},
        }),
        ("key-sets", "/key-sets", {"id": number_of(17, 0), "name": "issuer", "tags": ["a"]}),
    ]  # fmt: skip
    second: Level = [
        ("snis", "/snis", {
            "id": number_of(4, n), "name": f"{n}.example", "certificate": {"id": number_of(1, 0)},
        })
        for n in range(3)
    ]  # fmt: skip
    second += [
        ("keys", "/keys", {
            "id": number_of(18, 0), "name": "pair", "kid": "pair",
            "pem": {"private_key": pair.key, "public_key": pair.public},
        }),
        ("keys", "/keys", {
            "id": number_of(18, 1), "kid": "web", "set": {"id": number_of(17, 0)},
            "jwk": json.dumps(JWK | {"kid": "web"}),
        }),
    ]  # fmt: skip
    third: Level = []
    fourth: Level = [
        ("plugins", "/plugins", {
            "id": number_of(12, 900 + n), "name": name, "enabled": False,
            "config": with_texts(facts(name)["minimal"], ca_certificate=number_of(2, 0)),
        })
        for n, name in enumerate(plugins)
    ]  # fmt: skip
    for n in range(COUNT):
        consumer, upstream = number_of(5, n), number_of(6, n)
        service, route = number_of(8, n), number_of(9, n)
        first += [
            ("consumers", "/consumers", {"id": consumer, "username": f"c{n}", "tags": ["b", "a"]}),
            ("consumer_groups", "/consumer_groups", {"id": number_of(7, n), "name": f"g{n}"}),
            ("upstreams", "/upstreams", {
                "id": upstream, "name": f"u{n}",
                "healthchecks": {"active": {"healthy": {"http_statuses": [302, 200]}}},
            }),
        ]  # fmt: skip
        second += [
            *credentials(consumer, n),
            ("targets", f"/upstreams/{upstream}/targets", {
                "id": number_of(11, n), "target": f"127.0.0.1:{n + 1}", "weight": n,
                "upstream": {"id": upstream},
            }),
            ("services", "/services", {
                "id": service, "name": f"s{n}", "host": f"u{n}", "protocol": "https", "port": 443,
                "client_certificate": {"id": number_of(1, 0)},
                "ca_certificates": [number_of(2, 0)],
            }),
        ]  # fmt: skip
        third.append(("routes", "/routes", {
            "id": route, "name": f"r{n}", "paths": [f"/{n}/b", f"/{n}/a"],
            "methods": ["PUT", "GET"], "headers": {"x-a": ["2", "1"]},
            "protocols": ["https", "http"], "service": {"id": service},
        }))  # fmt: skip
        fourth += [
            ("plugins", "/plugins", {
                "id": number_of(12, n), "name": "rate-limiting", "config": {"minute": n + 1},
                "route": {"id": route},
            }),
            ("plugins", "/plugins", {
                "id": number_of(13, n), "name": "http-log", "service": {"id": service},
                "config": {"http_endpoint": "http://127.0.0.1:1/", "headers": {"x-a": "b"}},
            }),
        ]  # fmt: skip
    return [first, second, third, fourth]


def filled(fields: list[dict[str, Entity]], value: Entity) -> Entity:
    """A value with the defaults of its schema, as an array of fields by name."""
    out = {}
    for entry in fields:
        ((name, field),) = entry.items()
        given = value.get(name)
        if given is None and "default" in field:
            given = field["default"]
        expands = field["type"] == "record" and field.get("required") is True
        if "fields" in field and (given is not None or expands):
            given = filled(field["fields"], given or {})
        out[name] = given
    return out


class Schemas:
    """What /schemas says, asked once."""

    def __init__(self, client: Client) -> None:
        self.client, self.known = client, dict[str, list]()

    def of(self, name: str) -> list:
        """The fields of a kind, or of plugins/{name}."""
        if name not in self.known:
            self.known[name] = self.client.must(200, "GET", f"/schemas/{name}")["fields"]
        return self.known[name]

    def whole(self, kind: str, entity: Entity) -> Entity:
        """An entity as it should be shown, but for what is drawn: dates and digests."""
        name = CREDENTIALS.get(kind, kind)
        out = filled(self.of(name), entity)
        if kind == "plugins":
            for entry in self.of(f"plugins/{entity['name']}"):
                if "config" in entry:
                    out["config"] = filled(entry["config"]["fields"], entity.get("config") or {})
                elif "protocols" in entry and "protocols" not in entity:
                    out["protocols"] = entry["protocols"].get("default")
        return out


def run(client: Client, level: Level, method: str, status: int) -> None:
    """All of a level, by ten clients."""

    def ask(each: tuple[str, str, Entity]) -> None:
        _, collection, entity = each
        value = entity if method == "PUT" else None
        client.must(status, method, f"{collection}/{entity['id']}", value)

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(ask, level))


def without_former(client: Client, plugin: Entity) -> None:
    """Takes the former names of fields away, as a client does who has not sent them."""
    for entry in client.must(200, "GET", f"/schemas/plugins/{plugin['name']}")["fields"]:
        for shorthand in entry.get("config", {}).get("shorthand_fields", []):
            for name, field in shorthand.items():
                (new,) = field["deprecation"]["replaced_with"]
                value = plugin["config"]
                for part in new["path"]:
                    value = value[part]
                assert plugin["config"].pop(name) == value, name


DRAWN = ("created_at", "updated_at", "cert_digest")


def test_a_sync(client: Client, tmp_path: Path) -> None:
    plugins = [*client.must(200, "GET", "/")["plugins"]["available_on_server"]]
    whole, schemas = levels(tmp_path, plugins), Schemas(client)
    for level in whole:
        run(client, level, "PUT", 200)
    snis = {number_of(1, 0): [f"{n}.example" for n in range(3)]}
    shown = {}
    for kind, collection, entity in (each for level in whole for each in level):
        path = f"{collection}/{entity['id']}"
        found = client.must(200, "GET", path)
        if kind == "consumer_groups":
            found = found["consumer_group"]
        shown[path] = found
        if kind == "plugins":
            found = copy.deepcopy(found)
            without_former(client, found)
        expected = schemas.whole(kind, entity)
        if kind == "certificates":
            expected["snis"] = snis.get(entity["id"])
        for name in DRAWN:
            if name in expected:
                assert found.pop(name) is not None, (path, name)
                del expected[name]
        assert found == expected, path
    # What a second sync sends, and what a client sends who has read it.
    revision = client.ask("GET", "/").headers.get("sluice-revision")
    for level in whole:
        run(client, level, "PUT", 200)
        run(client, [(k, c, shown[f"{c}/{e['id']}"]) for k, c, e in level], "PUT", 200)
    assert client.ask("GET", "/").headers.get("sluice-revision") == revision
    for level in reversed(whole):
        run(client, level, "DELETE", 204)
    for kind, _, _ in whole[0] + whole[1] + whole[2] + whole[3]:
        if kind != "targets":
            assert client.must(200, "GET", f"/{kind}")["data"] == [], kind
