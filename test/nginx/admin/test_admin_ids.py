"""UUIDs in capitals: the same ids, wherever they stand."""

from pathlib import Path

import pytest
from admin_client import Client
from admin_kinds import Pair

from sluice import Gateway, Start, proxying
from upstream import Upstream

ID = "abcdef00-0000-4000-8000-00000000000f"
OTHER = "abcdef00-0000-4000-8000-00000000000e"
CAPITALS, OTHER_CAPITALS = ID.upper(), OTHER.upper()
SERVICE = {"host": "127.0.0.1"}


@pytest.fixture
def client(running: Gateway) -> Client:
    """An empty gateway whose store is the truth."""
    client = Client(running)
    client.must(201, "POST", "/config", {"_format_version": "3.0"})
    return client


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


# A name as well as an id.
NAME = "ABCDEF00-0000-4000-8000-0000000000AA"


def test_a_name_that_looks_like_an_id(client: Client) -> None:
    """It is a name wherever no entity has that id: in paths, of parents, in references."""
    service = client.must(201, "POST", "/services", SERVICE | {"name": NAME})["id"]
    consumer = client.must(201, "POST", "/consumers", {"username": NAME})["id"]
    group = client.must(201, "POST", "/consumer_groups", {"name": NAME})["id"]
    client.must(201, "POST", "/upstreams", {"name": NAME})
    # Parents.
    route = client.must(201, "POST", f"/services/{NAME}/routes", {"name": "r", "paths": ["/"]})
    assert route["service"] == {"id": service}
    assert client.must(200, "PATCH", f"/services/{NAME}/routes/r", {"tags": ["x"]})["tags"] == ["x"]
    assert client.must(200, "PUT", f"/services/{NAME}/routes/s", {"paths": ["/s"]})["name"] == "s"
    client.must(204, "DELETE", f"/services/{NAME}/routes/s")
    key = client.must(201, "POST", f"/consumers/{NAME}/key-auth", {"key": "k"})
    assert key["consumer"] == {"id": consumer}
    assert client.must(200, "GET", f"/consumers/{NAME}/key-auth/k") == key
    client.must(200, "PATCH", f"/consumers/{NAME}/key-auth/k", {"tags": ["x"]})
    client.must(204, "DELETE", f"/consumers/{NAME}/key-auth/k")
    client.must(201, "POST", f"/upstreams/{NAME}/targets", {"target": "127.0.0.1:1"})
    client.must(200, "PATCH", f"/upstreams/{NAME}/targets/127.0.0.1:1", {"weight": 1})
    client.must(201, "POST", f"/consumer_groups/{NAME}/consumers", {"consumer": NAME})
    assert client.must(200, "GET", f"/consumers/{NAME}/consumer_groups")["data"][0]["id"] == group
    client.must(204, "DELETE", f"/consumer_groups/{NAME}/consumers/{NAME}")
    # References, also those of a batch to what it makes.
    for reference in (NAME, {"name": NAME}, {"id": service}):
        changed = client.must(200, "PATCH", "/routes/r", {"service": reference})
        assert changed["service"] == {"id": service}
    made = NAME.replace("AA", "BB")
    client.must(
        200,
        "POST",
        "/batch",
        [
            {"method": "POST", "path": "/services", "body": SERVICE | {"name": made}},
            {"method": "POST", "path": f"/services/{made}/routes", "body": {"paths": ["/b"]}},
            {"method": "PATCH", "path": "/routes/r", "body": {"service": made}},
        ],
    )
    assert client.must(200, "GET", "/routes/r/service")["name"] == made
    refused = client.must(400, "PATCH", "/routes/r", {"service": NAME.replace("AA", "CC")})
    assert "service" in refused["fields"]
    client.must(404, "POST", f"/services/{NAME.replace('AA', 'CC')}/routes", {"paths": ["/"]})


def test_an_id_goes_before_a_name_that_looks_like_it(client: Client) -> None:
    named = client.must(201, "POST", "/services", SERVICE | {"name": NAME})["id"]
    other = NAME.lower()
    client.must(200, "PUT", f"/services/{other}", SERVICE | {"name": "other"})
    assert client.must(200, "GET", f"/services/{NAME}")["id"] == other
    for reference, wanted in ((NAME, other), ({"id": NAME}, other), ({"name": NAME}, named)):
        made = client.must(201, "POST", "/routes", {"paths": ["/"], "service": reference})
        assert made["service"] == {"id": wanted}
        client.must(204, "DELETE", f"/routes/{made['id']}")
    made = client.must(201, "POST", f"/services/{NAME}/routes", {"paths": ["/"]})
    assert made["service"] == {"id": other}
    # The first one deletes what has the id, the second what has the name.
    done = [{"method": "DELETE", "path": f"/services/{NAME}"}] * 2
    client.must(204, "DELETE", f"/routes/{made['id']}")
    client.must(200, "POST", "/batch", done)
    assert client.must(200, "GET", "/services")["data"] == []


def test_the_name_of_an_sni_that_looks_like_an_id(client: Client, tmp_path: Path) -> None:
    """It means its certificate; the id of an SNI does not."""
    pair = Pair(tmp_path)
    value = {"cert": pair.cert, "key": pair.key, "snis": ["a.example", NAME.lower()]}
    certificate = client.must(201, "POST", "/certificates", value)["id"]
    snis = client.must(200, "GET", "/snis")["data"]
    path = f"/certificates/{NAME.lower()}"
    assert client.must(200, "GET", path)["id"] == certificate
    assert len(client.must(200, "GET", f"{path}/snis")["data"]) == 2
    assert client.must(200, "PATCH", path, {"tags": ["edge"]})["tags"] == ["edge"]
    client.must(201, "POST", f"{path}/snis", {"name": "b.example"})
    # Which has no name itself.
    for reference in ({"name": certificate}, {"username": certificate}, {"name": "x"}, "x"):
        service = SERVICE | {"protocol": "https", "client_certificate": reference}
        client.must(400, "POST", "/services", service)
    for sni in snis:
        client.must(404, "GET", f"/certificates/{sni['id']}")
        client.must(404, "PATCH", f"/certificates/{sni['id']}", {"tags": []})
    client.must(200, "PUT", path, value | {"snis": ["c.example"]})
    client.must(204, "DELETE", f"/certificates/{certificate}")
    client.must(200, "GET", path)


def test_a_name_that_looks_like_an_id_in_files(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream)
    service = config["services"][0]
    service["name"] = NAME
    config["services"] += [{"name": "other", "url": upstream.url, "id": ID}]
    config["routes"] = [
        {"name": "text", "paths": ["/text"], "service": NAME},
        {"name": "named", "paths": ["/named"], "service": {"name": NAME}},
        {"name": "id", "paths": ["/id"], "service": CAPITALS},
    ]
    client = Client(gateway(config))
    found = {r["name"]: r["service"] for r in client.must(200, "GET", "/routes")["data"]}
    named = {"id": client.must(200, "GET", f"/services/{NAME}")["id"]}
    assert (found["text"], found["named"], found["id"]) == (named, named, {"id": ID})
