"""The cors plugin: what browsers are told, of preflights and of every kind of response; origins and
their look-alikes, patterns that burn."""

import time
from typing import Any

import pytest
from admin_client import Client
from http2 import speaking
from plugin_pages import example

from sluice import Start, proxying
from upstream import Upstream
from wire import Headers, Pairs, Reply, request_bytes

ORIGIN = "https://app.example.com"
METHODS = "GET,HEAD,PUT,PATCH,POST,DELETE,OPTIONS,TRACE,CONNECT"
ALLOW = "Access-Control-Allow-"


def sharing(upstream: Upstream, *more: dict[str, Any], **config: Any) -> dict[str, Any]:
    """One route with the plugin."""
    return proxying(upstream) | {"plugins": [{"name": "cors", "config": config}, *more]}


def preflight(origin: str = ORIGIN, **more: str) -> Pairs:
    """Headers of a browser that asks first."""
    headers = {"Origin": origin, "Access-Control-Request-Method": "PUT"}
    return headers | {name.replace("_", "-"): value for name, value in more.items()}


def told(headers: Headers) -> dict[str, str]:
    """What a response says to browsers, each once."""
    found = [
        (name.lower().removeprefix("access-control-"), value)
        for name, value in headers
        if name.lower().startswith("access-control-") or name.lower() == "vary"
    ]
    assert len(dict(found)) == len(found), found
    return dict(found)


def origin_of(reply: Reply) -> str | None:
    """Whom a response allows."""
    values = reply.headers.all(ALLOW + "Origin")
    assert len(values) < 2
    return values[0] if values else None


# Preflights


def test_a_configuration_ends_no_header(serving: Start, upstream: Upstream) -> None:
    evil = ["A\r\nX-Evil: 1", "B\n\nbody"]
    running = serving(sharing(upstream, headers=evil, exposed_headers=evil))
    escaped = "A%0D%0AX-Evil: 1,B%0A%0Abody"
    reply = running.ask("/", "OPTIONS", headers=preflight())
    assert reply.headers.get(ALLOW + "Headers") == escaped
    assert reply.body == b""
    reply = running.ask("/", headers={"Origin": ORIGIN})
    assert reply.headers.get("Access-Control-Expose-Headers") == escaped
    assert reply.headers.get("X-Evil") is None


PREFLIGHTS: list[tuple[dict[str, Any], Pairs, dict[str, str]]] = [
    ({}, preflight(), {"allow-origin": "*", "allow-methods": METHODS}),
    (
        {"credentials": True},
        preflight(),
        {
            "allow-origin": ORIGIN,
            "allow-credentials": "true",
            "allow-methods": METHODS,
            "vary": "Origin",
        },
    ),
    (
        {"origins": [ORIGIN], "methods": ["GET", "PUT"], "max_age": 23, "headers": ["A", "B"]},
        preflight("https://other.example.com"),
        {
            "allow-origin": ORIGIN,
            "allow-methods": "GET,PUT",
            "allow-headers": "A,B",
            "max-age": "23",
            "vary": "Origin",
        },
    ),
    (
        {"origins": ["https://a.com", "https://b.com"], "credentials": True},
        preflight("https://c.com"),
        {"allow-credentials": "true", "allow-methods": METHODS, "vary": "Origin"},
    ),
    (
        {},
        preflight(Access_Control_Request_Headers="X-One, X-Two"),
        {"allow-origin": "*", "allow-methods": METHODS, "allow-headers": "X-One, X-Two"},
    ),
    (
        {"private_network": True},
        preflight(Access_Control_Request_Private_Network="true"),
        {"allow-origin": "*", "allow-methods": METHODS, "allow-private-network": "true"},
    ),
    (
        {"private_network": True},
        preflight(Access_Control_Request_Private_Network="True"),
        {"allow-origin": "*", "allow-methods": METHODS},
    ),
    (
        {"exposed_headers": ["X-Read"]},
        preflight(),
        {"allow-origin": "*", "allow-methods": METHODS},
    ),
]


