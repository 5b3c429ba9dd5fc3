"""Rate limits for tests: configurations, when their windows begin, what a client is told."""

import time
from typing import Any

from sluice import proxying
from upstream import Upstream
from wire import Reply

PERIODS = ("second", "minute", "hour", "day", "month", "year")
LIMIT_HEADERS = ("ratelimit-", "x-ratelimit-", "retry-after")


def limited(upstream: Upstream, **config: Any) -> dict[str, Any]:
    """One route with a limit by address, unless told otherwise."""
    config.setdefault("limit_by", "ip")
    plugin = {"name": "rate-limiting", "config": config}
    return proxying(upstream, paths=["/api"]) | {"plugins": [plugin]}


def early_in_the_window(seconds: int, room: float) -> None:
    """Waits, if need be, until a window of so many seconds has room seconds left."""
    left = seconds - time.time() % seconds
    if left < room:
        time.sleep(left + 0.05)


def told(reply: Reply) -> dict[str, str]:
    """The rate limit headers, each at most once."""
    found = {n: v for n, v in reply.headers if n.lower().startswith(LIMIT_HEADERS)}
    assert len(found) == sum(n.lower().startswith(LIMIT_HEADERS) for n, _ in reply.headers)
    return found
