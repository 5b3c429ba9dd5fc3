"""WebSocket through Sluice is what it is on a direct connection, and nothing else switches."""

from collections.abc import Iterator

import pytest
from websocket import ASKING, KEY, Case, Run, switched
from websocket_cases import CASES

from sluice import Gateway, Start, proxying
from upstream import Exchange, Handler, Upstream
from wire import Reply, request_bytes


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture(scope="module")
def running(upstream: Upstream) -> Iterator[Gateway]:
    with Gateway(proxying(upstream)) as gateway:
        # Of the cases in which a server ends so.
        gateway.expect_log(r"Connection reset by peer\) while proxying upgraded", range(100))
        yield gateway


def played(case: Case, upstream: Upstream, port: int) -> tuple[Reply, dict, dict]:
    """The head of the 101, and what client and server saw."""
    run = Run(case)
    upstream.handler = run.serve
    reply, *sides = run.ask(port)
    client, server = (
        {"frames": side.frames, "rest": side.rest, "ending": side.ending, "bytes": side.bytes}
        for side in sides
    )
    return reply, client, server


def test_there_are_enough_cases() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 221


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_is_as_on_a_direct_connection(running: Gateway, upstream: Upstream, case: Case) -> None:
    head, client, server = played(case, upstream, upstream.port)
    direct = upstream.last
    through_head, through_client, through_server = played(case, upstream, running.proxy_port)
    assert through_client == client
    assert through_server == server
    for name in ("upgrade", "connection", "sec-websocket-accept"):
        (ours,), (theirs,) = through_head.headers.all(name), head.headers.all(name)
        assert ours.lower() == theirs.lower()
    for name in ("upgrade", "connection", "sec-websocket-key", "sec-websocket-version"):
        (ours,), (theirs,) = upstream.last.headers.all(name), direct.headers.all(name)
        assert ours.lower() == theirs.lower()


# What does not switch


def lines(*values: str, upgrade: tuple[str, ...] = ("websocket",)) -> list[tuple[str, str]]:
    """These lines of Connection, then these of Upgrade."""
    return [("Connection", v) for v in values] + [("Upgrade", v) for v in upgrade]


REFUSED = {
    "h2c": [*lines("Upgrade, HTTP2-Settings", upgrade=("h2c",)), ("HTTP2-Settings", "AAMAAABk")],
    "h2c without its settings named": [
        *lines("Upgrade", upgrade=("h2c",)),
        ("HTTP2-Settings", "AAMAAABk"),
    ],
    "TLS": lines("Upgrade", upgrade=("TLS/1.2",)),
    "a list": lines("Upgrade", upgrade=("websocket, h2c",)),
    "a list, the other way": lines("Upgrade", upgrade=("h2c, websocket",)),
    "a list of one": lines("Upgrade", upgrade=("websocket,",)),
    "two lines": lines("Upgrade", upgrade=("websocket", "h2c")),
    "two lines, the other way": lines("Upgrade", upgrade=("h2c", "websocket")),
    "two lines alike": lines("Upgrade", upgrade=("websocket", "websocket")),
    "far apart": [
        *lines("Upgrade"),
        *((f"X-{n}", "") for n in range(50)),
        ("Upgrade", "h2c"),
    ],
    "a version": lines("Upgrade", upgrade=("websocket/13",)),
    "more letters": lines("Upgrade", upgrade=("websockets",)),
    "fewer letters": lines("Upgrade", upgrade=("websocke",)),
    "nothing": lines("Upgrade", upgrade=("",)),
    "no Upgrade": lines("Upgrade", upgrade=()),
    "no Connection": lines(),
    "Connection without it": lines("keep-alive"),
    "Connection with more letters": lines("Upgrades"),
    "Connection with another separator": lines("keep-alive;Upgrade"),
    "a body": [*lines("Upgrade"), ("Content-Length", "1")],
    "a chunked body": [*lines("Upgrade"), ("Transfer-Encoding", "chunked")],
    "an underscore": [("Connection", "Upgrade"), ("Up_grade", "websocket")],
}


def hop_by_hop(upstream: Upstream) -> dict[str, list[str]]:
    """Those lines of the last request that may switch protocols."""
    names = ("connection", "upgrade", "http2-settings")
    return {name: upstream.last.headers.all(name) for name in names}


@pytest.mark.parametrize("what", REFUSED)
def test_it_does_not_reach_the_upstream(running: Gateway, upstream: Upstream, what: str) -> None:
    upstream.answer(200, [], b"plain")
    body = {"a body": b"x", "a chunked body": b"1\r\nx\r\n0\r\n\r\n"}.get(what)
    reply = running.ask("/", headers=REFUSED[what], body=body)
    assert (reply.status, reply.body) == (200, b"plain")
    seen = hop_by_hop(upstream)
    assert seen["connection"] == seen["upgrade"] == []
    named = "HTTP2-Settings" in dict(REFUSED[what]).get("Connection", "")
    assert named <= (seen["http2-settings"] == [])


@pytest.mark.parametrize("method", ["POST", "HEAD", "OPTIONS", "PUT", "get"])
def test_only_get_switches(running: Gateway, upstream: Upstream, method: str) -> None:
    upstream.answer(200, [])
    before = len(upstream.requests)
    running.ask("/", method, headers=ASKING)
    assert len(upstream.requests) == before or "upgrade" not in upstream.last.headers


