"""Who changed what, and the way back: /history and /rollback."""

from typing import Any

import pytest
from admin_tokens import send, with_token
from changes import document, post

from sluice import Gateway, Start, proxying
from upstream import Upstream

KINDS = ("services", "routes", "consumers", "plugins", "key-auths", "upstreams")
TOKEN, READ_TOKEN = "correct-horse-battery", "stable-horse-reading"


def everything(running: Gateway) -> dict[str, Any]:
    """All entities, as they are shown."""
    return {kind: send(running, "GET", f"/{kind}").json()["data"] for kind in KINDS}


def back(running: Gateway, revision: object) -> dict[str, Any]:
    """Goes back."""
    reply = send(running, "POST", "/rollback", json={"revision": revision})
    assert reply.status_code == 200, reply.text
    assert reply.headers["Sluice-Revision"] == str(reply.json()["revision"])
    found: dict[str, Any] = reply.json()
    return found


def test_each_change_can_be_taken_back(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None, workers=2)
    assert post(running, document(proxying(upstream))).status_code == 201
    revision = int(send(running, "GET", "/").headers["Sluice-Revision"])
    assert running.ask("/").status == 200
    states = {revision: everything(running)}
    service = states[revision]["services"][0]["id"]
    for method, target, value in (
        ("PUT", "/services/second", {"url": "http://localhost:1"}),
        ("PATCH", f"/services/{service}", {"url": "http://127.0.0.1:1", "retries": 0}),
        ("PUT", "/consumers/alice", {"tags": ["a"]}),
        ("POST", "/consumers/alice/key-auth", {"key": "alices"}),
        ("PUT", "/plugins/6f2c1a30-0000-4000-8000-000000000001", {"name": "key-auth"}),
        ("DELETE", "/consumers/alice", None),
        ("DELETE", "/services/second", None),
    ):
        reply = send(running, method, target, **({"json": value} if value is not None else {}))
        assert reply.status_code < 300, reply.text
        states[int(reply.headers["Sluice-Revision"])] = everything(running)
    page = send(running, "GET", "/history?size=3").json()
    assert [each["deleted"] for each in page["data"]] == [1, 2, 0]
    assert page["data"][0]["by"] == "anyone from 127.0.0.1"
    rest = send(running, "GET", page["next"]).json()["data"]
    assert len({each["revision"] for each in page["data"] + rest[:3]}) == 6
    assert running.ask("/").status == 401
    last = revision
    for to in (*reversed(states), *states):
        assert back(running, to)["revision"] >= last
        assert everything(running) == states[to], to
        last = to
    back(running, revision)
    # A request on any worker sees it.
    assert {running.ask("/").status for _ in range(10)} == {200}
    assert ", back to " in send(running, "GET", "/history").json()["data"][0]["by"]
    assert back(running, revision)["changes"] == 0


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ({"revision": 10**9}, 404, "no changes yet"),
        ({"revision": -1}, 400, "revision: expected"),
        ({"revision": 1.5}, 400, "revision: expected"),
        ({"revision": "1"}, 400, "revision: expected"),
        ({}, 400, "revision: expected"),
        ({"revisions": 1}, 400, "revisions: unknown field"),
        ([1], 400, "unknown field"),
    ],
)
def test_what_is_no_revision(gateway: Start, body: object, status: int, why: str) -> None:
    running = gateway(None)
    reply = send(running, "POST", "/rollback", json=body)
    assert (reply.status_code, why in reply.json()["message"]) == (status, True), reply.text


def test_arguments_of_the_history(gateway: Start) -> None:
    running = gateway(None)
    for query in ("size=0", "size=x", "size=1001", "size=1&size=2", "offset=x", "offset"):
        assert send(running, "GET", f"/history?{query}").status_code == 400, query
    assert send(running, "GET", "/history").json()["data"] == []


def test_the_history_is_short_where_a_setting_says_so(gateway: Start) -> None:
    running = gateway(None, history=0)
    assert send(running, "PUT", "/consumers/a", json={}).status_code == 200
    assert send(running, "GET", "/history").json()["data"] == []
    reply = send(running, "POST", "/rollback", json={"revision": 0})
    assert (reply.status_code, reply.json()["name"]) == (409, "too old")


def test_a_file_keeps_none_and_a_reader_may_not(gateway: Start) -> None:
    running = gateway({})
    assert send(running, "POST", "/rollback", json={"revision": 0}).status_code == 405
    running = gateway(None, admin_token=TOKEN, admin_read_token=READ_TOKEN)
    assert send(running, "GET", "/history", headers=with_token(READ_TOKEN)).status_code == 200
    reply = send(running, "POST", "/rollback", json={"revision": 0}, headers=with_token(READ_TOKEN))
    assert reply.status_code == 403


def test_a_way_back_that_others_are_in_is_refused(gateway: Start) -> None:
    running = gateway(None)
    send(running, "PUT", "/consumers/a", json={"custom_id": "x"})
    revision = int(send(running, "GET", "/").headers["Sluice-Revision"])
    send(running, "PUT", "/consumers/a", json={"custom_id": "y"})
    send(running, "PUT", "/consumers/b", json={"custom_id": "x"})
    # The way back takes b away, so that a gets its own again.
    back(running, revision)
    assert send(running, "GET", "/consumers/b").status_code == 404
    assert send(running, "GET", "/consumers/a").json()["custom_id"] == "x"


def test_a_name_that_several_have_comes_back_once(gateway: Start) -> None:
    running = gateway(None)
    for name in ("a", "b"):
        send(running, "PUT", f"/services/{name}", json={"host": "localhost"})
    revision = int(send(running, "GET", "/").headers["Sluice-Revision"])
    for name in ("a", "b"):
        send(running, "PATCH", f"/services/{name}", json={"retries": 1})
    assert back(running, revision)["changes"] == 2
