"""UUIDs in capitals: the same ids, wherever they stand."""

from pathlib import Path

import pytest
from admin_client import Client
from admin_kinds import Pair

from sluice import Start, proxying
from upstream import Upstream

ID = "abcdef00-0000-4000-8000-00000000000f"
OTHER = "abcdef00-0000-4000-8000-00000000000e"
CAPITALS, OTHER_CAPITALS = ID.upper(), OTHER.upper()
SERVICE = {"host": "127.0.0.1"}


@pytest.fixture
def client(gateway: Start) -> Client:
    """An empty gateway whose store is the truth."""
    return Client(gateway(None))


def test_of_paths_and_bodies(client: Client) -> None:
    made = client.must(201, "POST", "/services", SERVICE | {"id": CAPITALS, "name": "a"})
    assert made["id"] == ID
    taken = client.must(409, "POST", "/services", SERVICE | {"id": ID})
    assert taken["fields"] == {"id": ID}
    for key in (ID, CAPITALS, "Abcdef00" + ID[8:]):
        assert client.must(200, "GET", f"/services/{key}") == made
        put = client.must(200, "PUT", f"/services/{key}", SERVICE | {"id": CAPITALS, "name": "a"})
        assert put["id"] == ID
        assert client.must(200, "PATCH", f"/services/{key}", {"id": CAPITALS})["id"] == ID
    assert len(client.must(200, "GET", "/services")["data"]) == 1
    refused = client.must(400, "PUT", f"/services/{CAPITALS}", SERVICE | {"id": OTHER_CAPITALS})
    assert refused["fields"] == {"id": f"value must be {ID}"}
    client.must(204, "DELETE", f"/services/{CAPITALS}")
    client.must(404, "GET", f"/services/{ID}")
    # A name that only looks like one stays as it is.
    name = "ABCDEF00-0000-4000-8000-00000000000X"
    client.must(200, "PUT", f"/services/{name}", SERVICE)
    assert client.must(200, "GET", f"/services/{name}")["name"] == name
    # Nor does a key change that is one.
    client.must(201, "POST", "/consumers", {"username": "ann"})
    client.must(201, "POST", "/consumers/ann/key-auth", {"key": CAPITALS})
    client.must(200, "PATCH", f"/key-auths/{CAPITALS}", {"tags": ["x"]})
    client.must(204, "DELETE", f"/key-auths/{CAPITALS}")
    assert client.must(200, "GET", "/key-auths")["data"] == []


def test_of_parents_and_references(client: Client) -> None:
    client.must(200, "PUT", f"/services/{CAPITALS}", SERVICE)
    routes = f"/services/{CAPITALS}/routes"
    made = client.must(201, "POST", routes, {"paths": ["/"], "id": OTHER_CAPITALS})
    assert (made["id"], made["service"]) == (OTHER, {"id": ID})
    assert client.must(200, "GET", routes)["data"] == [made]
    assert client.must(200, "GET", f"{routes}/{OTHER_CAPITALS}") == made
    for reference in (CAPITALS, {"id": CAPITALS}):
        changed = client.must(200, "PATCH", f"/routes/{OTHER_CAPITALS}", {"service": reference})
        assert changed["service"] == {"id": ID}
        client.must(200, "PUT", f"{routes}/{OTHER}", {"paths": ["/"], "service": reference})
    limit = {"name": "rate-limiting", "config": {"hour": 1}, "route": {"id": OTHER_CAPITALS}}
    client.must(201, "POST", "/plugins", limit)
    client.must(409, "POST", "/plugins", limit | {"route": {"id": OTHER}})
    client.must(204, "DELETE", f"{routes}/{OTHER_CAPITALS}")
    client.must(204, "DELETE", f"/services/{CAPITALS}")
    # Who joins whom.
    client.must(200, "PUT", f"/consumer_groups/{CAPITALS}", {"name": "gold"})
    client.must(200, "PUT", f"/consumers/{OTHER_CAPITALS}", {"username": "ann"})
    members = f"/consumer_groups/{CAPITALS}/consumers"
    whole = client.must(201, "POST", members, {"consumer": OTHER_CAPITALS})
    assert [consumer["id"] for consumer in whole["consumers"]] == [OTHER]
    client.must(204, "DELETE", f"{members}/{OTHER_CAPITALS}")
    assert client.must(200, "GET", members)["data"] == []


def test_of_lists_and_certificates(client: Client, tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    client.must(200, "PUT", f"/ca_certificates/{CAPITALS}", {"cert": pair.cert})
    service = SERVICE | {"protocol": "https", "ca_certificates": [CAPITALS, ID]}
    made = client.must(201, "POST", "/services", service)
    assert set(made["ca_certificates"]) == {ID}
    client.must(400, "DELETE", f"/ca_certificates/{CAPITALS}")
    value = {"cert": pair.cert, "key": pair.key, "snis": ["a.example"]}
    client.must(200, "PUT", f"/certificates/{CAPITALS}", value)
    snis = client.must(200, "GET", f"/certificates/{CAPITALS}/snis")["data"]
    # The id of an SNI is no name of its certificate.
    client.must(404, "GET", f"/certificates/{snis[0]['id'].upper()}")
    assert client.must(200, "GET", f"/snis/{snis[0]['id'].upper()}") == snis[0]


def test_of_files(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream)
    service, consumer = config["services"][0], {"id": CAPITALS, "username": "ann"}
    service["id"] = CAPITALS
    route = service["routes"].pop()
    config["routes"] = [
        route | {"service": ID},
        {"name": "two", "paths": ["/two"], "service": {"id": CAPITALS}},
        {"name": "three", "paths": ["/three"], "service": CAPITALS},
    ]
    consumer["keyauth_credentials"] = [{"key": CAPITALS}]
    config["consumers"] = [consumer]
    config["plugins"] = [{"name": "key-auth", "config": {"anonymous": CAPITALS}}]
    running = gateway(config)
    client = Client(running)
    assert len(client.must(200, "GET", f"/services/{CAPITALS}/routes")["data"]) == 3
    # A key is a text, whatever it looks like; its consumer is found by the id.
    for headers in ({}, {"apikey": CAPITALS}):
        assert running.ask("/two", headers=headers).status == 200
        assert upstream.last.headers.get("x-consumer-id") == ID
    assert upstream.last.headers.get("x-anonymous-consumer") is None
    assert client.must(200, "GET", f"/key-auths/{CAPITALS}")["consumer"] == {"id": ID}
