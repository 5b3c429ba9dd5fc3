"""The head of an upstream's response: what of it is the client's."""

from collections.abc import Iterator

import pytest

from sluice import Gateway, Start, proxying
from upstream import Upstream


@pytest.fixture(scope="module")
def plain() -> Iterator[tuple[Gateway, Upstream]]:
    """A route without plugins."""
    with Upstream() as upstream, Gateway(proxying(upstream)) as running:
        yield running, upstream


# Headers that end here

HOP_BY_HOP = [
    ("Upgrade", "h2c"),
    ("Proxy-Authenticate", "Basic"),
    ("Proxy-Authentication-Info", "x"),
    ("Proxy-Connection", "keep-alive"),
    ("TE", "trailers"),
    ("Trailer", "X-Sum"),
    ("Keep-Alive", "timeout=5"),
]


@pytest.mark.parametrize(("name", "value"), HOP_BY_HOP)
def test_hop_by_hop_headers_end_here(
    plain: tuple[Gateway, Upstream], name: str, value: str
) -> None:
    running, upstream = plain
    upstream.answer(200, [(name.upper(), value), ("X-Other", "1"), (name, value)], b"x")
    reply = running.ask("/")
    assert name not in reply.headers
    assert reply.headers.get("x-other") == "1"


@pytest.mark.parametrize("named", [[], ["upgrade"], ["close", "Upgrade"]])
def test_a_426_says_what_it_requires(plain: tuple[Gateway, Upstream], named: list[str]) -> None:
    """RFC 9110, 15.5.22 and 7.8: Upgrade has to be there, and named by Connection."""
    running, upstream = plain
    said = [("Upgrade", "websocket"), *(("Connection", line) for line in named)]
    upstream.answer(426, [*said, ("Trailer", "X-Sum")], b"no")
    with running.wire() as wire:
        for _ in range(2):
            reply = wire.ask("/")
            assert (reply.status, reply.body) == (426, b"no")
            assert reply.headers.all("upgrade") == ["websocket"]
            connection = ", ".join(reply.headers.all("connection")).lower()
            assert sorted(connection.split(", ")) == ["keep-alive", "upgrade"]
            assert "trailer" not in reply.headers
    several = [("Upgrade", "TLS/1.2"), ("Connection", "upgrade"), ("upgrade", "HTTP/1.1")]
    upstream.answer(426, several, b"no")
    reply = running.ask("/")
    assert reply.headers.all("upgrade") == ["TLS/1.2", "HTTP/1.1"]
    assert ", ".join(reply.headers.all("connection")).lower().count("upgrade") == 1
    # Without one there is nothing to name.
    upstream.answer(426, [], b"no")
    assert "upgrade" not in (running.ask("/").headers.get("connection") or "").lower()


@pytest.mark.parametrize(
    "lines",
    [
        ["X-Named"],
        ["x-named"],
        ["close, X-NAMED"],
        ["keep-alive", "X-Named"],
        ["X-Named", "keep-alive"],
        [" , ,X-Named\t, keep-alive,,"],
        ["X-Nam, X-Named, X-Named-Too"],
        ["X-Named", "X-Named", "X-Named"],
        [", ".join(f"X-N{i}" for i in range(31)) + ",X-Named"],
    ],
)
def test_what_connection_names_ends_here(plain: tuple[Gateway, Upstream], lines: list[str]) -> None:
    running, upstream = plain
    headers = [("X-Named", "1"), *(("Connection", line) for line in lines)]
    headers += [("X-Named", "2"), ("X-Name", "stays"), ("X-Named-1", "stays"), ("x-named", "3")]
    upstream.answer(200, headers, b"body")
    reply = running.ask("/")
    assert "X-Named" not in reply.headers
    assert (reply.headers.get("x-name"), reply.headers.get("x-named-1")) == ("stays", "stays")
    assert reply.headers.all("connection") in ([], ["keep-alive"])
    assert reply.body == b"body"


def test_connection_does_not_take_the_frame_away(plain: tuple[Gateway, Upstream]) -> None:
    running, upstream = plain
    for chunked in (False, True):
        named = [("Connection", "Content-Length, Transfer-Encoding, X-Named"), ("X-Named", "1")]
        upstream.answer(200, named, b"body", chunked)
        with running.wire() as wire:
            for _ in range(2):
                reply = wire.ask("/")
                assert (reply.status, reply.body) == (200, b"body")
                assert "x-named" not in reply.headers


def test_too_many_names_in_connection(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream, service={"retries": 0}))
    running.expect_log('upstream sent more than 32 names in "Connection"', 2)
    names = [f"X-N{i}" for i in range(33)]
    for lines in ([", ".join(names)], names):
        upstream.answer(200, [("Connection", line) for line in lines], b"x")
        assert running.ask("/").status == 502
    upstream.answer(200, [("Connection", "keep-alive")] * 40, b"x")
    assert running.ask("/").status == 200


@pytest.mark.parametrize("count", [1, 7, 8, 9, 40])
def test_no_other_line_is_lost(plain: tuple[Gateway, Upstream], count: int) -> None:
    """nginx keeps lists of headers in parts of 8."""
    running, upstream = plain
    for position in range(count + 1):
        lines = [(f"X-Line-{i}", str(i)) for i in range(count)]
        lines.insert(position, ("X-Named", "1"))
        upstream.answer(200, [("Connection", "X-Named"), *lines], b"x")
        headers = running.ask("/").headers
        lines.remove(("X-Named", "1"))
        assert [(n, v) for n, v in headers if n.startswith("X-Line-")] == lines
        assert "x-named" not in headers


# A gateway behind a gateway


