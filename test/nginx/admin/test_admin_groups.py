"""Groups of consumers: who joins them and leaves them, from either side."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from admin_client import Client, uuid
from admin_kinds import Pair

from sluice import Gateway, Start

NOBODY = uuid(99)


@pytest.fixture
def client(running: Gateway) -> Client:
    """A gateway with two groups, and three consumers who are in none."""
    client = Client(running)
    client.must(201, "POST", "/config", {"_format_version": "3.0"})
    for name in ("gold", "silver"):
        client.must(201, "POST", "/consumer_groups", {"name": name})
    for name in ("alice", "bob", "carol"):
        client.must(201, "POST", "/consumers", {"username": name})
    return client


def members(client: Client, group: str) -> list[str]:
    """User names of a group, which the group and its list have alike."""
    whole = client.must(200, "GET", f"/consumer_groups/{group}")
    assert set(whole) == {"consumer_group", "consumers", "plugins"}
    assert (whole["consumer_group"]["name"], whole["plugins"]) == (group, [])
    page = client.must(200, "GET", f"/consumer_groups/{group}/consumers")
    assert (page["data"], page["next"]) == (whole["consumers"], None)
    for consumer in whole["consumers"]:
        assert consumer == client.must(200, "GET", f"/consumers/{consumer['id']}")
    return [consumer["username"] for consumer in whole["consumers"]]


def groups(client: Client, consumer: str) -> list[str]:
    """Names of a consumer's groups."""
    page = client.must(200, "GET", f"/consumers/{consumer}/consumer_groups")
    return [group["name"] for group in page["data"]]


def revision(client: Client) -> int:
    """That of the store."""
    return int(client.ask("GET", "/").headers.get("sluice-revision"))


def test_from_the_group(client: Client) -> None:
    assert members(client, "gold") == []
    before = revision(client)
    whole = client.must(201, "POST", "/consumer_groups/gold/consumers", {"consumer": "alice"})
    assert revision(client) == before + 1
    assert whole == client.must(200, "GET", "/consumer_groups/gold")
    bob = client.must(200, "GET", "/consumers/bob")["id"]
    gold = whole["consumer_group"]["id"]
    joined = client.must(201, "POST", f"/consumer_groups/{gold}/consumers", {"consumer": bob})
    # Those who join alone: the rest may be many thousands.
    assert [consumer["username"] for consumer in joined["consumers"]] == ["bob"]
    assert members(client, "gold") == ["alice", "bob"]
    assert (groups(client, "bob"), groups(client, bob)) == (["gold"], ["gold"])
    alone = client.must(200, "GET", "/consumer_groups/gold?list_consumers=false")
    assert alone == {"consumer_group": whole["consumer_group"], "plugins": []}
    assert client.ask("GET", "/consumer_groups/gold?list_consumers=x").status == 400
    client.must(204, "DELETE", f"/consumer_groups/{gold}/consumers/{bob}")
    assert members(client, "gold") == ["alice"]
    client.must(204, "DELETE", "/consumer_groups/gold/consumers/alice")
    assert (members(client, "gold"), groups(client, "alice")) == ([], [])


def test_from_the_consumer(client: Client) -> None:
    joined = client.form("POST", "/consumers/alice/consumer_groups", "group=gold").json()
    assert set(joined) == {"consumer", "consumer_groups"}
    assert joined["consumer"] == client.must(200, "GET", "/consumers/alice")
    both = client.must(201, "POST", "/consumers/alice/consumer_groups", {"group": "silver"})
    assert [group["name"] for group in both["consumer_groups"]] == ["silver"]
    assert groups(client, "alice") == ["gold", "silver"]
    client.must(204, "DELETE", "/consumers/alice/consumer_groups/gold")
    assert (groups(client, "alice"), members(client, "gold")) == (["silver"], [])


