"""The page of nginx's own errors, which C answers (sluice_error_page).

Alone in an nginx, where Lua has no part in it, then in the gateway, beside each late phase.
"""

import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest
import refused
from soaks import soak
from tracer import tracer
from websocket import ASKING

from nginx import Nginx
from sluice import Gateway, Start, proxying
from upstream import Exchange, Upstream
from wire import ClosedEarly, Reply, Wire, chunk, request_bytes, wait_until

HTTP = """
    sluice_answer_server "sluice/test";
    sluice_answer_latency X-Test-Latency;
    sluice_answer_default_type application/json;
    sluice_via "1.1 here";
    server {
        listen 127.0.0.1:@port@;
        large_client_header_buffers 2 1k;
        client_header_buffer_size 256;
        client_max_body_size 10;
        client_header_timeout 100ms;
        keepalive_timeout 10;
        add_header Via $sluice_response_via always;
        add_header X-Id $sluice_request_id always;
        error_page 400 404 405 413 414 500 501 502 503 504 505 /page;
        error_page 494 =494 /page;
        location = /page { internal; sluice_error_page; }
        location / { return 404; }
        location = /dead { proxy_pass http://127.0.0.1:1; }
        location = /status/418 { error_page 418 /page; return 418; }
        location = /ok { error_page 418 =200 /page; return 418; }
        location = /gone { error_page 404 =304 /page; return 404; }
        location = /page/itself { sluice_error_page; }
        location = /cycle {
            recursive_error_pages on;
            error_page 404 /cycle;
            return 404;
        }
    }
"""


@pytest.fixture(scope="module")
def nginx() -> Iterator[Nginx]:
    with Nginx(HTTP, workers=1) as running:
        running.expect_log("client intended to send too large body", range(100000))
        running.expect_log("connect.. failed .111: Connection refused.", range(100000))
        running.expect_log("rewrite or internal redirection cycle", range(100))
        yield running


def message_of(reply: Reply) -> str:
    """The message, and that the body names the request as the head does."""
    said = json.loads(reply.body)
    assert said["request_id"] == reply.headers.get("x-id")
    return said["message"]


@pytest.mark.parametrize(
    ("target", "status", "message"),
    [
        ("/", 404, "Not found"),
        ("/dead", 502, "An invalid response was received from the upstream server"),
        ("/status/418", 418, "I'm a teapot"),
        ("/ok", 200, "The upstream server responded with 200"),
        ("/page", 404, "Not found"),
        ("/page/itself", 404, "Not found"),
    ],
)
def test_the_answer(nginx: Nginx, target: str, status: int, message: str) -> None:
    with nginx.wire() as wire:
        for _ in range(2):
            reply = wire.ask(target)
            assert (reply.status, message_of(reply)) == (status, message)
            assert reply.headers.get("content-type") == "application/json; charset=utf-8"
            assert reply.headers.all("server") == ["sluice/test"]
            assert len(reply.headers.all("x-test-latency")) == 1
            assert "via" not in reply.headers
            assert not reply.chunked


def test_head_has_the_length_of_the_body_that_get_has(nginx: Nginx) -> None:
    with nginx.wire() as wire:
        lengths = [
            wire.ask("/", method).headers.get("content-length") for method in ("HEAD", "GET")
        ]
        assert lengths[0] == lengths[1] != "0"
        assert wire.ask("/").status == 404


def test_a_304_says_nothing_of_its_body(nginx: Nginx) -> None:
    with nginx.wire() as wire:
        reply = wire.ask("/gone")
        assert reply.status == 304
        assert "content-length" not in reply.headers
        assert wire.ask("/").status == 404


def test_a_body_is_read_and_dropped(nginx: Nginx) -> None:
    """What a client sends behind it is the next request, and nothing of the body is."""
    with nginx.wire() as wire:
        length = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"
        chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        bodies = [length + b"GET /dead", chunked + chunk(b"GET /dead") + chunk(b"")]
        for request in bodies:
            wire.send(request * 2 + b"GET /status/418 HTTP/1.1\r\nHost: a\r\n\r\n")
            assert [wire.read_reply().status for _ in range(3)] == [404, 404, 418]
        for request in bodies:
            for at in range(1, len(request)):
                wire.send(request[:at])
                time.sleep(0.0005)
                wire.send(request[at:])
                assert wire.read_reply().status == 404