def limited(upstream: Upstream, year: int) -> dict:
    """A route with a limit."""
    plugin = {"name": "rate-limiting", "config": {"year": year, "policy": "local"}}
    return proxying(upstream) | {"plugins": [plugin]}


def test_a_gateway_behind_a_gateway(gateway: Start, upstream: Upstream) -> None:
    inner = gateway(limited(upstream, 1000))
    front = {"services": [{"name": "s", "url": inner.proxy, "routes": [{"paths": ["/"]}]}]}
    plugin = {"name": "rate-limiting", "config": {"year": 7, "policy": "local"}}
    outer = gateway(front | {"plugins": [plugin]})
    reply = outer.ask("/")
    assert reply.status == 200
    for name in reply.headers.names():
        assert len(reply.headers.all(name)) == 1, name
    names = {name for name in reply.headers.names() if name.startswith("x-kong-")}
    assert names == {
        "x-kong-upstream-latency",
        "x-kong-proxy-latency",
        "x-kong-request-id",
    }
    assert reply.headers.get("ratelimit-limit") == "7"
    assert reply.headers.get("x-ratelimit-remaining-year") == "6"
    first, second = (reply.headers.get("via") or "").split(", ")
    assert first == second == upstream.last.headers.get("via", "").split(", ")[0]


def test_limits_of_an_upstream_pass_where_there_is_no_plugin(
    gateway: Start, upstream: Upstream
) -> None:
    inner = gateway(limited(upstream, 1000))
    outer = gateway({"services": [{"name": "s", "url": inner.proxy, "routes": [{"paths": ["/"]}]}]})
    assert outer.ask("/").headers.all("ratelimit-limit") == ["1000"]


def test_other_headers_set_twice_stay_twice(gateway: Start, upstream: Upstream) -> None:
    """Lists, such as Vary, are made of lines: only the gateway's own names are replaced."""
    running = gateway(limited(upstream, 7))
    upstream.answer(
        200, [("Set-Cookie", "a=1"), ("Vary", "A"), ("Vary", "B"), ("Set-Cookie", "b=2")]
    )
    reply = running.ask("/")
    assert reply.headers.all("set-cookie") == ["a=1", "b=2"]
    assert reply.headers.all("vary") == ["A", "B"]
    assert reply.headers.all("ratelimit-limit") == ["7"]


SPOKEN = [
    "X-Kong-Request-Id",
    "X-Kong-Proxy-Latency",
    "X-Kong-Upstream-Latency",
    "X-Kong-Response-Latency",
]


@pytest.mark.parametrize("prefix", ["X-Kong", "X-Edge"])
def test_the_gateways_names_are_spoken_by_it_alone(
    gateway: Start, upstream: Upstream, prefix: str
) -> None:
    running = gateway(proxying(upstream), header_prefix=prefix)
    upstream.answer(200, [(name, "theirs") for name in SPOKEN for _ in range(2)], b"x")
    headers = running.ask("/").headers
    for name in SPOKEN:
        mine = name.replace("X-Kong", prefix)
        assert len(headers.all(mine)) == (0 if mine.endswith("Response-Latency") else 1)
        assert "theirs" not in headers.all(mine)
        if prefix != "X-Kong":
            assert headers.all(name) == ["theirs"] * 2


def test_what_the_gateway_does_not_say_passes(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream), headers="off")
    said = [(name, "theirs") for name in SPOKEN] + [("Via", "1.1 inner")]
    upstream.answer(200, said, b"x")
    headers = running.ask("/").headers
    assert [(n, v) for n, v in headers if v == "theirs" or n == "Via"] == said


def test_via_is_one_line(plain: tuple[Gateway, Upstream]) -> None:
    running, upstream = plain
    upstream.answer(200, [("Via", "1.0 a, 1.1 b"), ("X", "1"), ("VIA", "1.1 c"), ("Via", "")], b"x")
    (line,) = running.ask("/").headers.all("via")
    assert line.startswith("1.0 a, 1.1 b, 1.1 c, 1.1 sluice/")
    upstream.answer(200, [], b"x")
    (line,) = running.ask("/").headers.all("via")
    assert line.startswith("1.1 sluice/")


# Sizes


@pytest.mark.parametrize("size", [3000, 4096, 5000, 8192, 16384, 30000])
def test_large_headers_of_a_response(plain: tuple[Gateway, Upstream], size: int) -> None:
    running, upstream = plain
    for lines in (
        [("X-Large", "l" * size)],
        [(f"X-Line-{i}", "l" * 80) for i in range(size // 100)],
    ):
        upstream.answer(200, lines, b"body")
        reply = running.ask("/")
        assert (reply.status, reply.body) == (200, b"body")
        assert [(n, v) for n, v in reply.headers if n.startswith("X-L")] == lines


def test_too_large_headers_of_a_response(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream, service={"retries": 0}))
    running.expect_log("upstream sent too big header", 1)
    upstream.answer(200, [("X-Large", "l" * 40000)], b"body")
    reply = running.ask("/", headers={"Accept": "application/json"})
    assert reply.status == 502
    assert reply.json()["message"] == "An invalid response was received from the upstream server"


def test_buffers_are_settings(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream), proxy_buffer_size="128k", proxy_buffers="5 64k")
    upstream.answer(200, [("X-Large", "l" * 100000)], b"body" * 100000)
    reply = running.ask("/")
    assert (reply.status, len(reply.body)) == (200, 400000)
    small = gateway(proxying(upstream, service={"retries": 0}), proxy_buffer_size="1k")
    small.expect_log("upstream sent too big header", 1)
    upstream.answer(200, [("X-Large", "l" * 2000)], b"body")
    assert small.ask("/").status == 502
