"""Proxying of plain HTTP/1.1: what reaches the upstream, what comes back, over which connection."""

import gzip
import threading
from collections.abc import Iterator

import pytest

from sluice import Gateway, Start, proxying
from upstream import Exchange, Upstream
from wire import DEADLINE, request_bytes

# Connections


def test_client_connection_is_kept(serving: Start, upstream: Upstream) -> None:
    with serving(proxying(upstream)).wire() as wire:
        for number in range(20):
            assert wire.ask(f"/{number}").json()["target"] == f"/{number}"


def test_pipelined_requests_are_answered_in_order(serving: Start, upstream: Upstream) -> None:
    with serving(proxying(upstream)).wire() as wire:
        wire.send(b"".join(request_bytes(f"/{number}") for number in range(10)))
        assert [wire.read_reply().json()["target"] for _ in range(10)] == [
            f"/{number}" for number in range(10)
        ]


def test_upstream_connection_is_pooled(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream))
    for number in range(30):
        assert running.ask(f"/{number}").status == 200
    assert upstream.connections == 1
    assert [request.nth for request in upstream.requests] == list(range(30))
    assert upstream.last.version == "HTTP/1.1"
    assert (upstream.last.headers.get("connection") or "keep-alive").lower() == "keep-alive"


def test_pool_size_zero_closes_each_connection(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream), upstream_keepalive_pool_size=0)
    for _ in range(3):
        assert running.ask("/").status == 200
    assert upstream.connections == 3


def test_requests_of_one_upstream_connection_are_limited(
    serving: Start, upstream: Upstream
) -> None:
    running = serving(proxying(upstream), upstream_keepalive_max_requests=5)
    for _ in range(10):
        assert running.ask("/").status == 200
    assert upstream.connections == 2


def test_idle_upstream_connection_is_closed(serving: Start, upstream: Upstream) -> None:
    ended = threading.Event()

    def answer_and_wait(exchange: Exchange) -> None:
        exchange.reply(200)
        if exchange.ended():
            ended.set()
        exchange.keep = False

    upstream.handler = answer_and_wait
    running = serving(proxying(upstream), upstream_keepalive_idle_timeout="1s")
    assert running.ask("/").status == 200
    assert ended.wait(DEADLINE), "the gateway closes the idle connection"
    assert running.ask("/").status == 200
    assert upstream.requests[1].connection == 1


def test_pool_survives_an_upstream_that_closes_idle_connections(
    serving: Start, upstream: Upstream
) -> None:
    running = serving(proxying(upstream))
    for number in range(5):
        assert running.ask(f"/{number}").status == 200
        upstream.drop_connections()
    assert [request.target for request in upstream.requests] == [f"/{n}" for n in range(5)]
    assert len({request.connection for request in upstream.requests}) == 5


def test_connection_close_is_honoured(serving: Start, upstream: Upstream) -> None:
    with serving(proxying(upstream)).wire() as wire:
        reply = wire.ask("/", headers={"Connection": "close"})
        assert (reply.status, reply.headers.get("connection")) == (200, "close")
        assert wire.ended()
    assert "close" not in (upstream.last.headers.get("connection") or "")


def test_http_1_0_client_gets_an_unchunked_answer(serving: Start, upstream: Upstream) -> None:
    upstream.answer(200, body=b"abc" * 1000, chunked=True)
    with serving(proxying(upstream)).wire() as wire:
        wire.send(b"GET /old HTTP/1.0\r\nHost: a\r\n\r\n")
        reply = wire.read_reply()
    assert (reply.status, reply.chunked, reply.body) == (200, False, b"abc" * 1000)
    assert upstream.last.version == "HTTP/1.1"


def test_keepalive_requests_and_timeout_of_clients(gateway: Start, upstream: Upstream) -> None:
    with gateway(proxying(upstream), keepalive_requests=3).wire() as wire:
        assert [wire.ask("/").headers.get("connection") for _ in range(3)][-1] == "close"
        assert wire.ended()
    with gateway(proxying(upstream), keepalive_timeout="1s").wire() as wire:
        wire.ask("/")
        assert wire.ended()


