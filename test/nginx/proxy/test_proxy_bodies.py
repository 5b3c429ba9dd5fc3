"""Bodies: streamed both ways, large, chunked, with Expect, and cut short."""

import contextlib
import hashlib
import os
import random
import threading

import pytest

from sluice import Start, proxying
from upstream import Exchange, Upstream
from wire import DEADLINE, ClosedEarly, chunk, request_bytes, wait_until

MEGABYTE = 1024 * 1024


def noise(size: int, seed: int = 1) -> bytes:
    """Bytes that no compression or repetition could fake."""
    return random.Random(seed).randbytes(size)


# Streaming


def test_response_is_streamed(serving: Start, upstream: Upstream) -> None:
    more = threading.Event()

    def drip(exchange: Exchange) -> None:
        exchange.head(200, {"Transfer-Encoding": "chunked"})
        exchange.send(chunk(b"first"))
        assert more.wait(DEADLINE)
        exchange.send(chunk(b"second") + chunk(b""))

    upstream.handler = drip
    with serving(proxying(upstream, response_buffering=False)).wire() as wire:
        wire.send(request_bytes("/"))
        assert wire.read_head().status == 200
        parts = wire.read_chunks()
        assert next(parts) == b"first"
        more.set()
        assert b"".join(parts) == b"second"


def test_response_of_known_length_is_streamed(serving: Start, upstream: Upstream) -> None:
    more = threading.Event()

    def drip(exchange: Exchange) -> None:
        exchange.head(200, {"Content-Length": "11"})
        exchange.send(b"first")
        assert more.wait(DEADLINE)
        exchange.send(b"second")

    upstream.handler = drip
    with serving(proxying(upstream, response_buffering=False)).wire() as wire:
        wire.send(request_bytes("/"))
        assert wire.read_head().status == 200
        assert wire.read_exactly(5) == b"first"
        more.set()
        assert wire.read_exactly(6) == b"second"


@pytest.mark.parametrize("chunked", [False, True])
def test_request_is_streamed(serving: Start, upstream: Upstream, chunked: bool) -> None:
    arrived = threading.Event()

    def listen(exchange: Exchange) -> None:
        assert exchange.body_part() == b"first"
        arrived.set()
        exchange.reply(200, body=b"got " + exchange.read_body())

    upstream.handler = listen
    framing = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": "11"}
    with serving(proxying(upstream, request_buffering=False)).wire() as wire:
        wire.send(request_bytes("/", "POST", framing))
        wire.send(chunk(b"first") if chunked else b"first")
        assert arrived.wait(DEADLINE), "the upstream must see the first part before the last"
        wire.send(chunk(b"second") + chunk(b"") if chunked else b"second")
        assert wire.read_reply().body == b"got firstsecond"


def test_both_directions_stream_at_once(serving: Start, upstream: Upstream) -> None:
    def converse(exchange: Exchange) -> None:
        exchange.head(200, {"Transfer-Encoding": "chunked"})
        while part := exchange.body_part():
            exchange.send(chunk(part.upper()))
        exchange.send(chunk(b""))

    upstream.handler = converse
    route = {"request_buffering": False, "response_buffering": False}
    with serving(proxying(upstream, **route)).wire() as wire:
        wire.send(request_bytes("/", "POST", {"Transfer-Encoding": "chunked"}) + chunk(b"one"))
        assert wire.read_head().status == 200
        parts = wire.read_chunks()
        assert next(parts) == b"ONE"
        wire.send(chunk(b"two"))
        assert next(parts) == b"TWO"
        wire.send(chunk(b""))
        assert list(parts) == []


def test_request_is_buffered_by_default(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream))
    with running.wire() as wire:
        wire.send(request_bytes("/slow", "POST", {"Content-Length": "6"}) + b"abc")
        assert running.ask("/other").status == 200
        assert [request.target for request in upstream.requests] == ["/other"]
        wire.send(b"def")
        assert wire.read_reply().json()["length"] == 6


# Large bodies


@pytest.mark.parametrize("buffering", [True, False])
@pytest.mark.parametrize("chunked", [False, True])
def test_large_request_body(
    serving: Start, upstream: Upstream, buffering: bool, chunked: bool
) -> None:
    body = noise(5 * MEGABYTE)
    with serving(proxying(upstream, request_buffering=buffering)).wire() as wire:
        if chunked:
            wire.send(request_bytes("/", "POST", {"Transfer-Encoding": "chunked"}))
            for start in range(0, len(body), 100_000):
                wire.send(chunk(body[start : start + 100_000]))
            wire.send(chunk(b""))
            reply = wire.read_reply()
        else:
            reply = wire.ask("/", "POST", body=body)
        assert reply.json()["sha256"] == hashlib.sha256(body).hexdigest()
        assert wire.ask("/after").status == 200


