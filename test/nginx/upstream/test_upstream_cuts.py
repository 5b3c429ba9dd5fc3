"""Upstreams that close or reset their connection after every byte of a response.

What the client gets is either all of the response, or an error of the gateway's, or what it can
tell to be cut: never a part that looks whole.
"""

import itertools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sluice import Gateway, Start, proxying
from upstream import Exchange, Upstream, self_signed
from wire import ClosedEarly, chunk

BODY = b"all that there is"
HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
RESPONSES = {
    "length": HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    "chunked": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(BODY) + chunk(b""),
    "trailers": HEAD + b"Transfer-Encoding: chunked\r\n\r\n10;ext=1\r\n" + BODY[:16] + b"\r\n"
    b"1\r\n" + BODY[16:] + b"\r\n0\r\nX-Trailer: yes\r\n\r\n",
}
ENDINGS = ["fin", "rst"]


def cut(exchange: Exchange) -> None:
    """Answers with so many bytes of a response, then ends as told: /length/17/rst."""
    exchange.read_body()
    framing, at, ending = exchange.request.target.split("/")[-3:]
    exchange.keep = False
    if int(at):
        exchange.send(RESPONSES[framing][: int(at)])
    if ending == "rst":
        exchange.abort()
    else:
        exchange.shut()


def asked(running: Gateway, method: str, target: str) -> tuple[int, bytes, bool]:
    """Status, the part of the body that has come, and whether the client takes it for whole."""
    with running.wire() as wire:
        body = b"sent" if method == "POST" else None
        try:
            reply = wire.ask(target, method, body=body)
            return reply.status, reply.body, True
        except (ClosedEarly, ConnectionResetError):
            return 200, bytes(wire.buffer), False


def check(running: Gateway, method: str, scheme: str, framing: str, at: int, ending: str) -> None:
    """One cut: what the client may see of it."""
    whole = RESPONSES[framing]
    target = f"/{scheme}/{method}/{framing}/{at}/{ending}"
    status, body, is_whole = asked(running, method, target)
    # A reset may take what was sent with it.
    may = {"cut"} if at > whole.index(b"\r\n\r\n") + 3 else {"refused"}
    may = {"whole"} if at == len(whole) else may
    may |= {"refused", "cut"} if ending == "rst" and at > whole.index(b"\r\n\r\n") + 3 else set()
    got = "refused" if status == 502 else "whole" if is_whole else "cut"
    assert got in may, (target, status, body)
    assert got != "whole" or body == BODY, (target, body)


@pytest.mark.parametrize("buffering", [True, False])
def test_no_part_of_a_response_looks_whole(gateway: Start, tmp_path: Path, buffering: bool) -> None:
    """Half of the cuts are buffered, the other half are not."""
    with Upstream(cut) as plain, Upstream(cut, tls=self_signed(tmp_path)) as secure:
        config = proxying(plain, paths=["/http"], response_buffering=buffering)
        config["services"][0]["retries"] = 1
        route = {"paths": ["/https"], "response_buffering": buffering}
        config["services"].append(
            {"name": "tls", "url": secure.url, "retries": 0, "routes": [route]}
        )
        running = gateway(config)
        running.expect_log(
            "prematurely closed|reset by peer|invalid chunked|upstream sent", range(1, 10_000)
        )
        cuts = [
            ("GET", scheme, framing, at, ending)
            for scheme, framing, ending in itertools.product(["http", "https"], RESPONSES, ENDINGS)
            for at in range(len(RESPONSES[framing]) + 1)
            if (at + ENDINGS.index(ending)) % 2 == int(buffering)
        ]
        cuts += [
            ("POST", "http", "length", at, "fin") for at in range(len(RESPONSES["length"]) + 1)
        ]
        with ThreadPoolExecutor(4) as pool:
            for _ in pool.map(lambda one: check(running, *one), cuts):
                pass
        times = Counter(request.target for request in plain.requests)
    for target, count in times.items():
        _, method, framing, at, ending = target.split("/")
        if method == "POST" or (int(at) == len(RESPONSES[framing]) and ending == "fin"):
            assert count == 1, target
        elif int(at) < len(HEAD):
            assert count == 2, f"{target}: one retry"
