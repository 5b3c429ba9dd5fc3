"""What an entity refers to, asked for below it: `/routes/{route}/service` and the like."""

import json
import re
from pathlib import Path

import pytest
from admin_client import Client, uuid
from admin_kinds import JWK, Pair

from sluice import Start


@pytest.fixture
def client(gateway: Start) -> Client:
    """A service with a route, and a route without a service."""
    client = Client(gateway(None))
    client.must(201, "POST", "/services", {"name": "s", "host": "a.example"})
    client.must(201, "POST", "/services/s/routes", {"name": "r", "paths": ["/r"]})
    client.must(201, "POST", "/routes", {"name": "lonely", "paths": ["/l"]})
    return client


def test_read_and_changed(client: Client) -> None:
    service = client.must(200, "GET", "/services/s")
    assert client.must(200, "GET", "/routes/r/service") == service
    changed = client.must(200, "PATCH", "/routes/r/service", {"retries": 1})
    assert (changed["id"], changed["retries"], changed["host"]) == (service["id"], 1, "a.example")
    replaced = client.must(200, "PUT", "/routes/r/service", {"name": "t", "host": "b.example"})
    assert (replaced["id"], replaced["retries"]) == (service["id"], 5)
    assert client.must(200, "GET", "/services/t")["host"] == "b.example"
    assert client.must(200, "GET", "/routes/r")["service"] == {"id": service["id"]}


def test_put_where_there_is_none(client: Client) -> None:
    for method in ("GET", "PATCH", "DELETE"):
        client.must(404, method, "/routes/lonely/service", {} if method == "PATCH" else None)
    made = client.must(200, "PUT", "/routes/lonely/service", {"host": "c.example"})
    assert client.must(200, "GET", "/routes/lonely")["service"] == {"id": made["id"]}
    assert client.must(200, "GET", "/routes/lonely/service") == made


def test_both_or_none(client: Client) -> None:
    """What is refused leaves no half behind."""
    refused = client.must(400, "PUT", "/routes/lonely/service", {"retries": -1})
    assert "host" in refused["fields"]
    assert len(client.must(200, "GET", "/services")["data"]) == 1
    assert client.must(200, "GET", "/routes/lonely")["service"] is None


def test_methods(client: Client) -> None:
    for method in ("DELETE", "POST"):
        reply = client.ask(method, "/routes/r/service", {} if method == "POST" else None)
        assert reply.status == 405, method
        assert reply.headers.get("allow") == "GET, HEAD, OPTIONS, PUT, PATCH"
    client.must(404, "GET", "/routes/nobody/service")
    client.must(404, "GET", f"/routes/{uuid(7)}/service")
    client.must(404, "GET", "/routes/r/service/s")


def bodies(client: Client, pair: Pair) -> dict[str, dict]:
    """What makes one of each kind that refers to another, or is referred to; `{n}` is a number."""
    group = client.must(201, "POST", "/consumer_groups", {"name": "of-acl"})
    return {
        "acls": {"group": group["name"] + "{n}"},
        "basicauth_credentials": {"username": "u{n}", "password": "p"},
        "certificates": {"cert": pair.cert, "key": pair.key},
        "consumer_groups": {"name": "g{n}"},
        "consumers": {"username": "c{n}"},
        "hmacauth_credentials": {"username": "h{n}"},
        "jwt_secrets": {"key": "j{n}"},
        "key_sets": {"name": "ks{n}"},
        "keyauth_credentials": {"key": "k{n}"},
        "keys": {"name": "k{n}", "kid": "{n}", "jwk": json.dumps(JWK | {"kid": "{n}"})},
        "plugins": {"name": "rate-limiting", "config": {"minute": 1}},
        "routes": {"name": "r{n}", "paths": ["/r{n}"]},
        "services": {"name": "s{n}", "host": "a.example", "protocol": "https"},
        "snis": {"name": "s{n}.example"},
        "upstreams": {"name": "u{n}"},
    }


def collections(client: Client) -> dict[str, str]:
    """Each kind that has a page of its own, and where."""
    paths = client.must(200, "GET", "/openapi.json")["paths"]
    found = (re.fullmatch(r"(/[^/{]+)/\{(\w+)\}", path) for path in paths)
    return {
        match[2]: match[1] for match in found if match and match[1] not in ("/schemas", "/tags")
    }


def foreign_keys(client: Client, kind: str) -> dict[str, dict]:
    """By name, as its schema has them."""
    fields = client.must(200, "GET", f"/schemas/{kind}")["fields"]
    pairs = [pair for each in fields for pair in each.items()]
    return {name: field for name, field in pairs if field["type"] == "foreign"}


def test_each_foreign_key(client: Client, tmp_path: Path) -> None:
    """Of the schemas: whoever adds a kind, or a key to one, has its page and a row here."""
    pages = collections(client)
    wanted = bodies(client, Pair(tmp_path))
    count = walked = 0

    def make(kind: str, more: dict) -> dict:
        nonlocal count
        count += 1
        text = json.dumps(wanted[kind]).replace("{n}", str(count))
        return client.must(201, "POST", pages[kind], json.loads(text) | more)

    for kind, page in pages.items():
        for name, field in foreign_keys(client, kind).items():
            parent = make(field["reference"], {})
            child = make(kind, {name: {"id": parent["id"]}})
            below = f"{page}/{child['id']}/{name}"
            shown = client.must(200, "GET", f"{pages[field['reference']]}/{parent['id']}")
            # Of a group it shows the consumers, too.
            assert client.must(200, "GET", below) == shown.get("consumer_group", shown), below
            changed = client.must(200, "PATCH", below, {"tags": ["changed"]})
            assert (changed["id"], changed["tags"]) == (parent["id"], ["changed"]), below
            assert client.must(200, "GET", below) == changed
            client.must(405, "DELETE", below)
            if not field.get("required"):
                alone = make(kind, {})
                client.must(404, "GET", f"{page}/{alone['id']}/{name}")
                assert client.ask("DELETE", f"{page}/{alone['id']}").status == 204
            walked += 1
    assert walked >= 14


def test_files_are_read_only(gateway: Start) -> None:
    service = {"name": "s", "host": "a.example", "routes": [{"name": "r", "paths": ["/r"]}]}
    client = Client(gateway({"services": [service]}))
    assert client.must(200, "GET", "/routes/r/service")["name"] == "s"
    client.must(405, "PATCH", "/routes/r/service", {"retries": 1})
