"""The head of an upstream's response: what of it is the client's, and what comes before it."""

import socket
import threading
from collections.abc import Iterator

import pytest

from certificates import connect, context
from sluice import Gateway, Start, proxying
from upstream import DeadPort, Exchange, Handler, Upstream
from wire import DEADLINE, Reply, Stream, parse_head, request_bytes

EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\nX-Early: yes\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
PROCESSING = (
    b"HTTP/1.1 102 \r\nContent-Length: 5\r\nConnection: close, X-Named\r\nX-Named: 1\r\n\r\n"
)
FINAL = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Final: yes\r\n\r\nbody"


def saying(*pieces: bytes) -> Handler:
    """Answers with these bytes, each piece a packet of its own."""

    def say(exchange: Exchange) -> None:
        exchange.read_body()
        for piece in pieces:
            exchange.send(piece)

    return say


@pytest.fixture(scope="module")
def plain() -> Iterator[tuple[Gateway, Upstream]]:
    """A route without plugins."""
    with Upstream() as upstream, Gateway(proxying(upstream)) as running:
        yield running, upstream


# Interim responses


def is_final(reply: Reply, *hints: int) -> bool:
    """Whether this is all of FINAL; what came before it is of these statuses, and apart."""
    return (
        (reply.status, reply.interim, reply.body) == (200, [*hints], b"body")
        and reply.headers.get("x-final") == "yes"
        and "x-early" not in reply.headers
        and "link" not in reply.headers
    )


@pytest.mark.parametrize(
    "before",
    [
        [EARLY_HINTS],
        [CONTINUE],
        [PROCESSING],
        [EARLY_HINTS, CONTINUE, PROCESSING, EARLY_HINTS],
        [EARLY_HINTS] * 16,
    ],
    ids=["103", "100", "102", "several", "16"],
)
@pytest.mark.parametrize("together", [True, False], ids=["together", "apart"])
def test_interim_responses_are_passed(
    plain: tuple[Gateway, Upstream], before: list[bytes], together: bool
) -> None:
    """But 100; without the lines that frame a message or are for the gateway."""
    running, upstream = plain
    pieces = [b"".join([*before, FINAL])] if together else [*before, FINAL]
    upstream.handler = saying(*pieces)
    statuses = [int(each[9:12]) for each in before if each is not CONTINUE]
    hint = [("Link", "</style.css>; rel=preload"), ("X-Early", "yes")]
    with running.wire() as wire:
        for _ in range(3):
            for reply in (wire.ask("/"), wire.ask("/", "POST", body=b"x" * 100)):
                assert is_final(reply, *statuses)
                for got in reply.hints:
                    assert got.version == "HTTP/1.1"
                    assert got.reason == ("Early Hints" if got.status == 103 else "")
                    assert list(got.headers) == (hint if got.status == 103 else [])
            # Nor has that of HEAD a body.
            wire.send(request_bytes("/", "HEAD"))
            reply = wire.read_head()
            assert (reply.status, reply.interim) == (200, statuses)
    assert upstream.last.nth > 0, "the connection is kept"


def test_an_interim_response_comes_before_the_final_one(gateway: Start, upstream: Upstream) -> None:
    """It does not wait for it."""
    running = gateway(proxying(upstream), tls="ssl")
    go = threading.Event()

    def say(exchange: Exchange) -> None:
        exchange.send(EARLY_HINTS)
        assert go.wait(DEADLINE)
        exchange.send(FINAL)

    upstream.handler = say
    plain = socket.create_connection(("127.0.0.1", running.proxy_port), timeout=DEADLINE)
    for connected in (plain, connect(running.tls_port, "h", context())):
        go.clear()
        with connected as sock:
            client = Stream(sock)
            client.send(request_bytes("/"))
            first, _ = parse_head(client.read_until(b"\r\n\r\n"))
            assert first == "HTTP/1.1 103 Early Hints"
            go.set()
            assert client.read_until(b"\r\n\r\nbody").startswith(b"HTTP/1.1 200 OK\r\n")


def test_interim_responses_are_not_for_http_1_0(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream))
    upstream.handler = saying(EARLY_HINTS + FINAL)
    with running.wire() as wire:
        wire.send(b"GET / HTTP/1.0\r\nHost: h\r\n\r\n")
        assert is_final(wire.read_reply())


def test_lines_of_an_interim_response(gateway: Start, upstream: Upstream) -> None:
    """What the final response does not have of the upstream, it does not have either."""
    config = proxying(upstream)
    config["plugins"] = [{"name": "rate-limiting", "config": {"hour": 100, "policy": "local"}}]
    running = gateway(config)
    dropped = [*HOP_BY_HOP, ("Transfer-Encoding", "chunked"), ("Content-Length", "3")]
    dropped += [("X-Accel-Redirect", "/x"), ("RateLimit-Limit", "7")]
    passed = [("Link", "<a>"), ("Server", "s"), ("link", "<b>"), ("Set-Cookie", "a=b")]
    said = "".join(f"{name}: {value}\r\n" for name, value in dropped + passed)
    upstream.handler = saying(f"HTTP/1.1 103 Early Hints\r\n{said}\r\n".encode() + FINAL)
    reply = running.ask("/")
    assert is_final(reply, 103)
    assert list(reply.hints[0].headers) == passed


