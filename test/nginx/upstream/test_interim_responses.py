"""Interim responses of an upstream: what of them is the client's, and the final one behind them."""

import socket
import threading
from collections.abc import Iterator

import pytest

from certificates import connect, context
from sluice import Gateway, Start, proxying
from upstream import DeadPort, Exchange, Upstream, in_pieces
from wire import DEADLINE, Reply, Stream, parse_head, request_bytes

EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\nX-Early: yes\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
PROCESSING = (
    b"HTTP/1.1 102 \r\nContent-Length: 5\r\nConnection: close, X-Named\r\nX-Named: 1\r\n\r\n"
)
FINAL = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Final: yes\r\n\r\nbody"


@pytest.fixture(scope="module")
def plain() -> Iterator[tuple[Gateway, Upstream]]:
    """A route without plugins."""
    with Upstream() as upstream, Gateway(proxying(upstream)) as running:
        yield running, upstream


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
    upstream.handler = in_pieces(*pieces)
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


def test_an_interim_response_comes_before_the_final_one(serving: Start, upstream: Upstream) -> None:
    """It does not wait for it."""
    running = serving(proxying(upstream), tls="ssl")
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


def test_interim_responses_are_not_for_http_1_0(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream))
    upstream.handler = in_pieces(EARLY_HINTS + FINAL)
    with running.wire() as wire:
        wire.send(b"GET / HTTP/1.0\r\nHost: h\r\n\r\n")
        assert is_final(wire.read_reply())


def test_lines_of_an_interim_response(serving: Start, upstream: Upstream) -> None:
    """What the final response does not have of the upstream, it does not have either."""
    config = proxying(upstream)
    config["plugins"] = [{"name": "rate-limiting", "config": {"hour": 100, "policy": "local"}}]
    running = serving(config)
    dropped = [
        ("Upgrade", "h2c"),
        ("Keep-Alive", "timeout=5"),
        ("Trailer", "X"),
        ("TE", "trailers"),
    ]
    dropped += [("Transfer-Encoding", "chunked"), ("Content-Length", "3"), ("Connection", "close")]
    dropped += [("X-Accel-Redirect", "/x"), ("RateLimit-Limit", "7")]
    passed = [("Link", "<a>"), ("Server", "s"), ("link", "<b>"), ("Set-Cookie", "a=b")]
    said = "".join(f"{name}: {value}\r\n" for name, value in dropped + passed)
    upstream.handler = in_pieces(f"HTTP/1.1 103 Early Hints\r\n{said}\r\n".encode() + FINAL)
    reply = running.ask("/")
    assert is_final(reply, 103)
    assert list(reply.hints[0].headers) == passed


def test_interim_responses_have_a_bound(serving: Start, upstream: Upstream) -> None:
    """All of a request together, as many bytes as one head may have; the others are dropped."""
    running = serving(proxying(upstream), proxy_buffer_size="4k")
    # As they are sent, without the text of the line.
    frame = len(b"HTTP/1.1 103 Early Hints\r\nX: \r\n\r\n")

    def hint(size: int) -> bytes:
        return b"HTTP/1.1 103 \r\nX: " + b"x" * (size - frame) + b"\r\n\r\n"

    for sizes, passed in (
        ([1024] * 5, [1024] * 4),
        ([4000, 97, 96, 50], [4000, 96]),
        ([3000, 3000, 1000], [3000, 1000]),
    ):
        upstream.handler = in_pieces(b"".join(hint(size) for size in sizes) + FINAL)
        reply = running.ask("/")
        assert is_final(reply, *[103] * len(passed))
        assert [len(each.headers.get("x") or "") + frame for each in reply.hints] == passed


def test_interim_responses_can_be_off(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream), early_hints="off")
    upstream.handler = in_pieces(EARLY_HINTS + PROCESSING + FINAL)
    assert is_final(running.ask("/"))


def test_interim_responses_are_no_bytes_of_the_final_one(
    gateway: Start, upstream: Upstream
) -> None:
    running = gateway(proxying(upstream), access_log_format="$body_bytes_sent $bytes_sent")
    for said in (FINAL, EARLY_HINTS + FINAL):
        upstream.handler = in_pieces(said)
        running.ask("/")
    running.stop("quit")
    first, second = running.access_log().splitlines()[-2:]
    assert (first.split()[0], first) == ("4", second)


def test_an_interim_response_that_is_not_as_it_should_be(
    serving: Start, upstream: Upstream
) -> None:
    """What is wrong of it is dropped: it is not needed."""
    running = serving(proxying(upstream))
    running.expect_log('upstream sent more than 32 names in "Connection"', 1)
    wrong = [b"!: x", b"\xc3\xa9: x", b"a(b): x", b"X-Control: a\x01b", b"X-Delete: \x7f"]
    right = [("X-Tab", "a\tb"), ("X-Bytes", "\xc3\xa9"), ("x.~", "1")]
    lines = [*wrong, *(f"{name}: {value}".encode("latin-1") for name, value in right)]
    upstream.handler = in_pieces(
        b"HTTP/1.1 103 a\x1b[31m\r\n" + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + FINAL
    )
    reply = running.ask("/")
    assert is_final(reply, 103)
    assert (reply.hints[0].reason, list(reply.hints[0].headers)) == ("Early Hints", right)
    names = ", ".join(f"X-N{i}" for i in range(33)).encode()
    upstream.handler = in_pieces(b"HTTP/1.1 103 \r\nConnection: " + names + b"\r\n\r\n" + FINAL)
    assert is_final(running.ask("/"))


