"""Tunnels through a gateway."""

from websocket import ASKING, switched

from sluice import Gateway
from upstream import Exchange
from wire import Wire, request_bytes


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
