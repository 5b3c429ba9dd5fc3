"""forward-auth: who is asked what, who passes with which headers, that nobody passes where
something goes wrong, and answers that are kept."""

import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from admin_client import Client

from sluice import Start, proxying
from upstream import Blackhole, DeadPort, Exchange, Upstream, saying, self_signed
from wire import Reply, wait_until


@pytest.fixture
def auth() -> Iterator[Upstream]:
    """The server that is asked: it lets everybody pass."""
    with Upstream(name="auth") as server:
        server.answer(200, {}, b"")
        yield server


def guarded(upstream: Upstream, url: str, **config: Any) -> dict[str, Any]:
    """One route with the plugin."""
    plugin = {"name": "forward-auth", "config": {"url": url} | config}
    return proxying(upstream) | {"plugins": [plugin]}


def test_what_is_asked(serving: Start, upstream: Upstream, auth: Upstream) -> None:
    started = serving(guarded(upstream, f"{auth.url}/check?a=b", request_headers=["Cookie", "X-A"]))
    headers = [
        ("Host", "shop.example:81"),
        ("Cookie", "one=1"),
        ("X-A", "first"),
        ("cookie", "two=2"),
        ("x_a", "third"),
        ("X.A", "fourth"),
        ("X-A", "second"),
        ("X-B", "not asked"),
        ("X-Forwarded-Uri", "/spoofed"),
    ]
    assert started.ask("/orders%20x?q=1", "POST", headers, b"body").status == 200
    asked = auth.last
    assert (asked.method, asked.target, asked.body) == ("GET", "/check?a=b", b"")
    assert asked.headers.all("Host") == [auth.address]
    assert asked.headers.all("Cookie") == ["one=1", "two=2"]
    assert asked.headers.all("X-A") == ["first", "second"]
    assert asked.headers.all("X_A") == ["third"]
    assert asked.headers.all("X.A") == ["fourth"]
    assert "X-B" not in asked.headers
    assert asked.headers.all("X-Forwarded-Method") == ["POST"]
    assert asked.headers.all("X-Forwarded-Proto") == ["http"]
    assert asked.headers.all("X-Forwarded-Host") == ["shop.example"]
    assert asked.headers.all("X-Forwarded-Uri") == ["/orders%20x?q=1"]
    assert asked.headers.all("X-Forwarded-For") == ["127.0.0.1"]
    # The service gets the request as it was.
    assert upstream.last.body == b"body"
    assert upstream.last.target == "/orders%20x?q=1"


def test_what_passes_has_the_servers_headers_and_none_of_the_clients(
    serving: Start, upstream: Upstream, auth: Upstream
) -> None:
    auth.answer(204, [("X-User", "ann"), ("X-Group", "a"), ("X-Group", "b"), ("X-New", "1")])
    config = {"upstream_headers": ["X-User", "X-Group", "X-None"], "pass_headers": ["X-New"]}
    started = serving(guarded(upstream, auth.url, **config))
    names = ["X-User", "x_user", "X-USER", "X_Group", "X-None", "X.User", "x~group", "X|None"]
    spoofed = [(name, "root") for name in names]
    reply = started.ask("/", headers=spoofed)
    assert reply.status == 200
    assert reply.headers.all("X-New") == ["1"]
    found = upstream.last.headers
    assert found.all("X-User") == ["ann"]
    assert found.all("X-Group") == ["a", "b"]
    assert not [name for name, value in found if value == "root"]


