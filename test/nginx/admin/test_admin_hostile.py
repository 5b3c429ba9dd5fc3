"""Names, references and requests of a tenant who means harm."""

import contextlib
import select
import subprocess
import threading
from pathlib import Path
from urllib.parse import quote

import pytest
from admin_client import JSON, Client, uuid

import guard
from instance import AS_ROOT
from sluice import Gateway, Start
from wire import Wire, request_bytes

SECRET = "hunter2-of-the-tenant"


NAMES = (
    "..", ".", "...", "a/b", "/", "//", "a//b", "../../etc/passwd", "%2e%2e", "%", "%00", "a%2Fb",
    "a?b", "a#b", "a b", "a+b", "a&b=c", "a;b", "'; DROP TABLE e_services; --", '"', "\\", "\u00e9",
    "e\u0301", "\u202etxt", "\u2028", "\U0001f600",
    "x" * 4096, "all", "validate", "health", "_", "*", "?", "null", "true", "0", "services",
    "[1]", "{id}", "<script>", "a\tb", "a\nb",
)  # fmt: skip


# nginx takes these for steps up in the path, and refuses what leads out of it: by their ids alone.
UNREACHABLE = (".", "..", "../../etc/passwd")


@pytest.mark.parametrize("name", NAMES, ids=[ascii(name)[:24] for name in NAMES])
def test_any_name_of_a_consumer(client: Client, name: str) -> None:
    """What is made by a body is found, changed and deleted by its path, and no other is."""
    client.must(200, "PUT", "/consumers/other", {})
    made = client.must(201, "POST", "/consumers", {"username": name})
    assert made["username"] == name
    path = "/consumers/" + quote(name, safe="")
    if name in UNREACHABLE:
        path = f"/consumers/{made['id']}"
    assert client.must(200, "GET", path) == made
    assert client.must(200, "PATCH", path, {"tags": ["a"]})["id"] == made["id"]
    assert client.must(200, "PUT", path, {"username": name})["id"] == made["id"]
    key = client.must(201, "POST", path + "/key-auth", {"key": name})
    assert client.must(200, "GET", path + "/key-auth")["data"] == [key]
    client.must(204, "DELETE", path)
    assert [c["username"] for c in client.must(200, "GET", "/consumers")["data"]] == ["other"]
    assert client.must(200, "GET", "/key-auths")["data"] == []


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    "path",
    [
        "/consumers%2F%7Bconsumers%7D%2Fconsumer_groups",
        "/consumer_groups%2F%7Bconsumer_groups%7D",
        "/schemas%2Fplugins%2F%7Bname%7D",
        "/upstreams%2F%7Bupstreams%7D%2Fhealth",
        "/plugins%2Fenabled",
    ],
)
def test_an_escaped_slash_leads_to_no_page(client: Client, method: str, path: str) -> None:
    body = {} if method == "POST" else None
    assert client.ask(method, path, body).status == 404


def test_a_plus_in_a_path_is_one(client: Client) -> None:
    """As it stands in mail addresses, by which consumers are often named; also in batches."""
    made = client.must(200, "PUT", "/consumers/a+b@c.example", {"tags": ["c++"]})
    assert made["username"] == "a+b@c.example"
    assert client.must(200, "GET", "/consumers/a%2Bb@c.example") == made
    assert client.must(200, "GET", "/tags/c++")["data"][0]["entity_id"] == made["id"]
    client.must(200, "POST", "/batch", [{"method": "DELETE", "path": "/consumers/a+b@c.example"}])
    assert client.ask("GET", "/consumers/a+b@c.example").status == 404


def test_many_tags(client: Client) -> None:
    """Each is a row of the store: a thousand entities with thousands of tags took half a minute."""
    client.must(200, "PUT", "/consumers/t", {"tags": [f"t{n}" for n in range(256)]})
    refused = client.must(400, "PUT", "/consumers/t", {"tags": [f"t{n}" for n in range(257)]})
    assert set(refused["fields"]) == {"tags"}