@pytest.mark.parametrize(("config", "headers", "expected"), PREFLIGHTS)
def test_preflights(
    serving: Start,
    upstream: Upstream,
    config: dict[str, Any],
    headers: Pairs,
    expected: dict[str, str],
) -> None:
    """Answered here, before anybody has to show a credential."""
    running = serving(sharing(upstream, {"name": "key-auth"}, **config))
    reply = running.ask("/", "OPTIONS", headers)
    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers.get("Content-Length") == "0"
    assert "Content-Type" not in reply.headers
    assert told(reply.headers) == expected
    assert not upstream.requests


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("OPTIONS", {"Origin": ORIGIN}),
        ("OPTIONS", {"Access-Control-Request-Method": "PUT"}),
        ("GET", preflight()),
        ("options", preflight()),
        ("OPTIONS", {"Origin": ORIGIN, "Access_Control_Request_Method": "PUT"}),
    ],
)
def test_what_is_no_preflight(
    serving: Start, upstream: Upstream, method: str, headers: Pairs
) -> None:
    running = serving(sharing(upstream, origins=[ORIGIN]))
    running.expect_log("client sent invalid method", range(2))
    reply = running.ask("/", method, headers)
    assert reply.status == (400 if method == "options" else 200)
    assert ALLOW + "Methods" not in reply.headers
    assert origin_of(reply) == ORIGIN


def test_preflights_of_the_service(serving: Start, upstream: Upstream) -> None:
    """With preflight_continue nothing is added to its answer."""
    upstream.answer(204, {ALLOW + "Origin": "its", "Vary": "its"})
    running = serving(sharing(upstream, origins=[ORIGIN], preflight_continue=True))
    reply = running.ask("/", "OPTIONS", preflight())
    assert reply.status == 204
    assert told(reply.headers) == {"allow-origin": "its", "vary": "its"}
    assert origin_of(running.ask("/")) == ORIGIN


# Responses


RESPONSES: list[tuple[dict[str, Any], str | None, dict[str, str]]] = [
    ({}, ORIGIN, {"allow-origin": "*"}),
    ({}, None, {"allow-origin": "*"}),
    ({"origins": []}, None, {"allow-origin": "*"}),
    (
        {"origins": ["*"], "exposed_headers": ["A", "B"]},
        None,
        {"allow-origin": "*", "expose-headers": "A,B"},
    ),
    ({"credentials": True}, None, {"allow-origin": "*"}),
    (
        {"credentials": True},
        "null",
        {"allow-origin": "null", "allow-credentials": "true", "vary": "Origin"},
    ),
    ({"origins": [ORIGIN]}, None, {"allow-origin": ORIGIN, "vary": "Origin"}),
    (
        {"origins": ["https://a.com", "*"]},
        "https://b.com",
        {"allow-origin": "*", "vary": "Origin"},
    ),
    ({"origins": ["https://a.com", "*"]}, None, {"vary": "Origin"}),
    (
        {"origins": ["https://a.com", "*"], "credentials": True},
        "https://b.com",
        {"allow-origin": "https://b.com", "allow-credentials": "true", "vary": "Origin"},
    ),
]


@pytest.mark.parametrize(("config", "origin", "expected"), RESPONSES)
def test_responses(
    serving: Start,
    upstream: Upstream,
    config: dict[str, Any],
    origin: str | None,
    expected: dict[str, str],
) -> None:
    running = serving(sharing(upstream, **config))
    reply = running.ask("/", headers={"Origin": origin} if origin else {})
    assert reply.status == 200
    assert told(reply.headers) == expected


def test_what_the_service_says_is_replaced(serving: Start, upstream: Upstream) -> None:
    upstream.answer(
        headers=[
            (ALLOW + "Origin", "https://evil.com"),
            (ALLOW + "Origin", "*"),
            ("access-control-expose-headers", "Set-Cookie"),
            (ALLOW + "Methods", "its"),
            ("Vary", "Accept"),
        ]
    )
    config = {"origins": ["https://a.com", "https://b.com"], "exposed_headers": ["X"]}
    running = serving(sharing(upstream, **config))
    reply = running.ask("/", headers={"Origin": "https://a.com"})
    assert origin_of(reply) == "https://a.com"
    assert reply.headers.all("Access-Control-Expose-Headers") == ["X"]
    assert reply.headers.all(ALLOW + "Methods") == ["its"]
    assert reply.headers.all("Vary") == ["Accept", "Origin"]
    assert origin_of(running.ask("/", headers={"Origin": "https://evil.com"})) is None