def test_http_1_0_does_not_switch(running: Gateway, upstream: Upstream) -> None:
    upstream.answer(200, [], b"plain")
    with running.wire() as wire:
        wire.send(request_bytes("/", headers=ASKING).replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert wire.read_reply().status == 200
    assert "upgrade" not in upstream.last.headers


ACCEPTED = {
    "one name": lines("Upgrade"),
    "in capitals": lines("UPGRADE", upgrade=("WebSocket",)),
    "a list": lines("keep-alive, Upgrade"),
    "two lines": lines("keep-alive", "upgrade"),
    "named twice": lines("Upgrade, upgrade", "Upgrade"),
    "with close": lines("close, Upgrade"),
    "without spaces": lines("X-A,Upgrade,X-B"),
    "spaces": lines(" , \tUpgrade ,", upgrade=("  websocket  ",)),
    "far behind": [*((f"X-{n}", "") for n in range(50)), *lines("Upgrade")],
    "an empty body": [*lines("Upgrade"), ("Content-Length", "0")],
}


@pytest.mark.parametrize("what", ACCEPTED)
def test_it_reaches_the_upstream_in_one_spelling(
    running: Gateway, upstream: Upstream, what: str
) -> None:
    """And an upstream that does not switch answers as ever, over connections that are kept."""
    upstream.answer(200, [("Upgrade", "websocket")], b"not today")
    for _ in range(2):
        reply = running.ask("/", headers=[("X-A", "gone"), *ACCEPTED[what]])
        assert (reply.status, reply.body) == (200, b"not today")
        assert "upgrade" not in reply.headers
        seen = hop_by_hop(upstream)
        assert seen == {"connection": ["upgrade"], "upgrade": ["websocket"], "http2-settings": []}
        assert ("x-a" in upstream.last.headers) != (what == "without spaces")
    assert upstream.last.nth > 0, "the connection is kept"


SWITCHED = b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\n"


def saying(data: bytes) -> Handler:
    """Answers with these bytes, then ends."""

    def say(exchange: Exchange) -> None:
        exchange.read_body()
        exchange.send(data)
        exchange.keep = False

    return say


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"Upgrade:\r\n",
        b"Upgrade: h2c\r\n",
        b"Upgrade: websockets\r\n",
        b"Upgrade: websocket, h2c\r\n",
        b"Upgrade: websocket\r\nUpgrade: websocket\r\n",
        b"Upgrade: websocket\r\nUpgrade: h2c\r\n",
    ],
)
def test_a_101_for_something_else(serving: Start, upstream: Upstream, head: bytes) -> None:
    running = serving(proxying(upstream, service={"retries": 0}))
    running.expect_log("upstream switched to another protocol than asked", 1)
    upstream.handler = saying(SWITCHED + head + b"\r\n")
    assert running.ask("/", headers=ASKING).status == 502


def test_a_101_that_nobody_asked_for(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream, service={"retries": 0}))
    upstream.handler = saying(SWITCHED + b"Upgrade: websocket\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")
    asked = [[], *(REFUSED[what] for what in ("h2c", "a list", "two lines", "no Connection"))]
    running.expect_log("upstream switched protocols without being asked", len(asked))
    for headers in asked:
        assert running.ask("/", headers=headers).status == 502


def test_the_head_of_a_101(running: Gateway, upstream: Upstream) -> None:
    """Headers pass, but those that say where a body ends: they would split the tunnel's bytes."""
    more = b"X-Named: 1\r\nConnection: X-Named\r\nX-Kept: yes\r\nSet-Cookie: a=1\r\n"
    lengths = [b"", b"Content-Length: 0\r\n", b"Content-Length: 5\r\n"]
    for length in [*lengths, b"Transfer-Encoding: chunked\r\n"]:
        upstream.handler = saying(switched(KEY, more + length) + b"HTTP/1.1 200 OK\r\n\r\n")
        with running.wire() as wire:
            wire.send(request_bytes("/", headers=ASKING))
            reply = wire.read_head()
            assert reply.status == 101
            assert reply.headers.all("connection") == ["upgrade"]
            assert reply.headers.all("upgrade") == ["websocket"]
            assert reply.headers.all("set-cookie") == ["a=1"]
            assert reply.headers.get("x-kept") == "yes"
            assert not reply.headers.names() & {"content-length", "transfer-encoding", "x-named"}
            assert wire.read_to_end() == b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.mark.parametrize(
    "line", [b"X-A: b\r c: d\r\n", b"X-A: b\0c\r\n", b" folded\r\n", b"X A: b\r\n"]
)
def test_a_101_cannot_be_split(serving: Start, upstream: Upstream, line: bytes) -> None:
    """As the head of any other response: one that nginx cannot read is none."""
    running = serving(proxying(upstream, service={"retries": 0}))
    running.expect_log("upstream sent invalid header", 1)
    upstream.handler = saying(switched(KEY, line))
    assert running.ask("/", headers=ASKING).status == 502


def test_what_a_client_sends_before_the_answer(running: Gateway, upstream: Upstream) -> None:
    """Where the upstream does not switch it is the next request, and Sluice's to route."""
    upstream.answer(426, [("Upgrade", "websocket")], b"no")
    with running.wire() as wire:
        wire.send(request_bytes("/first", headers=ASKING) + request_bytes("/second"))
        assert [wire.read_reply().status, wire.read_reply().status] == [426, 426]
    first, second = upstream.requests[-2:]
    assert (first.target, second.target) == ("/first", "/second")
    assert "upgrade" in first.headers
    assert "upgrade" not in second.headers
    assert "via" in second.headers


def test_an_interim_response_before_the_101(running: Gateway, upstream: Upstream) -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nUpgrade: h2c\r\n\r\n"
    upstream.handler = saying(hint + switched(KEY) + b"tunnel")
    with running.wire() as wire:
        wire.send(request_bytes("/", headers=ASKING))
        reply = wire.read_head()
        assert (reply.status, reply.interim) == (101, [])
        assert wire.read_to_end() == b"tunnel"