def test_pages_of_large_entities(client: Client) -> None:
    """They end early: a thousand of a megabyte would not fit into any worker."""
    names = [f"c{n}" for n in range(12)]
    for name in names:
        client.must(200, "PUT", f"/consumers/{name}", {"custom_id": name + "x" * (2**20 - 10)})
    found, target = [], "/consumers?size=1000"
    while target:
        page = client.must(200, "GET", target)
        assert len(page["data"]) <= 8
        found += [consumer["username"] for consumer in page["data"]]
        target = page["next"]
    assert found == names


HOLDING = {
    "lists": b"[" + b"[]," * (5 * 2**20) + b"[]]",
    "keys": b'{"a":{' + b",".join(b'"k%d":1' % n for n in range(2**20)) + b"}}",
    "numbers": b'{"services":[' + b"1," * (7 * 2**20) + b"1]}",
}


@pytest.mark.parametrize("name", list(HOLDING))
@pytest.mark.parametrize("path", ["/batch", "/config", "/apply", "/services"])
def test_a_large_body_holds_nobody_up(running: Gateway, path: str, name: str) -> None:
    """While 14 MB are read and refused, others are answered many times.

    A list of services is refused by its size, which may be before another is answered at all.
    """
    with Wire(running.admin_port) as sender, Wire(running.admin_port) as other:
        sender.send(request_bytes(path, "POST", JSON, HOLDING[name]))
        answered = 0
        # A connection is good for 1,000 requests.
        while not select.select([sender.sock], [], [], 0 if answered < 100 else 0.1)[0]:
            assert other.ask("/plugins/enabled").status == 200
            answered += 1
        assert sender.read_reply().status in (400, 413)
    assert path == "/services" or answered > 20


def test_a_key_that_looks_like_an_id(client: Client) -> None:
    """What a GET finds, a DELETE deletes: a key that was revoked may not go on."""
    client.must(200, "PUT", "/consumers/a", {})
    for path in (f"/key-auths/{uuid(1)}", f"/consumers/a/key-auth/{uuid(1)}"):
        made = client.must(201, "POST", "/consumers/a/key-auth", {"key": uuid(1)})
        assert client.must(200, "GET", path) == made
        assert client.must(200, "PATCH", path, {"tags": ["t"]})["id"] == made["id"]
        client.must(204, "DELETE", path)
        assert client.must(200, "GET", "/key-auths")["data"] == []
    named = client.must(201, "POST", "/consumers", {"username": uuid(2)})
    client.must(200, "PUT", f"/consumers/{uuid(2)}", {"username": "b"})
    client.must(204, "DELETE", f"/consumers/{uuid(2)}")
    assert client.ask("GET", "/consumers/b").status == 404
    assert client.must(200, "GET", f"/consumers/{uuid(2)}") == named


def test_ids_of_other_kinds(client: Client) -> None:
    """An id leads to an entity of its own kind and parent alone."""
    for n, kind, body in (
        (1, "services", {"host": "127.0.0.1"}),
        (2, "consumers", {"username": "a"}),
        (3, "upstreams", {"name": "u"}),
    ):
        client.must(200, "PUT", f"/{kind}/{uuid(n)}", body)
    client.must(200, "PUT", "/consumers/b", {})
    key = client.must(201, "POST", f"/consumers/{uuid(2)}/key-auth", {"key": "k"})
    for path in (
        f"/services/{uuid(2)}", f"/consumers/{uuid(1)}", f"/routes/{uuid(1)}",
        f"/services/{uuid(2)}/routes", f"/consumers/{uuid(1)}/key-auth",
        f"/upstreams/{uuid(1)}/targets", f"/consumers/b/key-auth/{key['id']}",
        "/consumers/b/key-auth/k", f"/upstreams/{uuid(3)}/targets/{key['id']}",
    ):  # fmt: skip
        assert client.ask("GET", path).status == 404, path
        assert client.ask("PATCH", path, {}).status in (404, 405), path
    for path in ("/consumers/b/key-auth/" + key["id"], "/consumers/b/key-auth/k"):
        client.must(404, "DELETE", path)
    assert client.must(200, "GET", "/key-auths")["data"] == [key]
    stolen = client.ask("PUT", f"/consumers/b/key-auth/{key['id']}", {"key": "other"})
    assert stolen.status in (200, 404, 409), stolen
    for body in (
        {"paths": ["/"], "service": {"id": uuid(2)}},
        {"paths": ["/"], "service": {"name": "a"}},
        {"paths": ["/"], "service": {"id": [uuid(1)]}},
        {"paths": ["/"], "service": [uuid(1)]},
        {"paths": ["/"], "service": {"name": {"id": uuid(1)}}},
        {"paths": ["/"], "service": {"name": 1}},
        {"paths": ["/"], "service": True},
        {"paths": ["/"], "service": {}},
    ):
        refused = client.ask("POST", "/routes", body)
        assert refused.status == 400, f"{body}: {refused}"
    for body in (
        {"name": "key-auth", "consumer": {"id": uuid(1)}},
        {"name": "key-auth", "service": {"id": uuid(3)}, "route": {"id": uuid(1)}},
    ):
        assert client.ask("POST", "/plugins", body).status == 400