def test_interim_responses_have_a_bound(gateway: Start, upstream: Upstream) -> None:
    """All of a request together, as many bytes as one head may have; the others are dropped."""
    running = gateway(proxying(upstream), proxy_buffer_size="4k")

    def hint(size: int) -> bytes:
        """Of a line with as many bytes."""
        return b"HTTP/1.1 103 \r\nX: " + b"x" * (size - len("X: \r\n")) + b"\r\n\r\n"

    for sizes, passed in (
        ([1024] * 5, [1024] * 4),
        ([4000, 97, 96, 1], [4000, 96]),
        ([3000, 3000, 1000], [3000, 1000]),
    ):
        upstream.handler = saying(b"".join(hint(max(size, 6)) for size in sizes) + FINAL)
        reply = running.ask("/")
        assert is_final(reply, *[103] * len(passed))
        assert [len(hint.headers.get("x") or "") + len("X: \r\n") for hint in reply.hints] == passed


def test_interim_responses_cut_at_every_byte(plain: tuple[Gateway, Upstream]) -> None:
    running, upstream = plain
    whole = CONTINUE + EARLY_HINTS + FINAL
    with running.wire() as wire:
        for at in range(1, len(whole)):
            upstream.handler = saying(whole[:at], whole[at:])
            assert is_final(wire.ask("/"), 103), at
        upstream.handler = saying(*(whole[i : i + 1] for i in range(len(whole))))
        assert is_final(wire.ask("/"), 103)


def test_interim_responses_and_a_streamed_response(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream, response_buffering=False))
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
    upstream.handler = saying(EARLY_HINTS + CONTINUE, EARLY_HINTS + chunked, b"1\r\nd\r\n0\r\n\r\n")
    reply = running.ask("/")
    assert (reply.status, reply.interim, reply.body) == (200, [103, 103], b"abcd")


def test_interim_responses_leave_room_for_the_final_one(gateway: Start, upstream: Upstream) -> None:
    """Together they are far larger than the buffer; none of them is."""
    running = gateway(proxying(upstream), proxy_buffer_size="4k")
    hint = b"HTTP/1.1 103 Early Hints\r\nX-Early: " + b"e" * 3000 + b"\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nX-Final: yes\r\nX-Long: " + b"f" * 3500 + b"\r\n"
    upstream.handler = saying(hint * 10 + head + b"Content-Length: 4\r\n\r\nbody")
    assert is_final(running.ask("/"), 103)


def test_too_many_interim_responses(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream, service={"retries": 0}))
    running.expect_log("upstream sent more than 16 interim responses", 1)
    upstream.handler = saying(EARLY_HINTS * 17 + FINAL)
    assert running.ask("/").status == 502
    upstream.handler = saying(FINAL)
    assert is_final(running.ask("/"))


@pytest.mark.parametrize("before", [b"", EARLY_HINTS], ids=["alone", "behind 103"])
def test_no_upstream_makes_a_tunnel(gateway: Start, upstream: Upstream, before: bytes) -> None:
    """Upgrade goes to no upstream, so none has been asked to switch protocols."""
    running = gateway(proxying(upstream, service={"retries": 0}))
    switched = b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
    asked: list[list[tuple[str, str]]] = [
        [],
        [("Upgrade", "x")],
        [("Upgrade", "x"), ("Connection", "upgrade")],
    ]
    running.expect_log("upstream switched protocols without being asked", len(asked))
    for headers in asked:
        upstream.handler = saying(before + switched + FINAL)
        assert running.ask("/", headers=headers).status == 502
        assert "upgrade" not in upstream.last.headers
        upstream.handler = saying(FINAL)
        assert is_final(running.ask("/"))


def test_nothing_final_after_an_interim_response(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream, service={"retries": 0}))
    running.expect_log("upstream prematurely closed connection", 1)
    running.expect_log("no valid HTTP/1.0 header", 1)

    def hang_up(exchange: Exchange) -> None:
        exchange.send(EARLY_HINTS)
        exchange.keep = False
        exchange.request.headers.append(("Connection", "close"))
        exchange.close()

    upstream.handler = hang_up
    assert running.ask("/").status == 502
    upstream.handler = saying(EARLY_HINTS + b"no status line\r\n\r\n")
    assert running.ask("/").status == 502


def test_interim_responses_after_a_retry(gateway: Start, upstream: Upstream) -> None:
    with DeadPort() as dead:
        targets = [{"target": dead.address}, {"target": upstream.address}]
        running = gateway(
            {
                "upstreams": [{"name": "pool", "targets": targets}],
                "services": [
                    {"name": "s", "host": "pool", "routes": [{"name": "r", "paths": ["/"]}]}
                ],
            }
        )
        running.expect_log(r"connect\(\) failed", range(1, 5))
        upstream.handler = saying(EARLY_HINTS, EARLY_HINTS + FINAL)
        for _ in range(4):
            assert is_final(running.ask("/"), 103, 103)


def test_status_of_the_final_response_is_logged(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream), access_log_format="$status $upstream_status")
    upstream.handler = saying(EARLY_HINTS + FINAL)
    assert is_final(running.ask("/"), 103)
    running.stop("quit")
    assert running.access_log().splitlines()[-1] == "200 200"


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
