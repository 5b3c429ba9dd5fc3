"""A gateway whose responses say the version of its configuration."""

from typing import Any

from sluice import Gateway, proxying
from upstream import Upstream
from wire import wait_until

VERSION = {
    "version": """
return {
    VERSION = "0.1.0", PRIORITY = 1,
    schema = { name = "version", fields = {
        { config = { type = "record", fields = { { text = { type = "string" } } } } },
    } },
    access = function(self, conf)
        ngx.header["X-Version"] = conf.text
        ngx.header["X-Worker"] = ngx.worker.pid()
    end,
}
"""
}


def versioned(upstream: Upstream, version: int, **route: object) -> dict[str, Any]:
    """A configuration whose answers tell its version and their worker."""
    config = proxying(upstream, **route)
    config["plugins"] = [{"name": "version", "config": {"text": str(version)}}]
    return config


def ask_every_worker(running: Gateway) -> dict[int, str]:
    """The version that each worker answers with, asked until each was heard."""
    heard: dict[int, str] = {}

    def ask() -> bool:
        headers = running.ask("/").headers
        heard[int(headers.get("x-worker") or 0)] = headers.get("x-version") or "?"
        return set(running.workers()) <= set(heard)

    wait_until(ask, "answers of all workers")
    return heard
