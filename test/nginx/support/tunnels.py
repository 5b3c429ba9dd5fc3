"""Tunnels through a gateway."""

from http2 import speaking
from websocket import ASKING, switched

from sluice import Gateway
from upstream import Exchange, Handler, Upstream
from wire import Pairs, Wire, request_bytes


def echo(exchange: Exchange) -> None:
    """Switches, then sends back each byte."""
    exchange.keep = False
    exchange.send(switched(exchange.request.headers.get("sec-websocket-key") or ""))
    while data := exchange.read_some():
        exchange.send(data)


def opened(running: Gateway, headers: list[tuple[str, str]] | None = None) -> Wire:
    """A tunnel to echo()."""
    wire = running.wire()
    wire.send(request_bytes("/", headers=headers or ASKING))
    assert wire.read_head().status == 101
    return wire


def where_asked(upstream: Upstream) -> Handler:
    """Like echo() for whoever asks for a switch; others are told what they have asked."""

    def answer(exchange: Exchange) -> None:
        is_asked = "upgrade" in exchange.request.headers
        (echo if is_asked else upstream.echo)(exchange)

    return answer


SAID = b"through the tunnel"


def by_http2(running: Gateway, path: str = "/", headers: Pairs | None = None) -> int:
    """The status of a request over HTTP/2."""
    with speaking(running) as client:
        stream = client.ask(path, headers=[*dict(headers or {}).items()])
        return client.answers([stream])[stream][0]


def by_upgrade(running: Gateway, path: str = "/", headers: Pairs | None = None) -> int:
    """The status of a request for a switch, and SAID to and fro where that is 101."""
    with running.wire() as wire:
        wire.send(request_bytes(path, headers=[*ASKING, *dict(headers or {}).items()]))
        status = wire.read_head().status
        if status == 101:
            wire.send(SAID)
            assert wire.read_exactly(len(SAID)) == SAID
        return status
