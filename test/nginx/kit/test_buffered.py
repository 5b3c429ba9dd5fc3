"""Responses that plugins have whole: the phase `response` and `enable_buffering`."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from kit_cases import BUFFERED, PLUGINS, cases, doing
from websocket import ASKING as UPGRADING
from websocket import KEY, switched

from sluice import Gateway
from upstream import Exchange, Upstream
from wire import DEADLINE, request_bytes

MAX = 100_000

RESPONSE = "local response, service = kong.response, kong.service.response\n"

TELL = """
    local body = service.get_raw_body()
    response.set_header("X-Length", #body)
    response.set_header("X-Status", service.get_status())
    response.set_header("X-Type", service.get_header("Content-Type") or "none")
"""

CODES = {
    "nothing": {},
    "tell": {"response": TELL},
    "yields": {"response": "ngx.sleep(0)" + TELL + "ngx.sleep(0)"},
    "exit": {
        "response": "response.exit(299, service.get_raw_body():upper(), { ['X-A'] = '1' })",
    },
    "exit-logged": {
        "response": "response.exit(200)",
        "log": "kong.log('source ', response.get_source())",
    },
    "exit-json": {
        "response": """
            local body, err = service.get_body()
            response.exit(200, { got = body, err = err })
        """
    },
    "error": {"response": "response.error(418, 'no')"},
    "status": {"response": "response.set_status(203) response.clear_header('X-Up')"},
    "throws": {"response": "error('on purpose')"},
    "logged": {"log": "kong.log('body of ', #service.get_raw_body())"},
}

ASKING = {
    "asked": {"access": "kong.service.request.enable_buffering()"},
    "unasked": {},
}

READING = {
    "read": {
        "access": "kong.service.request.enable_buffering()",
        "header_filter": """
            local found, err, mime = service.get_body()
            response.set_header("X-Got", tostring(found and found.a) .. " " .. tostring(err))
            response.set_header("X-Mime", tostring(mime))
        """,
        "body_filter": "",
    },
    "unread": {
        "header_filter": "response.set_header('X-Ok', tostring(pcall(service.get_raw_body)))"
    },
}


@pytest.fixture(scope="module")
def asked() -> Iterator[Upstream]:
    with Upstream() as upstream:
        yield upstream


@pytest.fixture(scope="module")
def buffering(asked: Upstream) -> Iterator[Gateway]:
    config: dict = {"services": []}
    for plugin, codes in (("buffered", CODES), ("asking", ASKING), ("filters", READING)):
        full = {
            name: {phase: RESPONSE + code for phase, code in phases.items()}
            for name, phases in codes.items()
        }
        config["services"] += cases(asked, full, plugin=plugin)["services"]
    with Gateway(
        config, kong_plugins=PLUGINS, tls="ssl http2", proxy_buffered_body_size=str(MAX)
    ) as running:
        running.expect_log(rf"larger than {MAX} bytes, which plugins want whole", range(20))
        running.expect_log("prematurely closed", range(20))
        yield running


def test_a_response_is_whole(buffering: Gateway, asked: Upstream) -> None:
    """And goes out as it came, where nobody changes it: by one connection, one after the other."""
    with buffering.wire() as wire:
        for size in (0, 1, 32_768, MAX):
            for chunked in {False, size > 0}:
                body = b"x" * size
                asked.answer(200, {"X-Up": "1", "Content-Type": "a/b"}, body, chunked=chunked)
                for case in ("tell", "yields"):
                    reply = wire.ask(f"/{case}?q=1")
                    assert (reply.status, reply.body, reply.chunked) == (200, body, chunked)
                    assert reply.headers.get("x-length") == str(size)
                    assert reply.headers.get("x-status") == "200"
                    assert reply.headers.all("content-type") == ["a/b"]
                    assert reply.headers.get("via")
                    assert asked.last.target == f"/{case}?q=1"
                for case in ("nothing", "asked", "unasked"):
                    reply = wire.ask(f"/{case}", "POST", body=b"y" * 50_000)
                    assert (reply.status, reply.body) == (200, body)
                    assert asked.last.body == b"y" * 50_000


def test_responses_without_a_body(buffering: Gateway, asked: Upstream) -> None:
    with buffering.wire() as wire:
        for status in (204, 304):
            asked.answer(status, {"ETag": '"a"'})
            reply = wire.ask("/tell")
            assert (reply.status, reply.body) == (status, b"")
            assert reply.headers.get("x-length") == "0"
        asked.answer(200, {"X-Up": "1"}, b"twelve bytes")
        reply = wire.ask("/tell", "HEAD")
        assert (reply.status, reply.body) == (200, b"")
        assert reply.headers.get("content-length") == "12"
        assert wire.ask("/tell").body == b"twelve bytes"
    asked.answer(200, body=b"no type")
    assert buffering.ask("/tell").headers.get("content-type") is None


def test_a_plugin_answers_instead(buffering: Gateway, asked: Upstream) -> None:
    asked.answer(200, {"X-Up": "1", "Content-Type": "application/json"}, b'{"a": [1]}')
    buffering.expect_log(r"\[buffered\] source exit", 1)
    assert buffering.ask("/exit-logged").body == b""
    reply = buffering.ask("/exit")
    assert (reply.status, reply.body) == (299, b'{"A": [1]}')
    assert (reply.headers.get("x-up"), reply.headers.get("x-a")) == ("1", "1")
    assert reply.headers.all("content-length") == ["10"]
    assert buffering.ask("/exit-json").json() == {"got": {"a": [1]}}
    reply = buffering.ask("/error")
    assert (reply.status, reply.json()["message"]) == (418, "no")
    reply = buffering.ask("/status")
    assert (reply.status, reply.body) == (203, b'{"a": [1]}')
    assert "x-up" not in reply.headers
    asked.answer(200, {"Content-Type": "application/json"}, b"{")
    assert buffering.ask("/exit-json").json() == {"err": "invalid json body"}


def test_a_plugin_that_throws(buffering: Gateway, asked: Upstream) -> None:
    """Nothing of the upstream's goes out then."""
    asked.answer(200, {"Set-Cookie": "a=b", "Content-Encoding": "gzip"}, b"x")
    buffering.expect_log("failed in response: .*on purpose", 1)
    reply = buffering.ask("/throws")
    assert reply.status == 500
    assert "set-cookie" not in reply.headers
    assert "content-encoding" not in reply.headers


def test_a_body_beyond_the_bound(buffering: Gateway, asked: Upstream) -> None:
    with buffering.wire() as wire:
        for size in (MAX + 1, 50 * MAX):
            for chunked in (False, True):
                asked.answer(200, {"X-Up": "1"}, b"x" * size, chunked=chunked)
                reply = wire.ask("/tell")
                assert reply.status == 502
                assert "x-up" not in reply.headers
        asked.answer(200, body=b"short")
        assert wire.ask("/tell").body == b"short"
        asked.answer(200, body=b"x" * 2 * MAX)
        assert len(wire.ask("/unasked").body) == 2 * MAX


def test_an_upstream_that_breaks_off(buffering: Gateway, asked: Upstream) -> None:
    """Half a response is none: the client gets an error, and no part of it."""

    def half(exchange: Exchange) -> None:
        exchange.read_body()
        exchange.head(200, {"Content-Length": "1000", "X-Up": "1"})
        exchange.send(b"x" * 500)
        exchange.keep = False

    def head_alone(exchange: Exchange) -> None:
        exchange.read_body()
        exchange.head(200, {"Content-Length": "1000", "X-Up": "1"})
        exchange.keep = False

    for handler in (half, head_alone):
        asked.handler = handler
        reply = buffering.ask("/tell")
        assert reply.status == 502
        assert "x-up" not in reply.headers


def test_a_body_that_ends_with_its_connection(buffering: Gateway, asked: Upstream) -> None:
    def until_closed(exchange: Exchange) -> None:
        exchange.read_body()
        exchange.head(200, {"X-Up": "1"})
        exchange.send(b"x" * 70_000)
        exchange.keep = False

    asked.handler = until_closed
    reply = buffering.ask("/tell")
    assert (reply.status, len(reply.body)) == (200, 70_000)
    assert reply.headers.get("x-length") == "70000"


def test_no_upstream_answers(buffering: Gateway, asked: Upstream) -> None:
    def cut(exchange: Exchange) -> None:
        exchange.keep = False

    asked.handler = cut
    assert buffering.ask("/tell").status == 502


def test_filters_read_the_body(buffering: Gateway, asked: Upstream) -> None:
    asked.answer(200, {"Content-Type": "application/json; charset=utf-8"}, b'{"a": "b"}')
    reply = buffering.ask("/read")
    assert reply.body == b'{"a": "b"}'
    assert reply.headers.get("x-got") == "b nil"
    assert reply.headers.get("x-mime") == "application/json"
    asked.answer(200, {"Content-Type": "application/x-www-form-urlencoded"}, b"a=c%20d&e")
    assert buffering.ask("/read").headers.get("x-got") == "c d nil"
    asked.answer(200, {"Content-Type": "image/png"}, b"x")
    reply = buffering.ask("/read")
    assert reply.headers.get("x-got") == "nil unsupported content type 'image/png'"
    asked.answer(200, {}, b"x")
    assert buffering.ask("/read").headers.get("x-got") == "nil missing content type"
    assert (buffering.ask("/unread").headers.get("x-ok") or "").startswith("false")


def test_a_log_phase_reads_the_body(buffering: Gateway, asked: Upstream) -> None:
    asked.answer(200, body=b"x" * 40_000)
    buffering.expect_log(r"\[buffered\] body of 40000", 1)
    assert len(buffering.ask("/logged").body) == 40_000


def test_over_http2(buffering: Gateway, asked: Upstream) -> None:
    base = f"https://127.0.0.1:{buffering.tls_port}"
    with httpx.Client(
        base_url=base, http2=True, verify=False, trust_env=False, timeout=DEADLINE
    ) as client:
        for size in (0, 1, MAX):
            asked.answer(200, {"X-Up": "1"}, b"x" * size)
            answer = client.get("/yields")
            assert (answer.http_version, answer.status_code) == ("HTTP/2", 200)
            assert (answer.content, answer.headers["x-length"]) == (b"x" * size, str(size))
            assert client.head("/tell").headers["content-length"] == str(size)
            assert client.post("/exit", content=b"y" * 70_000).content == b"X" * size
        asked.answer(200, body=b"x" * 2 * MAX)
        assert client.get("/tell").status_code == 502
        asked.answer(200, body=b"x")
        assert client.get("/tell").content == b"x"


def test_an_upgrade_passes(buffering: Gateway, asked: Upstream) -> None:
    """Its bytes are nobody's body; and an answer that is none of an upgrade passes as it comes."""

    def switch(exchange: Exchange) -> None:
        exchange.send(switched(KEY))
        exchange.send(exchange.read_some(5))
        exchange.keep = False

    asked.handler = switch
    with buffering.wire() as wire:
        wire.send(request_bytes("/nothing", headers=UPGRADING))
        assert wire.read_head().status == 101
        wire.send(b"bytes")
        assert wire.read_some(5) == b"bytes"
    asked.answer(200, body=b"no upgrade")
    assert buffering.ask("/nothing", headers=UPGRADING).body == b"no upgrade"


def test_a_client_that_goes_away(buffering: Gateway, asked: Upstream) -> None:
    """While the upstream has not answered: its request ends, and others go on."""
    seen = len(asked.requests)
    go_on = asked.hold(b"x")
    with buffering.wire() as wire:
        wire.send(request_bytes("/yields"))
        asked.wait_for(seen + 1)
    go_on.set()
    asked.answer(200, body=b"x")
    assert buffering.ask("/yields").body == b"x"


def test_the_phase_is_not_for_filters() -> None:
    """As in Kong: a plugin has a whole response, or its parts."""
    running = Gateway({}, kong_plugins={"both": doing(BUFFERED + " header_filter")})
    try:
        done = running.command("check")
    finally:
        running.discard()
    assert done.returncode != 0
    assert "response: not beside header_filter or body_filter" in done.stdout + done.stderr
