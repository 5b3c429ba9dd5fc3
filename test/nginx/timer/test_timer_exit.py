"""Timers and a worker's graceful exit: each is told once, and none holds it up."""

import os
import signal
import time

import pytest

from sluice import alive
from timer_nginx import Timers
from wire import wait_until


def quit_early(timers: Timers) -> None:
    """Has the master quit gracefully, which is before the first timer is due: after a minute."""
    [pid] = timers.workers()
    os.kill(timers.master(), signal.SIGQUIT)
    wait_until(lambda: not alive(pid), "the worker to exit")


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
        quit_early(timers)
        assert "told paused" not in timers.error_log()
        timers.started = False
        timers.live.remove(timers)


TOLD = """
    exit_worker_by_lua_block {
        local probe = require("probe")
        ngx.log(ngx.WARN, "told ", probe.told, " timers ", probe.calls, " times, ",
            probe.premature, " of them of the exit")
    }
"""

NOTE = """
    local seen = {}
    probe.told, probe.calls, probe.premature = 0, 0, 0
    function probe.note(premature, which)
        probe.calls = probe.calls + 1
        if not seen[which] then probe.told = probe.told + 1 end
        if premature then probe.premature = probe.premature + 1 end
        seen[which] = true
    end
"""

GROUPS = "for i = 0, 99999 do t:at((math.floor(i / 4200) + 1) * 66, probe.note, i) end"

# While the last group moves down through the wheel, which takes many turns of the loop, no timer
# is due and no context has anything to do; two that are due before it had each context look.
FAR = """
    local turn = 2 ^ 32
    local base = (math.floor(probe.ms() / turn) + 1) * turn - probe.ms()
    for i, ms in ipairs({ 60000, base, base + 10 * 86400000 }) do
        for n = 1, i < 3 and 1 or 99998 do t:at(ms / 1000, probe.note, i * 100000 + n) end
    end
"""

ENDING = """
    for i = 1, 100 do
        t:at(1000, function(premature)
            if i % 2 == 0 then ngx.sleep(0.002) end
            probe.note(premature, i)
            ngx.exit(0)
        end)
    end
"""


@pytest.mark.parametrize(
    ("code", "count"),
    [(GROUPS, 100000), (FAR, 100000), (ENDING, 100)],
    ids=["groups", "far", "ending their contexts"],
)
def test_an_exit_tells_each_timer_once(code: str, count: int) -> None:
    timers = Timers("{ max_contexts = 3 }", server=TOLD)
    timers.expect_log(f"told {count} timers {count} times, {count} of them of the exit", 1)
    with timers:
        timers.run(NOTE + code)
        quit_early(timers)
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


def test_a_chain_does_not_hold_up_the_exit(timers: Timers) -> None:
    timers.run("local function again() t:at(0, again) end again()")
    [pid] = timers.workers()
    os.kill(timers.master(), signal.SIGQUIT)
    wait_until(lambda: not alive(pid), "the worker to exit")
    timers.started = False
    timers.live.remove(timers)
