"""The request-termination plugin: what it answers to whom, what an echo tells, clients who send
on."""

import socket
from typing import Any

import pytest
from admin_client import Client
from http2 import speaking
from plugin_pages import example

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Reply, chunk, request_bytes

JSON = "application/json; charset=utf-8"
PAGE = "<html><body><h1>Closed</h1></body></html>"


OTHER = """
return {
    VERSION = "1", PRIORITY = 5,
    schema = { name = "other", fields = { { config = { type = "record", fields = {} } } } },
    access = function() ngx.header["X-Lua"] = "1" end,
}
"""


def closed(upstream: Upstream, **config: Any) -> dict[str, Any]:
    """One route that is answered."""
    plugin = {"name": "request-termination", "config": config}
    return proxying(upstream) | {"plugins": [plugin]}


def test_the_example_of_the_page(serving: Start, upstream: Upstream) -> None:
    running = serving(example("request-termination", upstream.url))
    reply = running.ask("/orders")
    assert (reply.status, reply.text) == (503, '{"message":"Back at noon"}')
    assert upstream.requests == []


ANSWERS = [
    ({}, 503, JSON, '{"message":"Service unavailable"}'),
    ({"status_code": 401}, 401, JSON, '{"message":"Unauthorized"}'),
    ({"status_code": 404}, 404, JSON, '{"message":"Not found"}'),
    ({"status_code": 405}, 405, JSON, '{"message":"Method not allowed"}'),
    ({"status_code": 500}, 500, JSON, '{"message":"An unexpected error occurred"}'),
    ({"status_code": 502}, 502, JSON, '{"message":"Bad Gateway"}'),
    ({"status_code": 599}, 599, None, ""),
    ({"status_code": 200}, 200, None, ""),
    ({"status_code": 204}, 204, None, ""),
    ({"status_code": 406, "message": "Inv\u00e4lid\n"}, 406, JSON, '{"message":"Inv\u00e4lid\\n"}'),
    ({"body": PAGE}, 503, None, PAGE),
    (
        {"status_code": 451, "content_type": "text/html", "body": PAGE},
        451,
        "text/html",
        PAGE,
    ),
    ({"content_type": "text/x; a=b", "body": "x" * 100000}, 503, "text/x; a=b", "x" * 100000),
]


@pytest.mark.parametrize(("config", "status", "kind", "body"), ANSWERS)
def test_answers(
    serving: Start,
    upstream: Upstream,
    config: dict[str, Any],
    status: int,
    kind: str | None,
    body: str,
) -> None:
    """Whatever the client accepts."""
    running = serving(closed(upstream, **config))
    for accept in ("*/*", "text/html"):
        reply = running.ask("/", headers={"Accept": accept})
        assert (reply.status, reply.headers.get("Content-Type")) == (status, kind)
        assert reply.text == body
        assert reply.headers.get("Content-Length") == (
            None if status == 204 else str(len(reply.body))
        )
        assert "X-Kong-Response-Latency" in reply.headers
        assert "X-Kong-Upstream-Latency" not in reply.headers
    with running.wire() as wire:
        assert wire.ask("/", "HEAD").status == status
        assert wire.ask("/").status == status
    assert upstream.requests == []


@pytest.mark.parametrize("with_lua", [False, True])
def test_without_a_service_and_beside_lua(serving: Start, with_lua: bool) -> None:
    plugins = [{"name": "request-termination", "config": {"body": "bye", "status_code": 410}}]
    if with_lua:
        plugins.append({"name": "other"})
    config = {"routes": [{"name": "r", "paths": ["/"]}], "plugins": plugins}
    running = serving(config, plugins={"other": OTHER} if with_lua else None)
    reply = running.ask("/")
    assert (reply.status, reply.text, reply.headers.get("Content-Type")) == (410, "bye", None)
    assert ("X-Lua" in reply.headers) == with_lua


def is_closed(reply: Reply) -> bool:
    """Whether it was answered here."""
    assert reply.status in (200, 503)
    return reply.status == 503


