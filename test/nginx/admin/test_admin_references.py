"""What an entity refers to, asked for below it: `/routes/{route}/service` and the like."""

from pathlib import Path

import pytest
from admin_client import Client, uuid
from admin_kinds import Pair

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


def test_each_kind(client: Client, tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    certificate = client.must(201, "POST", "/certificates", {"cert": pair.cert, "key": pair.key})
    client.must(201, "POST", "/snis", {"name": "a.example", "certificate": certificate["id"]})
    client.must(200, "PATCH", "/services/s", {"protocol": "https"})
    client.must(200, "PATCH", "/services/s", {"client_certificate": certificate["id"]})
    consumer = client.must(201, "POST", "/consumers", {"username": "u"})
    key = client.must(201, "POST", "/consumers/u/key-auth", {"key": "k"})
    plugin = client.must(201, "POST", "/routes/r/plugins", {"name": "key-auth"})
    route = client.must(200, "GET", "/routes/r")
    shown = client.must(200, "GET", f"/certificates/{certificate['id']}")
    for path, expected in (
        ("/snis/a.example/certificate", shown),
        ("/services/s/client_certificate", shown),
        (f"/key-auths/{key['id']}/consumer", consumer),
        (f"/plugins/{plugin['id']}/route", route),
    ):
        assert client.must(200, "GET", path) == expected, path
    client.must(404, "GET", f"/plugins/{plugin['id']}/service")


def test_files_are_read_only(gateway: Start) -> None:
    service = {"name": "s", "host": "a.example", "routes": [{"name": "r", "paths": ["/r"]}]}
    client = Client(gateway({"services": [service]}))
    assert client.must(200, "GET", "/routes/r/service")["name"] == "s"
    client.must(405, "PATCH", "/routes/r/service", {"retries": 1})