@pytest.mark.parametrize(
    "line",
    [b"10  2 04 No Content", b"1 0 3 Hi", b"20  1 03 x", b"2 00 OK", b" 20 0 OK"],
)
def test_a_status_with_blanks_in_it(serving: Start, upstream: Upstream, line: bytes) -> None:
    """nginx reads it as one, and a client might read another."""
    running = serving(proxying(upstream, service={"retries": 0}))
    running.expect_log("upstream sent an invalid status", range(1, 3))
    upstream.handler = in_pieces(b"HTTP/1.1 " + line + b"\r\nContent-Length: 0\r\n\r\n" + FINAL)
    reply = running.ask("/")
    assert (reply.status, reply.interim) == (502, [])


def test_interim_responses_cut_at_every_byte(plain: tuple[Gateway, Upstream]) -> None:
    running, upstream = plain
    whole = CONTINUE + EARLY_HINTS + FINAL
    with running.wire() as wire:
        for at in range(1, len(whole)):
            upstream.handler = in_pieces(whole[:at], whole[at:])
            assert is_final(wire.ask("/"), 103), at
        upstream.handler = in_pieces(*(whole[i : i + 1] for i in range(len(whole))))
        assert is_final(wire.ask("/"), 103)


def test_interim_responses_and_a_streamed_response(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream, response_buffering=False))
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
    upstream.handler = in_pieces(
        EARLY_HINTS + CONTINUE, EARLY_HINTS + chunked, b"1\r\nd\r\n0\r\n\r\n"
    )
    reply = running.ask("/")
    assert (reply.status, reply.interim, reply.body) == (200, [103, 103], b"abcd")


def test_interim_responses_leave_room_for_the_final_one(serving: Start, upstream: Upstream) -> None:
    """Together they are far larger than the buffer; none of them is."""
    running = serving(proxying(upstream), proxy_buffer_size="4k")
    hint = b"HTTP/1.1 103 Early Hints\r\nX-Early: " + b"e" * 3000 + b"\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nX-Final: yes\r\nX-Long: " + b"f" * 3500 + b"\r\n"
    upstream.handler = in_pieces(hint * 10 + head + b"Content-Length: 4\r\n\r\nbody")
    assert is_final(running.ask("/"), 103)


def test_too_many_interim_responses(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream, service={"retries": 0}))
    running.expect_log("upstream sent more than 16 interim responses", 1)
    upstream.handler = in_pieces(EARLY_HINTS * 17 + FINAL)
    assert running.ask("/").status == 502
    upstream.handler = in_pieces(FINAL)
    assert is_final(running.ask("/"))


@pytest.mark.parametrize("before", [b"", EARLY_HINTS], ids=["alone", "behind 103"])
def test_no_upstream_makes_a_tunnel(serving: Start, upstream: Upstream, before: bytes) -> None:
    """Upgrade goes to no upstream, so none has been asked to switch protocols."""
    running = serving(proxying(upstream, service={"retries": 0}))
    switched = b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
    asked: list[list[tuple[str, str]]] = [
        [],
        [("Upgrade", "x")],
        [("Upgrade", "x"), ("Connection", "upgrade")],
    ]
    running.expect_log("upstream switched protocols without being asked", len(asked))
    for headers in asked:
        upstream.handler = in_pieces(before + switched + FINAL)
        assert running.ask("/", headers=headers).status == 502
        assert "upgrade" not in upstream.last.headers
        upstream.handler = in_pieces(FINAL)
        assert is_final(running.ask("/"))


def test_nothing_final_after_an_interim_response(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream, service={"retries": 0}))
    running.expect_log("upstream prematurely closed connection", 1)
    running.expect_log("no valid HTTP/1.0 header", 1)

    def hang_up(exchange: Exchange) -> None:
        exchange.send(EARLY_HINTS)
        exchange.keep = False
        exchange.request.headers.append(("Connection", "close"))
        exchange.close()

    upstream.handler = hang_up
    assert running.ask("/").status == 502
    upstream.handler = in_pieces(EARLY_HINTS + b"no status line\r\n\r\n")
    assert running.ask("/").status == 502


def test_interim_responses_after_a_retry(serving: Start, upstream: Upstream) -> None:
    with DeadPort() as dead:
        targets = [{"target": dead.address}, {"target": upstream.address}]
        running = serving(
            {
                "upstreams": [{"name": "pool", "targets": targets}],
                "services": [
                    {"name": "s", "host": "pool", "routes": [{"name": "r", "paths": ["/"]}]}
                ],
            }
        )
        running.expect_log(r"connect\(\) failed", range(1, 5))
        upstream.handler = in_pieces(EARLY_HINTS, EARLY_HINTS + FINAL)
        for _ in range(4):
            assert is_final(running.ask("/"), 103, 103)


def test_status_of_the_final_response_is_logged(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream), access_log_format="$status $upstream_status")
    upstream.handler = in_pieces(EARLY_HINTS + FINAL)
    assert is_final(running.ask("/"), 103)
    running.stop("quit")
    assert running.access_log().splitlines()[-1] == "200 200"
