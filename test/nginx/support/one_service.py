"""An instance whose store has one service, with a route: asked and written by the Admin API."""

import contextlib
import http.client
import json
from pathlib import Path

from instance import Instance

HEAD = {"Content-Type": "application/json"}
SERVED = 502
"""By the route: nobody listens where it leads."""


def ask(instance: Instance, method: str, path: str, body: object = None) -> tuple[int, dict]:
    """One request to the Admin API."""
    with contextlib.closing(
        http.client.HTTPConnection("127.0.0.1", instance.admin_port, timeout=60)
    ) as connection:
        connection.request(method, path, json.dumps(body) if body else None, HEAD)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read() or "{}")


def put(instance: Instance, name: str) -> tuple[int, dict]:
    """A service."""
    return ask(instance, "PUT", f"/services/{name}", {"url": "http://127.0.0.1:1"})


def begin(instance: Instance, path: str | None = None) -> None:
    """Starts it with one service and its route: revision 2 of a store."""
    instance.kills_workers = instance.cuts_off_requests = True
    instance.succeed("start", file=path)
    if path is None:
        assert put(instance, "one")[0] == 200
        assert ask(instance, "POST", "/services/one/routes", {"paths": ["/one"]})[0] == 201
    assert instance.get("/one") == SERVED


def names(instance: Instance) -> list[str]:
    """The services' names, by the Admin API."""
    return sorted(each["name"] for each in ask(instance, "GET", "/services")[1]["data"])


def control(instance: Instance) -> dict:
    """What /status says of the control worker."""
    return ask(instance, "GET", "/status")[1]["control"]


def store(instance: Instance, suffix: str = "") -> Path:
    return instance.prefix / "store" / f"store.db{suffix}"
