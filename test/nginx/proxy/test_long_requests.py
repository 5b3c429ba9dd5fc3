"""Requests that last over many changes: they do not keep what their worker has compiled, and their
logs and late phases still know all of it.

malloc() of these gateways overwrites what is freed.
"""

import threading
from pathlib import Path
from typing import Any

import pytest
from changes import document, post
from soaks import soak
from tunnels import echo
from websocket import ASKING

from sluice import Gateway, Start, proxying, sanitizers
from upstream import Exchange, Upstream
from wire import Wire, request_bytes, wait_until

TUNNELS = soak(100, 1000)

PERTURB = {"MALLOC_PERTURB_": "85"}

# A configuration of so many bytes, in each epoch's pool.
REALM = 300_000

# More than the sockets between nginx and a client hold.
LARGE = 20_000_000

KEY = ("apikey", "good")


def guarded(upstream: Upstream) -> dict[str, Any]:
    """A route with native plugins, one of which has much to say."""
    return proxying(upstream) | {
        "consumers": [{"username": "c", "keyauth_credentials": [{"key": "good"}]}],
        "plugins": [
            {"name": "key-auth", "config": {"realm": "x" * REALM}},
            {"name": "rate-limiting", "config": {"hour": 100_000}},
        ],
    }


def change(running: Gateway, config: dict[str, Any]) -> None:
    """Something that all that was compiled is made of."""
    service = config["services"][0]
    service["read_timeout"] = service.get("read_timeout", 50_000) + 1
    answer = post(running, document(config))
    assert answer.is_success, answer.text


def opened(running: Gateway) -> Wire:
    """A tunnel to echo()."""
    wire = running.wire()
    wire.send(request_bytes("/", headers=[*ASKING, KEY]))
    assert wire.read_head().status == 101
    return wire


def heap(pid: int) -> int:
    """Bytes of memory that are a process's own."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


@pytest.mark.skipif(bool(sanitizers()), reason="a sanitizer keeps what is freed")
def test_a_tunnel_an_epoch_keeps_no_epoch(gateway: Start, upstream: Upstream) -> None:
    config = guarded(upstream)
    running = gateway(config, worker_connections=2 * TUNNELS + 500)
    upstream.handler = echo
    (worker,) = running.workers()
    tunnels = []
    begun = 0
    for number in range(TUNNELS):
        tunnels.append(opened(running))
        change(running, config)
        if number == 10:
            begun = heap(worker)
    assert heap(worker) - begun < TUNNELS * REALM / 4
    for wire in tunnels:
        wire.send(b"hello")
        assert wire.read_exactly(5) == b"hello"
        wire.close()
    assert running.workers() == [worker]


LOGS = """
local pdk = require("gateway.pdk")
return {
    VERSION = "1", PRIORITY = 1,
    schema = { name = "logs", fields = { { config = { type = "record", fields = {
        { tag = { type = "string", required = true } },
    } } } } },
    log = function(_, conf)
        ngx.log(ngx.WARN, "ended: ", conf.tag, " ", pdk.route().name, " ", pdk.service().name, " ",
            pdk.consumer().username, " ", ngx.var.upstream_addr, ".")
    end,
}
"""

FORMAT = "$status $upstream_addr $sent_http_x_ratelimit_limit_hour $sent_http_ratelimit_limit"


@pytest.mark.parametrize("has_late_phases", [False, True])
def test_logs_know_what_it_was(gateway: Start, upstream: Upstream, has_late_phases: bool) -> None:
    config = guarded(upstream)
    if has_late_phases:
        config["plugins"].append({"name": "logs", "config": {"tag": "all"}})
        config["consumers"][0]["plugins"] = [{"name": "logs", "config": {"tag": "hers"}}]
    running = gateway(config, plugins={"logs": LOGS}, access_log_format=FORMAT, env=PERTURB)
    upstream.handler = echo
    with opened(running) as wire:
        for _ in range(3):
            change(running, config)
            opened(running).close()
        wire.send(b"hello")
        assert wire.read_exactly(5) == b"hello"
    line = f"101 {upstream.address} 100000 100000\n"
    wait_until(lambda: running.access_log() == 4 * line, "the lines of the log")
    said = f"ended: hers route service c {upstream.address}."
    # The access log is written before late phases run.
    wait_until(lambda: running.error_log().count(said) >= 4 * has_late_phases, "late phases")
    assert running.error_log().count(said) == 4 * has_late_phases


@pytest.mark.parametrize("streams", [False, True])
def test_a_download(gateway: Start, upstream: Upstream, streams: bool) -> None:
    """Its connection is another request's afterwards."""
    config = guarded(upstream)
    config["services"][0]["routes"][0]["response_buffering"] = not streams
    running = gateway(config, access_log_format=FORMAT, env=PERTURB)
    head, body = threading.Event(), threading.Event()

    def slow(exchange: Exchange) -> None:
        head.wait(20)
        exchange.head(200, [("Content-Length", "10")])
        exchange.send(b"first")
        body.wait(20)
        exchange.send(b"last.")

    upstream.handler = slow
    with running.wire() as wire, running.wire() as other:
        wire.send(request_bytes("/", headers=[KEY]))
        upstream.wait_for(1)
        # Between its request and its response, and then between head and end.
        change(running, config)
        assert other.ask("/", headers=[("apikey", "bad")]).status == 401
        head.set()
        assert wire.read_head().status == 200
        for _ in range(2):
            change(running, config)
            assert other.ask("/", headers=[("apikey", "bad")]).status == 401
        body.set()
        assert wire.read_exactly(10) == b"firstlast."
        upstream.answer(200)
        assert wire.ask("/", headers=[KEY]).status == 200
    assert upstream.connections == 1
    line = f"200 {upstream.address} 100000 100000\n"
    wait_until(lambda: running.access_log().count(line) == 2, "the lines of the log")


def test_a_client_that_reads_slowly(gateway: Start, upstream: Upstream) -> None:
    """The upstream has sent all and is gone long before the client has it."""
    config = guarded(upstream)
    running = gateway(config, access_log_format=FORMAT, env=PERTURB)
    (worker,) = running.workers()
    gone = threading.Event()

    def whole(exchange: Exchange) -> None:
        exchange.keep = False
        exchange.head(200, [("Content-Length", str(LARGE)), ("Connection", "close")])
        exchange.send(b"x" * LARGE)
        assert exchange.ended()
        gone.set()

    upstream.handler = whole
    with running.wire() as wire, running.wire() as other:
        wire.send(request_bytes("/", headers=[KEY]))
        assert wire.read_head().status == 200
        assert gone.wait(20)
        change(running, config)
        assert other.ask("/", headers=[("apikey", "bad")]).status == 401
        assert wire.read_exactly(LARGE) == b"x" * LARGE
    line = f"200 {upstream.address} 100000 100000\n"
    wait_until(lambda: line in running.access_log(), "the line of the log")
    assert running.workers() == [worker]
