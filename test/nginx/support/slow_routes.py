"""Routes that a request is told apart by at some cost."""

import json

from sluice import proxying
from upstream import Upstream


def told_apart(upstream: Upstream, count: int, **fields: object) -> dict:
    """Routes `r1` to `r<count>`; `@n@` in a field's text is the number."""
    config = proxying(upstream)
    text = json.dumps({"name": "r@n@", **fields})
    routes = [json.loads(text.replace("@n@", str(n))) for n in range(1, count + 1)]
    config["services"][0]["routes"] = routes
    return config


def slow_to_compile(upstream: Upstream, patterns: int = 12) -> dict:
    """A request of each of the routes takes some turns of a fresh worker, which compiles. Once that
    is done it costs little: only what is told apart comes before what is slow."""
    slow = "(?J)" + "(?<a>)" * 99 + r"\k<a>" * 600
    return told_apart(upstream, 8, paths=[f"~/@n@/(?:x{i}){slow}$" for i in range(patterns)])
