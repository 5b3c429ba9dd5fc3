"""Requests to the admin listener with a token."""

import httpx

from sluice import Gateway
from wire import DEADLINE


def send(running: Gateway, method: str, target: str, **options: object) -> httpx.Response:
    """One request to the admin listener, on a connection of its own."""
    with httpx.Client(trust_env=False, timeout=DEADLINE) as client:
        return client.request(method, running.admin + target, **options)


def with_token(token: str) -> dict[str, str]:
    """The header of a token."""
    return {"Kong-Admin-Token": token}
