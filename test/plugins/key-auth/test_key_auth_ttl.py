"""Keys that expire: between two requests, over a restart, in files and copies; what the Admin API
shows of their `ttl`."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from admin_client import Client, uuid

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import wait_until

ALICE = uuid(1)

LIVES = [2, 6, 20]
"""Seconds that a key is given, one life after the other: for machines on which one ends before the
key was served."""


def kept(running: Gateway) -> list[str]:
    """The keys that the store has, expired ones among them."""
    path = f"file:{running.prefix}/run/store/store.db?mode=ro"
    with closing(sqlite3.connect(path, uri=True)) as db:
        rows = db.execute("SELECT text FROM e_keyauth_credentials ORDER BY sequence").fetchall()
    return [json.loads(text)["key"] for (text,) in rows]


@pytest.fixture
def served(gateway: Start, upstream: Upstream) -> Client:
    """Alice, and a route that asks for a key."""
    client = Client(gateway(None))
    client.must(200, "PUT", f"/consumers/{ALICE}", {"username": "alice"})
    client.must(200, "PUT", "/services/s", {"url": upstream.url})
    client.must(201, "POST", "/services/s/routes", {"paths": ["/"]})
    client.must(201, "POST", "/plugins", {"name": "key-auth"})
    return client


def status(client: Client, key: str) -> int:
    """How a request with this key is answered."""
    return client.running.ask("/", headers={"apikey": key}).status


def make(client: Client, key: str, ttl: float | None = None) -> dict:
    """A key of alice."""
    return client.must(201, "POST", "/consumers/alice/key-auth", {"key": key, "ttl": ttl})


def make_in_time(client: Client) -> list[dict]:
    """Keys, one after the other, until the last is served before it expires."""
    made = []
    for ttl in LIVES:
        # Or up to a second later, as the end is a whole one and the request takes its time.
        end = int(time.time()) + ttl
        made.append(make(client, "short", ttl))
        answered = status(client, "short")
        if time.time() < end:
            assert ttl - 1 <= made[-1]["ttl"] <= ttl
            assert answered == 200
            return made
        wait_until(lambda: "short" not in kept(client.running), "the store to be rid of it")
    raise AssertionError("no key was served before it expired")


def test_a_key_expires_between_two_requests(served: Client) -> None:
    make(served, "stays")
    all_made = make_in_time(served)
    made = all_made[-1]
    assert status(served, "stays") == 200
    wait_until(lambda: status(served, "short") == 401, "the key to expire")
    assert status(served, "stays") == 200
    for path in (
        f"/key-auths/{made['id']}",
        "/key-auths/short",
        "/consumers/alice/key-auth/short",
        f"/consumers/alice/key-auth/{made['id']}",
    ):
        served.must(404, "GET", path)
        served.must(404, "PATCH", path, {"tags": ["a"]})
    for path in ("/key-auths", "/consumers/alice/key-auth"):
        assert [one["key"] for one in served.must(200, "GET", path)["data"]] == ["stays"]
    wait_until(lambda: kept(served.running) == ["stays"], "the store to be rid of it")
    said = served.running.command("history").stdout
    lines = [line for line in said.splitlines() if " expiry " in line]
    assert len(lines) == len(all_made), lines
    for line in lines:
        assert line.split("expiry")[1].split()[:2] == ["-", "key-auth"], line
    assert "short" not in said


def test_what_is_left_is_shown(served: Client) -> None:
    begun = time.monotonic()
    made = make(served, "a", 1000)
    path = f"/key-auths/{made['id']}"
    # Whole seconds; a slow disk takes some before the answer.
    assert 999 - (time.monotonic() - begun) < made["ttl"] <= 1000
    assert "expires_at" not in made
    time.sleep(1.1)
    assert 990 <= served.must(200, "GET", path)["ttl"] <= 999
    assert make(served, "b", 0)["ttl"] is None
    assert make(served, "c")["ttl"] is None
    listed = served.must(200, "GET", "/key-auths")["data"]
    assert [one["ttl"] is None for one in listed] == [False, True, True]


def test_patch_and_put(served: Client) -> None:
    """A PATCH without a ttl leaves it, 0 and null take it away; a PUT without one has none."""
    path = f"/key-auths/{make(served, 'a', 1000)['id']}"
    assert 990 <= served.must(200, "PATCH", path, {"tags": ["x"]})["ttl"] <= 1000
    assert 1990 <= served.must(200, "PATCH", path, {"ttl": 2000})["ttl"] <= 2000
    assert served.must(200, "PATCH", path, {"ttl": 0})["ttl"] is None
    assert 990 <= served.must(200, "PATCH", path, {"ttl": 1000})["ttl"] <= 1000
    assert served.must(200, "PATCH", path, {"ttl": None})["ttl"] is None
    whole = {"key": "a", "consumer": {"id": ALICE}}
    assert 990 <= served.must(200, "PUT", path, whole | {"ttl": 1000})["ttl"] <= 1000
    assert served.must(200, "PUT", path, whole)["ttl"] is None
    form = served.form("PATCH", path, "ttl=300")
    assert form.status == 200
    assert 290 <= form.json()["ttl"] <= 300


@pytest.mark.parametrize(
    ("ttl", "reason"),
    [
        (-1, "value should be between 0 and 100000000"),
        (100000001, "value should be between 0 and 100000000"),
        (0.5, "expected an integer"),
        ("soon", "expected an integer"),
        ({}, "expected an integer"),
    ],
)
def test_a_ttl_that_is_wrong(served: Client, ttl: object, reason: str) -> None:
    sent = {"key": "a", "ttl": ttl}
    refusal = served.must(400, "POST", "/consumers/alice/key-auth", sent)
    assert refusal["fields"] == {"ttl": reason}
    sent = {"key": "a", "expires_at": 5}
    refusal = served.must(400, "POST", "/consumers/alice/key-auth", sent)
    assert refusal["fields"] == {"expires_at": "unknown field"}
    assert kept(served.running) == []


def test_another_can_have_the_key_of_one_that_has_expired(served: Client) -> None:
    """At once, whether that is deleted yet or not; so can one with its id."""
    for turn in range(3):
        old = make(served, "a", 1)
        wait_until(lambda: status(served, "a") == 401, "the key to expire")
        new = make(served, "a")
        assert old["id"] != new["id"]
        assert status(served, "a") == 200
        path = f"/key-auths/{new['id']}"
        served.must(200, "PATCH", path, {"ttl": 1})
        wait_until(lambda: status(served, "a") == 401, "the key to expire again")
        named = served.must(200, "PUT", "/consumers/alice/key-auth/a", {"ttl": turn * 100})
        assert named["key"] == "a"
        assert status(served, "a") == 200
        served.must(204, "DELETE", "/key-auths/a")
    assert kept(served.running) == []


def test_many_are_deleted_in_slices(served: Client) -> None:
    operations = [
        {"method": "POST", "path": "/consumers/alice/key-auth", "body": {"key": f"k{n}", "ttl": 2}}
        for n in range(900)
    ]
    served.must(200, "POST", "/batch", operations)
    make(served, "stays", 100)
    wait_until(lambda: kept(served.running) == ["stays"], "the store to be rid of them")


def test_a_restart_does_not_lengthen_it(served: Client) -> None:
    make(served, "short", 3)
    make(served, "long", 1000)
    running = served.running
    running.stop()
    running.start()
    served.running = running
    assert status(served, "long") == 200
    assert 980 <= served.must(200, "GET", "/key-auths/long")["ttl"] <= 1000
    wait_until(
        lambda: served.must(200, "GET", "/key-auths/long")["ttl"] < 1000, "a second to have passed"
    )
    wait_until(lambda: status(served, "short") == 401, "the key to expire")
    wait_until(lambda: kept(running) == ["long"], "the store to be rid of it")
    running.stop()
    time.sleep(0.1)
    running.start()
    assert status(served, "short") == 401


def test_one_that_expires_while_nobody_runs(served: Client) -> None:
    make(served, "short", 1)
    served.running.stop()
    time.sleep(1.1)
    served.running.start()
    assert status(served, "short") == 401
    wait_until(lambda: kept(served.running) == [], "the store to be rid of it")


def test_a_file_counts_from_its_load(gateway: Start, upstream: Upstream) -> None:
    """A restart with the same file loads nothing, deleted ones or not; another file begins anew."""
    keys = [{"key": "short", "ttl": 4}, {"key": "long", "ttl": 1000}]
    config = proxying(upstream) | {
        "consumers": [{"username": "alice", "keyauth_credentials": keys}],
        "plugins": [{"name": "key-auth"}],
    }
    client = Client(running := gateway(config))
    assert status(client, "short") == status(client, "long") == 200
    wait_until(lambda: kept(running) == ["long"], "the store to be rid of it")
    running.stop()
    running.start()
    assert status(client, "short") == 401
    assert status(client, "long") == 200
    running.write_config(config | {"upstreams": [{"name": "another"}]})
    assert running.command("reload").returncode == 0
    assert status(client, "short") == 200
    wait_until(lambda: kept(running) == ["long"], "the store to be rid of it again")


def test_export_and_import(served: Client, tmp_path: Path) -> None:
    """An export has what is left, and none that has expired."""
    make(served, "gone", 1)
    make(served, "long", 1000)
    make(served, "stays")
    wait_until(lambda: status(served, "gone") == 401, "the key to expire")
    path = tmp_path / "export.json"
    assert served.running.command("export", str(path)).returncode == 0
    listed = json.loads(path.read_text())["keyauth_credentials"]
    assert [one["key"] for one in listed] == ["long", "stays"]
    assert 980 <= listed[0]["ttl"] < 1000
    assert "ttl" not in listed[1]
    assert "expires_at" not in path.read_text()
    assert served.running.command("apply", str(path)).returncode == 0
    assert 980 <= served.must(200, "GET", "/key-auths/long")["ttl"] <= 1000
    wait_until(
        lambda: served.must(200, "GET", "/key-auths/long")["ttl"] < 1000, "a second to have passed"
    )
    served.must(200, "PATCH", "/key-auths/long", {"ttl": 5})
    with path.open("rb") as file:
        served.must(201, "POST", "/config", file.read())
    assert 980 <= served.must(200, "GET", "/key-auths/long")["ttl"] <= 1000
    wait_until(
        lambda: served.must(200, "GET", "/key-auths/long")["ttl"] < 1000, "a second to have passed"
    )
    assert status(served, "stays") == 200


def go_back(client: Client, ttl: int) -> int:
    """Makes a key and deletes it, and goes back to where it was: that revision. 0: all of it took
    so long that the key may have expired."""
    end = int(time.time()) + ttl
    make(client, "short", ttl)
    revision = client.must(200, "GET", "/history")["data"][0]["revision"]
    deleted = client.ask("DELETE", "/key-auths/short").status
    gone_back = client.running.command("rollback", str(revision)).returncode
    answered = status(client, "short")
    if time.time() < end:
        assert (deleted, gone_back, answered) == (204, 0, 200)
        return revision
    return 0


def test_going_back_makes_none_live_longer(served: Client) -> None:
    for ttl in LIVES:
        revision = go_back(served, ttl)
        wait_until(lambda: kept(served.running) == [], "the store to be rid of it")
        if revision:
            break
    assert revision, "no key was served before it expired"
    assert served.running.command("rollback", str(revision)).returncode == 0
    assert status(served, "short") == 401
    served.must(404, "GET", "/key-auths/short")
    wait_until(lambda: kept(served.running) == [], "the store to be rid of it again")
