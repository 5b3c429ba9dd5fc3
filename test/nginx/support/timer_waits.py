"""Waits for what timers have done."""

from timer_nginx import Timers
from wire import wait_until


def wait_for(timers: Timers, condition: str, what: str) -> None:
    """Waits for a Lua condition."""
    wait_until(lambda: timers.run("return " + condition) is True, what)