@pytest.fixture(scope="module")
def open_door() -> Iterator[tuple[Gateway, Upstream]]:
    """A gateway with one route `/` that strips nothing."""
    with Upstream() as upstream, Gateway(proxying(upstream, strip_path=False)) as running:
        yield running, upstream


@pytest.fixture(scope="module")
def running(open_door: tuple[Gateway, Upstream]) -> Gateway:
    return open_door[0]


@pytest.fixture
def behind(open_door: tuple[Gateway, Upstream]) -> Upstream:
    """Its upstream, which has seen nothing yet."""
    server = open_door[1]
    server.requests.clear()
    server.handler = server.echo
    return server


# Methods and statuses


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"])
def test_methods_pass(running: Gateway, behind: Upstream, method: str) -> None:
    reply = running.ask("/m", method, body=b"some body")
    assert reply.status == 200
    assert (reply.json()["method"], reply.json()["length"]) == (method, 9)


def test_head_keeps_the_length_and_sends_no_body(running: Gateway, behind: Upstream) -> None:
    behind.answer(200, {"Content-Length": "1234", "X-A": "b"})
    with running.wire() as wire:
        reply = wire.ask("/", "HEAD")
        assert reply.headers.get("content-length") == "1234"
        assert reply.headers.get("x-a") == "b"
        assert wire.ask("/again", "HEAD").status == 200
    assert [request.method for request in behind.requests] == ["HEAD", "HEAD"]


@pytest.mark.parametrize("status", [201, 204, 205, 206, 301, 304, 400, 404, 418, 451, 500, 503])
def test_statuses_of_the_upstream_pass(running: Gateway, behind: Upstream, status: int) -> None:
    body = b"" if status in (204, 205, 304) else b"the upstream's own words"
    behind.answer(status, {"X-Mine": "1", "Location": "http://elsewhere/x"}, body)
    with running.wire() as wire:
        reply = wire.ask("/", headers={"Accept": "application/json"})
        assert (reply.status, reply.body) == (status, body)
        assert reply.headers.get("x-mine") == "1"
        assert reply.headers.get("location") == "http://elsewhere/x"
        if status in (204, 304):
            assert "transfer-encoding" not in reply.headers
        assert wire.ask("/").status == status
    assert behind.requests[0].connection == behind.requests[1].connection


# Headers and encodings


def test_204_has_no_length(running: Gateway, behind: Upstream) -> None:
    """RFC 9110, 8.6; a 304 has that of what it stands for."""
    with running.wire() as wire:
        for method in ("GET", "HEAD", "DELETE"):
            for length in ("0", "3"):
                behind.answer(204, {"Content-Length": length, "X-A": "b"})
                reply = wire.ask("/", method)
                assert (reply.status, reply.headers.get("x-a")) == (204, "b")
                assert reply.headers.get("content-length") is None
        behind.answer(304, {"Content-Length": "3"})
        assert wire.ask("/").headers.get("content-length") == "3"
    assert len({request.connection for request in behind.requests}) == 1


def test_gzip_passes_untouched(running: Gateway, behind: Upstream) -> None:
    packed = gzip.compress(b"some text " * 5000)
    behind.answer(200, {"Content-Encoding": "gzip", "Content-Type": "text/html"}, packed)
    reply = running.ask("/", headers={"Accept-Encoding": "gzip, br"})
    assert reply.body == packed
    assert reply.headers.get("content-encoding") == "gzip"
    assert reply.headers.get("content-length") == str(len(packed))
    assert behind.last.headers.get("accept-encoding") == "gzip, br"