def test_a_client_that_waits_is_not_asked_for_its_body(nginx: Nginx) -> None:
    """Its next bytes may be the body or a request: the connection ends."""
    body = b"GET /dead"
    for framing, sent in (
        ({"Content-Length": "9"}, body),
        ({"Transfer-Encoding": "chunked"}, chunk(body)),
    ):
        with nginx.wire() as wire:
            reply = wire.ask("/", "POST", headers={"Expect": "100-continue"} | framing)
            assert (reply.status, reply.interim) == (404, [])
            assert reply.headers.get("Connection") == "close"
            wire.send(sent)
            assert wire.ended()
    with nginx.wire() as wire:
        for headers in ({}, {"Content-Length": "0"}):
            reply = wire.ask("/", "POST", headers={"Expect": "100-continue"} | headers)
            assert (reply.status, reply.headers.get("Connection")) == (404, "keep-alive")
        head = request_bytes("/", "POST", {"Expect": "100-continue", "Content-Length": "9"})
        wire.send(head + body)
        assert wire.read_reply().status == 404
        assert wire.ask("/status/418").status == 418


def test_of_http_1_0_and_0_9(nginx: Nginx) -> None:
    with nginx.wire() as wire:
        wire.send(b"GET / HTTP/1.0\r\n\r\n")
        reply = wire.read_reply()
        assert (reply.status, message_of(reply)) == (404, "Not found")
        assert wire.ended()
    with nginx.wire() as wire:
        wire.send(b"GET /\r\n")
        assert json.loads(wire.read_to_end())["message"] == "Not found"


def test_several_lines_of_accept(nginx: Nginx) -> None:
    reply = nginx.ask("/", headers=[("Accept", "image/png"), ("Accept", "image/*")])
    assert reply.headers.get("content-type") == "application/json; charset=utf-8"


def test_a_cycle_ends(nginx: Nginx) -> None:
    with nginx.wire() as wire:
        assert wire.ask("/cycle").status == 500


@pytest.mark.parametrize("name", refused.REFUSED)
def test_of_a_request_that_is_refused(nginx: Nginx, name: str) -> None:
    before = nginx.workers()
    said = refused.answer(nginx, refused.REFUSED[name])
    if not name.startswith("time out"):  # nginx closes without an answer
        body = said.partition(b"\r\n\r\n")[2] or said
        assert set(json.loads(body)) == {"message", "request_id"}, said
    assert nginx.workers() == before, "the worker has died"


def test_of_random_requests(nginx: Nginx) -> None:
    before = nginx.workers()
    for data in refused.mutations(random.Random(9), soak(80, 800)):
        refused.answer(nginx, data)
    assert nginx.workers() == before, "the worker has died"


# In the gateway ---------------------------------------------------------------

PHASES = [None, "log", "header_filter log", "header_filter body_filter log"]


def configured(upstream: Upstream | str, phases: str | None, **service: object) -> dict[str, Any]:
    """A route whose requests have these late phases."""
    config = proxying(upstream, service=service)
    return config | ({"plugins": [{"name": "late"}]} if phases else {})


def start(gateway: Start, config: dict[str, Any], phases: str | None, **settings: str) -> Gateway:
    """A gateway that has the plugin of the late phases."""
    plugins = {"late": tracer("late", 1, phases)} if phases else None
    return gateway(config, plugins=plugins, **settings)


def expect_error(
    gateway: Gateway, reply: Reply, phases: str | None, status: int, message: str
) -> None:
    """Fails unless it is this error, and the late phases have seen it."""
    phases = phases or ""
    body = reply.text.removesuffix(" late") if "body_filter" in phases else reply.text
    assert (reply.status, json.loads(body)["message"]) == (status, message)
    assert body == reply.text or "body_filter" in phases
    assert json.loads(body)["request_id"] == reply.headers.get("x-kong-request-id")
    assert reply.headers.get("x-filtered") == ("late:default" if "header" in phases else None)
    assert (reply.headers.get("x-kong-response-latency") or "").isdigit()
    assert "via" not in reply.headers
    assert "x-kong-proxy-latency" not in reply.headers
    if "log" in phases:
        line = f"logged by late:default {status}"
        wait_until(lambda: line in gateway.error_log(), line)


