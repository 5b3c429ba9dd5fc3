"""Many writes at once, and writers who come between each other."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from admin_client import Client, uuid
from admin_kinds import Pair

from upstream import Upstream
from wire import Reply

REFERENCED = "an existing 'routes' entity references this 'services' entity"


def put(path: str, **body: Any) -> dict[str, Any]:
    """One of a batch."""
    return {"method": "PUT", "path": path, "body": body}


def names(client: Client, kind: str, field: str = "name") -> list[str]:
    """Of all that there are."""
    return [entity[field] for entity in client.must(200, "GET", f"/{kind}?size=1000")["data"]]


def test_each_sees_those_before_it(client: Client, upstream: Upstream) -> None:
    reply = client.ask(
        "POST",
        "/batch",
        [
            put("/services/s", url=upstream.url),
            {
                "method": "POST",
                "path": "/services/s/routes",
                "body": {"paths": ["/a"], "name": "r"},
            },
            {"method": "PATCH", "path": "/routes/r", "body": {"tags": ["x"]}},
            put("/consumers/alice"),
            put("/consumers/alice/key-auth/secret"),
            put("/upstreams/u"),
            put("/upstreams/u/targets/127.0.0.1:1", weight=1),
            put("/upstreams/u/targets/127.0.0.1:1", weight=2),
            {"method": "POST", "path": "/plugins", "body": {"name": "key-auth", "route": "r"}},
            put("/services/gone", host="127.0.0.1"),
            {"method": "DELETE", "path": "/services/gone"},
            {"method": "DELETE", "path": "/services/never"},
        ],
    )
    assert reply.status == 200, str(reply)
    results = reply.json()
    statuses = [200, 201, 200, 200, 200, 200, 200, 200, 201, 200, 204, 204]
    assert [result["status"] for result in results] == statuses
    assert results[2]["body"]["service"] == {"id": results[0]["body"]["id"]}
    assert "body" not in results[10]
    assert (names(client, "services"), names(client, "routes")) == (["s"], ["r"])
    assert client.must(200, "GET", "/routes/r") == results[2]["body"]
    (target,) = client.must(200, "GET", "/upstreams/u/targets")["data"]
    assert target == results[7]["body"]
    assert client.running.ask("/a").status == 401
    assert client.running.ask("/a", headers={"apikey": "secret"}).status == 200
    revision = reply.headers.get("sluice-revision")
    assert client.ask("GET", "/services").headers.get("sluice-revision") == revision


def test_all_or_none(client: Client) -> None:
    before = client.ask("GET", "/services").headers.get("sluice-revision")
    for wrong, status, message in (
        (put("/services/b"), 400, "schema violation (host: required field missing)"),
        (put("/routes/r", paths=["/"], service="none"), 400, "the foreign key"),
        (put("/routes/r", paths=["/"], service={"id": uuid(9)}), 400, "the foreign key"),
        (put("/services/none/routes/r", paths=["/"]), 404, "Not found"),
        ({"method": "PATCH", "path": "/services/none", "body": {}}, 404, "Not found"),
        (put("/nothing/b"), 404, "Not found"),
        (put("/services/b/c/d/e"), 404, "Not found"),
        (put("/services"), 405, "Method not allowed"),
        ({"method": "GET", "path": "/services/a"}, 405, "Method not allowed"),
        (put("services/b"), 400, "path: expected one such as /services/orders"),
        (put("/services/b?x"), 400, "path: expected one such as /services/orders"),
        ({"path": "/services/b"}, 400, "method: required field missing"),
        ({"method": "PUT"}, 400, "path: required field missing"),
        ({"method": 1, "path": "/services/b"}, 400, "method: expected a string"),
        ({"method": "PUT", "path": "/services/b", "body": [1]}, 400, "body: expected an object"),
        ({"method": "PUT", "path": "/services/b", "value": {}}, 400, "value: unknown field"),
        (1, 400, "expected an object"),
        ([1], 400, "expected an object"),
    ):
        reply = client.ask("POST", "/batch", [put("/services/a", host="127.0.0.1"), wrong])
        assert reply.status == status, f"{wrong}: {reply}"
        assert reply.json()["message"].startswith(message)
        assert reply.json()["operation"] == 1
        sent = wrong if isinstance(wrong, dict) else {}
        for name in ("method", "path"):
            shown = sent.get(name) if isinstance(sent.get(name), str) else None
            assert reply.json().get(name) == shown, f"{wrong}: {reply}"
    for value in ({"a": 1}, "x", b"null"):
        assert client.ask("POST", "/batch", value).status == 400
    assert client.form("POST", "/batch", "method=PUT").status == 400
    assert client.must(200, "POST", "/batch", []) == []
    assert client.ask("POST", "/batch?sync=2", []).status == 400
    assert client.ask("GET", "/services").headers.get("sluice-revision") == before


def test_a_deletion_is_to_blame_for_what_refers_to_it(client: Client, tmp_path: Path) -> None:
    """Whether what refers to it was there before, stays as it is, is changed, or is new."""
    client.must(200, "PUT", "/services/s", {"host": "127.0.0.1"})
    made = client.must(200, "PUT", "/services/s/routes/r", {"paths": ["/"]})
    client.must(200, "PUT", f"/ca_certificates/{uuid(7)}", {"cert": Pair(tmp_path).cert})
    deletion = {"method": "DELETE", "path": "/services/s"}
    same = {name: made[name] for name in ("paths", "created_at")}
    for before in (
        [],
        [put("/services/s/routes/r", **same)],
        [put("/services/s/routes/r", paths=["/a"])],
        [put("/services/s/routes/q", paths=["/a"])],
        [put("/routes/r", paths=["/a"], service="s")],
        [put("/routes/q", paths=["/a"], service={"id": made["service"]["id"]})],
        [put("/services/s/routes/q", paths=["/a"]), {"method": "DELETE", "path": "/routes/r"}],
    ):
        reply = client.ask("POST", "/batch", [*before, deletion])
        assert reply.status == 400, f"{before}: {reply}"
        refused = reply.json()
        assert refused["message"] == REFERENCED, f"{before}: {reply}"
        assert (refused["operation"], refused["method"], refused["path"]) == (
            len(before),
            *deletion.values(),
        ), f"{before}: {reply}"
        reply = client.ask("POST", "/batch?dry_run=1", [*before, deletion])
        assert (reply.status, reply.json()) == (400, refused)
    # In a list of ids.
    of_list = put("/services/t", url="https://127.0.0.1", ca_certificates=[uuid(7)])
    deletion = {"method": "DELETE", "path": f"/ca_certificates/{uuid(7)}"}
    refused = client.ask("POST", "/batch", [of_list, deletion]).json()
    assert (refused["operation"], refused["name"]) == (1, "referenced by others")
    # The other way round there is nothing to refer to.
    deleted = [
        {"method": "DELETE", "path": "/routes/r"},
        {"method": "DELETE", "path": "/services/s"},
    ]
    for last, status in (
        (put("/services/s/routes/q", paths=["/a"]), 404),
        (put("/routes/q", paths=["/a"], service="s"), 400),
        (put("/routes/q", paths=["/a"], service={"id": made["service"]["id"]}), 400),
    ):
        reply = client.ask("POST", "/batch", [*deleted, last])
        assert (reply.status, reply.json()["operation"]) == (status, 2), str(reply)
    assert client.must(200, "GET", "/routes/r") == made
    assert names(client, "services") == ["s"]


def test_who_is_to_blame(client: Client) -> None:
    client.must(200, "PUT", "/services/s", {"host": "127.0.0.1"})
    client.must(200, "PUT", "/services/s/routes/r", {"paths": ["/"]})
    for second, third, status in (
        (put(f"/services/{uuid(1)}", name="s", host="a.test"), put("/services/c", host="x"), 409),
        ({"method": "DELETE", "path": "/services/s"}, put("/services/c", host="127.0.0.1"), 400),
        (put(f"/services/{uuid(5)}/routes/q", paths=["/"]), put("/services/c", host="x"), 404),
        (
            {"method": "POST", "path": "/services", "body": {"host": "127.0.0.1", "id": uuid(4)}},
            {"method": "POST", "path": "/services", "body": {"host": "127.0.0.1", "id": uuid(4)}},
            409,
        ),
    ):
        first = put("/services/a", host="127.0.0.1")
        reply = client.ask("POST", "/batch", [first, second, third])
        assert (reply.status, reply.json()["operation"]) == (
            status,
            2 if second == third or second.get("body", {}).get("id") else 1,
        ), str(reply)
        blamed = (second, third)[reply.json()["operation"] - 1]
        assert (reply.json()["method"], reply.json()["path"]) == (blamed["method"], blamed["path"])
    assert names(client, "services") == ["s"]


def test_blame_is_short_and_shows_no_secret(client: Client) -> None:
    client.must(200, "PUT", "/consumers/alice", {})
    for path, shown in (
        ("/consumers/alice/key-auth/hunter%2F2", "/consumers/alice/key-auth/REDACTED"),
        ("/key-auths/hunter2/", "/key-auths/REDACTED/"),
        ("/services/" + "x" * 9000, "/services/" + "x" * 190 + "[... 8710 bytes ...]" + "x" * 100),
    ):
        reply = client.ask("POST", "/batch", [put(path, bad=1)])
        assert (reply.status, reply.json()["path"]) == (400, shown)
        assert "hunter" not in str(reply.json())


def test_names_can_be_swapped(client: Client) -> None:
    for n, name in ((1, "a"), (2, "b")):
        client.must(200, "PUT", f"/services/{uuid(n)}", {"name": name, "host": "127.0.0.1"})
    swap = [
        put(f"/services/{uuid(n)}", name=name, host="127.0.0.1") for n, name in ((1, "b"), (2, "a"))
    ]
    client.must(200, "POST", "/batch", swap)
    assert client.must(200, "GET", "/services/a")["id"] == uuid(2)


def test_what_goes_with_another(client: Client) -> None:
    batch = [
        put("/consumers/alice"),
        put("/consumers/alice/key-auth/a"),
        {"method": "DELETE", "path": "/consumers/alice"},
    ]
    for _ in range(2):
        results = client.must(200, "POST", "/batch", batch)
        assert [result["status"] for result in results] == [200, 200, 204]
        assert client.must(200, "GET", "/key-auths")["data"] == []
        client.must(200, "POST", "/batch", batch[:2])
    reply = client.ask("POST", "/batch", [batch[2], batch[1]])
    assert (reply.status, reply.json()["operation"]) == (404, 1)


def test_a_thousand(client: Client) -> None:
    """In turns: others are answered meanwhile."""
    batch = [put(f"/services/s{n}", url=f"http://127.0.0.1:{n + 1}/") for n in range(1000)]
    with ThreadPoolExecutor() as pool:
        done = pool.submit(client.must, 200, "POST", "/batch", batch)
        answered = 0
        while not done.done():
            client.must(200, "GET", "/plugins/enabled")
            answered += 1
    assert len(done.result()) == 1000
    assert answered > 2
    assert names(client, "services") == [f"s{n}" for n in range(1000)]
    more = client.ask("POST", "/batch", [put("/services/a", host="127.0.0.1")] * 1001)
    assert (more.status, more.json()["message"]) == (413, "more than 1000 operations")


def together(count: int, ask: Callable[[int], Reply]) -> list[int]:
    """The statuses of so many requests at the same time."""
    with ThreadPoolExecutor(count) as pool:
        return [reply.status for reply in pool.map(ask, range(count))]


def test_many_write_one_name(client: Client) -> None:
    for turn in range(10):
        value = {"name": f"n{turn}", "host": "127.0.0.1"}
        statuses = together(10, lambda _, value=value: client.ask("POST", "/services", value))
        assert sorted(statuses) == [201] + [409] * 9
        path = f"/services/p{turn}"
        statuses = together(
            10, lambda n, path=path: client.ask("PUT", path, {"host": f"127.0.0.{n}"})
        )
        assert statuses == [200] * 10
    assert len(names(client, "services")) == 20


def test_many_patch_one(client: Client) -> None:
    """None of the fields that each sets is lost."""
    client.must(200, "PUT", "/upstreams/u", {})
    fields = [
        "hash_on_header", "hash_fallback_header", "hash_on_cookie", "hash_on_query_arg",
        "hash_fallback_query_arg", "hash_on_uri_capture", "hash_fallback_uri_capture",
        "host_header",
    ]  # fmt: skip
    for turn in range(10):
        statuses = together(
            len(fields),
            lambda n, turn=turn: client.ask("PATCH", "/upstreams/u", {fields[n]: f"v{turn}-{n}"}),
        )
        assert statuses == [200] * len(fields)
        found = client.must(200, "GET", "/upstreams/u")
        assert [found[field] for field in fields] == [f"v{turn}-{n}" for n in range(len(fields))]


def test_a_file_comes_between(client: Client, upstream: Upstream) -> None:
    """Names that it takes away are there for those who write after it."""
    port = int(upstream.url.rsplit(":", 1)[1])
    for turn in range(5):
        value = {"host": "localhost", "port": port}
        client.must(200, "PUT", f"/services/{uuid(1)}", value)
        client.must(201, "POST", "/config", {"_format_version": "3.0", "consumers": []})
        client.must(200, "PUT", f"/services/{uuid(1)}", value)
        client.must(200, "PUT", f"/routes/{uuid(2)}", {"paths": ["/a"], "service": {"id": uuid(1)}})
        assert client.running.ask("/a").status == 200, turn
