"""The redirect plugin: where clients are sent, whatever they ask for; no path leads elsewhere."""

import socket
from typing import Any

import pytest
from admin_client import Client
from http2 import speaking
from plugin_pages import example

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Reply, request_bytes

PLACE = "https://example.com"


def redirected(upstream: Upstream, **config: Any) -> dict[str, Any]:
    """One route that leads elsewhere."""
    return proxying(upstream) | {"plugins": [{"name": "redirect", "config": config}]}


def place(reply: Reply, status: int = 301) -> str:
    """Where an answer leads."""
    assert (reply.status, reply.text) == (status, "redirecting")
    assert "Content-Type" not in reply.headers
    (location,) = reply.headers.all("Location")
    return location


def test_the_example_of_the_page(serving: Start, upstream: Upstream) -> None:
    running = serving(example("redirect", upstream.url))
    reply = running.ask("/orders/1?full=1")
    assert place(reply, 308) == "https://shop.example.com/orders/1?full=1"
    assert upstream.requests == []


PLACES = [
    "https://example.com",
    "https://example.com/path?foo=bar#there",
    "HTTP://User:pw@Example.COM:80/%7e/../a?'\"<>",
    "http://[::1]:8000",
    "app://host",
    "http://b\u00fccher.example/\u00e4",
]


@pytest.mark.parametrize("location", PLACES)
def test_a_place_as_it_is(serving: Start, upstream: Upstream, location: str) -> None:
    running = serving(redirected(upstream, location=location, status_code=302))
    for target in ("/", "/a?b#c", "//evil.example/"):
        found = place(running.ask(target), 302)
        assert found.encode("latin-1").decode() == location
    with running.wire() as wire:
        assert wire.ask("/", "HEAD").headers.get("Location") is not None
        assert wire.ask("/", "POST", None, b"x" * 100000).status == 302
        assert wire.ask("/").status == 302


KEPT = [
    ("https://example.com", "/a/b?c=d", "https://example.com/a/b?c=d"),
    ("https://example.com/path?foo=bar", "/", "https://example.com/"),
    ("https://example.com/path?foo=bar", "/other", "https://example.com/other"),
    ("https://example.com#there", "/a?b", "https://example.com/a?b#there"),
    ("https://example.com/x#a b".replace(" ", "%20"), "/a", "https://example.com/a#a%20b"),
    ('http://example.com#"<>`', "/", "http://example.com/#%22%3C%3E%60"),
    ("HTTPS://User:Pw@EXAMPLE.com:443", "/a", "https://User:Pw@example.com/a"),
    ("http://example.com:443", "/a", "http://example.com:443/a"),
    ("http://[2001:DB8::1]:8080", "/a", "http://[2001:db8::1]:8080/a"),
    ("app://Host:80", "/a", "app://Host:80/a"),
]


@pytest.mark.parametrize(("location", "target", "expected"), KEPT)
def test_the_path_is_kept(
    serving: Start, upstream: Upstream, location: str, target: str, expected: str
) -> None:
    running = serving(redirected(upstream, location=location, keep_incoming_path=True))
    assert place(running.ask(target)) == expected


TARGETS = [
    ("//evil.example/a", "/evil.example/a"),
    ("///evil.example", "/evil.example"),
    ("/\\evil.example", "/%5Cevil.example"),
    ("/%5cevil.example", "/%5Cevil.example"),
    ("/a/.//..//evil.example", "/evil.example"),
    ("/@evil.example", "/@evil.example"),
    ("/a/../c/..//b", "/b"),
    ("/%0d%0aX-Evil:%201", "/%0D%0AX-Evil:%201"),
    ("/%01%7f%ff", "/%01%7F%FF"),
    ("/%e2%82%ac", "/%E2%82%AC"),
    ("/%2F%3f%23?%2f", "/%2F%3F%23?%2f"),
    ("/%7e%41", "/~A"),
    ("/a%20b'\"<>`{}|^", "/a%20b'%22%3C%3E%60%7B%7D|^"),
    ("/a?b=c'd\"e<>`{}|?/", "/a?b=c%27d%22e%3C%3E`{}|?/"),
    ("/a?%0d%0aX-Evil:1", "/a?%0d%0aX-Evil:1"),
    ("/a?", "/a"),
    ("/a?b=\xff", "/a?b=%FF"),
    ("http://evil.example/a?b", "/a?b"),
    ("/" + "a" * 4000 + "?" + "%22" * 1000, "/" + "a" * 4000 + "?" + "%22" * 1000),
]


