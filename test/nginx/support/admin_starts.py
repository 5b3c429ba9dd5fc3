"""The admin listener of a small configuration."""

import re
from typing import Any

from sluice import Gateway
from wire import Reply, Wire

SERVICE_ID = "6f2c1a30-0000-4000-8000-000000000010"


CONFIG: dict[str, Any] = {
    "services": [
        {
            "id": SERVICE_ID,
            "name": "orders",
            "host": "orders.internal",
            "path": "/v1",
            "tags": ["blue", "team-a"],
            "routes": [
                {"name": "r1", "paths": ["/a"], "methods": ["PUT", "GET"], "tags": ["blue"]},
                {"name": "r2", "hosts": ["a.example.com"], "tags": []},
            ],
            "plugins": [
                {"name": "rate-limiting", "instance_name": "slow", "config": {"minute": 5}}
            ],
        },
        {
            "name": "stock",
            "url": "http://127.0.0.1:1/",
            "tags": ["blue"],
            "routes": [{"name": "r3", "paths": ["/c"], "headers": {"x-tenant": ["one"]}}],
        },
    ],
    "upstreams": [
        {
            "name": "pool",
            "targets": [
                {"target": "127.0.0.1:1111", "weight": 7},
                {"target": "127.0.0.1:2222"},
            ],
        }
    ],
    "consumers": [
        {
            "username": "alice",
            "custom_id": "a-1",
            "keyauth_credentials": [{"key": "secret-1"}, {"key": "secret-2"}],
        },
        {"username": "bob", "keyauth_credentials": [{"key": "secret/3"}]},
    ],
    "plugins": [{"name": "key-auth"}],
}


class Admin:
    """A client of the admin listener."""

    def __init__(self, running: Gateway) -> None:
        self.port = running.admin_port

    def ask(self, target: str, method: str = "GET", **options: Any) -> Reply:
        """One request on a connection of its own."""
        with Wire(self.port) as wire:
            reply = wire.ask(target, method, **options)
        if reply.status != 204:
            assert reply.headers.get("content-type") == "application/json; charset=utf-8"
        assert re.fullmatch(r"sluice/[\d.]+", reply.headers.get("server") or "")
        return reply

    def get(self, target: str) -> dict[str, Any]:
        """The answer to a GET that must succeed."""
        reply = self.ask(target)
        assert reply.status == 200, f"{target}: {reply}"
        return reply.json()

    def names(self, target: str, field: str = "name") -> list[Any]:
        """One field of every entity of a list."""
        return [entity[field] for entity in self.get(target)["data"]]
