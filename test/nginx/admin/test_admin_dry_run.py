"""`?dry_run=1` of every write: the answer is what would change, and nothing is."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from admin_client import Client

from sluice import Gateway

FILE = {"_format_version": "3.0", "services": [{"name": "posted", "host": "127.0.0.1"}]}

# Method, target, body -> what would change, as (change, kind, name).
WRITES: list[tuple[str, str, object, list[tuple[str, str, str | None]]]] = [
    ("POST", "/services", {"name": "new", "host": "127.0.0.1"}, [("created", "services", "new")]),
    ("PUT", "/services/new", {"host": "127.0.0.1"}, [("created", "services", "new")]),
    ("PATCH", "/services/s", {"retries": 2}, [("changed", "services", "s")]),
    ("PUT", "/services/s", {"host": "127.0.0.1"}, []),
    ("POST", "/services/s/routes", {"name": "n", "paths": ["/n"]}, [("created", "routes", "n")]),
    ("PATCH", "/services/s/routes/r", {"paths": ["/n"]}, [("changed", "routes", "r")]),
    ("PATCH", "/routes/r/service", {"retries": 2}, [("changed", "services", "s")]),
    ("DELETE", "/routes/r", None, [("deleted", "routes", "r"), ("deleted", "plugins", "key-auth")]),
    ("DELETE", "/routes/none", None, []),
    ("DELETE", "/consumers/alice/key-auth/k", None, [("deleted", "key-auths", None)]),
    ("POST", "/consumer_groups/gold/consumers", {"consumer": "bob"},
     [("created", "consumer_group_consumers", None)]),
    ("DELETE", "/consumer_groups/gold/consumers/alice", None,
     [("deleted", "consumer_group_consumers", None)]),
    ("DELETE", "/consumers/alice/consumer_groups", None,
     [("deleted", "consumer_group_consumers", None)]),
    ("POST", "/batch",
     [{"method": "DELETE", "path": "/routes/r"},
      {"method": "DELETE", "path": "/services/s"},
      {"method": "PUT", "path": "/consumers/carol"}],
     [("deleted", "services", "s"), ("deleted", "routes", "r"), ("deleted", "plugins", "key-auth"),
      ("created", "consumers", "carol")]),
    ("POST", "/apply", FILE, [("created", "services", "posted")]),
    ("POST", "/config", FILE | {"consumers": []},
     [("created", "services", "posted"), ("deleted", "services", "s"), ("deleted", "routes", "r"),
      ("deleted", "plugins", "key-auth"), ("deleted", "key-auths", None),
      ("deleted", "consumers", "alice"), ("deleted", "consumers", "bob"),
      ("deleted", "consumer_groups", "gold"), ("deleted", "consumer_group_consumers", None)]),
    ("POST", "/rollback", {"revision": 1},
     [("deleted", "routes", "r"), ("deleted", "plugins", "key-auth"),
      ("deleted", "key-auths", None),
      ("deleted", "consumers", "alice"), ("deleted", "consumers", "bob"),
      ("deleted", "consumer_groups", "gold"), ("deleted", "consumer_group_consumers", None)]),
]  # fmt: skip

MISSPELT = ("dryrun", "dry-run", "dryRun", "DRY_RUN", "Dry-Run", "dry_rum")


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    """A gateway with an entity of several kinds."""
    with Gateway(None) as gateway:
        client = Client(gateway)
        client.must(200, "PUT", "/services/s", {"host": "127.0.0.1"})
        client.must(200, "PUT", "/services/s/routes/r", {"paths": ["/"]})
        client.must(201, "POST", "/routes/r/plugins", {"name": "key-auth"})
        for name in ("alice", "bob"):
            client.must(200, "PUT", f"/consumers/{name}")
        client.must(200, "PUT", "/consumers/alice/key-auth/k")
        client.must(200, "PUT", "/consumer_groups/gold")
        client.must(201, "POST", "/consumer_groups/gold/consumers", {"consumer": "alice"})
        yield gateway


@pytest.fixture
def client(running: Gateway) -> Iterator[Client]:
    """Its store has changed in nothing when the test ends."""
    client = Client(running)
    before = state(client)
    yield client
    assert state(client) == before


def state(client: Client) -> tuple[str | None, list[Any]]:
    """The revision of the store, and all that it has."""
    kinds = ("services", "routes", "plugins", "consumers", "key-auths", "consumer_groups")
    revision = client.ask("GET", "/").headers.get("sluice-revision")
    return revision, [client.must(200, "GET", f"/{kind}")["data"] for kind in kinds]


@pytest.mark.parametrize(("method", "target", "body", "changes"), WRITES)
def test_a_write_answers_its_plan(
    client: Client,
    method: str,
    target: str,
    body: object,
    changes: list[tuple[str, str, str | None]],
) -> None:
    plan = client.must(200, method, f"{target}?dry_run=1", body)
    found = [(each["change"], each["kind"], each["name"]) for each in plan["entities"]]
    assert sorted(map(str, found)) == sorted(map(str, changes))
    for word in ("created", "changed", "deleted"):
        assert plan[word] == sum(change == word for change, _, _ in changes)
    assert plan["revision"] is None


def test_a_plan_names_fields_and_owners(client: Client) -> None:
    (changed,) = client.must(200, "PATCH", "/services/s?dry_run=1", {"retries": 2})["entities"]
    assert changed["fields"] == [{"field": "retries", "old": 5, "new": 2}]
    body = {"name": "n", "paths": ["/n"]}
    (created,) = client.must(200, "POST", "/services/s/routes?dry_run=1", body)["entities"]
    assert created["owners"] == [{"kind": "services", "name": "s"}]


@pytest.mark.parametrize(("method", "target", "body", "changes"), WRITES)
@pytest.mark.parametrize("name", MISSPELT)
def test_a_misspelt_name_is_refused(
    client: Client, method: str, target: str, body: object, changes: object, name: str
) -> None:
    answer = client.must(400, method, f"{target}?{name}=1", body)
    assert answer["message"] == f"unknown argument {name}, did you mean dry_run", changes


@pytest.mark.parametrize("value", ["", "=", "=true", "=2", "=1&dry_run=1"])
def test_another_value_is_refused(client: Client, value: str) -> None:
    answer = client.must(400, "DELETE", f"/routes/r?dry_run{value}")
    assert answer["message"] == "dry_run must be 0 or 1, given once"


def test_unknown_arguments_are_ignored_as_in_kong(client: Client) -> None:
    query = "check_hash=1&size=5&expand=x&flatten_errors=1&dry_run=1"
    client.must(200, "PATCH", f"/services/s?{query}", {"retries": 2})
    client.must(200, "GET", "/services?dryrun=1")


def test_what_the_store_alone_can_tell_is_told(client: Client) -> None:
    """Unique values of others, references to it, references to none."""
    sent = {"name": "s", "host": "127.0.0.1"}
    assert client.must(409, "POST", "/services?dry_run=1", sent)["fields"] == {"name": "s"}
    answer = client.must(400, "DELETE", "/services/s?dry_run=1")
    assert answer["fields"] == {"@referenced_by": "routes"}
    none = {"id": "6f2c1a30-0000-4000-8000-000000000099"}
    client.must(400, "PATCH", "/routes/r?dry_run=1", {"service": none})
    client.must(404, "PATCH", "/routes/none?dry_run=1", {"paths": ["/x"]})
    answer = client.must(400, "POST", "/services?dry_run=1", {"name": "x"})
    assert answer["name"] == "schema violation"


def test_a_batch_with_many_changes_nothing(client: Client) -> None:
    operations = [{"method": "PUT", "path": f"/consumers/c{n}"} for n in range(500)]
    assert client.must(200, "POST", "/batch?dry_run=1", operations)["created"] == 500
    operations[7] = {"method": "POST", "path": "/consumers", "body": {"username": "alice"}}
    assert client.must(409, "POST", "/batch?dry_run=1", operations)["operation"] == 7


def test_others_write_meanwhile(running: Gateway) -> None:
    """One that is tried shares a commit with others, and takes nothing of theirs along."""
    client = Client(running)

    def write(n: int) -> None:
        for i in range(20):
            Client(running).must(200, "PUT", f"/consumers/w{n}-{i}")

    threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        client.must(200, "DELETE", "/consumers/alice?dry_run=1")
    for thread in threads:
        thread.join()
    names = {each["username"] for each in client.must(200, "GET", "/consumers?size=1000")["data"]}
    assert names >= {f"w{n}-{i}" for n in range(3) for i in range(20)} | {"alice"}
    for name in names - {"alice", "bob"}:
        client.must(204, "DELETE", f"/consumers/{name}")


def test_every_write_has_the_argument(client: Client) -> None:
    paths = client.must(200, "GET", "/openapi.json")["paths"]
    without = {
        path
        for path, methods in paths.items()
        for method, operation in methods.items()
        if method in ("post", "put", "patch", "delete")
        and "dry_run" not in [each["name"] for each in operation.get("parameters", [])]
    }
    assert without == {"/schemas/{kind}/validate"}