def test_tags_that_mean_something(client: Client) -> None:
    for tag in ("a,b", "a/b", "", "a\nb", "x" * 5000):
        reply = client.ask("PUT", "/consumers/t", {"tags": [tag]})
        assert reply.status in (200, 400), (tag[:20], reply)
        if reply.status == 200:
            assert client.must(200, "GET", "/consumers/t")["tags"] == [tag]
    client.must(200, "PUT", "/consumers/t", {"tags": ["a%' OR 1=1 --", "\u00e9 b"]})
    for tags in ("a%25%27%20OR%201%3D1%20--", "%C3%A9%20b"):
        assert len(client.must(200, "GET", f"/consumers?tags={tags}")["data"]) == 1
    for tags in ("%25", "_", "a*", "%27"):
        assert client.ask("GET", f"/consumers?tags={tags}").json().get("data", []) == []


def test_no_secret_is_told(gateway: Start, tmp_path: Path) -> None:
    """In no error, log or audit line, whatever is wrong with what it stands in."""
    audit = tmp_path / "audit.log"
    running = gateway(None, admin_token="t" * 20, admin_read_token="r" * 20, audit_log=str(audit))
    client = Client(running)
    full, read = ({"Kong-Admin-Token": c * 20} | JSON for c in "tr")
    said = []

    def ask(method: str, path: str, value: object, headers: dict[str, str] = full) -> int:
        reply = client.ask(method, path, value, headers)
        said.append(str(reply.headers) + reply.text)
        return reply.status

    assert ask("PUT", "/consumers/a", {}) == 200
    credential = {"key": SECRET}
    assert client.ask("POST", "/consumers/a/key-auth", credential, full).status == 201
    for method, path, value in (
        ("POST", "/consumers/a/key-auth", credential),
        ("POST", "/key-auths", credential),
        ("POST", "/key-auths", credential | {"consumer": {"id": uuid(1)}}),
        ("POST", "/key-auths", {"key": [SECRET], "consumer": {"username": "a"}}),
        ("POST", "/key-auths", {"key": {SECRET: 1}, "consumer": {"username": "a"}}),
        ("POST", "/consumers/a/key-auth", {"key": SECRET + "\u0000"}),
        ("PUT", f"/consumers/b/key-auth/{SECRET}", {}),
        ("PUT", f"/consumers/a/key-auth/{SECRET}x", {"ttl": "x"}),
        ("PATCH", f"/key-auths/{SECRET}y", {}),
        ("DELETE", f"/key-auths/{SECRET}y", None),
        ("POST", "/certificates", {"cert": "x", "key": SECRET}),
        ("POST", "/batch", [{"method": "POST", "path": "/key-auths", "body": credential}]),
        ("POST", "/batch", [{"method": "DELETE", "path": f"/key-auths/{SECRET}y/a/b/c"}]),
    ):
        assert 200 <= ask(method, path, value) < 500, (method, path)
        assert ask(method, path, value, read) == 403
    for path in ("/key-auths", "/consumers/a/key-auth", f"/key-auths/{SECRET}", "/history"):
        reply = client.ask("GET", path, None, read)
        assert reply.status == 200
        assert SECRET not in reply.text
        assert client.ask("GET", path + "?reveal=1", None, read).status == 403
    logs = audit.read_text() + running.error_log() + running.access_log()
    assert "/consumers/a" in logs
    for text in (*said, logs, client.ask("GET", "/status", None, full).text):
        # A message may say which field is unknown; a value it may not.
        assert SECRET not in text or '"unknown field"' in text, text[:2000]
    assert "t" * 20 not in logs
    assert "r" * 20 not in logs


