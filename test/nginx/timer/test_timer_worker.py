"""Timers in a worker's life: load, idling, stopped processes, a wall clock that jumps."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from soaks import soak
from timer_waits import wait_for

from processes import cpu_seconds, descriptors, switches, waited_seconds
from sluice import preloaded, sanitizers
from timer_nginx import Timers
from wire import Wire, wait_until

# A clock of the whole process that somebody else sets: no user of the monotonic one sees it.
SHIFTED_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long shift(void)
{
    static FILE *f;
    char line[32] = "0";
    if (f == NULL && (f = fopen(getenv("SHIFT_FILE"), "r")) == NULL) { return 0; }
    rewind(f);
    fflush(f);
    if (fgets(line, sizeof(line), f) == NULL) { return 0; }
    return atol(line);
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    static int (*real)(clockid_t, struct timespec *);
    int rc;
    if (real == NULL) { *(void **) &real = dlsym(RTLD_NEXT, "clock_gettime"); }
    rc = real(clock, ts);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) { ts->tv_sec += shift(); }
    return rc;
}

int gettimeofday(struct timeval *tv, void *zone)
{
    struct timespec ts;
    (void) zone;
    clock_gettime(CLOCK_REALTIME, &ts);
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return 0;
}
"""


def resident_kb(pid: int) -> int:
    """Memory in use."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


STOPPED_SECONDS = soak(4, 10)

AT_ONCE = 0.05


def idle_switches(pid: int, seconds: float = 1.5) -> int:
    """How often a process goes to sleep in a while without anything to do."""

    def slept(seconds: float) -> int:
        before = switches(pid)
        time.sleep(seconds)
        return switches(pid) - before

    wait_until(lambda: slept(0.2) == 0, "the connection that asked to be closed")
    return slept(seconds)


def check_is_idle(pid: int) -> None:
    """The kernel may wake it for its own sake, but not each time."""
    wait_until(lambda: idle_switches(pid) == 0, "a while in which nobody wakes it")


def test_idle_is_free(timers: Timers) -> None:
    pid = timers.pid()
    check_is_idle(pid)
    timers.run("t:at(3600, print) t:at(0, function() end)")
    check_is_idle(pid)
    timers.run("for i = 1, 1000 do t:cancel(t:at(3600 + i, print)) end")
    check_is_idle(pid)


def test_a_million_timers_in_a_worker(timers: Timers) -> None:
    pid = timers.pid()
    before = resident_kb(pid)
    timers.run("""
        probe.handles = require("table.new")(1000000, 0)
        local none = function() end
        for i = 1, 1000000 do probe.handles[i] = t:at(1000 + i % 1000, none) end
        collectgarbage()
    """)
    grown = resident_kb(pid) - before
    # 8 bytes each are the test's own handles.
    assert grown * 1024 / 1e6 < 158
    slow = timers.run("""
        local function cost(f)
            local best = 1e9
            for _ = 1, 5 do
                local began = probe.ms()
                for i = 1, 1000 do f(probe.handles[math.random(1000000)]) end
                best = math.min(best, (probe.ms() - began) * 1000)
            end
            return best
        end
        return {
            cost(function() t:cancel(t:at(500, print)) end),
            cost(function(h) t:pause(h) t:resume(h) end),
            cost(function(h) t:is_managed(h) end),
            t:stats().sys.total,
        }
    """)
    # Nanoseconds a call: none of them walks along a million timers.
    assert max(slow[:3]) < 20000
    assert slow[3] == 1000000
    timers.run("""
        for _, handle in ipairs(probe.handles) do t:cancel(handle) end
        probe.handles = nil
        collectgarbage() collectgarbage()
    """)
    assert timers.run("return t:stats().sys.total") == 0
    left = resident_kb(pid) - before
    assert left < 20000, "the memory of cancelled timers is given back"


def late_ms(timers: Timers) -> list[float]:
    """By how much each of many timers has run after its time."""
    timers.run("""
        probe.late = {}
        for i = 1, 2000 do
            local delay = math.random() * 3
            local due = probe.ms() + delay * 1000
            t:at(delay, function() table.insert(probe.late, probe.ms() - due) end)
        end
    """)
    wait_for(timers, "#probe.late == 2000", "all to fire")
    return sorted(timers.run("return probe.late"))


def test_none_is_early(timers: Timers) -> None:
    assert late_ms(timers)[0] >= 0


@pytest.mark.long
def test_accuracy_with_an_idle_loop(timers: Timers) -> None:
    # Twice what a quiet machine does is for the tests that run beside this one.
    wait_until(lambda: late_ms(timers)[2000 * 9 // 10] < 4, "nine of ten to be in time")


def test_a_fixed_rate_does_not_drift(timers: Timers) -> None:
    timers.run("""
        probe.n, probe.began = 0, probe.ms()
        probe.handle = t:every(0.001, function()
            probe.n = probe.n + 1
            probe.last = probe.ms()
        end)
    """)
    wait_for(timers, "probe.n + t:stats().sys.skipped >= 10000", "10,000 periods")

    def on_the_grid() -> bool:
        n, skipped, elapsed = timers.run(
            "return { probe.n, t:stats().sys.skipped, probe.last - probe.began }"
        )
        assert elapsed >= n + skipped
        return elapsed - (n + skipped) < 5

    # Each run is at a point of the grid, or up to a period behind it; the clock's own start
    # is a little before the timer's. One run may be held up, a drift would stay.
    wait_until(on_the_grid, "a run at its point of the grid")


def are_quick(took: list[float], share: float, waited: float) -> bool:
    """Whether this share of requests was answered at once. `waited`: how long we and the worker
    have waited for a processor meanwhile, which excuses one for each time that is too long."""
    slow = sum(seconds >= AT_ONCE for seconds in took)
    return slow < (1 - share) * len(took) + waited / AT_ONCE


def test_a_chain_without_delay_lets_requests_through(timers: Timers) -> None:
    timers.run("""
        probe.runs = 0
        local function again() probe.runs = probe.runs + 1 t:at(0, again) end
        for _ = 1, 10 do t:at(0, again) end
    """)
    pid = timers.pid()

    def let_through() -> bool:
        took = []
        waited = waited_seconds(os.getpid(), pid)
        with Wire(timers.proxy_port) as wire:
            for _ in range(200):
                began = time.monotonic()
                assert wire.ask("/").status == 200
                took.append(time.monotonic() - began)
        return are_quick(took, 0.5, waited_seconds(os.getpid(), pid) - waited)

    wait_until(let_through, "requests to be answered at once")
    assert timers.run("return probe.runs") > 200


def test_a_million_at_once_let_requests_through(timers: Timers) -> None:
    def let_through(timers: Timers) -> bool:
        timers.run("""
            probe.runs, probe.ages = 0, {}
            local function count() probe.runs = probe.runs + 1 end
            for _ = 1, 1000000 do t:at(4, count) end
        """)
        took = []
        ages = []
        pids = (os.getpid(), timers.pid())
        waited = waited_seconds(*pids)
        with Wire(timers.proxy_port) as wire:
            while timers.run("return probe.runs") < 1000000:
                began = time.monotonic()
                assert wire.ask("/").status == 200
                took.append(time.monotonic() - began)
                ages.append(timers.run("return t:stats().sys.backlog_age"))
        waited = waited_seconds(*pids) - waited
        # The backlog and its age are visible.
        return are_quick(took, 0.95, waited) and max(ages) > 0.01

    wait_until(lambda: let_through(timers), "requests to be answered beside the backlog")


def test_ten_thousand_that_wait_let_requests_through() -> None:
    def let_through(timers: Timers) -> bool:
        timers.run("""
            probe.runs = 0
            for _ = 1, 10000 do
                t:at(0.2, function() ngx.sleep(0.001) probe.runs = probe.runs + 1 end)
            end
        """)
        took = []
        contexts = 0
        pids = (os.getpid(), timers.pid())
        waited = waited_seconds(*pids)
        with Wire(timers.proxy_port) as wire:
            while timers.run("return probe.runs") < 10000:
                began = time.monotonic()
                assert wire.ask("/").status == 200
                took.append(time.monotonic() - began)
                contexts = max(contexts, timers.run("return t:stats().sys.contexts"))
        waited = waited_seconds(*pids) - waited
        assert contexts <= 128
        return are_quick(took, 0.9, waited) and contexts > 16

    with Timers(events="worker_connections 1024;") as timers:
        wait_until(lambda: let_through(timers), "requests to be answered beside them")


def test_the_pool_grows_and_shrinks() -> None:
    with Timers("{ max_contexts = 40 }") as timers:
        most = timers.run("""
            for _ = 1, 500 do t:at(0, function() ngx.sleep(0.02) end) end
            local most = 0
            repeat
                ngx.sleep(0.005)
                local sys = t:stats().sys
                most = math.max(most, sys.contexts)
            until sys.total == 0
            return most
        """)
        assert most > 20
        wait_for(timers, "t:stats().sys.contexts == 2", "the pool to shrink")
        check_is_idle(timers.pid())


def test_limits_of_nginx_are_kept() -> None:
    with Timers("{ max_contexts = 20 }", limits="lua_max_running_timers 24;") as timers:
        pid = timers.pid()
        before = descriptors(pid)
        most = timers.run("""
            for _ = 1, 2000 do t:at(0, function() ngx.sleep(0.005) end) end
            local most, connections = 0, 0
            repeat
                ngx.sleep(0.002)
                most = math.max(most, ngx.timer.running_count())
                local sys = t:stats().sys
            until sys.total == 0
            return most
        """)
        assert most <= 20
        assert descriptors(pid) <= before + 2


@pytest.mark.skipif(bool(sanitizers()), reason="a sanitizer keeps what is freed")
def test_flat_memory_over_many_runs(timers: Timers) -> None:
    pid = timers.pid()
    timers.run("""
        probe.runs = 0
        local function count(_, n) probe.runs = probe.runs + n end
        local function chain(_, left)
            for _ = 1, 1000 do t:at(0, count, 1) end
            if left > 1 then t:at(0, chain, left - 1) end
        end
        probe.go = function(thousands) t:at(0, chain, thousands) end
        probe.go(200)
    """)
    wait_for(timers, "probe.runs == 200000", "a warm-up")
    timers.run("collectgarbage() collectgarbage()")
    before = resident_kb(pid)
    timers.run("probe.runs = 0 probe.go(10000)")
    wait_until(lambda: timers.run("return probe.runs") == 10_000_000, "10 million runs", 240)
    timers.run("collectgarbage() collectgarbage()")
    assert resident_kb(pid) - before < 3000


def test_a_stopped_process_makes_up_for_nothing(timers: Timers) -> None:
    began = time.monotonic()
    timers.run("""
        probe.runs = { skip = 0, queue = 0, concurrent = 0, delay = 0 }
        for _, overlap in ipairs({ "skip", "queue", "concurrent" }) do
            t:every({ interval = 0.02, overlap = overlap }, function()
                probe.runs[overlap] = probe.runs[overlap] + 1
            end)
        end
        t:every({ interval = 0.02, fixed = "delay" }, function()
            probe.runs.delay = probe.runs.delay + 1
        end)
    """)
    time.sleep(0.2)
    pid = timers.pid()
    os.kill(pid, signal.SIGSTOP)
    time.sleep(STOPPED_SECONDS)
    os.kill(pid, signal.SIGCONT)
    time.sleep(0.5)
    runs = timers.run("return probe.runs")
    rest = time.monotonic() - began - STOPPED_SECONDS
    for policy, count in runs.items():
        assert count <= rest / 0.02 + 3, (policy, count)
    assert timers.run("return t:stats().sys.skipped") > 100


@pytest.mark.parametrize("jump", [-3600, 3600])
def test_the_wall_clock_neither_fires_nor_starves(jump: int, tmp_path: Path) -> None:
    source = tmp_path / "clock.c"
    source.write_text(SHIFTED_CLOCK)
    library = tmp_path / "clock.so"
    build = ["gcc", "-O1", "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(build, check=True, timeout=60)
    shift = tmp_path / "shift"
    shift.write_text("0\n")
    tmp_path.chmod(0o755)
    shift.chmod(0o644)
    environment = os.environ | {"LD_PRELOAD": preloaded(library), "SHIFT_FILE": str(shift)}
    with Timers(environment=environment, main="env SHIFT_FILE;\n") as timers:
        began = timers.run("""
            probe.far, probe.n = 0, 0
            t:at(1800, function() probe.far = 1 end)
            probe.handle = t:every(0.02, function() probe.n = probe.n + 1 end)
            ngx.update_time()
            return ngx.now()
        """)
        shift.write_text(f"{jump}\n")
        wait_until(
            lambda: abs(timers.run("ngx.update_time() return ngx.now()") - began - jump) < 60,
            "the clock to jump",
        )
        n, ms = timers.run("return { probe.n, probe.ms() }")
        wait_for(timers, f"probe.ms() > {ms} + 600 and probe.n >= {n} + 15", "it to go on")
        far, runs, passed = timers.run(f"return {{ probe.far, probe.n - {n}, probe.ms() - {ms} }}")
        assert far == 0
        assert runs <= passed / 20 + 2


def test_after_an_overload_the_worker_rests(timers: Timers) -> None:
    timers.run("""
        probe.handles = {}
        for i = 1, 20000 do
            probe.handles[i] = t:every(0.001, function()
                local x = 0
                for j = 1, 200 do x = x + j % 7 end
            end)
        end
    """)
    time.sleep(0.5)
    timers.run("for _, handle in ipairs(probe.handles) do t:cancel(handle) end")
    pid = timers.pid()

    def rests() -> bool:
        before = cpu_seconds(pid)
        return idle_switches(pid, 1.0) <= 2 and cpu_seconds(pid) - before < 0.05

    wait_until(rests, "the worker to rest")


def test_reports_on_many_timers_do_not_block(timers: Timers) -> None:
    timers.run("for i = 1, 30000 do t:at(1000, function() end) end")
    code = """
        local longest, last, go = 0, probe.ms(), true
        local watch = ngx.thread.spawn(function()
            while go do
                ngx.sleep(0.001)
                longest = math.max(longest, probe.ms() - last)
                last = probe.ms()
            end
        end)
        local stats = t:stats({ timers = true })
        go = false
        ngx.thread.wait(watch)
        return { longest, #stats.timers }
    """

    pid = timers.pid()

    def longest_ms() -> float:
        """Less what the worker has waited for a processor."""
        waited = waited_seconds(pid)
        longest, count = timers.run(code)
        assert count == 30000
        return longest - 1000 * (waited_seconds(pid) - waited)

    wait_until(lambda: longest_ms() < 60, "a report that lets others run")