@pytest.mark.parametrize("status", [302, 401, 403, 499])
def test_a_refusal_is_the_clients_answer(
    serving: Start, upstream: Upstream, auth: Upstream, status: int
) -> None:
    headers = [
        ("Location", "https://login.example/"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
        ("WWW-Authenticate", "Bearer"),
        ("Content-Type", "text/html"),
        ("X-Internal", "no"),
    ]
    auth.answer(status, headers, b"<p>no</p>")
    started = serving(guarded(upstream, auth.url))
    reply = started.ask("/")
    assert (reply.status, reply.body) == (status, b"<p>no</p>")
    assert reply.headers.all("Set-Cookie") == ["a=1", "b=2"]
    assert reply.headers.all("Content-Type") == ["text/html"]
    assert reply.headers.all("Location") == ["https://login.example/"]
    assert "X-Internal" not in reply.headers
    assert not upstream.requests


MALFORMED = {
    "no HTTP": b"hello\r\n\r\n",
    "an endless head": b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 20000,
    "a status below": b"HTTP/1.1 101 Switching\r\n\r\n",
    "an error": b"HTTP/1.1 500 Error\r\nContent-Length: 0\r\n\r\n",
    "another error": b"HTTP/1.1 599 Error\r\nContent-Length: 0\r\n\r\n",
    "a body that is cut": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
    "a length that is none": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "a body too long": b"HTTP/1.1 401 No\r\nContent-Length: 999999\r\n\r\n" + b"x" * 999999,
    "a body without end": b"HTTP/1.1 401 No\r\n\r\n" + b"x" * 999999,
    "an unknown encoding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("what", MALFORMED)
def test_what_is_no_answer_lets_nobody_pass(
    serving: Start, upstream: Upstream, auth: Upstream, what: str
) -> None:
    auth.handler = saying(MALFORMED[what])
    started = serving(guarded(upstream, auth.url, timeout=2000))
    started.expect_log(r"\[forward-auth\] no request passes: ", 1)
    reply = started.ask("/")
    assert reply.status == 503
    assert b"Authorization service unavailable" in reply.body
    assert not upstream.requests


def test_nobody_waits_longer_than_the_timeout(
    serving: Start, upstream: Upstream, auth: Upstream
) -> None:
    """Not for a connection, not for an answer, and not for one that comes byte by byte."""

    def drip(exchange: Exchange) -> None:
        exchange.keep = False
        for byte in b"HTTP/1.1 200 OK\r\nX-A: " + b"b" * 1000:
            exchange.send(bytes([byte]))
            time.sleep(0.1)

    let_go = threading.Event()

    def hang(exchange: Exchange) -> None:
        let_go.wait(10)
        exchange.abort()

    with Blackhole() as nowhere, DeadPort() as dead:
        routes = {"/drip": auth.url, "/nowhere": nowhere.url, "/dead": dead.url}
        config: dict[str, Any] = {"services": [{"name": "s", "url": upstream.url, "routes": []}]}
        for path, url in routes.items():
            plugin = {"name": "forward-auth", "config": {"url": url, "timeout": 500}}
            config["services"][0]["routes"].append(
                {"name": path.strip("/"), "paths": [path], "plugins": [plugin]}
            )
        started = serving(config)
        started.expect_log("no request passes: ", 4)
        started.expect_log(r"connect\(\) failed|timed out", range(10))
        for path, handler in (
            ("/drip", drip),
            ("/drip", hang),
            ("/nowhere", drip),
            ("/dead", drip),
        ):
            auth.handler = handler
            begun = time.monotonic()
            assert started.ask(path).status == 503
            assert time.monotonic() - begun < 5
    let_go.set()
    assert not upstream.requests


def test_connections_are_kept_and_one_that_was_closed_is_no_failure(
    serving: Start, upstream: Upstream, auth: Upstream
) -> None:
    started = serving(guarded(upstream, auth.url))
    for _ in range(3):
        assert started.ask("/").status == 200
    assert {request.connection for request in auth.requests} == {0}
    auth.drop_connections()
    assert started.ask("/").status == 200


def test_answers_are_kept_as_long_as_it_says(
    gateway: Start, upstream: Upstream, auth: Upstream
) -> None:
    auth.answer(200, [("X-User", "ann"), ("Set-Cookie", "a=1")])
    config = {
        "cache_ttl": 1,
        "upstream_headers": ["X-User"],
        "pass_headers": ["Set-Cookie"],
    }
    started = gateway(guarded(upstream, auth.url, **config))
    numbers = itertools.count()

    def in_its_second() -> tuple[str, list[Reply]] | None:
        """A credential that is new, and what three with it were answered before it expired."""
        upstream.requests.clear()
        auth.requests.clear()
        value = f"a{next(numbers)}"
        begun = time.monotonic()
        replies = [started.ask("/", headers={"Authorization": value}) for _ in range(3)]
        # nginx rounds its clock down to milliseconds.
        return (value, replies) if time.monotonic() - begun < 0.99 else None

    value, replies = wait_until(in_its_second, "three answers in the time of the first")
    assert [reply.headers.all("Set-Cookie") for reply in replies] == [["a=1"], [], []]
    assert [request.headers.get("X-User") for request in upstream.requests] == ["ann"] * 3
    assert len(auth.requests) == 1
    # Another method, path or credential is another question.
    for target, method, other in (("/x", "GET", value), ("/", "POST", value), ("/", "GET", "b")):
        assert started.ask(target, method, {"Authorization": other}).status == 200
    assert len(auth.requests) == 4
    auth.answer(403, {}, b"")
    time.sleep(1.1)
    ask = {"headers": {"Authorization": value}}
    assert [started.ask("/", **ask).status for _ in range(2)] == [403, 403]
    assert len(auth.requests) == 6


def test_answers_by_headers_alone(gateway: Start, upstream: Upstream, auth: Upstream) -> None:
    started = gateway(guarded(upstream, auth.url, cache_ttl=60, cache_by="headers"))
    for target, method in (("/", "GET"), ("/x?y", "POST"), ("/z", "DELETE")):
        assert started.ask(target, method, {"Cookie": "a"}).status == 200
    assert len(auth.requests) == 1
    assert started.ask("/", headers={"Cookie": "a", "Host": "other"}).status == 200
    assert started.ask("/", headers={"Cookie": "a", "Authorization": "b"}).status == 200
    assert len(auth.requests) == 3


def test_what_is_kept_has_a_bound(gateway: Start, upstream: Upstream, auth: Upstream) -> None:
    started = gateway(guarded(upstream, auth.url, cache_ttl=60, request_headers=["X-A"]))
    with started.wire() as wire:
        for number in range(2200):
            assert wire.ask("/", headers={"X-A": str(number)}).status == 200
        assert len(auth.requests) == 2200
        wire.ask("/", headers={"X-A": "2199"})
        assert len(auth.requests) == 2200
        wire.ask("/", headers={"X-A": "0"})
        assert len(auth.requests) == 2201


def test_the_certificate_is_verified(gateway: Start, upstream: Upstream, tmp_path: Path) -> None:
    with Upstream(name="auth", tls=self_signed(tmp_path)) as server:
        server.answer(200, {}, b"")
        started = gateway(guarded(upstream, server.url))
        started.expect_log("no request passes: .*certificate", 1)
        started.expect_log("lua ssl certificate verify error", range(3))
        assert started.ask("/").status == 503
        started = gateway(guarded(upstream, server.url, tls_verify=False))
        assert started.ask("/").status == 200


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("url", "ftp://a/", "scheme 'ftp' is not supported"),
        ("url", "http://a:b@c/", "must not have a user"),
        ("url", "http://a/\r\nX: y", "invalid url"),
        ("request_headers", ["X-Forwarded-For"], "X-Forwarded-* headers are the gateway's"),
        ("request_headers", ["Content-Length"], "cannot contain 'Content-Length' header"),
        ("upstream_headers", ["Host"], "cannot contain 'Host' header"),
        ("upstream_headers", ["a b"], "bad header name 'a b'"),
        ("refusal_headers", ["transfer-encoding"], "cannot contain 'transfer-encoding' header"),
        ("timeout", 0, "value should be between 1 and 600000"),
        ("cache_by", "cookie", "expected one of: request, headers"),
    ],
)
def test_what_is_refused(client: Client, field: str, value: object, words: str) -> None:
    config = {"url": "http://127.0.0.1:1/"} | {field: value}
    plugin = {"name": "forward-auth", "config": config}
    reply = client.ask("POST", "/plugins", plugin)
    assert reply.status == 400
    assert words in reply.text
