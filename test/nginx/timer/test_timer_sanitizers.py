"""The module's timers with ASan, UBSan and LSan in a real nginx, doing all that they do."""

import os
import signal

from asan import MODULE, check_nothing_to_report
from timer_waits import wait_for

from timer_nginx import Timers
from wire import wait_until

EVERYTHING = """
    probe.done, probe.kept = 0, {}
    local function done() probe.done = probe.done + 1 end
    local function none() end
    for i = 1, 3000 do
        probe.kept[i] = t:at(1000 + i, none, i, "x", nil)
        t:at(i % 7 * 0.001, done)
    end
    for i = 1, 3000, 3 do t:cancel(probe.kept[i]) end
    for i = 2, 3000, 3 do t:pause(probe.kept[i]) end
    for i = 2, 3000, 6 do t:resume(probe.kept[i]) end
    for i = 5, 3000, 6 do t:restart(probe.kept[i]) end
    for i = 1, 100 do
        t:named_at("once" .. i, 0, function()
            if i % 2 == 0 then t:named_at("once" .. i, 0, done) end
            ngx.sleep(0.001)
            done()
        end)
    end
    for i, overlap in ipairs({ "skip", "queue", "concurrent" }) do
        t:named_every("o" .. i, {
            interval = 0.005, overlap = overlap, jitter = 0.002, tolerance = 0.01,
            stats = true, warn_after = 0.001,
        }, function() ngx.sleep(0.012) end)
    end
    t:every({ interval = 0.003, fixed = "delay" }, function() ngx.ctx.x = 1 end)
    for i = 1, 200 do
        t:at(0, function() ngx.sleep(0.001 * (i % 9)) done() ngx.exit(0) end)
        t:at(0, function() done() error({ i }) end)
    end
    probe.self = t:every(0.002, function() t:cancel(probe.self) ngx.sleep(0.01) done() end)
    t:set_debug(true)
    local function deep(n) if n == 0 then t:at(0.001, done) else deep(n - 1) end return n end
    for i = 1, 60 do deep(i) end
    t:set_debug(false)
    for i = 1, 400 do loadstring("local t, f = ... t:at(0.001, f)", "=chunk" .. i)(t, done) end
    t:freeze()
    t:unfreeze()
    for _ = 1, 5 do
        local other = require("sluice.timer").new({ max_contexts = 8 })
        assert(other:start())
        for _ = 1, 50 do other:at(0, function() ngx.sleep(0.002) end) end
        other:every(0.001, function() other:destroy() end)
    end
    return true
"""

DONE = 3000 + 150 + 400 + 1 + 60 + 400

REPORT = """
    local stats = t:stats({ timers = true, flamegraph = true })
    collectgarbage() collectgarbage()
    return #stats.timers > 1000 and #stats.flamegraph.elapsed > 0
"""


def test_nothing_to_report(asan: dict[str, str]) -> None:
    timers = Timers(
        limits="lua_max_running_timers 1024;",
        module=MODULE,
        environment=asan,
        events="worker_connections 2048;",
    )
    timers.expect_log("sluice: a timer made at sent:", range(1, 100))
    timers.expect_log("exited on signal 9")
    with timers:
        timers.run(EVERYTHING)
        wait_for(timers, f"probe.done == {DONE}", "all to run")
        assert timers.run(REPORT)
        timers.run("for i = 1, 3000 do t:cancel(probe.kept[i]) end collectgarbage()")
        for _ in range(2):
            timers.run(EVERYTHING.replace('"o"', '"p" .. math.random(1e9)'))
            timers.restart_workers()
        victim = timers.pid()
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: timers.workers() not in ([victim], []), "a successor")
        timers.run(EVERYTHING)
        wait_for(timers, f"probe.done == {DONE}", "all to run")
        check_nothing_to_report(timers, 3)