@pytest.mark.parametrize("buffering", [True, False])
@pytest.mark.parametrize("chunked", [False, True])
def test_large_response_body(
    serving: Start, upstream: Upstream, buffering: bool, chunked: bool
) -> None:
    body = noise(8 * MEGABYTE)
    upstream.answer(200, {"Content-Type": "application/octet-stream"}, body, chunked)
    with serving(proxying(upstream, response_buffering=buffering)).wire() as wire:
        reply = wire.ask("/")
        assert reply.chunked == chunked
        assert hashlib.sha256(reply.body).digest() == hashlib.sha256(body).digest()
        upstream.answer(200, body=b"next")
        assert wire.ask("/").body == b"next"


def test_response_framed_by_its_end(serving: Start, upstream: Upstream) -> None:
    body = noise(300_000)

    def until_the_end(exchange: Exchange) -> None:
        exchange.head(200, {"Connection": "close"})
        exchange.send(body)
        exchange.keep = False
        exchange.request.headers.append(("Connection", "close"))

    upstream.handler = until_the_end
    with serving(proxying(upstream)).wire() as wire:
        reply = wire.ask("/")
        assert (reply.chunked, reply.body) == (True, body)


def test_temporary_files_stay_in_the_prefix(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream))
    with running.wire() as wire:
        wire.send(request_bytes("/", "POST", {"Content-Length": "100001"}) + b"x" * 100_000)
        folder = f"{running.settings['prefix']}/"
        worker = running.workers()[0]
        wait_until(lambda: deleted_files(worker, folder), "a temporary file in the prefix")
        wire.send(b"y")
        assert wire.read_reply().json()["length"] == 100_001


def deleted_files(pid: int, folder: str) -> list[str]:
    """Files below folder that a process holds open and that have no name any more."""
    names = []
    for entry in os.scandir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            names.append(os.readlink(entry.path))
    return [name for name in names if name.startswith(folder) and "(deleted)" in name]


# Framing


def test_chunked_request_with_extensions_and_trailers(serving: Start, upstream: Upstream) -> None:
    with serving(proxying(upstream)).wire() as wire:
        wire.send(request_bytes("/", "POST", {"Transfer-Encoding": "chunked"}))
        wire.send(b"3;ext=1\r\nabc\r\n02\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n")
        assert wire.read_reply().json()["sha256"] == hashlib.sha256(b"abcde").hexdigest()
        assert wire.ask("/next").status == 200


@pytest.mark.parametrize("buffering", [True, False])
def test_expect_100_continue(serving: Start, upstream: Upstream, buffering: bool) -> None:
    with serving(proxying(upstream, request_buffering=buffering)).wire() as wire:
        wire.send(
            request_bytes("/", "PUT", {"Content-Length": "4", "Expect": "100-continue"}),
        )
        first = wire.read_until(b"\r\n\r\n")
        assert first.startswith(b"HTTP/1.1 100")
        wire.send(b"body")
        reply = wire.read_reply()
    assert (reply.status, reply.json()["length"]) == (200, 4)
    assert "expect" not in upstream.last.headers


def test_empty_body_with_content_length_zero(serving: Start, upstream: Upstream) -> None:
    with serving(proxying(upstream)).wire() as wire:
        assert wire.ask("/", "POST", body=b"").json()["length"] == 0
        assert upstream.last.headers.get("content-length") == "0"


def test_unread_body_of_an_unrouted_request_does_not_spoil_the_connection(
    serving: Start, upstream: Upstream
) -> None:
    with serving(proxying(upstream, paths=["/only"])).wire() as wire:
        assert wire.ask("/nowhere", "POST", body=b"x" * 50_000).status == 404
        assert wire.ask("/only/here").status == 200


# Cut short


def test_response_cut_short_is_not_passed_as_whole(serving: Start, upstream: Upstream) -> None:
    def cut(exchange: Exchange) -> None:
        exchange.head(200, {"Content-Length": "100000"})
        exchange.send(b"x" * 50_000)
        exchange.abort()

    upstream.handler = cut
    running = serving(proxying(upstream))
    running.expect_log(r"(prematurely closed|Connection reset by peer)", 1)
    with running.wire() as wire, pytest.raises((ClosedEarly, ConnectionError)):
        wire.ask("/")


def test_chunked_response_cut_short_is_not_passed_as_whole(
    serving: Start, upstream: Upstream
) -> None:
    def cut(exchange: Exchange) -> None:
        exchange.head(200, {"Transfer-Encoding": "chunked"})
        exchange.send(chunk(b"x" * 1000))
        exchange.keep = False
        exchange.shut()

    upstream.handler = cut
    running = serving(proxying(upstream))
    running.expect_log(r"prematurely closed", 1)
    with running.wire() as wire, pytest.raises((ClosedEarly, ConnectionError, ValueError)):
        wire.ask("/")


def test_client_that_leaves_ends_the_upstream_request(serving: Start, upstream: Upstream) -> None:
    left = threading.Event()

    def wait_for_the_end(exchange: Exchange) -> None:
        if exchange.ended():
            left.set()
        exchange.keep = False

    upstream.handler = wait_for_the_end
    running = serving(proxying(upstream, response_buffering=False))
    with running.wire() as wire:
        wire.send(request_bytes("/"))
        upstream.wait_for(1)
    assert left.wait(DEADLINE), "the upstream connection must be closed with the client's"