def test_a_thousand_that_refer_to_each_other(client: Client) -> None:
    """Services, their routes and plugins, and all of it taken away by another batch."""
    batch = []
    for n in range(250):
        batch += [
            {"method": "PUT", "path": f"/services/s{n}", "body": {"host": "127.0.0.1"}},
            {"method": "PUT", "path": f"/services/s{n}/routes/r{n}", "body": {"paths": [f"/{n}"]}},
            {"method": "POST", "path": f"/routes/r{n}/plugins", "body": {"name": "key-auth"}},
            {"method": "PATCH", "path": f"/routes/r{n}", "body": {"service": {"name": "s0"}}},
        ]
    results = client.must(200, "POST", "/batch", batch)
    assert [each["status"] for each in results] == [200, 200, 201, 200] * 250
    first = results[0]["body"]["id"]
    routes = client.must(200, "GET", "/routes?size=1000")["data"]
    assert {route["service"]["id"] for route in routes} == {first}
    assert len(client.must(200, "GET", "/services/s0/routes?size=1000")["data"]) == 250
    gone = [{"method": "DELETE", "path": f"/services/s{n}"} for n in range(250)]
    refused = client.must(400, "POST", "/batch", gone)
    assert (refused["code"], refused["operation"]) == (4, 0)
    client.must(200, "POST", "/batch", [
        *({"method": "DELETE", "path": f"/routes/r{n}"} for n in range(250)), *gone,
    ])  # fmt: skip
    assert client.must(200, "GET", "/plugins")["data"] == []


def test_writes_while_all_workers_are_replaced(gateway: Start) -> None:
    """None is lost, and none is refused for good."""
    running = gateway(None, workers=2)
    ends, answered, problems = threading.Event(), [], []

    def write() -> None:
        number = 0
        while not ends.is_set():
            number += 1
            try:
                reply = Client(running).ask("PUT", f"/consumers/c{number % 50}",
                                            {"custom_id": str(number)})  # fmt: skip
            except OSError as problem:
                problems.append(repr(problem))
                continue
            if reply.status == 200:
                answered.append(number)
            else:
                problems.append(str(reply))

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    for _ in range(2):
        running.reload()
    ends.set()
    writer.join()
    assert len(answered) > 10
    assert not problems, problems[:3]
    last = {number % 50: number for number in answered}
    client = Client(running)
    for name, number in last.items():
        assert client.must(200, "GET", f"/consumers/c{name}")["custom_id"] == str(number)


@pytest.mark.skipif(not AS_ROOT, reason="needs root to mount a small file system")
def test_a_full_disk(gateway: Start) -> None:
    """507, what is there stays, and writes work again when there is room."""
    folder = guard.folder("sluice-full-")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder], check=True)
    try:
        folder.chmod(0o755)
        fill(gateway, folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        guard.remove(folder)


def fill(gateway: Start, folder: Path) -> None:
    running = gateway(None, prefix=folder / "run")
    running.expect_log("No space left|disk is full|full", range(1000))
    client = Client(running)
    client.must(200, "PUT", "/consumers/stays", {})
    others = folder / "others"
    with open(others, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    refused = None
    for number in range(2000):
        reply = client.ask("PUT", f"/consumers/c{number}", {"tags": ["x" * 100] * 50})
        if reply.status != 200:
            refused = (number, reply)
            break
    assert refused, "never full"
    number, reply = refused
    assert (reply.status, reply.json()["name"]) == (507, "full"), reply
    names = {each["username"] for each in client.must(200, "GET", "/consumers?size=1000")["data"]}
    assert names == {"stays"} | {f"c{n}" for n in range(number)}
    others.unlink()
    client.must(200, "PUT", "/consumers/after", {})
    running.stop()
