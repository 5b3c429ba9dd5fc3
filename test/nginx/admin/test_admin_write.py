"""Entities written one by one: what is answered, and that it is live when answered."""

import re
from collections.abc import Iterator

import pytest
from admin_client import Client, uuid

from sluice import Gateway
from upstream import Upstream
from wire import Reply, wait_until

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    """A gateway that begins with nothing."""
    with Gateway(None, workers=2) as gateway:
        yield gateway


def test_what_is_answered_is_served(client: Client, upstream: Upstream) -> None:
    """Each worker, and connections that were open before."""
    with client.running.wire() as before:
        assert before.ask("/a").status == 404
        service = client.must(200, "PUT", f"/services/{uuid(1)}", {"url": upstream.url})
        assert client.running.ask("/a").status == 404
        client.must(201, "POST", f"/services/{service['id']}/routes", {"paths": ["/a"]})
        assert before.ask("/a").status == 200
    for n in range(20):
        client.must(200, "PUT", f"/routes/r{n}", {"paths": [f"/b{n}"], "service": {"id": uuid(1)}})
        assert client.running.ask(f"/b{n}").status == 200
        client.must(204, "DELETE", f"/routes/r{n}")
        assert client.running.ask(f"/b{n}").status == 404


def test_a_host_that_has_to_be_resolved(client: Client, upstream: Upstream) -> None:
    port = upstream.url.rsplit(":", 1)[1]
    client.must(201, "POST", "/services", {"name": "s", "host": "localhost", "port": int(port)})
    client.must(201, "POST", "/services/s/routes", {"paths": ["/a"]})
    assert client.running.ask("/a").status == 200
    client.must(201, "POST", "/upstreams", {"name": "pool"})
    client.must(201, "POST", "/upstreams/pool/targets", {"target": f"localhost:{port}"})
    client.must(200, "PATCH", "/services/s", {"host": "pool"})
    assert client.running.ask("/a").status == 200


def test_an_upstream_that_goes(client: Client, upstream: Upstream) -> None:
    """The host of its services is a name from then on, as it was before it came."""
    port = int(upstream.url.rsplit(":", 1)[1])
    service = {"name": "s", "host": "localhost", "port": port}
    for back in (
        ("DELETE", "/upstreams/localhost", None),
        ("PATCH", "/upstreams/localhost", {"name": "other"}),
        ("PUT", f"/upstreams/{uuid(1)}", {"name": "another"}),
    ):
        client.must(201, "POST", "/config", {"_format_version": "3.0"})
        client.must(200, "PUT", f"/upstreams/{uuid(1)}", {"name": "localhost"})
        client.must(201, "POST", "/services", service)
        client.must(201, "POST", "/services/s/routes", {"paths": ["/a"]})
        assert client.running.ask("/a").status == 503
        client.ask(*back)
        wait_until(lambda: client.running.ask("/a").status == 200, f"addresses after {back}")


def test_methods(client: Client) -> None:
    collection, one = "GET, HEAD, OPTIONS, POST", "GET, HEAD, OPTIONS, PUT, PATCH, DELETE"
    client.must(200, "PUT", "/services/s", {"host": "127.0.0.1"})
    for target, allowed, wrong in (
        ("/services", collection, ("PUT", "PATCH", "DELETE")),
        ("/services/s/routes", collection, ("PUT", "PATCH", "DELETE")),
        ("/services/s", one, ("POST",)),
        ("/services/s/routes/r", one, ("POST",)),
        ("/batch", "POST, OPTIONS", ("GET", "PUT", "PATCH", "DELETE")),
    ):
        for method in wrong:
            reply = client.ask(method, target, {})
            assert (reply.status, reply.headers.get("allow")) == (405, allowed)
        reply = client.ask("OPTIONS", target)
        assert (reply.status, reply.headers.get("allow")) == (204, allowed)


