"""Bodies that are wrong, and what is said about them."""

import json
import os
import random
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from admin_client import FORM, JSON, Client, uuid
from seeds import seed_of

from sluice import Gateway, Start
from wire import Reply, wait_until

SEED = seed_of("admin_errors")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A client of a gateway that has a service, an upstream and a consumer."""
    with Gateway(None, workers=1) as running:
        client = Client(running)
        client.must(200, "PUT", f"/services/{uuid(1)}", {"name": "s", "host": "127.0.0.1"})
        client.must(200, "PUT", "/upstreams/u", {})
        client.must(200, "PUT", "/consumers/alice", {})
        yield client


def nested(depth: int, inner: bytes = b"1") -> bytes:
    """JSON that is so deep."""
    return b'{"a":' * (depth - 1) + b'{"a":' + inner + b"}" * depth


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", None),
        (b"{}}", None),
        (b"1", "expected an object"),
        (b'"x"', "expected an object"),
        (b"null", "expected an object"),
        (b"[1]", "expected an object"),
        (b'[{"host":"a"}]', "expected an object"),
        (b'{"host":"a","host":"b"}', "duplicate key 'host'"),
        (b'{"host":"a","h\\u006fst":"b"}', "duplicate key 'host'"),
        (b'{"tags":[{"a":1,"a":2}]}', "duplicate key 'a'"),
        (b'{"host":"a\0"}', "a NUL byte"),
        (b'{"host":"a\\u0000"}', "a NUL byte"),
        (b'{"a\\u0000":1}', "a NUL byte"),
        (b'{"host":"\xff"}', "invalid utf-8 character sequence detected at position 10"),
        (b'{"host":"\xed\xa0\x80"}', "invalid utf-8 character sequence detected at position 10"),
        (b"\xef\xbb\xbf{}", None),
        (b'{"host":"\\ud800"}', None),
        (b'{"retries":NaN}', None),
        (nested(101), None),
        (b"[" * 100000, None),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_json_that_is_wrong(client: Client, method: str, body: bytes, reason: str | None) -> None:
    target = "/services" if method == "POST" else "/services/s"
    reply = client.ask(method, target, body)
    assert reply.status == 400, str(reply)
    message = reply.json()["message"]
    assert message.startswith("Cannot parse JSON body (")
    assert reason is None or message == f"Cannot parse JSON body ({reason})"
    assert client.must(200, "GET", "/services/s")["host"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b'{"host":1}', {"host": "expected a string"}),
        (b'{"retries":1e400}', {"retries": "expected an integer"}),
        (b'{"retries":1.5}', {"retries": "expected an integer"}),
        (b'{"retries":"3"}', {"retries": "expected an integer"}),
        (b'{"tags":"a"}', {"tags": "expected a set"}),
        (b'{"tags":["a",null,1]}', {"tags": [None, "required field missing", "expected a string"]}),
        (b'{"x":1,"":2}', {"": "unknown field", "x": "unknown field"}),
        (b'{"__undated":{},"__references":1}', None),
        (b'{"client_certificate":{"id":"x"}}', None),
        (b'{"id":"x"}', {"id": "expected a valid UUID"}),
        (b'{"created_at":-1}', {"created_at": "expected a valid timestamp"}),
        (b'{"created_at":"now"}', {"created_at": "expected an integer"}),
        (b'{"path":"a"}', {"path": "should start with: /"}),
        (nested(99), {"a": "unknown field"}),
    ],
)
def test_values_that_are_wrong(client: Client, body: bytes, fields: dict[str, Any] | None) -> None:
    whole = body if b'"host"' in body else b'{"host":"127.0.0.1",' + body[1:]
    refused = client.ask("POST", "/services", whole)
    assert (refused.status, refused.json()["code"]) == (400, 2), str(refused)
    assert refused.json()["name"] == "schema violation"
    assert fields is None or refused.json()["fields"] == fields


def test_a_field_that_is_named_like_the_entity(client: Client) -> None:
    """It does not hide what is wrong with several fields."""
    for send in (
        lambda: client.ask("POST", "/routes", {"@entity": "a", "service": {"name": "s"}}),
        lambda: client.form("POST", "/routes", "@entity=a&service.name=s"),
    ):
        reply = send()
        assert reply.status == 400, str(reply)
        first, *others = reply.json()["fields"]["@entity"]
        assert first == "unknown field"
        assert others


def test_several_are_named(client: Client) -> None:
    config = {"minute": "x", "hour": 0, "y": 1}
    refused = client.must(400, "POST", "/plugins", {"name": "rate-limiting", "config": config})
    fields = refused["fields"]["config"]
    assert fields["minute"] == "expected a number"
    assert fields["y"] == "unknown field"
    assert refused["message"].startswith("3 schema violations (config.")
    assert "config.minute: expected a number; " in refused["message"]


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "x", None])
@pytest.mark.parametrize("body", [b'{"host":"a"}', b' \n[{"host":"a"}]', b"{"])
def test_json_that_is_called_something_else(client: Client, kind: str | None, body: bytes) -> None:
    """As `curl -d` sends it, which calls it a form."""
    for method, target in (("POST", "/services"), ("PATCH", "/services/s"), ("POST", "/batch")):
        reply = client.ask(method, target, body, {"Content-Type": kind} if kind else {"X": "y"})
        assert reply.status == 415, str(reply)
        assert reply.json() == {"message": "send Content-Type: application/json"}


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "x", "", "application/yaml"])
def test_media_types(client: Client, kind: str) -> None:
    reply = client.ask("POST", "/services", b"host=a", {"Content-Type": kind})
    assert reply.status == 415
    assert reply.json()["message"].startswith("send Content-Type: application/json, ")
    assert client.ask("POST", "/services", None, {"Content-Type": kind}).status == 400
    assert [service["name"] for service in client.must(200, "GET", "/services")["data"]] == ["s"]


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"]
)
def test_media_types_of_json(client: Client, kind: str) -> None:
    reply = client.ask("PATCH", "/services/s", b'{"retries":4}', {"Content-Type": kind})
    assert (reply.status, reply.json()["retries"]) == (200, 4)
    assert client.must(200, "GET", "/services/s")["retries"] == 4


def test_large_values(client: Client) -> None:
    """A text of 1 MiB is the longest that an image holds; a body may have 2 MiB."""
    for size, status in ((2**20, 200), (2**20 + 1, 400)):
        reply = client.ask("PUT", "/consumers/large", {"custom_id": "x" * size})
        assert reply.status == status, f"{size}: {reply.body[:300]!r}"
    assert set(reply.json()["fields"]) == {"custom_id"}
    assert len(reply.body) < 1000
    assert client.ask("POST", "/services", b" " * (2 * 2**20)).status == 400
    reply = client.ask("POST", "/services", b" " * (2 * 2**20 + 1))
    assert (reply.status, reply.json()["message"]) == (413, "the body is larger than 2097152 bytes")
    routes = {"hosts": [f"h{n}.test" for n in range(200)], "paths": [f"/{n}" for n in range(51)]}
    refused = client.must(400, "POST", "/routes", routes)
    assert "too many combinations of hosts and paths: 10200" in refused["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("a[=1", "'a[' is not the name of a field"),
        ("=1", "schema violation (host: required field missing)"),
        ("[]=1", "'[]' is not the name of a field"),
        ("tags[1001]=a", "'tags[1001]' is not the name of a field"),
        (".".join("a" * 21) + "=1", None),
        ("host=a&host.b=1", "field 'host.b' conflicts with another field"),
        ("tags[]=a&tags=b", None),
        ("host=%00", "field 'host': a NUL byte"),
        ("host=%ff", "field 'host': invalid utf-8 character sequence detected at position 1"),
        ("&".join(f"a{n}=1" for n in range(1001)), "a form has at most 1000 fields"),
        ("host=a&host=b", "schema violation (host: expected a string)"),
        ("host=a&retries=x", "schema violation (retries: expected an integer)"),
        ("host=a&retries=0x10", "schema violation (retries: expected an integer)"),
        ("host=a&tags[2]=x", "schema violation (tags: expected a set)"),
        ("host=a&tags.x=x", "schema violation (tags: expected a set)"),
        ("host=a&enabled=yes", "schema violation (enabled: expected a boolean)"),
        ("host=a&nothing=1", "schema violation (nothing: unknown field)"),
        ("host", "schema violation (host: required field missing)"),
    ],
)
def test_forms_that_are_wrong(client: Client, body: str, message: str | None) -> None:
    reply = client.form("POST", "/services", body)
    assert reply.status == 400
    assert message is None or reply.json()["message"] == message


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("multipart/form-data", b"x", 400),
        ("multipart/form-data; boundary=" + "x" * 71, b"x", 400),
        ("multipart/form-data; boundary=x", b"--x", 400),
        ("multipart/form-data; boundary=x", b"", 400),
        ("multipart/form-data; boundary=x", b'--x\r\nX: form-data; name="host"\r\n\r\na', 400),
    ],
)
def test_multipart_that_is_wrong(client: Client, kind: str, body: bytes, status: int) -> None:
    assert client.ask("POST", "/services", body, {"Content-Type": kind}).status == status


PIECES = [
    "{", "}", "[", "]", ":", ",", '"', '"host":', '"127.0.0.1"', '"name":"x"', '"tags":["a"]',
    "null", "true", "1", "-0", "1e9", '{"host":"127.0.0.1"}', '"service":{"id":"x"}', '"config":{',
    "\\u0000", "\\", "\0", "\xff", "\xc3\xa9", "host=127.0.0.1", "&", "=", "tags[]", "[1]", ".",
    "%41", "%", "--x\r\n", 'Content-Disposition: form-data; name="host"\r\n\r\n', "\r\n--x--\r\n",
    " ", "\n",
]  # fmt: skip

TARGETS = [
    ("POST", "/services"), ("PUT", "/services/s"), ("PATCH", "/services/s"), ("POST", "/plugins"),
    ("PUT", "/routes/r"), ("POST", "/services/s/routes"), ("PUT", "/upstreams/u/targets/x"),
    ("POST", "/consumers/alice/key-auth"), ("POST", "/batch"), ("PATCH", "/upstreams/u"),
]  # fmt: skip


def test_random_bodies(client: Client) -> None:
    print(f"SEED={SEED}")
    source = random.Random(SEED)
    kinds = [JSON, JSON, FORM, {"Content-Type": "multipart/form-data; boundary=x"}]
    for _ in range(1500):
        method, target = source.choice(TARGETS)
        body = "".join(source.choices(PIECES, k=source.randrange(1, 12))).encode("latin-1")
        reply = client.ask(method, target, body, source.choice(kinds))
        assert reply.status in (200, 201, 400, 404, 409, 415), f"{body!r}: {reply}"
        assert reply.status < 300 or isinstance(reply.json()["message"], str)


def test_when_nothing_can_be_changed(gateway: Start) -> None:
    """Three deaths within a minute: the next control worker changes nothing, and says so."""
    running = gateway(None)
    running.expect_log("exited on signal 9", 3)
    running.expect_log("3 control workers died within a minute")
    client = Client(running)
    client.must(200, "PUT", "/services/s", {"host": "127.0.0.1"})
    for _ in range(3):
        pid = running.control()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: running.control() != pid, "another control worker")
        wait_until(lambda: state(client) in ("live", "stopped"), "it to have begun")
    for method, target in (("PUT", f"/services/{uuid(1)}"), ("POST", "/services")):
        reply = client.ask(method, target, {"host": "127.0.0.1"})
        assert (reply.status, reply.json()["name"]) == (503, "not ready")
        assert reply.json()["state"] == "stopped"
        assert "control workers died" in reply.json()["message"]


def state(client: Client) -> str:
    """Of the control worker."""
    return json.loads(client.ask("GET", "/status").body)["control"]["state"]


def test_no_key_is_told(client: Client) -> None:
    """Neither in an answer that refuses it, nor in a log."""
    client.must(201, "POST", "/consumers/alice/key-auth", {"key": "sesame-opens"})
    replies: list[Reply] = [
        client.ask("POST", "/consumers/alice/key-auth", {"key": "sesame-opens"}),
        client.ask("POST", "/consumers/alice/key-auth", {"key": "sesame-opens", "x": 1}),
        client.ask("POST", "/key-auths", {"key": "sesame-opens", "consumer": "none"}),
    ]
    for reply in replies:
        assert reply.status in (400, 409)
        assert b"sesame" not in reply.body
    assert "sesame" not in client.running.error_log() + client.running.access_log()
