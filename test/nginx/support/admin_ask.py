"""Requests to the admin listener, as a browser or a stranger makes them."""

from sluice import Gateway
from wire import Reply, Wire, request_bytes


def send(running: Gateway, data: bytes, method: str = "GET") -> Reply:
    """The answer to one request to the admin listener."""
    with Wire(running.admin_port) as wire:
        wire.send(data)
        return wire.read_reply(method)


def ask(running: Gateway, target: str, method: str = "GET", **options: object) -> Reply:
    """One request to the admin listener."""
    return send(running, request_bytes(target, method, **options), method)