def test_many(client: Client) -> None:
    """Several join all or none; all leave at once."""
    target = "/consumer_groups/gold/consumers"
    refused = client.must(400, "POST", target, {"consumer": ["alice", "nobody"]})
    assert refused["fields"] == {"consumer": {"username": "nobody"}}
    assert members(client, "gold") == []
    before = revision(client)
    client.must(201, "POST", target, {"consumer": ["alice", {"username": "bob"}]})
    assert revision(client) == before + 1
    assert client.form("POST", target, "consumer[]=carol").status == 201
    page = client.must(200, "GET", f"{target}?size=2")
    assert [consumer["username"] for consumer in page["data"]] == ["alice", "bob"]
    page = client.must(200, "GET", page["next"])
    assert ([consumer["username"] for consumer in page["data"]], page["next"]) == (["carol"], None)
    client.must(201, "POST", "/consumers/alice/consumer_groups", {"group": "silver"})
    client.must(204, "DELETE", target)
    assert (members(client, "gold"), members(client, "silver")) == ([], ["alice"])
    client.must(201, "POST", "/consumers/alice/consumer_groups", {"group": ["gold"]})
    client.must(204, "DELETE", "/consumers/alice/consumer_groups")
    assert groups(client, "alice") == []
    many = client.must(400, "POST", target, {"consumer": ["alice"] * 1001})
    assert many["fields"] == {"consumer": "expected at most 1000"}


def test_plugins_of_a_group(client: Client) -> None:
    """Under its path, in the answer for it, and among all plugins."""
    target = "/consumer_groups/gold/plugins"
    made = client.must(201, "POST", target, {"name": "rate-limiting", "config": {"hour": 9}})
    gold = client.must(200, "GET", "/consumer_groups/gold?list_consumers=false")
    assert made["consumer_group"] == {"id": gold["consumer_group"]["id"]}
    assert gold["plugins"] == [made] == client.must(200, "GET", target)["data"]
    assert client.must(200, "GET", f"{target}/{made['id']}") == made
    assert client.must(200, "GET", f"/plugins/{made['id']}") == made
    silver = {"name": "rate-limiting", "consumer_group": {"name": "silver"}, "config": {"hour": 1}}
    other = client.must(201, "POST", "/plugins", silver)
    client.must(404, "GET", f"{target}/{other['id']}")
    changed = client.must(200, "PATCH", f"{target}/{made['id']}", {"config": {"hour": 10}})
    assert changed["config"]["hour"] == 10
    taken = client.must(409, "POST", target, {"name": "rate-limiting", "config": {"hour": 1}})
    assert taken["fields"]["consumer_group"] == made["consumer_group"]
    both = {"name": "http-log", "consumer": "alice", "config": {"http_endpoint": "http://a"}}
    refused = client.must(400, "POST", target, both)
    assert refused["fields"]["@entity"] == [
        "only one or none of these fields must be set: 'consumer', 'consumer_group'"
    ]
    refused = client.must(400, "POST", target, {"name": "access-log"})
    assert refused["fields"] == {"consumer_group": "value must be null"}
    client.must(204, "DELETE", "/consumer_groups/silver")
    client.must(404, "GET", f"/plugins/{other['id']}")
    client.must(204, "DELETE", f"{target}/{made['id']}")
    assert client.must(200, "GET", target)["data"] == []


def test_who_is_there_already(client: Client) -> None:
    target = "/consumer_groups/gold/consumers"
    whole = client.must(201, "POST", target, {"consumer": "alice"})
    pair = {
        "consumer": {"id": whole["consumers"][0]["id"]},
        "consumer_group": {"id": whole["consumer_group"]["id"]},
    }
    refused = client.must(409, "POST", target, {"consumer": "alice"})
    assert (refused["name"], refused["code"]) == ("unique constraint violation", 5)
    assert refused["fields"] == pair
    client.must(409, "POST", target, {"consumer": ["bob", "bob"]})
    assert members(client, "gold") == ["alice"]
    # Of many at the same time, one is the first.
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(client.ask, "POST", target, {"consumer": "carol"}) for _ in range(8)]
    assert sorted(each.result().status for each in asked) == [201] + [409] * 7


