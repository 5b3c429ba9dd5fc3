"""Requests of HTTP/2 as upstreams see them: bodies, fields, and what is none."""

import json
from collections.abc import Iterator

import pytest
from http2 import DATA, Client, frame, served, speaking

from sluice import Gateway, Start
from upstream import Upstream
from wire import Pairs, request_bytes

END = 1
PADDED = 8

ROUTES = [
    {"name": "buffered", "paths": ["/"]},
    {"name": "streamed", "paths": ["/streamed"], "strip_path": False, "request_buffering": False},
]


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    """One for all tests of this file."""
    with Upstream() as server:
        yield server


@pytest.fixture(scope="module")
def running(server: Upstream) -> Iterator[Gateway]:
    """It sends bodies when they are whole, those of one route as they come."""
    config = served(server)
    config["services"][0]["routes"] = ROUTES
    with Gateway(config, tls="ssl http2") as running:
        yield running


@pytest.fixture
def upstream(server: Upstream) -> Upstream:
    """The same, which has seen nothing yet."""
    server.requests.clear()
    server.handler = server.echo
    return server


@pytest.fixture
def client(running: Gateway) -> Iterator[Client]:
    """A connection to it."""
    with speaking(running) as client:
        yield client


def status(client: Client, stream: int) -> int:
    """Of the response; 0: the stream was reset, or the connection ended."""
    return client.answers([stream])[stream][0]


def as_it_is(path: str = "/", *fields: tuple[object, object]) -> list[tuple[object, object]]:
    """A request's head."""
    return [(":method", "GET"), (":scheme", "https"), (":path", path), *fields]


HOST = (":authority", "h")


# Bodies

BODIES = {
    "none": ([frame(DATA, b"", 0, END)], b""),
    "one frame": ([frame(DATA, b"body", 0, END)], b"body"),
    "an empty frame at the end": ([frame(DATA, b"body"), frame(DATA, b"", 0, END)], b"body"),
    "empty frames between": (
        [frame(DATA), frame(DATA, b"bo"), frame(DATA), frame(DATA, b"dy", 0, END)],
        b"body",
    ),
    "padding": ([frame(DATA, b"\x07body" + bytes(7), 0, PADDED | END)], b"body"),
    "padding alone": (
        [frame(DATA, b"\xff" + bytes(255), 0, PADDED), frame(DATA, b"", 0, END)],
        b"",
    ),
    "a byte a frame": (
        [frame(DATA, bytes([i])) for i in range(200)] + [frame(DATA, b"", 0, END)],
        bytes(range(200)),
    ),
}


def with_stream(whole: bytes, stream: int) -> bytes:
    """A frame of another stream."""
    return whole[:5] + stream.to_bytes(4, "big") + whole[9:]


@pytest.mark.parametrize("path", ["/", "/streamed"])
@pytest.mark.parametrize("has_length", [True, False], ids=["length", "no length"])
def test_bodies(client: Client, upstream: Upstream, path: str, has_length: bool) -> None:
    for name, (frames, body) in BODIES.items():
        length = [("content-length", str(len(body)))] if has_length else []
        stream = client.ask(path, method="POST", headers=length, end=False)
        client.flush()
        client.socket.sendall(b"".join(with_stream(each, stream) for each in frames))
        assert status(client, stream) == 200, name
        assert upstream.last.body == body, name
        sent = upstream.last.headers
        if sent.get("transfer-encoding") is None:
            assert sent.get("content-length") == str(len(body)), name
        else:
            assert sent.get("content-length") is None, name


@pytest.mark.parametrize("path", ["/", "/streamed"])
@pytest.mark.parametrize(
    "lengths", [["5"], ["2"], ["0"], ["-1"], ["x"], ["3 "], ["3", "3"], ["3", "4"]]
)
def test_lengths_that_lie(
    client: Client, upstream: Upstream, path: str, lengths: list[str]
) -> None:
    """No upstream takes such a body for a whole one, and the connection goes on."""
    fields = [("content-length", each) for each in lengths]
    stream = client.ask(path, method="POST", headers=fields, end=False)
    client.flush()
    client.socket.sendall(frame(DATA, b"abc", stream, END))
    # A body of length 0 that is streamed is whole before what lies about it has come.
    may_be = (200, 400) if lengths == ["0"] and path == "/streamed" else (400,)
    assert status(client, stream) in may_be
    assert not [seen for seen in upstream.requests if seen.body]
    stream = client.ask()
    assert status(client, stream) == 200


