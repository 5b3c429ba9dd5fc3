"""Retries of requests with bodies: in memory, in a file, in chunks, on their way.

Whoever answers has the whole body, once and in order, and the Host that is its own. SEED
says which requests are made.
"""

import hashlib
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from seeds import seed_of
from soaks import soak

from sluice import Start, proxying
from upstream import DeadPort, Exchange, Upstream, self_signed
from wire import Wire, chunk

REQUESTS = soak(25, 1000)
SEED = seed_of("retry_bodies")

SIZES = [0, 1, 3000, 9000, 300_000]
"""Beside client_body_buffer_size, 8 KB here: the last two are spooled to the disk."""


def unheard(exchange: Exchange) -> None:
    """Reads the head, then resets."""
    exchange.keep = False
    exchange.abort()


def halfway(exchange: Exchange) -> None:
    """Reads a part of the body, then closes."""
    exchange.keep = False
    exchange.body_part()
    exchange.shut()


def mute(exchange: Exchange) -> None:
    """Reads everything, then closes."""
    exchange.keep = False
    exchange.read_body()
    exchange.shut()


FAILING = [unheard, halfway, mute]


def pieces(chosen: random.Random, body: bytes) -> Iterator[bytes]:
    """The body in random chunks."""
    while body:
        size = chosen.choice([1, 100, 5000, 100_000])
        yield chunk(body[:size])
        body = body[size:]
    yield chunk(b"")


def send(wire: Wire, chosen: random.Random, method: str, path: str, body: bytes) -> str:
    """Sends a request in one of the ways that there are, and names it."""
    way = chosen.choice(["length", "chunked", "expect", "HTTP/1.0"])
    version = way if way == "HTTP/1.0" else "HTTP/1.1"
    head = f"{method} {path} {version}\r\nHost: client.test\r\n".encode()
    if way == "chunked":
        wire.send(head + b"Transfer-Encoding: chunked\r\n\r\n")
        for piece in pieces(chosen, body):
            wire.send(piece)
        return way
    head += b"Content-Length: %d\r\n" % len(body)
    if way == "expect" and body:
        wire.send(head + b"Expect: 100-continue\r\n\r\n")
        assert wire.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        wire.send(body)
    else:
        wire.send(head + b"\r\n" + body)
    return way


@pytest.mark.parametrize("hosts", ["own", "one", "preserved"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_body_is_sent_whole_or_not_again(
    gateway: Start, tmp_path: Path, hosts: str, scheme: str
) -> None:
    chosen = random.Random(f"{SEED}{hosts}{scheme}")
    tls = self_signed(tmp_path) if scheme == "https" else None
    with ExitStack() as stack:
        failing = [stack.enter_context(Upstream(handler, tls=tls)) for handler in FAILING]
        good = stack.enter_context(Upstream(tls=tls))
        dead = stack.enter_context(DeadPort())
        places = [dead.address, *(server.address for server in failing)]
        upstream: dict[str, Any] = {"name": "some"}
        upstream["targets"] = [{"target": place, "weight": 500} for place in places]
        upstream["targets"].append({"target": good.address, "weight": 100})
        if hosts == "one":
            upstream["host_header"] = "one.test"
        config = proxying(
            f"{scheme}://some",
            service={"retries": len(places)},
            paths=["/kept"],
            strip_path=False,
            preserve_host=hosts == "preserved",
        )
        routes = config["services"][0]["routes"]
        routes.append(routes[0] | {"name": "r", "paths": ["/now"], "request_buffering": False})
        running = gateway(config | {"upstreams": [upstream]}, client_body_buffer_size="8k")
        running.expect_log(r"\[error\]", range(1, 100_000))
        host = {"own": good.address, "one": "one.test", "preserved": "client.test"}[hosts]
        bodies = {}
        for number in range(REQUESTS):
            method, path = chosen.choice(["PUT", "PUT", "POST"]), chosen.choice(["/kept", "/now"])
            body = chosen.randbytes(chosen.choice(SIZES))
            path = f"{path}/{number}"
            bodies[path] = body
            with running.wire() as wire:
                way = send(wire, chosen, method, path, body)
                reply = wire.read_reply(method)
            who = f"{method} {path}, {way} of {len(body)} bytes"
            tries = [server for server in failing if tried(server, path)]
            # nginx keeps a body that has come with the head, also where it would not.
            gone = "/now" in path and reply.status == 502
            if tries and (method == "POST" or gone):
                assert reply.status == 502, f"{who}: sent twice"
                assert (len(tries), tried(good, path)) == (1, 0), who
                continue
            assert reply.status == 200, who
            said = reply.json()
            assert said["sha256"] == hashlib.sha256(body).hexdigest(), who
            assert tried(good, path) == 1
            assert good.last.headers.all("host") == [host], who
        for request in failing[FAILING.index(mute)].requests:
            assert request.body == bodies[request.target]


def tried(server: Upstream, path: str) -> int:
    """How often a server was asked for a path."""
    return sum(path == request.target for request in server.requests)