def test_errors_have_them_too(serving: Start, upstream: Upstream) -> None:
    """Or a script never learns that there was one."""
    config = sharing(upstream, {"name": "key-auth"}, origins=["https://a.com", "https://b.com"])
    config["services"][0]["routes"][0]["paths"] = ["/there"]
    config["services"].append(
        {"name": "dead", "url": "http://127.0.0.1:1", "routes": [{"paths": ["/dead"]}]}
    )
    config["routes"] = [{"name": "none", "paths": ["/none"]}]
    config["consumers"] = [{"username": "u", "keyauth_credentials": [{"key": "k"}]}]
    running = serving(config, client_max_body_size="1m")
    running.expect_log("connect\\(\\) failed", range(1, 20))
    running.expect_log("too large body", range(3))
    headers = {"Origin": "https://b.com", "apikey": "k"}
    for path, status in (("/", 404), ("/dead", 502), ("/none", 503), ("/there", 200)):
        reply = running.ask(path, headers=headers)
        assert (reply.status, origin_of(reply)) == (status, "https://b.com")
    reply = running.ask("/there", headers={"Origin": "https://b.com"})
    assert (reply.status, origin_of(reply)) == (401, "https://b.com")
    with running.wire() as wire:
        wire.send(request_bytes("/there", "POST", headers | {"Content-Length": str(2**40)}))
        reply = wire.read_reply()
    assert (reply.status, origin_of(reply)) == (413, "https://b.com")


# Origins


LISTS: list[tuple[list[str], list[str], list[str]]] = [
    (
        ["https://a.com", "http://b.com:8080"],
        ["https://a.com", "https://a.com:443", "http://b.com:8080"],
        [
            "http://a.com",
            "https://a.com:80",
            "https://a.com:8443",
            "https://A.com",
            "https://a.com.evil.org",
            "https://evila.com",
            "https://a.com@evil.org",
            "https://evil.org/https://a.com",
            "https://evil.org#https://a.com",
            "a.com",
            "https://a.com/",
            "https://a.com ,https://b.com",
            "null",
            "",
            "https://b.com:8080",
        ],
    ),
    (
        ["https://a.com:443", "http://b.com:80/path"],
        ["https://a.com", "http://b.com"],
        ["https://a.com:4430", "http://b.com:8080"],
    ),
    (
        [r"https://(.*\.)?a\.com"],
        ["https://a.com", "https://x.a.com", "https://x.y.a.com"],
        ["https://a-com", "https://a.com.evil.org", "https://evila.com", "http://a.com", "null"],
    ),
    (
        [r".*\.?a\.com"],
        ["https://a.com", "http://x.a.com:81"],
        ["https://a.com.evil.org", "https://evil.org/a.com", "https://acom"],
    ),
    (
        [r"a\.com|b\.com", "https://c.com"],
        ["https://a.com", "https://b.com", "https://c.com"],
        ["https://a.com.evil.org", "https://xb.com", "https://a.comb.com"],
    ),
    ([r"^https://a\.com$"], ["https://a.com"], ["https://a.com.org", "xhttps://a.com"]),
    (["null", "https://a.com"], ["null", "https://a.com"], ["https://null", "NULL"]),
    ([r"https?://\[::1\]:\d+"], ["http://[::1]:81"], ["http://[::2]:81", "http://::1:81"]),
]


@pytest.mark.parametrize(("origins", "allowed", "refused"), LISTS)
def test_lists_of_origins(
    serving: Start,
    upstream: Upstream,
    origins: list[str],
    allowed: list[str],
    refused: list[str],
) -> None:
    running = serving(sharing(upstream, origins=origins))
    for origin in allowed:
        expected = origin.removesuffix(":443")
        reply = running.ask("/", headers={"Origin": origin})
        assert (origin, origin_of(reply)) == (origin, expected)
        reply = running.ask("/", "OPTIONS", preflight(origin))
        assert (origin, origin_of(reply)) == (origin, expected)
    for origin in refused:
        reply = running.ask("/", headers={"Origin": origin})
        assert (origin, origin_of(reply)) == (origin, None)
        assert reply.headers.all("Vary") == ["Origin"]
        reply = running.ask("/", "OPTIONS", preflight(origin))
        assert (origin, origin_of(reply)) == (origin, None)