def test_put_replaces(client: Client) -> None:
    made = client.must(
        200, "PUT", f"/services/{uuid(1)}", {"name": "a", "url": "http://127.0.0.1:8080/x"}
    )
    assert (made["id"], made["host"], made["port"], made["path"]) == (
        uuid(1),
        "127.0.0.1",
        8080,
        "/x",
    )
    assert made["retries"] == 5
    assert isinstance(made["created_at"], int)
    again = client.must(200, "PUT", f"/services/{uuid(1)}", {"host": "b.test", "retries": 1})
    assert (again["name"], again["path"], again["port"], again["retries"]) == (None, None, 80, 1)
    assert again["created_at"] == made["created_at"]
    assert client.must(200, "GET", f"/services/{uuid(1)}") == again


def test_put_by_name(client: Client) -> None:
    made = client.must(200, "PUT", "/services/a", {"host": "127.0.0.1"})
    assert made["name"] == "a"
    assert UUID.fullmatch(made["id"])
    assert client.must(200, "PUT", "/services/a", {"host": "127.0.0.2"})["id"] == made["id"]
    assert client.must(200, "PUT", "/services/c", {"id": uuid(3), "host": "x.test"})["id"] == uuid(
        3
    )
    for value, message in (
        ({"name": "b"}, "schema violation (name: value must be a)"),
        ({"id": uuid(2)}, f"schema violation (id: value must be {made['id']})"),
    ):
        refused = client.must(400, "PUT", "/services/a", {"host": "127.0.0.1"} | value)
        assert refused["message"] == message
    taken = client.must(409, "PUT", "/services/new", {"id": uuid(3), "host": "127.0.0.1"})
    assert taken["name"] == "primary key violation"


def test_names_that_need_escaping(client: Client) -> None:
    for path in ("gr%C3%BC%C3%9Fe", "a~b.c-d_e"):
        made = client.must(200, "PUT", f"/services/{path}", {"host": "127.0.0.1"})
        assert client.must(200, "GET", f"/services/{path}") == made
    name = 'a/b c?"\u00e9'
    made = client.must(200, "PUT", "/consumers/a%2Fb%20c%3F%22%C3%A9", {"custom_id": "1"})
    assert made["username"] == name
    client.must(204, "DELETE", "/consumers/a%2fb%20c%3f%22%c3%a9")
    assert client.must(200, "GET", "/consumers")["data"] == []


def test_a_put_of_an_id_is_of_no_name(client: Client) -> None:
    client.must(200, "PUT", "/consumers/x", {"custom_id": uuid(1)})
    client.must(201, "POST", "/consumers", {"username": uuid(1)})
    made = client.must(200, "PUT", f"/consumers/{uuid(1)}", {"username": "y"})
    assert (made["id"], made["username"]) == (uuid(1), "y")


def test_post(client: Client) -> None:
    made = client.must(201, "POST", "/services", {"host": "127.0.0.1", "tags": None})
    assert UUID.fullmatch(made["id"])
    assert made["tags"] is None
    given = client.must(201, "POST", "/services", {"id": uuid(1), "host": "127.0.0.1", "tags": []})
    assert (given["id"], given["tags"]) == (uuid(1), [])
    known = client.must(409, "POST", "/services", {"id": uuid(1), "host": "127.0.0.2"})
    assert known == {
        "code": 3,
        "fields": {"id": uuid(1)},
        "message": f"primary key violation on key '{{id=\"{uuid(1)}\"}}'",
        "name": "primary key violation",
    }


def test_patch_merges(client: Client) -> None:
    made = client.must(
        201, "POST", "/upstreams", {"name": "u", "healthchecks": {"active": {"timeout": 3}}}
    )
    value = {"healthchecks": {"active": {"http_path": "/h", "healthy": {"http_statuses": [204]}}}}
    patched = client.must(200, "PATCH", "/upstreams/u", value)
    active = patched["healthchecks"]["active"]
    assert (active["timeout"], active["http_path"]) == (3, "/h")
    assert active["healthy"]["http_statuses"] == [204]
    assert active["unhealthy"] == made["healthchecks"]["active"]["unhealthy"]
    assert patched["healthchecks"]["passive"] == made["healthchecks"]["passive"]
    assert client.must(200, "PATCH", "/upstreams/u", {}) == patched
    back = client.must(
        200, "PATCH", "/upstreams/u", {"healthchecks": {"active": {"timeout": None}}}
    )
    assert back["healthchecks"]["active"]["timeout"] == 1
    client.must(404, "PATCH", "/upstreams/none", {})
    client.must(404, "PATCH", f"/upstreams/{uuid(1)}", {})
    assert client.must(400, "PATCH", "/upstreams/u", {"id": uuid(1)})["code"] == 2


