"""Timers and a worker's graceful exit: each is told once, and none holds it up."""

from __future__ import annotations

import os
import signal
import time

import pytest
from timer_bare import Timers

from sluice import alive
from wire import wait_until


def quit_within(timers: Timers, seconds: float) -> None:
    """Has the master quit gracefully."""
    [pid] = timers.workers()
    began = time.monotonic()
    os.kill(timers.master(), signal.SIGQUIT)
    wait_until(lambda: not alive(pid), "the worker to exit")
    took = time.monotonic() - began
    assert took < seconds, f"{took:.3f} s"


def test_pending_timers_are_told_of_the_exit() -> None:
    code = """
        local function note(premature, name)
            ngx.log(ngx.WARN, "told ", name, " ", tostring(premature))
        end
        t:at(1000, note, "once")
        t:every(1000, note, "every")
        t:named_at("n", 1e9, note, "far")
        t:pause(t:at(1000, note, "paused"))
        t:at(1000, function(premature)
            local late, why = t:at(1, print)
            ngx.log(ngx.WARN, "told refused ", tostring(late), " ", why)
            t:at(0, note, "last")
        end)
        t:at(1000, function(premature) ngx.sleep(0.05) note(premature, "slow") end)
    """
    timers = Timers()
    for name in ("once", "every", "far", "last", "slow"):
        timers.expect_log(f"told {name} true", 1)
    timers.expect_log("told refused nil process exiting", 1)
    with timers:
        timers.run(code)
        quit_within(timers, 5)
        assert "told paused" not in timers.error_log()
        timers.started = False
        timers.live.remove(timers)


@pytest.mark.parametrize("how", ["quit", "reload"])
def test_leaving_with_100000_pending_is_quick(how: str) -> None:
    def leave() -> float:
        with Timers() as timers:
            timers.run("for i = 1, 100000 do t:at(i, function() end) end")
            [old] = timers.workers()
            began = time.monotonic()
            os.kill(timers.master(), signal.SIGQUIT if how == "quit" else signal.SIGHUP)
            wait_until(lambda: not alive(old), "the worker to exit")
            took = time.monotonic() - began
            if how == "quit":
                timers.started = False
                timers.live.remove(timers)
        return took

    # 0.2 s on a quiet machine; a reload starts a worker first.
    wait_until(lambda: leave() < 1.5, "a worker to leave at once")


def test_a_chain_does_not_hold_up_the_exit() -> None:
    with Timers() as timers:
        timers.run("local function again() t:at(0, again) end again()")
        [pid] = timers.workers()
        os.kill(timers.master(), signal.SIGQUIT)
        wait_until(lambda: not alive(pid), "the worker to exit")
        timers.started = False
        timers.live.remove(timers)