TRIGGERS = [
    ("/", {}, False),
    ("/", {"X-Close": "1"}, True),
    ("/", {"x-close": ""}, True),
    ("/", {"X-Closed": "1"}, False),
    ("/?X-Close", {}, True),
    ("/?X-Close=", {}, True),
    ("/?a=b&X-Close=1&c", {}, True),
    ("/?%58-Close=1", {}, True),
    ("/?x-close=1", {}, False),
    ("/?X-Close1=1", {}, False),
    ("/?a=X-Close", {}, False),
    ("/X-Close", {}, False),
    ("/?" + "a=1&" * 1000 + "X-Close", {}, True),
]


@pytest.mark.parametrize("trigger", ["X-Close", "X_Close"])
def test_triggers(serving: Start, upstream: Upstream, trigger: str) -> None:
    running = serving(closed(upstream, trigger=trigger))
    for target, headers, expected in TRIGGERS:
        asked = target.replace("-Close", trigger[1:])
        assert is_closed(running.ask(asked, headers=headers)) == expected, asked


def test_an_echo(client: Client, upstream: Upstream) -> None:
    client.must(201, "POST", "/services", {"name": "s", "url": upstream.url})
    client.must(201, "POST", "/services/s/routes", {"name": "r", "paths": ["/a"]})
    config = {"echo": True, "trigger": "echo-please", "status_code": 404}
    client.must(201, "POST", "/plugins", {"name": "request-termination", "config": config})
    running = client.running
    assert running.ask("/a").status == 200
    target = "/a//b%7e/../c?x=1&y&x=%32+3&=z&echo-please"
    headers = [("Host", "H.example:1"), ("X-A", "1"), ("x-a", '"\\'), ("X-Empty", "")]
    reply = running.ask(target, "PUT", headers, b"cool\xffbody\x00")
    assert (reply.status, reply.headers.get("Content-Type")) == (404, JSON)
    told = reply.body.decode("latin-1")
    assert '"raw_body":"cool\xffbody\\u0000"' in told
    reply.body = told.encode()
    echo = reply.json()
    assert echo["message"] == "Not found"
    about = client.must(200, "GET", "/")
    assert echo["kong"]["node_id"] == about["node_id"]
    assert echo["kong"]["hostname"] == about["hostname"]
    assert echo["kong"]["worker_pid"] in running.workers()
    assert echo["matched_route"]["name"] == "r"
    assert echo["matched_service"]["name"] == "s"
    request = echo["request"]
    assert request["headers"] == {
        "host": "h.example:1",
        "x-a": ["1", '"\\'],
        "x-empty": "",
        "content-length": "10",
    }
    assert request["query"] == {"x": ["1", "2 3"], "y": True, "echo-please": True}
    assert "body" not in request
    for name, value in {
        "scheme": "http",
        "host": "h.example",
        "port": running.proxy_port,
        "method": "PUT",
        "path": "/a/c",
    }.items():
        assert request[name] == value
    assert len(upstream.requests) == 1


def test_bodies_of_an_echo(serving: Start, upstream: Upstream) -> None:
    running = serving(closed(upstream, echo=True, status_code=200), client_body_buffer_size="8k")
    reply = running.ask("/").json()
    assert (reply.get("message"), reply["request"]["raw_body"]) == (None, "")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    request = running.ask("/", "POST", form, b"a=%41&b=1&b=2&c").json()["request"]
    assert request["body"] == {"a": "A", "b": ["1", "2"], "c": True}
    assert request["raw_body"] == "a=%41&b=1&b=2&c"
    with running.wire() as wire:
        chunked = {"Transfer-Encoding": "chunked"}
        sent = request_bytes("/", "POST", chunked) + chunk(b"ab") + chunk(b"c") + chunk(b"")
        wire.send(sent + request_bytes("/next"))
        assert wire.read_reply().json()["request"]["raw_body"] == "abc"
        assert wire.read_reply().json()["request"]["path"] == "/next"
        assert "raw_body" not in wire.ask("/", "POST", None, b"x" * 100000).json()["request"]