def test_patch_of_a_plugin(client: Client) -> None:
    made = client.must(
        201, "POST", "/plugins", {"name": "rate-limiting", "config": {"minute": 5, "hour": 9}}
    )
    patched = client.must(200, "PATCH", f"/plugins/{made['id']}", {"config": {"minute": 6}})
    assert (patched["config"]["minute"], patched["config"]["hour"]) == (6, 9)
    patched = client.must(200, "PATCH", f"/plugins/{made['id']}", {"config": {"hour": None}})
    assert patched["config"]["hour"] is None
    assert patched["config"].keys() == made["config"].keys()
    assert patched["protocols"] == ["grpc", "grpcs", "http", "https"]


def test_patch_of_a_url(client: Client) -> None:
    client.must(200, "PUT", "/services/s", {"url": "https://a.test:8443/x", "retries": 2})
    patched = client.must(200, "PATCH", "/services/s", {"url": "http://b.test"})
    fields = ("protocol", "host", "port", "path", "retries")
    assert [patched[field] for field in fields] == ["http", "b.test", 80, None, 2]


def test_references(client: Client) -> None:
    client.must(200, "PUT", f"/services/{uuid(1)}", {"name": "s", "host": "127.0.0.1"})
    for reference in (
        {"id": uuid(1)},
        {"name": "s"},
        {"id": uuid(1), "name": "other", "created_at": 1},
        "s",
        uuid(1),
    ):
        made = client.must(200, "PUT", "/routes/r", {"paths": ["/"], "service": reference})
        assert made["service"] == {"id": uuid(1)}
    assert client.must(200, "PATCH", "/routes/r", {"service": None})["service"] is None
    for reference, status, fields in (
        ({"id": uuid(2)}, 400, {"service": {"id": uuid(2)}}),
        ({"name": "t"}, 400, {"service": {"name": "t"}}),
        ({"id": "s"}, 400, {"service": {"id": "expected a valid UUID"}}),
    ):
        refused = client.must(status, "PATCH", "/routes/r", {"service": reference})
        assert refused["fields"] == fields


def test_nested_ones_get_their_parent(client: Client) -> None:
    client.must(200, "PUT", f"/services/{uuid(1)}", {"name": "s", "host": "127.0.0.1"})
    client.must(200, "PUT", f"/services/{uuid(2)}", {"name": "t", "host": "127.0.0.1"})
    route = client.must(200, "PUT", "/services/s/routes/r", {"paths": ["/"]})
    assert route["service"] == {"id": uuid(1)}
    plugin = client.must(201, "POST", "/routes/r/plugins", {"name": "key-auth"})
    assert plugin["route"] == {"id": route["id"]}
    for parent in ({"id": uuid(1)}, {"name": "s"}):
        client.must(200, "PUT", "/services/s/routes/r", {"paths": ["/"], "service": parent})
    refused = client.must(
        400, "PUT", "/services/s/routes/r", {"paths": ["/"], "service": {"name": "t"}}
    )
    assert refused["fields"] == {"service": "value must be that of the path"}
    client.must(404, "PATCH", "/services/t/routes/r", {})
    client.must(404, "DELETE", "/services/t/routes/r")
    client.must(200, "GET", "/routes/r")
    for parent in ("none", uuid(9)):
        client.must(404, "PUT", f"/services/{parent}/routes/{uuid(5)}", {"paths": ["/"]})
        client.must(404, "POST", f"/services/{parent}/routes", {"paths": ["/"]})