def test_a_length_without_a_body(client: Client, upstream: Upstream) -> None:
    assert status(client, client.ask(method="POST", headers=[("content-length", "5")])) == 400
    assert status(client, client.ask(method="POST", headers=[("content-length", "0")])) == 200
    assert [seen.headers.get("content-length") for seen in upstream.requests] == ["0"]


def test_trailers_end_the_connection(running: Gateway, upstream: Upstream) -> None:
    """As in nginx, which knows none of requests."""
    with speaking(running) as client:
        stream = client.ask(method="POST", end=False)
        client.h2.send_data(stream, b"body")
        client.h2.send_headers(stream, [("x-sum", "1")], end_stream=True)
        assert status(client, stream) == 0
        assert client.last_stream is not None
    assert running.get("/").status_code == 200
    assert len(upstream.requests) == 1


def test_expect(client: Client, upstream: Upstream) -> None:
    stream = client.ask(method="POST", headers=[("expect", "100-continue")], end=False)
    client.h2.send_data(stream, b"body", end_stream=True)
    assert status(client, stream) == 200
    assert upstream.last.body == b"body"


# Fields


@pytest.mark.parametrize(
    "field",
    [
        ("connection", "close"),
        ("connection", "x-secret"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
        ("transfer-encoding", "identity"),
        ("upgrade", "websocket"),
        ("te", "gzip"),
        ("te", "trailers"),
    ],
)
def test_fields_of_a_connection(client: Client, upstream: Upstream, field: tuple[str, str]) -> None:
    """They are refused, or go no further."""
    more = [("x-secret", "1")]
    found = status(client, client.ask(headers=[field, *more]))
    assert found in (200, 400, 501)
    if found == 200:
        sent = upstream.last.headers
        assert sent.get(field[0]) in (None, "")
        assert sent.get("x-secret") == (None if field[1] == "x-secret" else "1")
    else:
        assert upstream.requests == []
    assert status(client, client.ask()) == 200


def test_fields_of_the_upstreams_connection(client: Client, upstream: Upstream) -> None:
    """HTTP/2 has none of them: clients take a response that does for malformed."""
    fields = [
        ("Connection", "Keep-Alive, Upgrade, X-Hop"),
        ("Keep-Alive", "timeout=5"),
        ("Upgrade", "h2,h2c"),
        ("Proxy-Connection", "keep-alive"),
        ("X-Hop", "1"),
        ("X-UPPER", "1"),
    ]
    for chunked in (True, False):
        upstream.answer(200, fields, b"body", chunked=chunked)
        stream = client.ask()
        assert client.answers([stream])[stream] == (200, b"body")
        head = client.heads[stream]
        hops = {"connection", "keep-alive", "upgrade", "proxy-connection", "transfer-encoding"}
        assert not hops & set(head)
        assert "x-hop" not in head
        assert head["x-upper"] == "1"


@pytest.mark.parametrize(
    "fields",
    [
        [HOST, ("host", "other")],
        [HOST, ("host", "h"), ("host", "other")],
        [("host", "other"), HOST],
        [HOST, (":authority", "other")],
        [("host", "h"), ("host", "other")],
        [(":authority", "h\x00"), ("host", "h")],
        [(":authority", "a b")],
        [(":authority", "h/../x")],
        [(":authority", "user@h")],
        [(":authority", "")],
        [],
    ],
)
def test_one_authority(client: Client, upstream: Upstream, fields: list[tuple[str, str]]) -> None:
    """Who says two, or none, is refused: no reader sees another one than has routed."""
    assert status(client, client.send(as_it_is("/", *fields))) in (0, 400)
    assert upstream.requests == []
    assert status(client, client.send(as_it_is("/", ("host", "H.example:99")))) == 200
    assert upstream.last.headers.get("x-forwarded-host") == "h.example"


@pytest.mark.parametrize(
    "head",
    [
        [(":method", "GET"), (":scheme", "https"), HOST],
        [(":method", "GET"), (":path", "/"), HOST],
        [(":scheme", "https"), (":path", "/"), HOST],
        [*as_it_is("/"), HOST, (":path", "/b")],
        [*as_it_is("/"), HOST, (":method", "POST")],
        [*as_it_is("/"), HOST, (":scheme", "http")],
        [*as_it_is("/"), HOST, (":status", "200")],
        [*as_it_is("/"), HOST, (":unknown", "1")],
        [*as_it_is("/"), HOST, (":protocol", "websocket")],
        [*as_it_is(""), HOST],
        [*as_it_is("*"), HOST],
        [*as_it_is("x"), HOST],
        [*as_it_is("https://other/"), HOST],
        [*as_it_is("/a b"), HOST],
        [*as_it_is("/a\x01"), HOST],
        [*as_it_is("/a\x7f"), HOST],
        [*as_it_is("/a HTTP/1.1\r\nx: y"), HOST],
        [*as_it_is("/%2e%2e%2f"), HOST],
        [(":method", "GET /x"), (":scheme", "https"), (":path", "/"), HOST],
        [(":method", "get"), (":scheme", "https"), (":path", "/"), HOST],
        [(":method", ""), (":scheme", "https"), (":path", "/"), HOST],
        [(":method", "CONNECT"), HOST],
        [(":method", "CONNECT"), (":scheme", "https"), (":path", "/"), HOST],
        [(":method", "TRACE"), (":scheme", "https"), (":path", "/"), HOST],
        [(":method", "GET"), (":scheme", "a b"), (":path", "/"), HOST],
    ],
)
def test_requests_that_are_none(
    client: Client, upstream: Upstream, head: list[tuple[str, str]]
) -> None:
    """They reach no upstream, and harm no other stream of the connection."""
    assert status(client, client.send(head)) in (0, 400, 405)
    assert upstream.requests == []
    assert status(client, client.ask()) == 200


@pytest.mark.parametrize(
    "name", [b"X-Upper", b"x y", b"x\x00y", b"x:y", b"x\r\ny", b"\x7f", b"x ", b" x"]
)
def test_names_that_reset_a_stream(client: Client, upstream: Upstream, name: bytes) -> None:
    assert status(client, client.send(as_it_is("/", HOST, (name, b"1")))) in (0, 400)
    assert upstream.requests == []
    assert status(client, client.ask()) == 200


@pytest.mark.parametrize("name", [b"x(y", b"x\xff", b"x/y", b"x{y}"])
def test_names_that_are_left_out(client: Client, upstream: Upstream, name: bytes) -> None:
    """As in HTTP/1.1, and those of their neighbours stay."""
    fields = [(b"x-a", b"1"), (name, b"2"), (b"x-b", b"3")]
    assert status(client, client.send(as_it_is("/", HOST, *fields))) == 200
    assert "2" not in dict(upstream.last.headers).values()
    assert [upstream.last.headers.get(each) for each in ("x-a", "x-b")] == ["1", "3"]


@pytest.mark.parametrize("value", [b"\x00", b"a\r\nb: c", b"a\nb: c", b"a\r", b"a\x00b"])
def test_values_that_reset_a_stream(client: Client, upstream: Upstream, value: bytes) -> None:
    assert status(client, client.send(as_it_is("/", HOST, (b"x-a", value)))) in (0, 400)
    assert upstream.requests == []
    assert status(client, client.ask()) == 200


def test_other_values_are_those_of_http1(
    running: Gateway, client: Client, upstream: Upstream
) -> None:
    values = [bytes([each]) for each in range(1, 256) if each not in b"\r\n"]
    names = [f"x-{i}" for i in range(len(values))]
    fields = [(n.encode(), b"a" + v + b"b") for n, v in zip(names, values, strict=True)]
    assert status(client, client.send(as_it_is("/", HOST, *fields))) == 200
    lines: Pairs = [(n.decode(), v.decode("latin-1")) for n, v in fields]
    with running.wire() as wire:
        wire.send(request_bytes("/", headers=lines))
        assert wire.read_reply().status == 200
    ours, theirs = ([each.headers.get(n) for n in names] for each in upstream.requests)
    assert ours == theirs


def test_cookies_are_one_line(client: Client, upstream: Upstream) -> None:
    """Clients send each by itself, for the sake of compression (RFC 9113, 8.2.3)."""
    crumbs = [("cookie", "a=1"), ("x-a", "1"), ("cookie", "b=2; c=3"), ("cookie", "d=4")]
    stream = client.ask(headers=crumbs)
    _, body = client.answers([stream])[stream]
    seen = [value for name, value in json.loads(body)["headers"] if name.lower() == "cookie"]
    assert seen == ["a=1; b=2; c=3; d=4"]


@pytest.mark.parametrize("whose", ["gateway", "upstream"])
def test_a_426_has_no_upgrade(gateway: Start, upstream: Upstream, whose: str) -> None:
    """HTTP/2 has neither Upgrade nor Connection: its clients take a head with one for broken."""
    upstream.answer(426, [("Upgrade", "TLS/1.2"), ("Connection", "upgrade")], b"no")
    more = {"protocols": ["https"]} if whose == "gateway" else {}
    running = gateway(served(upstream, **more), tls="ssl http2", trusted_ips="127.0.0.1")
    with speaking(running) as client:
        stream = client.ask("/", headers=[("x-forwarded-proto", "http")])
        assert client.answers([stream])[stream][0] == 426
        assert not {"upgrade", "connection"} & client.heads[stream].keys()