@pytest.mark.parametrize(
    ("method", "target", "value", "status"),
    [
        ("GET", "/consumer_groups/none", None, 404),
        ("GET", f"/consumer_groups/{NOBODY}", None, 404),
        ("GET", "/consumer_groups/none/consumers", None, 404),
        ("GET", "/consumers/none/consumer_groups", None, 404),
        ("POST", "/consumer_groups/none/consumers", {"consumer": "alice"}, 404),
        ("POST", f"/consumer_groups/{NOBODY}/consumers", {"consumer": "alice"}, 404),
        ("POST", f"/consumers/{NOBODY}/consumer_groups", {"group": "gold"}, 404),
        ("DELETE", "/consumer_groups/none/consumers", None, 404),
        ("DELETE", "/consumer_groups/none/consumers/alice", None, 404),
        ("DELETE", "/consumer_groups/gold/consumers/nobody", None, 204),
        ("DELETE", f"/consumer_groups/gold/consumers/{NOBODY}", None, 204),
        ("POST", "/consumer_groups/gold/consumers", {"consumer": NOBODY}, 400),
        ("POST", "/consumer_groups/gold/consumers", {"consumer": "nobody"}, 400),
        ("POST", "/consumer_groups/gold/consumers", {"consumer": 1}, 400),
        ("POST", "/consumer_groups/gold/consumers", {"consumer": None}, 400),
        ("POST", "/consumer_groups/gold/consumers", {"consumer": []}, 400),
        ("POST", "/consumer_groups/gold/consumers", {"consumer": [["alice"]]}, 400),
        ("POST", "/consumer_groups/gold/consumers", {}, 400),
        ("POST", "/consumer_groups/gold/consumers", [], 400),
        ("POST", "/consumer_groups/gold/consumers", {"group": "silver"}, 400),
        ("POST", "/consumer_groups/gold/consumers?sync=2", {"consumer": "alice"}, 400),
        ("DELETE", "/consumer_groups/gold/consumers?sync=2", None, 400),
        ("GET", "/consumer_groups/gold/consumers?tags=a", None, 400),
        ("PUT", "/consumer_groups/gold/consumers/alice", {}, 405),
        ("PATCH", "/consumer_groups/gold/consumers", {}, 405),
    ],
)
def test_what_cannot_be(
    client: Client, method: str, target: str, value: object, status: int
) -> None:
    before = revision(client)
    reply = client.ask(method, target, value)
    assert reply.status == status, reply
    if status == 404:
        assert reply.json() == {"message": "Not found"}
    elif value == {"consumer": NOBODY}:
        assert reply.json()["message"] == (
            f"""the foreign key '{{id="{NOBODY}"}}' does not reference an existing """
            "'consumers' entity."
        )
    assert revision(client) == before
    assert members(client, "gold") == []


def test_the_group_is_an_entity_too(client: Client) -> None:
    allowed = client.ask("OPTIONS", "/consumer_groups/gold").headers.get("allow")
    assert allowed == "GET, HEAD, OPTIONS, PUT, PATCH, DELETE"
    client.must(201, "POST", "/consumer_groups/gold/consumers", {"consumer": ["alice", "bob"]})
    gold = client.must(200, "PATCH", "/consumer_groups/gold", {"tags": ["blue"]})
    assert (gold["name"], gold["tags"]) == ("gold", ["blue"])
    assert client.must(200, "PUT", "/consumer_groups/gold", {})["id"] == gold["id"]
    client.must(204, "DELETE", "/consumers/alice")
    assert members(client, "gold") == ["bob"]
    client.must(204, "DELETE", "/consumer_groups/gold")
    assert groups(client, "bob") == []


def test_a_file_is_not_written_beside(gateway: Start) -> None:
    document = {"consumer_groups": [{"name": "gold", "consumers": [{"username": "alice"}]}]}
    client = Client(gateway(document | {"consumers": [{"username": "alice"}]}))
    for method in ("POST", "DELETE"):
        assert client.must(405, method, "/consumer_groups/gold/consumers", {})["code"] == 12
    assert members(client, "gold") == ["alice"]


def test_a_certificate_by_the_name_of_an_sni(gateway: Start, tmp_path: Path) -> None:
    client, pair = Client(gateway(None)), Pair(tmp_path)
    value = {"cert": pair.cert, "key": pair.key, "snis": ["a.example", "*.b.example"]}
    made = client.must(201, "POST", "/certificates", value)
    assert client.must(200, "GET", "/certificates/a.example") == made
    names = client.must(200, "GET", "/certificates/a.example/snis")["data"]
    assert {sni["name"] for sni in names} == set(value["snis"])
    changed = client.must(200, "PATCH", "/certificates/%2A.b.example", {"tags": ["edge"]})
    assert (changed["id"], changed["tags"]) == (made["id"], ["edge"])
    client.must(201, "POST", "/certificates/a.example/snis", {"name": "c.example"})
    client.must(404, "GET", "/certificates/none.example")
    client.must(204, "DELETE", "/certificates/c.example")
    client.must(404, "GET", f"/certificates/{made['id']}")
