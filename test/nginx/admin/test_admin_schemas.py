"""What the admin listener says of itself: schemas, OpenAPI, endpoints, tags, upstreams' health."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from admin_kinds import Pair, config
from admin_starts import CONFIG, Admin
from jsonschema_rs import Draft202012Validator
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from sluice import Gateway

DOCUMENT = Path(__file__).parents[3] / "docs/openapi.json"


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Admin]:
    """A gateway with something of each kind; nothing here changes what it shows."""
    whole: dict[str, Any] = config(Pair(tmp_path_factory.mktemp("pair")))
    for kind, entities in CONFIG.items():
        whole[kind] = whole.get(kind, []) + [
            entity for entity in entities if entity.get("username") not in ("alice", "bob")
        ]
    whole["consumers"][0]["keyauth_credentials"] = [{"key": "secret-1", "tags": ["blue"]}]
    with Gateway(whole) as running:
        yield Admin(running)


def field(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """A field of a schema in Kong's layout."""
    (found,) = [entry[name] for entry in schema["fields"] if name in entry]
    return found


def rules(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """The same without its description."""
    return {key: value for key, value in field(schema, name).items() if key != "description"}


def undescribed(schema: dict[str, Any]) -> list[str]:
    """Names of the fields that have no description, those of records within among them."""
    found = []
    for entry in schema["fields"] + schema.get("shorthand_fields", []):
        for name, one in entry.items():
            found += [] if one.get("description", "").endswith(".") else [name]
            for inner in (one, one.get("elements", {}), one.get("values", {})):
                found += undescribed(inner) if "fields" in inner else []
    return found


def test_schemas_are_in_kongs_layout(admin: Admin) -> None:
    services = admin.get("/schemas/services")
    assert rules(services, "retries") == {"type": "integer", "default": 5, "between": [0, 32767]}
    assert rules(services, "host") == {"type": "string", "required": True}
    assert field(services, "client_certificate")["reference"] == "certificates"
    assert [*services["shorthand_fields"][0]] == ["url"]
    upstreams = admin.get("/schemas/upstreams")
    healthy = field(field(field(upstreams, "healthchecks"), "active"), "healthy")
    assert field(healthy, "http_statuses")["default"] == [200, 302]
    for kind in ("routes", "targets", "consumers", "plugins", "certificates", "snis", "vaults"):
        schema = admin.get(f"/schemas/{kind}")
        assert rules(schema, "id") == {"type": "string", "uuid": True, "auto": True}
    plugin = admin.get("/schemas/plugins/key-auth")
    assert field(field(plugin, "config"), "key_names")["default"] == ["apikey"]
    assert field(plugin, "protocols")["default"] == ["grpc", "grpcs", "http", "https"]
    names = [name for entry in admin.get("/schemas/tags")["fields"] for name in entry]
    assert names == ["tag", "entity_name", "entity_id"]
    assert field(field(admin.get("/schemas/vaults/env"), "config"), "prefix")["type"] == "string"
    for target, message in (
        ("/schemas/names", "No entity named 'names'"),
        ("/schemas/plugins/oauth2", "No plugin named 'oauth2'"),
        ("/schemas/vaults/aws", "No vault named 'aws'"),
    ):
        reply = admin.ask(target)
        assert (reply.status, reply.json()) == (404, {"message": message})


def test_each_field_is_described_by_schemas_and_document(admin: Admin) -> None:
    components = admin.get("/openapi.json")["components"]["schemas"]
    kinds = [name for name in components if f"{name}-patch" in components]
    assert len(kinds) > 10
    for kind in kinds:
        schema = admin.get(f"/schemas/{kind}")
        assert undescribed(schema) == [], kind
        if kind != "plugins":  # of which there is a component for each plugin
            for name in (kind, f"{kind}-patch"):
                for key, shown in components[name]["properties"].items():
                    given = [entry[key] for entry in schema["fields"] if key in entry]
                    given = given or [entry[key] for entry in schema["shorthand_fields"]]
                    assert shown["description"].startswith(given[0]["description"]), (name, key)
    plugin = admin.get("/schemas/plugins/rate-limiting")
    assert undescribed(plugin) == []
    shown = components["plugins-rate-limiting"]["properties"]["config"]["properties"]["minute"]
    assert shown["description"] == field(field(plugin, "config"), "minute")["description"]
    assert undescribed(admin.get("/schemas/vaults/env")) == []


JSON = [("Content-Type", "application/json")]
FORM = [("Content-Type", "application/x-www-form-urlencoded")]


def test_values_are_checked_and_not_stored(admin: Admin) -> None:
    before = admin.get("/")["sluice"]["configuration_version"]

    def ask(kind: str, body: bytes, headers: list[tuple[str, str]] = JSON) -> tuple[int, Any]:
        reply = admin.ask(f"/schemas/{kind}/validate", "POST", headers=headers, body=body)
        return reply.status, reply.json()

    good = (200, {"message": "schema validation successful"})
    assert ask("services", b'{"name":"new","host":"a"}') == good
    assert ask("services", b"name=new&host=a&port=81&tags=x", FORM) == good
    assert ask("plugins", b'{"name":"rate-limiting","config":{"minute":1}}') == good
    assert ask("services", b'{"port":"x"}') == (
        400,
        {
            "message": "2 schema violations (host: required field missing; "
            "port: expected an integer)",
            "name": "schema violation",
            "code": 2,
            "fields": {"host": "required field missing", "port": "expected an integer"},
        },
    )
    status, refused = ask("plugins", b'{"name":"rate-limiting","config":{"minute":"x"}}')
    assert (status, refused["fields"]) == (400, {"config": {"minute": "expected a number"}})
    status, refused = ask("plugins", b'{"name":"oauth2"}')
    assert (status, refused["fields"]) == (400, {"name": "plugin 'oauth2' not installed"})
    assert ask("things", b"{}") == (404, {"message": "No entity named 'things'"})
    assert ask("services", b"[]")[0] == 400
    assert ask("services", b"{")[0] == 400
    assert ask("services", b"a", [("Content-Type", "text/plain")])[0] == 415
    assert admin.ask("/schemas/services/validate").status == 405
    assert admin.get("/")["sluice"]["configuration_version"] == before


def test_tags(admin: Admin) -> None:
    found = admin.get("/tags?size=1000")["data"]
    services = {entity["id"]: entity["name"] for entity in admin.get("/services")["data"]}
    named = [(row["tag"], services.get(row["entity_id"])) for row in found]
    assert [row for row in named if row[1]] == [
        ("blue", "orders"),
        ("blue", "stock"),
        ("team-a", "orders"),
    ]
    kinds = ["certificates", "snis", "services", "services", "routes", "keyauth_credentials"]
    assert [row["entity_name"] for row in admin.get("/tags/blue")["data"]] == kinds[2:]
    assert [row["entity_name"] for row in admin.get("/tags/edge")["data"]] == kinds[:2]
    assert admin.get("/tags/none") == {"data": [], "next": None}
    paged, target = [], "/tags?size=2"
    while target:
        page = admin.get(target)
        paged += page["data"]
        target = page["next"]
        assert bool(target) == ("offset" in page)
    assert paged == found
    for target in ("/tags?offset=x", "/tags?size=0", "/tags/a%2Cb", "/tags/blue?offset=none:1:a"):
        reply = admin.ask(target)
        assert (reply.status, type(reply.json()["message"])) == (400, str)


def test_the_health_of_an_upstream(admin: Admin) -> None:
    (upstream,) = [one for one in admin.get("/upstreams")["data"] if one["name"] == "pool"]
    page = admin.get("/upstreams/pool/health?size=1")
    assert page["node_id"] == admin.get("/")["node_id"]
    (target,) = page["data"]
    assert (target["target"], target["health"]) == ("127.0.0.1:1111", "HEALTHCHECKS_OFF")
    assert target["upstream"] == {"id": upstream["id"]}
    (target,) = admin.get(page["next"])["data"]
    assert target["target"] == "127.0.0.1:2222"
    assert admin.ask("/upstreams/none/health").status == 404


def test_endpoints_are_those_of_the_document(admin: Admin) -> None:
    endpoints = admin.get("/endpoints")["data"]
    assert sorted(admin.get("/openapi.json")["paths"]) == sorted(endpoints)
    assert endpoints.index("/services/{services}") < endpoints.index("/snis")
    assert endpoints == sorted(endpoints, key=lambda path: path.replace("/", "\0"))


def check_document(document: dict[str, Any]) -> None:
    """What its schema demands of an OpenAPI document, and beyond it: schemas that are right, with
    what they refer to and defaults that they allow; operations told apart; parameters of paths."""
    OPENAPI_31_VALIDATOR.validate(document)
    schemas: dict[str, dict[str, Any]] = {}
    operations = []

    def check_schemas(where: object) -> None:
        for key, value in where.items() if isinstance(where, dict) else enumerate(where):
            if key in ("schema", "items", "not"):
                check_schema(value)
            if key in ("schemas", "properties"):
                for each in value.values():
                    check_schema(each)
            if isinstance(value, dict | list):
                check_schemas(value)

    def check_schema(schema: dict[str, Any]) -> None:
        schemas[str(id(schema))] = schema
        parts = [schema, *schema.get("allOf", [])]
        named = {name for part in parts for name in part.get("properties", {})}
        assert len(parts) == 1 or set(schema.get("required", [])) <= named, schema

    check_schemas(document)
    # As one schema: what they refer to is compiled once.
    together = Draft202012Validator({"properties": schemas, "components": document["components"]})
    together.validate({n: each["default"] for n, each in schemas.items() if "default" in each})
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            operations += [operation["operationId"]] if "operationId" in operation else []
            given = item.get("parameters", []) + operation.get("parameters", [])
            names = [(one["name"], one["in"]) for one in given]
            assert len(names) == len(set(names)), path
            assert {n for n, place in names if place == "path"} == set(re.findall("{(.+?)}", path))
    assert len(operations) == len(set(operations))


def test_the_document_is_openapi_and_that_of_the_docs(admin: Admin) -> None:
    document = admin.get("/openapi.json")
    check_document(document)
    assert document == json.loads(DOCUMENT.read_text())


def test_what_is_answered_is_as_the_document_says(admin: Admin) -> None:
    document = admin.get("/openapi.json")
    looked_at = 0
    for path, item in document["paths"].items():
        if "{" in path or path in ("/metrics", "/openapi.json"):
            continue
        content = item.get("get", {}).get("responses", {}).get("200", {}).get("content")
        if content:
            schema = content["application/json"]["schema"]
            components = {"components": document["components"]}
            Draft202012Validator(schema | components).validate(admin.get(path))
            looked_at += 1
    assert looked_at > 15
