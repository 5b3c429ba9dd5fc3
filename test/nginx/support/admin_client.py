"""A client of the admin listener that writes."""

import json
from typing import Any

from sluice import Gateway
from wire import Pairs, Reply, Wire

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def uuid(number: int) -> str:
    """An id to choose."""
    return f"6f2c1a30-0000-4000-8000-{number:012}"


class Client:
    """A client of the admin listener."""

    def __init__(self, running: Gateway) -> None:
        self.running = running

    def ask(
        self, method: str, target: str, value: object = None, headers: Pairs | None = None
    ) -> Reply:
        """One request; a value that is no bytes is sent as JSON."""
        body = value if isinstance(value, bytes | None) else json.dumps(value).encode()
        with Wire(self.running.admin_port) as wire:
            return wire.ask(target, method, headers=headers or (JSON if body else None), body=body)

    def must(self, status: int, method: str, target: str, value: object = None) -> dict[str, Any]:
        """The JSON of an answer that has this status."""
        reply = self.ask(method, target, value)
        assert reply.status == status, f"{method} {target}: {reply}"
        return reply.json() if reply.body else {}

    def form(self, method: str, target: str, text: str) -> Reply:
        """One request with a form."""
        return self.ask(method, target, text.encode(), FORM)

    def clear(self) -> None:
        """Deletes every entity."""
        for kind in ("plugins", "routes", "services", "upstreams", "consumers"):
            while data := self.must(200, "GET", f"/{kind}?size=1000")["data"]:
                for entity in data:
                    self.must(204, "DELETE", f"/{kind}/{entity['id']}")