def test_no_path_leads_elsewhere(serving: Start, upstream: Upstream) -> None:
    running = serving(redirected(upstream, location=PLACE, keep_incoming_path=True))
    for target, expected in TARGETS:
        reply = running.ask(target)
        assert place(reply) == PLACE + expected, target
        assert "X-Evil" not in reply.headers
    assert upstream.requests == []


def test_the_query_as_plugins_left_it(serving: Start, upstream: Upstream) -> None:
    config = redirected(upstream, location=PLACE, keep_incoming_path=True)
    hides = {"name": "key-auth", "config": {"hide_credentials": True}}
    config["plugins"].append(hides)
    config["consumers"] = [{"username": "a", "keyauth_credentials": [{"key": "secret"}]}]
    running = serving(config)
    assert place(running.ask("/x?a=1&apikey=secret&b")) == PLACE + "/x?a=1&b"
    assert running.ask("/x?a=1").status == 401


OTHER = """
return {
    VERSION = "1", PRIORITY = 5000,
    schema = { name = "other", fields = { { config = { type = "record", fields = {} } } } },
    access = function() ngx.header["Location"] = "http://evil.example" end,
}
"""


def test_one_location_beside_lua(serving: Start, upstream: Upstream) -> None:
    config = redirected(upstream, location=PLACE)
    config["plugins"].append({"name": "other"})
    assert place(serving(config, plugins={"other": OTHER}).ask("/")) == PLACE


@pytest.mark.parametrize("line", [b"GET /a\r\n", b"GET /a HTTP/1.0\r\n\r\n"])
def test_old_requests(serving: Start, upstream: Upstream, line: bytes) -> None:
    running = serving(redirected(upstream, location=PLACE, keep_incoming_path=True))
    with running.wire() as wire:
        wire.send(line)
        wire.sock.shutdown(socket.SHUT_WR)
        answer = wire.read_to_end()
    assert answer.endswith(b"redirecting")
    assert (b"Location: https://example.com/a\r\n" in answer) == (b"HTTP" in line)


def test_a_body_that_does_not_end(serving: Start, upstream: Upstream) -> None:
    running = serving(redirected(upstream, location=PLACE, status_code=307))
    with running.wire() as wire:
        wire.send(request_bytes("/", "POST", {"Transfer-Encoding": "chunked"}) + b"1\r\na\r\n")
        assert place(wire.read_reply(), 307) == PLACE


def test_upgrades_and_http2(upstream: Upstream) -> None:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "MDEyMzQ1Njc4OTAxMjM0NQ==",
    }
    config = redirected(upstream, location=PLACE, keep_incoming_path=True)
    with Gateway(config, tls="ssl http2") as running, speaking(running) as client:
        assert place(running.ask("/a", headers=headers)) == PLACE + "/a"
        stream = client.ask("/b")
        assert client.answers([stream])[stream] == (301, b"redirecting")


REFUSED = [
    ({}, "location: required field missing"),
    ({"location": "/path"}, "location: missing scheme in url"),
    ({"location": "https:///path"}, "location: missing host in url"),
    ({"location": "https://a\r\nX-Evil: 1"}, "must not have blanks or control characters"),
    ({"location": "https://a/ b"}, "must not have blanks or control characters"),
    ({"location": PLACE, "status_code": 99}, "value should be between 100 and 599"),
    ({"location": PLACE, "status_code": 101}, "status_code must be at least 200"),
]


@pytest.mark.parametrize(("config", "words"), REFUSED)
def test_what_is_refused(client: Client, config: dict[str, Any], words: str) -> None:
    reply = client.ask("POST", "/plugins", {"name": "redirect", "config": config})
    assert reply.status == 400
    assert words in reply.json()["message"]


def test_its_schema(client: Client) -> None:
    fields = client.must(200, "GET", "/schemas/plugins/redirect")["fields"]
    (config,) = [field["config"]["fields"] for field in fields if "config" in field]
    found = {name: field for entry in config for name, field in entry.items()}
    assert list(found) == ["status_code", "location", "keep_incoming_path"]
    assert (found["status_code"]["default"], found["status_code"]["between"]) == (301, [100, 599])
    assert found["location"]["required"] is True
    assert found["keep_incoming_path"]["default"] is False
