"""The gateway's own answers: their words, by Accept, and that each still has its headers."""

import json
import re
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Reply, Wire

NO_ROUTE = "no Route matched with those values"


def message_of(reply: Reply) -> tuple[str, str | None]:
    """The message and the request id in an error body, read in its own format."""
    kind = (reply.headers.get("content-type") or "").split(";")[0]
    if kind == "application/json":
        return reply.json()["message"], reply.json()["request_id"]
    if kind == "application/xml":
        root = ElementTree.fromstring(reply.body)
        return root.findtext("message") or "", root.findtext("requestid")
    if kind == "text/html":
        found = re.search(r"<p>(.*?)</p>", reply.text, re.S)
        assert found, reply.text
        body_id = re.search(r"[0-9a-f]{32}", reply.text)
        return found[1].strip().rstrip("."), body_id and body_id[0]
    assert kind == "text/plain", reply.headers
    first, _, rest = reply.text.partition("\n")
    found = re.search(r"[0-9a-f]{32}", rest)
    return first, found and found[0]


ACCEPTS = [
    (None, "text/plain"),
    ("application/json", "application/json"),
    ("application/json; charset=utf-8", "application/json"),
    ("application/xml", "application/xml"),
    ("text/html", "text/html"),
    ("text/plain", "text/plain"),
    ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
    ("application/xml;q=0.1, application/json;q=0.9", "application/json"),
    ("application/json;q=0.1, text/html", "text/html"),
    ("application/*", "application/json"),
    ("text/*", "text/plain"),
    ("*/*", "application/json"),
    ("image/png", "application/json"),
    ("nonsense", "application/json"),
]


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    """A gateway without routes."""
    with Gateway({}) as gateway:
        yield gateway


@pytest.mark.parametrize(("accept", "kind"), ACCEPTS)
def test_format_follows_accept(running: Gateway, accept: str | None, kind: str) -> None:
    with running.wire() as wire:
        reply = wire.ask("/", headers={"Accept": accept} if accept else None)
        assert reply.status == 404
        assert (reply.headers.get("content-type") or "").split(";")[0] == kind
        message, request_id = message_of(reply)
        assert message == NO_ROUTE
        assert request_id == reply.headers.get("x-kong-request-id")
        assert wire.ask("/").status == 404, "the connection goes on"


def test_error_default_type(gateway: Start) -> None:
    reply = gateway({}, error_default_type="application/json").ask("/")
    assert message_of(reply)[0] == NO_ROUTE
    assert (reply.headers.get("content-type") or "").startswith("application/json")


def test_content_type_of_the_request_decides_without_accept(running: Gateway) -> None:
    headers = {"Content-Type": "application/json"}
    reply = running.ask("/", "POST", headers=headers, body=b"{}")
    assert message_of(reply)[0] == NO_ROUTE
    assert (reply.headers.get("content-type") or "").startswith("application/json")


def test_head_of_an_error_has_no_body(running: Gateway) -> None:
    with running.wire() as wire:
        assert wire.ask("/", "HEAD").status == 404
        assert wire.ask("/", "HEAD", headers={"Accept": "application/json"}).status == 404


def test_headers_of_an_own_answer(running: Gateway) -> None:
    reply = running.ask("/")
    assert "sluice" in (reply.headers.get("server") or "").lower()
    assert re.fullmatch(r"[0-9a-f]{32}", reply.headers.get("x-kong-request-id") or "")
    assert (reply.headers.get("x-kong-response-latency") or "").isdigit()
    assert "x-kong-upstream-latency" not in reply.headers


def test_own_headers_can_be_switched_off(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream, paths=["/x"]), headers="off", headers_upstream="off")
    for target in ("/", "/x"):
        reply = running.ask(target)
        assert not [name for name in reply.headers.names() if name.startswith("x-kong")]
        assert "via" not in reply.headers
        assert "sluice" not in (reply.headers.get("server") or "").lower()
    assert "x-kong-request-id" not in upstream.last.headers


def test_text_from_the_client_does_not_reach_the_body(running: Gateway) -> None:
    for accept in ("text/html", "application/xml", "application/json"):
        reply = running.ask("/<script>alert(1)</script>", headers={"Accept": accept})
        assert reply.status in (400, 404)
        assert b"script" not in reply.body


# nginx's own errors