def test_targets(client: Client) -> None:
    client.must(201, "POST", "/upstreams", {"name": "u"})
    made = client.must(200, "PUT", "/upstreams/u/targets/127.0.0.1", {"weight": 3})
    assert made["target"] == "127.0.0.1:8000"
    assert isinstance(made["created_at"], float)
    for key in ("127.0.0.1:8000", "127.0.0.1", made["id"]):
        again = client.must(200, "PUT", f"/upstreams/u/targets/{key}", {"target": "127.0.0.1"})
        assert (again["id"], again["weight"]) == (made["id"], 100)
        assert client.must(200, "GET", f"/upstreams/u/targets/{key}") == again
    known = client.must(409, "POST", "/upstreams/u/targets", {"target": "127.0.0.1:8000"})
    assert known["fields"] == {"upstream": {"id": made["upstream"]["id"]}, "target": made["target"]}
    client.must(200, "PATCH", "/upstreams/u/targets/127.0.0.1:8000", {"weight": 0})
    assert len(client.must(200, "GET", "/upstreams/u/targets/all")["data"]) == 1
    client.must(204, "DELETE", "/upstreams/u/targets/127.0.0.1:8000")
    assert client.must(200, "GET", "/upstreams/u/targets")["data"] == []
    client.must(404, "PUT", f"/upstreams/u/targets/{made['id']}/healthy")


def test_deletions(client: Client) -> None:
    client.must(200, "PUT", "/services/s", {"host": "127.0.0.1"})
    client.must(200, "PUT", "/services/s/routes/r", {"paths": ["/"]})
    client.must(201, "POST", "/routes/r/plugins", {"name": "key-auth"})
    refused = client.must(400, "DELETE", "/services/s")
    assert refused == {
        "code": 4,
        "fields": {"@referenced_by": "routes"},
        "message": "an existing 'routes' entity references this 'services' entity",
        "name": "foreign key violation",
    }
    client.must(204, "DELETE", "/routes/r")
    assert client.must(200, "GET", "/plugins")["data"] == []
    for key in ("s", "s", uuid(1)):
        client.must(204, "DELETE", f"/services/{key}")


def test_a_deletion_below_a_parent_that_has_no_such_entity(client: Client) -> None:
    """404, as in Kong; without the parent it is 204."""
    client.must(200, "PUT", "/consumers/alice", {})
    client.must(200, "PUT", "/services/s", {"host": "127.0.0.1"})
    client.must(200, "PUT", "/upstreams/u", {})
    client.must(200, "PUT", "/consumers/bob", {})
    client.must(200, "PUT", "/consumers/bob/acls/team", {})
    nested = [
        *(f"/consumers/alice/{kind}" for kind in ("acls", "basic-auth", "hmac-auth", "jwt")),
        *("/consumers/alice/key-auth", "/consumers/alice/plugins", "/services/s/routes"),
        *("/services/s/plugins", "/upstreams/u/targets"),
    ]
    for path in nested:
        for key in ("none", "team", uuid(9)):
            client.must(404, "DELETE", f"{path}/{key}")
            client.must(404, "DELETE", f"{path.replace('/s/', '/t/')}x/{key}")
    client.must(204, "DELETE", "/consumers/bob/acls/team")
    client.must(404, "DELETE", "/consumers/bob/acls/team")
    for kind in ("acls", "basic-auths", "hmac-auths", "jwts", "key-auths", "routes", "plugins"):
        client.must(204, "DELETE", f"/{kind}/{uuid(9)}")


def test_credentials(client: Client) -> None:
    client.must(200, "PUT", "/consumers/alice", {})
    made = client.must(201, "POST", "/consumers/alice/key-auth")
    assert re.fullmatch(r"[A-Za-z0-9]{32}", made["key"])
    assert made["consumer"].keys() == {"id"}
    flat = client.must(201, "POST", "/key-auths", {"key": "k", "consumer": {"username": "alice"}})
    assert flat["consumer"] == made["consumer"]
    refused = client.must(409, "POST", "/consumers/alice/key-auth", {"key": "k"})
    assert (refused["code"], refused["fields"]) == (5, {"key": "***"})
    assert (
        client.must(200, "PUT", "/consumers/alice/key-auth/k", {"tags": ["x"]})["id"] == flat["id"]
    )
    client.must(204, "DELETE", "/consumers/alice")
    assert client.must(200, "GET", "/key-auths")["data"] == []