JSON = {"Accept": "application/json"}

CASES = {
    "no route": (404, "no Route matched with those values"),
    "large body": (413, "Payload too large"),
    "large chunked body": (413, "Payload too large"),
    "dead upstream": (502, "An invalid response was received from the upstream server"),
    "dead upstream of a websocket": (
        502,
        "An invalid response was received from the upstream server",
    ),
    "silent upstream": (504, "The upstream server is timing out"),
    "nonsense from upstream": (
        502,
        "An invalid response was received from the upstream server",
    ),
}


@pytest.mark.parametrize("phases", PHASES)
def test_each_error_beside_each_late_phase(
    gateway: Start, upstream: Upstream, phases: str | None
) -> None:
    def answer(exchange: Exchange) -> None:
        if exchange.request.target == "/silent":
            exchange.ended()
        else:
            exchange.send(b"nonsense\r\n\r\n")
        exchange.keep = False

    upstream.handler = answer
    config = configured(upstream, phases, retries=0)
    config["services"][0]["routes"][0] |= {"paths": ["/nonsense"], "strip_path": False}
    silent = {"paths": ["/silent"], "strip_path": False}
    config["services"] += [
        {"url": "http://127.0.0.1:1", "retries": 0, "routes": [{"paths": ["/dead"]}]},
        {"url": upstream.url, "retries": 0, "read_timeout": 200, "routes": [silent]},
    ]
    running = start(gateway, config, phases, client_max_body_size="1k")
    running.expect_log("client intended to send too large", range(1, 10))
    running.expect_log("upstream timed out", 1)
    running.expect_log("Connection refused", 2)
    running.expect_log("upstream sent no valid HTTP/1.0 header", 1)

    def expect(what: str, reply: Reply) -> None:
        expect_error(running, reply, phases, *CASES[what])

    expect("no route", running.ask("/", headers=JSON))
    expect("large body", running.ask("/dead", "POST", headers=JSON, body=b"x" * 2000))
    chunked = JSON | {"Transfer-Encoding": "chunked"}
    body = chunk(b"x" * 2000) + chunk(b"")
    expect("large chunked body", running.ask("/dead", "POST", headers=chunked, body=body))
    expect("dead upstream", running.ask("/dead", headers=JSON))
    asking = [*ASKING, *JSON.items()]
    expect("dead upstream of a websocket", running.ask("/dead", headers=asking))
    expect("silent upstream", running.ask("/silent", headers=JSON))
    expect("nonsense from upstream", running.ask("/nonsense", headers=JSON))


@pytest.mark.parametrize("phases", PHASES)
@pytest.mark.parametrize("buffering", [True, False])
def test_an_error_while_the_body_comes(
    gateway: Start, upstream: Upstream, phases: str | None, buffering: bool
) -> None:
    """The rest of the body is never a request."""

    def answer(exchange: Exchange) -> None:
        exchange.abort()
        exchange.keep = False

    upstream.handler = answer
    config = configured(upstream, phases, retries=0)
    config["services"][0]["routes"][0]["request_buffering"] = buffering
    running = start(gateway, config, phases)
    running.expect_log("upstream prematurely closed|reset by peer|[Bb]roken pipe", range(0, 4))
    for sent in (b"", b"GET /x", b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"):
        length = 50
        with Wire(running.proxy_port) as wire:
            head = f"POST / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nContent-Length: {length}\r\n\r\n"
            wire.send(head.encode() + sent)
            if buffering:
                wire.send(b"\n" * (length - len(sent)))
            reply = wire.read_reply()
            assert reply.status == 502
            assert reply.text.startswith('{\n  "message":"An invalid response')
            if not buffering:
                try:
                    wire.send(b"\n" * (length - len(sent)))
                except OSError:
                    continue
                try:
                    wire.send(b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
                    reply = wire.read_reply()
                except (ClosedEarly, OSError):
                    continue
                assert reply.status == 502
    targets = [request.target for request in upstream.requests]
    assert "/smuggled" not in targets
    assert "/x" not in targets