def test_nothing_is_compressed_by_the_gateway(running: Gateway, behind: Upstream) -> None:
    behind.answer(200, {"Content-Type": "text/html"}, b"some text " * 5000)
    reply = running.ask("/", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in reply.headers
    assert reply.body == b"some text " * 5000


# Names that nginx has code for: none is another one's, said once, or spelt anew for it.
RESPONSE = [
    ("Server", "theirs/1"),
    ("Date", "Thu, 01 Jan 1970 00:00:00 GMT"),
    ("Set-Cookie", "a=1; Path=/"),
    ("Set-Cookie", "b=2"),
    ("ETag", '"e"'),
    ("Cache-Control", "no-store"),
    ("Cache-Control", "max-age=0"),
    ("Expires", "0"),
    ("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT"),
    ("X-Empty", ""),
    ("X-Latin", "caf\xe9"),
    ("X.Dot", "1"),
    ("Location", "http://127.0.0.1/x"),
    ("Refresh", "5; url=http://127.0.0.1/"),
    ("Status", "404"),
    ("Vary", "Accept"),
    ("Link", "</a>; rel=preload"),
    ("WWW-Authenticate", "Basic"),
    ("WWW-Authenticate", "Bearer"),
    ("Accept-Ranges", "bytes"),
    ("Content-Encoding", "gzip"),
    ("Content-Range", "bytes 0-0/1"),
    ("Content-Location", "/y"),
    ("Content-Disposition", "attachment"),
    ("Age", "1"),
    ("Allow", "GET"),
    ("Retry-After", "1"),
    ("P3P", "x"),
    ("X-Accel-Unknown", "1"),
]
TYPES = [
    "text/weird; charset=x",
    'text/html;charset="UTF-8"',
    "application/JSON;Charset=utf-8;q=1",
    'multipart/mixed; charset=utf-8; boundary="a b"',
]
# What is for the proxy that an upstream talks to.
TO_PROXIES = [
    ("X-Accel-Redirect", "/internal"),
    ("X-Accel-Buffering", "no"),
    ("X-Accel-Expires", "5"),
    ("X-Accel-Limit-Rate", "1"),
    ("X-Accel-Charset", "x"),
    ("X-Pad", "avoid browser bug"),
]


@pytest.mark.parametrize("kind", TYPES)
def test_response_headers_pass(running: Gateway, behind: Upstream, kind: str) -> None:
    sent = [*RESPONSE, ("Content-Type", kind)]
    behind.answer(200, [*sent, *TO_PROXIES], b"x")
    # What nginx could answer by itself, from a file.
    asked = {"If-None-Match": "*", "Range": "bytes=0-0", "If-Modified-Since": RESPONSE[1][1]}
    reply = running.ask("/", headers=asked)
    assert (reply.status, reply.body) == (200, b"x")
    assert [
        pair for pair in reply.headers if pair in sent and pair[0] != "Content-Type"
    ] == RESPONSE
    assert reply.headers.all("Content-Type") == [kind]
    assert not [name for name, _ in TO_PROXIES if name in reply.headers]


def test_request_headers_pass(running: Gateway, behind: Upstream) -> None:
    sent = [
        ("User-Agent", "me/1"),
        ("Accept", "*/*"),
        ("Cookie", "a=1; b=2"),
        ("Authorization", "Basic Zm9vOmJhcg=="),
        ("X-Repeated", "1"),
        ("X-Repeated", "2"),
        ("X-Latin", "caf\xe9"),
        ("If-None-Match", '"e"'),
        ("If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("Range", "bytes=0-1"),
        ("X_Under_Score", "yes"),
        ("x.dot", "1"),
    ]
    assert running.ask("/", headers=sent).status == 200
    assert [pair for pair in sent if pair not in behind.last.headers[:]] == []


def test_hop_by_hop_request_headers_stop_here(running: Gateway, behind: Upstream) -> None:
    headers = {
        "Connection": "keep-alive, X-Private, Upgrade",
        "X-Private": "secret",
        "Keep-Alive": "timeout=5",
        "Proxy-Connection": "keep-alive",
        "Proxy": "http://evil",
        "TE": "gzip, trailers",
        "Upgrade": "h2c",
        "X-Public": "1",
    }
    assert running.ask("/", headers=headers).status == 200
    seen = behind.last.headers
    for name in ("X-Private", "Keep-Alive", "Proxy-Connection", "Proxy", "Upgrade"):
        assert name not in seen, name
    assert seen.get("te") in (None, "trailers")
    assert seen.get("x-public") == "1"
    assert (seen.get("connection") or "keep-alive") == "keep-alive"


def test_a_client_cannot_drop_the_gateways_own_headers(running: Gateway, behind: Upstream) -> None:
    named = "X-Forwarded-For, X-Real-IP, X-Forwarded-Host, Host, Content-Length"
    reply = running.ask("/", "POST", {"Connection": named}, b"body")
    assert reply.status == 200
    for name in ("X-Forwarded-For", "X-Real-IP", "X-Forwarded-Host", "Host"):
        assert name in behind.last.headers, name
    assert behind.last.body == b"body"


def test_connection_of_the_upstream_stops_here(running: Gateway, behind: Upstream) -> None:
    # Headers that the upstream names there pass: docs/architecture.md, "Limits".
    behind.answer(200, {"Connection": "keep-alive, X-P", "Keep-Alive": "timeout=9"}, b"x")
    reply = running.ask("/")
    assert reply.headers.get("keep-alive") is None
    assert "x-p" not in (reply.headers.get("connection") or "").lower()


def test_big_headers_within_the_limits_pass(running: Gateway, behind: Upstream) -> None:
    behind.answer(200, {"X-Big": "r" * 3000}, b"x")
    sent = {f"X-Part-{number}": "q" * 7000 for number in range(3)}
    reply = running.ask("/", headers=sent)
    assert reply.headers.get("x-big") == "r" * 3000
    assert all(behind.last.headers.get(name) == value for name, value in sent.items())


# Service and target


def test_service_by_fields(serving: Start, upstream: Upstream) -> None:
    config = {
        "services": [
            {
                "name": "s",
                "protocol": "http",
                "host": "127.0.0.1",
                "port": upstream.port,
                "path": "/base",
                "routes": [{"paths": ["/api"]}],
            }
        ]
    }
    reply = serving(config).ask("/api/x?y=1")
    assert reply.json()["target"] == "/base/x?y=1"
    assert upstream.last.headers.get("host") == upstream.address


@pytest.mark.parametrize(
    ("preserve", "sent", "seen"),
    [
        (False, "api.example.com", None),
        (True, "api.example.com", "api.example.com"),
        (True, "API.example.com:8443", "API.example.com:8443"),
    ],
)
def test_host_header(
    serving: Start, upstream: Upstream, preserve: bool, sent: str, seen: str | None
) -> None:
    running = serving(proxying(upstream, preserve_host=preserve))
    assert running.ask("/", headers={"Host": sent}).status == 200
    got = upstream.last.headers.get("host")
    assert got is not None
    if seen is None:
        assert got == upstream.address
    else:
        assert got.lower() == seen.lower()


PATHS = [
    # service path, route path, strip, handling, request, seen
    ("/", "/", True, "v0", "/", "/"),
    ("/", "/", False, "v1", "/req/", "/req/"),
    ("/", "/route", False, "v0", "/route", "/route"),
    ("/", "/route", True, "v0", "/route", "/"),
    ("/", "/route", True, "v1", "/route", "/"),
    ("/", "/route", True, "v0", "/routereq", "/req"),
    ("/", "/route", True, "v1", "/route/req", "/req"),
    ("/", "/route/", True, "v0", "/route/req", "/req"),
    ("/srv", "/rou", False, "v0", "/roureq", "/srv/roureq"),
    ("/srv", "/rou", False, "v1", "/roureq", "/srvroureq"),
    ("/srv", "/rou", True, "v0", "/roureq", "/srv/req"),
    ("/srv", "/rou", True, "v1", "/roureq", "/srvreq"),
    ("/srv", "/", True, "v0", "/", "/srv"),
    ("/srv", "/", True, "v0", "/req", "/srv/req"),
    ("/srv", "/", False, "v1", "/req", "/srvreq"),
    ("/srv", "/route", True, "v0", "/route", "/srv"),
    ("/srv", "/route", True, "v1", "/route/", "/srv/"),
    ("/srv", "/route", False, "v0", "/route/req", "/srv/route/req"),
    ("/srv", "/route/", True, "v0", "/route/req", "/srv/req"),
    ("/srv", "/route/", True, "v1", "/route/req", "/srvreq"),
    ("/srv/", "/route", True, "v0", "/route/req", "/srv/req"),
    ("/srv/", "/route/", True, "v1", "/route/req", "/srv/req"),
    ("/srv/", "/route", False, "v0", "/route/req", "/srv/route/req"),
    (None, "/route", True, "v0", "/route/req", "/req"),
    ("/srv", "~/r[a-z]+/(?<id>\\d+)", True, "v0", "/route/12/req", "/srv/req"),
    ("/srv", "~/r[a-z]+/", False, "v0", "/route/12", "/srv/route/12"),
]


@pytest.fixture(scope="module")
def paths() -> Iterator[tuple[Gateway, Upstream]]:
    """A gateway with a host for each row of PATHS."""
    with Upstream() as upstream:
        services = [
            {
                "name": f"s{number}",
                "host": "127.0.0.1",
                "port": upstream.port,
                "path": service_path,
                "routes": [
                    {
                        "hosts": [f"h{number}"],
                        "paths": [route_path],
                        "strip_path": strip,
                        "path_handling": handling,
                    }
                ],
            }
            for number, (service_path, route_path, strip, handling, *_) in enumerate(PATHS)
        ]
        for service in services:
            if service["path"] is None:
                del service["path"]
        with Gateway({"services": services}) as running:
            yield running, upstream


@pytest.mark.parametrize("number", range(len(PATHS)), ids=lambda n: "-".join(map(str, PATHS[n])))
def test_strip_path_and_path_handling(paths: tuple[Gateway, Upstream], number: int) -> None:
    *_, request, seen = PATHS[number]
    for query in ("", "?", "?a=/b/../c&d=%20"):
        reply = paths[0].ask(request + query, headers={"Host": f"h{number}"})
        assert (reply.status, reply.json()["target"]) == (200, seen + query)


TARGETS = [
    # sent, seen behind a route `/` that strips nothing
    ("/", "/"),
    ("/?", "/?"),
    ("/a?", "/a?"),
    ("/a??", "/a??"),
    ("/a?b=c?d", "/a?b=c?d"),
    ("/a?b=%2f%41", "/a?b=%2f%41"),
    ("/a%20b", "/a%20b"),
    ("/a%2Fb", "/a%2Fb"),
    ("/a%2fb", "/a%2Fb"),
    ("/%61%62c", "/abc"),
    ("/%7Euser", "/~user"),
    ("/a%3Fb", "/a%3Fb"),
    ("/a%23b", "/a%23b"),
    ("/a%25b", "/a%25b"),
    ("/a%2525b", "/a%2525b"),
    ("/a%00b", None),
    ("/a+b", "/a+b"),
    ("/a;v=1/b", "/a;v=1/b"),
    ("/a:b@c!$&'()*,=", "/a:b@c!$&'()*,="),
    ("/caf%C3%A9", "/caf%C3%A9"),
    ("/a/./b", "/a/b"),
    ("/a/../b", "/b"),
    ("/a/%2e%2e/b", "/b"),
    ("/a/..", "/"),
    ("/a/.", "/a/"),
    ("/a%5Bb%5D", "/a%5Bb%5D"),
]


@pytest.mark.parametrize(("sent", "seen"), TARGETS)
def test_path_and_query_as_the_upstream_sees_them(
    running: Gateway, behind: Upstream, sent: str, seen: str | None
) -> None:
    reply = running.ask(sent)
    if seen is None:
        assert reply.status == 400
    else:
        assert (reply.status, reply.json()["target"]) == (200, seen)


def test_escaped_text_cannot_break_the_request_line(running: Gateway, behind: Upstream) -> None:
    for sent in ("/a%0d%0aX-Evil:%201", "/a%0D%0A%0D%0AGET%20/x", "/a%20HTTP/1.1%0aX:1"):
        reply = running.ask(sent)
        assert reply.status in (200, 400)
        if reply.status == 200:
            assert "\n" not in reply.json()["target"]
            assert " " not in reply.json()["target"]
            assert not behind.last.headers.names() & {"x-evil", "x"}