def test_the_revision(client: Client) -> None:
    def revision(reply: Reply) -> int:
        return int(reply.headers.get("sluice-revision") or -1)

    first = revision(client.ask("GET", "/services"))
    made = client.ask("PUT", f"/services/{uuid(1)}", {"host": "127.0.0.1"})
    assert revision(made) == first + 1
    for reply in (
        client.ask("PUT", f"/services/{uuid(1)}", {"host": "127.0.0.1"}),
        client.ask("GET", f"/services/{uuid(1)}"),
        client.ask("POST", "/services", {}),
        client.ask("GET", "/nothing"),
        client.ask("GET", "/status"),
        client.ask("DELETE", "/services/none"),
    ):
        assert revision(reply) == first + 1
    for sync, status in (("0", 200), ("1", 200), ("", 400), ("2", 400), ("0&sync=0", 400)):
        target = f"/services/{uuid(1)}?sync={sync}"
        assert client.ask("PUT", target, {"host": "127.0.0.1"}).status == status
    assert revision(client.ask("DELETE", f"/services/{uuid(1)}")) == first + 2


def test_forms(client: Client) -> None:
    reply = client.form(
        "POST", "/services", "name=s&url=http%3A%2F%2F127.0.0.1&tags=a&retries=3&enabled=false"
    )
    made = reply.json()
    assert reply.status == 201
    assert (made["name"], made["host"], made["retries"]) == ("s", "127.0.0.1", 3)
    assert (made["tags"], made["enabled"]) == (["a"], False)
    reply = client.form(
        "POST", "/services/s/routes", "name=r&paths[]=/a&paths[]=/b&hosts[1]=a.test&methods=GET"
    )
    assert reply.json()["paths"] == ["/a", "/b"]
    assert (reply.json()["hosts"], reply.json()["methods"]) == (["a.test"], ["GET"])
    reply = client.form("PATCH", "/routes/r", "paths=/c&paths=/d&hosts=&headers.x-a[]=1")
    assert (reply.json()["paths"], reply.json()["hosts"]) == (["/c", "/d"], None)
    assert reply.json()["headers"] == {"x-a": ["1"]}
    reply = client.form("POST", "/plugins", "name=rate-limiting&config.minute=5&service.name=s")
    assert (reply.json()["config"]["minute"], reply.status) == (5, 201)
    plugin = reply.json()["id"]
    reply = client.form("PATCH", f"/plugins/{plugin}", "config.minute=6&config.hour=")
    assert reply.json()["config"]["minute"] == 6


def test_multipart(client: Client) -> None:
    body = b"".join(
        b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % pair
        for pair in (
            (b"host", b"127.0.0.1"),
            (b"tags[]", b"a"),
            (b"tags[]", b"b"),
            (b"port", b"81"),
        )
    )
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    reply = client.ask("POST", "/services", body + b"--x--\r\n", kind)
    assert (reply.status, reply.json()["tags"], reply.json()["port"]) == (201, ["a", "b"], 81)


def test_a_consumer_by_its_custom_id(client: Client) -> None:
    """Kong's clients ask so, and take the first of what they get."""
    for name in ("a", "b", "c"):
        client.must(200, "PUT", f"/consumers/{name}", {"custom_id": "id of " + name})
    found = client.must(200, "GET", "/consumers?custom_id=id%20of%20b")
    assert [consumer["username"] for consumer in found["data"]] == ["b"]
    assert client.must(200, "GET", "/consumers?custom_id=none") == {"data": [], "next": None}
    for query in ("custom_id", "custom_id=", "custom_id=a&custom_id=b"):
        assert client.ask("GET", "/consumers?" + query).status == 400