def test_an_echo_has_a_bound(serving: Start, upstream: Upstream) -> None:
    """As many headers and parameters as Kong reads."""
    running = serving(closed(upstream, echo=True))
    headers = [("Host", "h"), *((f"X-{number}", "1") for number in range(500))]
    arguments = "&".join(f"a{number}" for number in range(500))
    request = running.ask("/?" + arguments, headers=headers).json()["request"]
    assert (len(request["headers"]), len(request["query"])) == (100, 100)


def test_a_client_who_sends_on(serving: Start, upstream: Upstream) -> None:
    """A body whose end does not come holds up no answer, and is no second request."""
    running = serving(closed(upstream))
    with running.wire() as wire:
        wire.send(
            request_bytes("/", "POST", {"Content-Length": "1000"}, b"GET /x HTTP/1.1\r\n\r\n")
        )
        assert is_closed(wire.read_reply())
        wire.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            wire.fill()
    with running.wire() as wire:
        wire.send(request_bytes("/", "POST", {"Transfer-Encoding": "chunked"}) + chunk(b"a"))
        assert is_closed(wire.read_reply())
    with running.wire() as wire:
        wire.send(request_bytes("/", "POST", {"Expect": "100-continue", "Content-Length": "9"}))
        reply = wire.read_reply()
        assert (is_closed(reply), reply.interim) == (True, [])
    assert upstream.requests == []


@pytest.mark.parametrize("echo", [False, True])
@pytest.mark.parametrize("line", [b"GET /\r\n", b"GET / HTTP/1.0\r\n\r\n"])
def test_old_requests(serving: Start, upstream: Upstream, line: bytes, echo: bool) -> None:
    running = serving(closed(upstream, echo=echo))
    with running.wire() as wire:
        wire.send(line)
        wire.sock.shutdown(socket.SHUT_WR)
        assert b"Service unavailable" in wire.read_to_end()


def test_an_upgrade_is_answered(serving: Start, upstream: Upstream) -> None:
    running = serving(closed(upstream))
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "MDEyMzQ1Njc4OTAxMjM0NQ==",
    }
    assert is_closed(running.ask("/", headers=headers))


def test_http2(upstream: Upstream) -> None:
    config = closed(upstream, body="bye", status_code=410)
    with Gateway(config, tls="ssl http2") as running, speaking(running) as client:
        stream = client.ask("/")
        assert client.answers([stream])[stream] == (410, b"bye")


REFUSED = [
    ({"status_code": 99}, "value should be between 100 and 599"),
    ({"status_code": 600}, "value should be between 100 and 599"),
    ({"status_code": 101}, "status_code must be at least 200"),
    ({"message": "m", "body": "b"}, "message cannot be used with content_type or body"),
    ({"message": "m", "content_type": "a/b"}, "message cannot be used with content_type or body"),
    ({"content_type": "a/b"}, "content_type requires a body"),
    ({"echo": True, "body": "b"}, "echo cannot be used with content_type and body"),
    ({"content_type": "a/b\r\nX: 1", "body": "b"}, "content_type must not have control characters"),
    ({"trigger": "a b"}, "trigger"),
]


@pytest.mark.parametrize(("config", "words"), REFUSED)
def test_what_is_refused(client: Client, config: dict[str, Any], words: str) -> None:
    reply = client.ask("POST", "/plugins", {"name": "request-termination", "config": config})
    assert reply.status == 400
    assert words in reply.json()["message"]


def test_its_schema(client: Client) -> None:
    fields = client.must(200, "GET", "/schemas/plugins/request-termination")["fields"]
    (config,) = [field["config"]["fields"] for field in fields if "config" in field]
    found = {name: field for entry in config for name, field in entry.items()}
    assert found["status_code"]["default"] == 503
    assert found["status_code"]["between"] == [100, 599]
    assert found["echo"]["required"] is True
    names = ["status_code", "message", "content_type", "body", "echo", "trigger"]
    assert list(found) == names