@pytest.mark.parametrize("pattern", [r"https://(a+)+b", r"(x+x+)+y", r"(.*)*=(.*)*(.*)*z"])
def test_patterns_that_burn(gateway: Start, upstream: Upstream, pattern: str) -> None:
    """Who is not sure refuses, and soon; the command warns of it."""
    running = gateway(sharing(upstream, origins=[pattern, *[f"{pattern}{n}" for n in range(20)]]))
    checked = running.command("check", str(running.file))
    warning = f"\"cors\": a client can make the pattern '{pattern}' exceed"
    assert checked.returncode == 0
    assert warning in checked.stderr
    assert "; such origins are not allowed" in checked.stderr
    running.expect_log("cors: the patterns of origins took too long", range(100))
    for origin in ("https://" + "a" * 900, "x" * 900, "https://" + "=" * 900, "a" * 20000):
        begin = time.monotonic()
        assert origin_of(running.ask("/", headers={"Origin": origin})) is None
        assert time.monotonic() - begin < 2


def test_control_characters_come_back_escaped(serving: Start, upstream: Upstream) -> None:
    running = serving(sharing(upstream, origins=[ORIGIN]))
    with running.wire() as wire:
        lines = [f"Origin: {ORIGIN}", "Access-Control-Request-Method: GET"]
        lines += ["Access-Control-Request-Headers: x-a\x1b[2J\x7f", "Host: a"]
        wire.send("\r\n".join(["OPTIONS / HTTP/1.1", *lines, "", ""]).encode())
        reply = wire.read_reply()
    assert reply.headers.all("Access-Control-Allow-Headers") == ["x-a%1B[2J%7F"]


def test_two_origins_are_the_first(serving: Start, upstream: Upstream) -> None:
    running = serving(sharing(upstream, origins=["https://a.com", "https://b.com"]))
    sent = [("Origin", "https://evil.com"), ("Origin", "https://a.com"), ("O_rigin", "x")]
    assert origin_of(running.ask("/", headers=sent)) is None


# Protocols and configurations


def test_the_pages_example(serving: Start, upstream: Upstream) -> None:
    running = serving(example("cors", upstream.url))
    reply = running.ask("/orders", "OPTIONS", preflight("https://shop.example.com"))
    assert told(reply.headers) == {
        "allow-origin": "https://shop.example.com",
        "allow-credentials": "true",
        "allow-methods": "GET,POST",
        "max-age": "3600",
        "vary": "Origin",
    }
    for origin, expected in (("https://a.example.org", True), ("https://example.org", False)):
        reply = running.ask("/orders", headers={"Origin": origin})
        assert (reply.status, origin_of(reply)) == (200, origin if expected else None)


def test_http2(serving: Start, upstream: Upstream) -> None:
    running = serving(sharing(upstream, origins=["https://a.com", ORIGIN]), tls="ssl http2")
    with speaking(running) as client:
        first = client.ask(headers=[("origin", ORIGIN)])
        second = client.ask(
            method="OPTIONS",
            headers=[("origin", ORIGIN), ("access-control-request-method", "PUT")],
        )
        answers = client.answers([first, second])
        assert [answers[stream][0] for stream in (first, second)] == [200, 200]
        for stream in (first, second):
            assert client.heads[stream]["access-control-allow-origin"] == ORIGIN


@pytest.mark.parametrize("line", [b"OPTIONS /\r\n", b"GET /\r\n", b"OPTIONS / HTTP/1.0\r\n\r\n"])
def test_requests_without_headers(serving: Start, upstream: Upstream, line: bytes) -> None:
    running = serving(sharing(upstream, origins=["https://a.com", ORIGIN]))
    running.expect_log("client sent invalid", range(2))
    with running.wire() as wire:
        wire.send(line)
        assert b"allow-origin" not in wire.read_to_end().lower()


def test_an_upgrade(serving: Start, upstream: Upstream) -> None:
    upstream.handler = lambda exchange: exchange.head(
        101, {"Connection": "Upgrade", "Upgrade": "websocket"}
    )
    running = serving(sharing(upstream, origins=[ORIGIN]))
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Origin": ORIGIN,
    }
    with running.wire() as wire:
        wire.send(request_bytes("/", headers=headers))
        reply = wire.read_head()
    assert (reply.status, origin_of(reply)) == (101, ORIGIN)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"origins": ["("]}, "origins"),
        ({"origins": ["a)|(b"]}, "origins"),
        ({"origins": ["(?x)a # b"]}, "origins"),
        ({"methods": ["get"]}, "methods"),
        ({"max_age": "long"}, "max_age"),
        ({"allow_origin_absent": True}, "allow_origin_absent"),
    ],
)
def test_configurations_that_are_none(client: Client, config: dict[str, Any], field: str) -> None:
    reply = client.ask("POST", "/plugins", {"name": "cors", "config": config})
    assert reply.status == 400
    assert field in reply.json()["message"]