@pytest.mark.parametrize("accept", ["application/json", "application/xml", "text/html"])
def test_body_too_large(gateway: Start, upstream: Upstream, accept: str) -> None:
    running = gateway(proxying(upstream), client_max_body_size="1k")
    running.expect_log("client intended to send too large body", 1)
    reply = running.ask("/", "POST", headers={"Accept": accept}, body=b"x" * 2000)
    assert reply.status == 413
    assert message_of(reply)[0] == "Payload too large"
    assert upstream.requests == []
    assert running.ask("/", "POST", body=b"x" * 1000).status == 200


def test_chunked_body_too_large(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream), client_max_body_size="1k")
    running.expect_log("client intended to send too large", 1)
    body = b"7d0\r\n" + b"x" * 2000 + b"\r\n0\r\n\r\n"
    headers = {"Accept": "application/json", "Transfer-Encoding": "chunked"}
    reply = running.ask("/", "POST", headers=headers, body=body)
    assert (reply.status, message_of(reply)[0]) == (413, "Payload too large")
    assert upstream.requests == []


def test_uri_too_long(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream), large_client_header_buffers="4 8k")
    reply = running.ask("/" + "a" * 9000, headers={"Accept": "application/json"})
    assert (reply.status, message_of(reply)[0]) == (414, "URI too long")
    assert running.ask("/" + "a" * 8000).status == 200


@pytest.mark.parametrize("lines", [[("X-Big", "b" * 9000)], [("X-Big", "b" * 900)] * 40])
@pytest.mark.parametrize("accept", ["application/json", "application/xml", "text/html"])
def test_header_too_large(
    gateway: Start, upstream: Upstream, accept: str, lines: list[tuple[str, str]]
) -> None:
    """nginx's own status, 494, is for the logs."""
    running = gateway(proxying(upstream), access_log_format="$status")
    reply = running.ask("/", headers=[("Accept", accept), *lines])
    assert (reply.status, reply.reason) == (400, "Bad Request")
    assert message_of(reply)[0] == "Request header or cookie too large"
    assert reply.headers.get("connection") == "close"
    assert upstream.requests == []
    assert running.ask("/").status == 200
    running.stop("quit")
    assert running.access_log().splitlines()[-2:] == ["494", "200"]


@pytest.mark.parametrize("accept", ["application/json", "application/xml", "text/html"])
def test_plain_http_where_tls_is_spoken(gateway: Start, upstream: Upstream, accept: str) -> None:
    """nginx's own status, 497, is for the logs. The connection ends."""
    running = gateway(proxying(upstream), tls="ssl http2", access_log_format="$status")
    with Wire(running.tls_port) as wire:
        reply = wire.ask("/", headers={"Accept": accept})
        assert wire.ended()
    assert (reply.status, reply.reason) == (400, "Bad Request")
    assert message_of(reply) == (
        "The plain HTTP request was sent to HTTPS port",
        reply.headers.get("x-kong-request-id"),
    )
    assert reply.headers.get("connection") == "close"
    assert upstream.requests == []
    assert running.ask("/").status == 200
    running.stop("quit")
    assert running.access_log().splitlines()[-2:] == ["497", "200"]


def test_header_too_large_for_a_logger(gateway: Start, upstream: Upstream) -> None:
    """Plugins see the status that the access log has."""
    plugin = """
        return { VERSION = "1", PRIORITY = 1, schema = { name = "logs", fields = {
            { config = { type = "record", fields = {} } } } },
            log = function() ngx.log(ngx.ERR, "logged with ", ngx.status) end }
    """
    running = gateway(
        proxying(upstream) | {"plugins": [{"name": "logs"}]}, plugins={"logs": plugin}
    )
    running.expect_log("logged with 494", 1)
    assert running.ask("/", headers={"X-Big": "b" * 9000}).status == 400


def test_error_status_in_the_access_log(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream, paths=["/x"]), access_log_format="$status $request_uri")
    for target in ("/", "/x", "/" + "a" * 9000):
        running.ask(target)
    running.stop("quit")
    assert [line[:5] for line in running.access_log().splitlines()][-3:-1] == ["404 /", "200 /"]
    assert running.access_log().splitlines()[-1].startswith("414 ")


def test_json_bodies_are_valid_json(running: Gateway) -> None:
    reply = running.ask("/", headers={"Accept": "application/json"})
    assert set(json.loads(reply.body)) == {"message", "request_id"}
