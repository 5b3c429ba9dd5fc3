"""What timers promise to their users: order, times, names, handles, policies, isolation.

Long on purpose: one interface, each promise once.
"""

import re

import pytest
from timer_waits import wait_for

from timer_nginx import Timers
from wire import wait_until


def test_arguments_arrive_as_they_were_given(timers: Timers) -> None:
    timers.run("""
        probe.got = {}
        local function note(...) table.insert(probe.got, { select("#", ...), ... }) end
        t:at(0, note)
        t:at(0, note, 1)
        t:at(0, note, nil, "b", nil)
        t:at(0, note, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    """)
    wait_for(timers, "#probe.got == 4", "four runs")
    got = timers.run("""
        local out = {}
        for i, g in ipairs(probe.got) do
            out[i] = { g[1], tostring(g[2]), tostring(g[3]), tostring(g[4]), tostring(g[11]) }
        end
        return out
    """)
    assert got == [
        [1, "false", "nil", "nil", "nil"],
        [2, "false", "1", "nil", "nil"],
        [4, "false", "nil", "b", "nil"],
        [11, "false", "1", "2", "9"],
    ]


def test_equal_times_fire_in_order_of_creation(timers: Timers) -> None:
    timers.run("""
        probe.got = {}
        for i = 1, 3000 do t:at(i % 3 * 0.05, function() table.insert(probe.got, i) end) end
    """)
    wait_for(timers, "#probe.got == 3000", "all to fire")
    order = timers.run("return probe.got")
    for rest in range(3):
        mine = [i for i in order if i % 3 == rest]
        assert mine == sorted(mine)


def test_delays_from_nothing_to_years(timers: Timers) -> None:
    timers.run("""
        probe.got = {}
        local year = 365 * 86400
        probe.far = {}
        for i, delay in ipairs({ 86400, 86400 * 30, year, 1000 * year, 1e11 }) do
            probe.far[i] = assert(t:at(delay, function() error("too early") end))
        end
        for _, delay in ipairs({ 0, 0.0001, 0.001, 0.0015, 0.05, 0.3 }) do
            local began = probe.ms()
            t:at(delay, function()
                table.insert(probe.got, probe.ms() - began - delay * 1000)
            end)
        end
    """)
    wait_for(timers, "#probe.got == 6", "the near ones")
    assert all(late >= 0 for late in timers.run("return probe.got"))
    cancelled = timers.run("""
        local out = {}
        for i, handle in ipairs(probe.far) do out[i] = t:cancel(handle) end
        return out
    """)
    assert cancelled == [True] * 5
    assert timers.run("return t:stats().sys.total") == 0


def test_names(timers: Timers) -> None:
    said = timers.run("""
        local none = function() end
        local out = { t:named_every("a", 100, none) ~= nil }
        out[2] = { t:named_every("a", 100, none) }
        out[3] = { t:named_at("a", 100, none) }
        out[4] = t:is_managed("a")
        out[5] = t:cancel("a")
        out[6] = { t:cancel("a") }
        out[7] = { t:pause("a") }
        out[8] = { t:resume("a") }
        out[9] = t:is_managed("a")
        out[10] = t:named_at("a", 100, none) ~= nil
        for _, i in ipairs({ 2, 3, 6, 7, 8 }) do out[i] = out[i][2] end
        return out
    """)
    exists, missing = "already exists timer", "timer not found"
    expected = [True, exists, exists, True, True, missing, missing, missing, False, True]
    assert said == expected


def test_a_one_shot_makes_its_own_name_again(timers: Timers) -> None:
    timers.run("""
        probe.runs = 0
        local function again()
            probe.runs = probe.runs + 1
            probe.seen = t:is_managed("me")
            if probe.runs < 20 then assert(t:named_at("me", 0.001, again)) end
        end
        t:named_at("me", 0, again)
    """)
    wait_for(timers, "probe.runs == 20", "twenty runs")
    assert timers.run("return { probe.seen, t:is_managed('me') }") == [False, False]


def test_stale_handles_find_nothing(timers: Timers) -> None:
    found = timers.run("""
        local none, found = function() end, 0
        local old = {}
        for i = 1, 5000 do old[i] = t:at(1000, none) end
        for i = 1, 5000 do t:cancel(old[i]) end
        for i = 1, 5000 do t:at(1000, none) end
        for _, handle in ipairs(old) do
            if t:is_managed(handle) or t:cancel(handle) then found = found + 1 end
        end
        for _, odd in ipairs({ -1, 0, 0.5, 1e300, 0/0, 2^53, "nobody" }) do
            if t:is_managed(odd) then found = found + 1 end
        end
        return { found, t:stats().sys.total }
    """)
    assert found == [0, 5000]


def test_pause_keeps_what_is_left(timers: Timers) -> None:
    code = """
        local fired
        local began = probe.ms()
        local handle = t:at(0.2, function() fired = probe.ms() - began end)
        ngx.sleep(0.1)
        t:pause(handle) t:pause(handle)
        local paused = probe.ms() - began
        ngx.sleep(0.3)
        local while_paused = fired
        local resumed = probe.ms() - began
        t:resume(handle) t:resume(handle)
        for _ = 1, 3000 do if fired then break end ngx.sleep(0.01) end
        return { paused, while_paused or false, resumed, fired }
    """

    def undisturbed() -> bool:
        paused, while_paused, resumed, fired = timers.run(code)
        if paused > 190:
            return False
        assert while_paused is False
        assert fired >= resumed + 200 - paused
        return fired < resumed + 200 - paused + 100

    wait_until(undisturbed, "it to fire after what was left")


def test_resume_of_an_active_timer_changes_nothing(timers: Timers) -> None:
    code = """
        local runs, began = 0, probe.ms()
        local handle = t:every(0.05, function() runs = runs + 1 end)
        for _ = 1, 10 do assert(t:resume(handle)) end
        ngx.sleep(0.52)
        local many, elapsed = runs, probe.ms() - began
        assert(t:cancel(handle))
        local at_end = runs
        ngx.sleep(0.15)
        return { many, elapsed, runs - at_end, t:stats().sys.total }
    """

    def undisturbed() -> bool:
        many, elapsed, *rest = timers.run(code)
        assert many <= elapsed / 50
        assert rest == [0, 0]
        return many >= 8

    wait_until(undisturbed, "a run for each period")


def test_pause_and_resume_do_not_overlap_a_run(timers: Timers) -> None:
    most = timers.run("""
        local now, most, runs = 0, 0, 0
        local handle = t:every(0.01, function()
            now, runs = now + 1, runs + 1
            most = math.max(most, now)
            ngx.sleep(0.05)
            now = now - 1
        end)
        for i = 1, 3000 do
            ngx.sleep(0.01)
            t:pause(handle)
            t:resume(handle)
            if i >= 40 and runs >= 4 then break end
        end
        t:cancel(handle)
        return { most, runs }
    """)
    assert most[0] == 1
    assert most[1] >= 4


@pytest.mark.parametrize(
    ("overlap", "most", "runs"),
    [("skip", 1, range(4, 10)), ("queue", 1, range(6, 12)), ("concurrent", 7, range(25, 56))],
)
def test_overlap(overlap: str, most: int, runs: range, timers: Timers) -> None:
    code = """
        local now, most, runs = 0, 0, 0
        local handle = t:every({ interval = 0.01, overlap = "%s" }, function()
            now, runs = now + 1, runs + 1
            most = math.max(most, now)
            ngx.sleep(0.06)
            now = now - 1
        end)
        ngx.sleep(0.5)
        t:cancel(handle)
        local during = runs
        ngx.sleep(0.2)
        return { most, during, t:stats().sys.skipped, runs }
    """
    before = 0

    def undisturbed() -> bool:
        nonlocal before
        at_once, during, skipped, _ = timers.run(code % overlap)
        assert at_once == most if most == 1 else at_once <= during
        skipped, before = skipped - before, skipped
        enough = at_once == 1 or at_once >= 3
        return enough and during in runs and (skipped > 20) == (overlap == "skip")

    wait_until(undisturbed, "as many runs as the policy gives in half a second")


def test_fixed_delay_begins_after_the_end(timers: Timers) -> None:
    gaps = timers.run("""
        local gaps, ended = {}, nil
        local handle = t:every({ interval = 0.05, fixed = "delay" }, function()
            if ended then table.insert(gaps, probe.ms() - ended) end
            ngx.sleep(0.03)
            ended = probe.ms()
        end)
        for _ = 1, 3000 do if #gaps >= 4 then break end ngx.sleep(0.01) end
        t:cancel(handle)
        return gaps
    """)
    assert len(gaps) >= 4
    assert all(gap >= 50 for gap in gaps)


def test_cancel_in_its_own_callback(timers: Timers) -> None:
    timers.run("""
        probe.runs = 0
        probe.handle = t:every(0.01, function()
            probe.runs = probe.runs + 1
            if probe.runs == 3 then
                probe.first = t:cancel(probe.handle)
                probe.second = select(2, t:cancel(probe.handle))
                ngx.sleep(0.05)
            end
        end)
    """)
    wait_for(timers, "probe.second ~= nil and t:stats().sys.running == 0", "the third run")
    got = timers.run("return { probe.runs, probe.first, probe.second, t:stats().sys.total }")
    assert got == [3, True, "timer not found", 0]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ('error("plain")', "plain"),
        ("error({ code = 1 })", "a table as the error"),
        ("error(nil)", "nil"),
        ("error(setmetatable({}, { __tostring = error }))", "an error without a text"),
        ("error(coroutine.running())", "thread"),
        ("local function deep() return 1 + deep() end deep()", "stack overflow"),
        ("ngx.sleep(0.001) error('late')", "late"),
    ],
)
def test_a_throwing_callback_is_counted_and_goes_on(error: str, said: str, timers: Timers) -> None:
    timers.expect_log("sluice: a timer made at sent:4 failed: ", 1)
    timers.run(f"""
        probe.runs = 0
        probe.h = t:every(0.02, function() probe.runs = probe.runs + 1 {error} end)
    """)
    wait_for(timers, "probe.runs >= 5", "five runs")
    timers.run("t:pause(probe.h)")
    wait_for(timers, "t:stats().sys.running == 0", "the last to end")
    place = timers.run("return t:stats().places['sent:4']")
    assert place["failures"] == place["runs"] >= 5
    assert place["successes"] == 0
    assert said in place["last_err"]
    one = timers.run("return t:stats({ timers = probe.h }).timers[1].last_err")
    assert said in one


def test_exit_ends_only_its_own_run(timers: Timers) -> None:
    timers.run("""
        probe.every, probe.after = 0, 0
        probe.h = t:every(0.02, function()
            probe.every = probe.every + 1
            ngx.exit(ngx.probe_nothing or 0)
            probe.after = probe.after + 1
        end)
        probe.others = 0
        for _ = 1, 200 do
            t:at(0, function() probe.others = probe.others + 1 ngx.exit(200) end)
        end
    """)
    wait_for(timers, "probe.others == 200", "the others")
    wait_for(
        timers,
        "t:stats() and probe.every >= 5",
        "the recurrent one to go on",
    )
    assert timers.run("return probe.after") == 0
    timers.run("t:cancel(probe.h)")


def test_every_run_has_a_clean_ctx(timers: Timers) -> None:
    timers.run(
        """
        probe.dirty, probe.runs, probe.kept = 0, 0, true
        for i = 1, 300 do
            t:at(0, function()
                if next(ngx.ctx) then probe.dirty = probe.dirty + 1 end
                local mine = ngx.ctx
                mine.who = i
                if i % 3 == 0 then ngx.sleep(0.001) end
                if i % 10 == 0 then ngx.ctx = { who = i } end
                if ngx.ctx.who ~= i or mine.who ~= i then probe.kept = false end
                probe.runs = probe.runs + 1
                if i % 7 == 0 then error("once") end
            end)
        end
    """.replace('error("once")', "do return end")
    )
    wait_for(timers, "probe.runs == 300", "all")
    assert timers.run("return { probe.dirty, probe.kept }") == [0, True]


def test_the_callers_ctx_is_untouched(timers: Timers) -> None:
    same = timers.run("""
        ngx.ctx.mine = "kept"
        local before, done = ngx.ctx, false
        t:at(0, function() ngx.ctx.mine = "other" ngx.ctx = {} done = true end)
        repeat ngx.sleep(0.005) until done
        return ngx.ctx == before and ngx.ctx.mine
    """)
    assert same == "kept"


def test_sockets_sleep_and_semaphores_work_inside(timers: Timers) -> None:
    timers.run("""
        probe.got = {}
        local port, done = ngx.var.server_port, require("ngx.semaphore").new(0)
        t:at(0, function()
            local s = ngx.socket.tcp()
            assert(s:connect("127.0.0.1", port))
            s:send("GET / HTTP/1.0\\r\\n\\r\\n")
            probe.got.socket = s:receive("*l")
            s:close()
            done:post()
        end)
        t:at(0, function() ngx.sleep(0.01) probe.got.slept = true end)
        t:at(0, function() probe.got.waited = done:wait(5) end)
        t:at(0, function()
            local thread = ngx.thread.spawn(function() ngx.sleep(0.005) return "thread" end)
            probe.got.thread = select(2, ngx.thread.wait(thread))
        end)
    """)
    wait_for(timers, "probe.got.waited and probe.got.thread and probe.got.slept", "all four")
    got = timers.run("return probe.got")
    assert got == {
        "socket": "HTTP/1.1 200 OK",
        "slept": True,
        "waited": True,
        "thread": "thread",
    }


def test_frozen_timers_wait(timers: Timers) -> None:
    got = timers.run("""
        local once, runs = 0, 0
        t:freeze()
        t:at(0, function() once = once + 1 end)
        local handle = t:every(0.01, function() runs = runs + 1 end)
        ngx.sleep(0.2)
        local frozen = { once, runs }
        local began = probe.ms()
        t:unfreeze()
        for _ = 1, 6000 do if once > 0 then break end ngx.sleep(0.005) end
        frozen[3] = once
        frozen[4] = runs <= (probe.ms() - began) / 10 + 2
        for _ = 1, 3000 do if runs >= 5 then break end ngx.sleep(0.01) end
        t:cancel(handle)
        frozen[5] = runs >= 5
        return frozen
    """)
    assert got == [0, 0, 1, True, True]


def test_freezing_stops_the_clocks(timers: Timers) -> None:
    left, passed, due = timers.run("""
        local fired
        local handle = t:at(1, function() fired = probe.ms() end)
        local function left() return t:stats({ timers = handle }).timers[1].next_due end
        ngx.sleep(0.1)
        t:freeze()
        local before = left()
        ngx.sleep(0.3)
        t:freeze()
        local after = left()
        local began = probe.ms()
        t:unfreeze() t:unfreeze()
        for _ = 1, 6000 do if fired then break end ngx.sleep(0.005) end
        return before - after, fired - began, before * 1000
    """)
    assert left == 0
    assert passed >= due


def test_restart_gives_the_whole_time(timers: Timers) -> None:
    out = timers.run("""
        local function left(h) return t:stats({ timers = h }).timers[1].next_due end
        local out = {}
        for i, handle in ipairs({
            t:at(100, print), t:every(100, print),
            t:every({ interval = 100, delay = 7 }, print),
            t:named_every("n", { interval = 100, overlap = "concurrent" }, print),
        }) do
            ngx.sleep(0.3)
            if i % 2 == 0 then assert(t:pause(handle)) end
            assert(t:restart(handle))
            out[i] = left(handle)
        end
        out[5] = select(2, t:restart("nobody"))
        local now, most, runs = 0, 0, 0
        local h = t:every(0.02, function()
            now, runs = now + 1, runs + 1
            most = math.max(most, now)
            ngx.sleep(0.05)
            now = now - 1
        end)
        for _ = 1, 3000 do
            if runs >= 3 then break end
            ngx.sleep(0.005)
            if now > 0 then t:restart(h) end
        end
        t:cancel(h)
        out[6], out[7] = most, runs
        return out
    """)
    assert all(99.75 < left <= 100.01 for left in out[:4])
    assert out[4:] == ["timer not found", 1, 3]


def test_what_runs_for_the_last_time_is_listed(timers: Timers) -> None:
    timers.run("""
        local function slow() while not probe.done do ngx.sleep(0.005) end end
        probe.h = t:named_at("again", 0, function()
            probe.second = t:named_at("again", 1000, print)
            slow()
        end)
        t:at(0, slow)
        probe.cancelled = t:every(0.01, function() t:cancel(probe.cancelled) slow() end)
    """)
    wait_for(timers, "t:stats().sys.running == 3", "all to run")
    listed = timers.run("""
        local out = {}
        for _, timer in ipairs(t:stats({ timers = true }).timers) do
            table.insert(out, { timer.state, timer.name or "", timer.next_due ~= nil })
        end
        table.sort(out, function(a, b) return a[1] .. a[2] < b[1] .. b[2] end)
        local one = t:stats({ timers = probe.h }).timers[1]
        return { out, t:stats().sys.total, one.state, t:is_managed(probe.h) }
    """)
    running = ["running", "", False]
    rows = [running, running, running, ["waiting", "again", True]]
    assert listed == [rows, 4, "running", False]
    timers.run("probe.done = true")
    wait_for(timers, "t:stats().sys.total == 1", "their end")
    assert timers.run("return t:stats({ timers = probe.h }).timers[1] == nil") is True


def test_destroyed_timers_are_gone(timers: Timers) -> None:
    got = timers.run(
        """
        local other = require("sluice.timer").new()
        assert(other:start())
        local runs = 0
        other:every(0.01, function() runs = runs + 1 end)
        other:at(0.05, function() runs = runs + 1000 end)
        ngx.sleep(0.03)
        other:destroy()
        local before = runs
        ngx.sleep(0.1)
        local sys = other:stats().sys
        return { runs - before, sys.total, sys.contexts, select(2, other:at(0, print)),
            select(2, other:start()) }
    """
    )
    assert got == [0, 0, 0, "destroyed", "destroyed"]


def test_jitter_stays_within_its_bounds_and_on_the_grid(timers: Timers) -> None:
    code = """
        local offsets, n, began = {}, 0, probe.ms()
        local handle = t:every({ interval = 0.05, jitter = 0.02 }, function()
            n = n + 1
            table.insert(offsets, probe.ms() - began - n * 50)
        end)
        ngx.sleep(1.03)
        t:cancel(handle)
        return offsets
    """

    def undisturbed() -> bool:
        offsets = timers.run(code)
        assert all(offset >= 0 for offset in offsets)
        if len(offsets) < 18 or max(offsets) >= 45:
            return False
        assert max(offsets) - min(offsets) > 5
        return True

    wait_until(undisturbed, "each run within its jitter")


def test_slow_runs_are_warned_of(timers: Timers) -> None:
    timers.expect_log(r"\[warn\].*a timer made at sent:3 ran for \d+ ms(?! \()", 1)
    timers.run("""
        t:at({ delay = 0, warn_after = 0.02 }, function() ngx.sleep(0.05) probe.done = true end)
        t:at({ delay = 0, warn_after = 60 }, function() ngx.sleep(0.05) end)
    """)
    wait_for(timers, "probe.done and t:stats().sys.running == 0", "both")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("t:at('x', print)", "argument #1 'delay' to 'at' (number or table expected, got string)"),
        ("t:at(-1, print)", "'delay' to 'at'"),
        ("t:at(0/0, print)", "'delay' to 'at'"),
        ("t:at(math.huge, print)", "'delay' to 'at'"),
        ("t:at(1)", "argument #2 'callback' to 'at' (function expected, got nil)"),
        ("t:every(0, print)", "'interval' to 'every'"),
        ("t:every(1, {})", "'callback' to 'every'"),
        ("t:named_at(1, 1, print)", "argument #1 'name' to 'named_at' (string expected"),
        ("t:named_every('n', 'x', print)", "argument #2 'interval' to 'named_every'"),
        ("t:at({ delay = 1, jiter = 1 }, print)", "unknown option 'jiter'"),
        ("t:at({ delay = 1, overlap = 'skip' }, print)", "'overlap': is for recurrent timers"),
        ("t:every({ interval = 1, overlap = 'all' }, print)", "skip, queue or concurrent"),
        ("t:every({ interval = 1, jitter = -1 }, print)", "option 'jitter': must be from 0"),
        ("t:every({}, print)", "option 'interval': is missing"),
        ("t:cancel({})", "argument #1 'which' to 'cancel' (handle or name expected, got table)"),
        ("t:set_debug(1)", "'on' to 'set_debug'"),
        ("t:stats({ verbos = true })", "unknown option 'verbos'"),
        (
            "t:stats({ timers = {} })",
            "option 'timers': boolean, handle or name expected, got table",
        ),
        ("t:stats({ flamegraph = 1 })", "option 'flamegraph': boolean expected, got number"),
        ("require('sluice.timer').new({ max = 1 })", "unknown option 'max'"),
        ("require('sluice.timer').new({ max_contexts = 1 })", "'max_contexts': must be from 2"),
        ("require('sluice.timer').new({ min_contexts = {} })", "'min_contexts': number expected"),
        (
            "require('sluice.timer').new({ min_contexts = 9, max_contexts = 8 })",
            "'min_contexts': must not be greater than max_contexts",
        ),
        ("require('sluice.timer').new(1)", "argument #1 'opts' to 'new'"),
    ],
)
def test_misuse_throws_at_the_callers_line(call: str, said: str, timers: Timers) -> None:
    # A tail call would leave no line to name.
    ok, error = timers.run(
        f"local ok, err = pcall(function()\n local r = {call} return r end)\nreturn ok, err"
    )
    assert ok is False
    assert re.match(r"sent:3: ", error), error
    assert said in error


def test_statistics(timers: Timers) -> None:
    timers.expect_log("sluice: a timer made at", 1)
    timers.run("""
        probe.h = t:named_every("named", { interval = 0.01, stats = true }, function()
            ngx.sleep(0.003)
        end)
        t:at(0, function() error("once") end)
        t:at(1000, print)
        local paused = t:at(1000, print)
        t:pause(paused)
        probe.runs = 0
    """)
    wait_for(timers, "t:stats().sys.runs >= 20", "runs")
    stats = timers.run("return t:stats({ timers = true, flamegraph = true })")
    sys = stats["sys"]
    assert (sys["total"], sys["paused"], sys["failures"]) == (3, 1, 1)
    assert sys["waiting"] + sys["running"] + sys["pending"] == 2
    assert sys["contexts"] >= 2
    place = stats["places"]["sent:3"]
    assert place["created"] == place["timers"] == 1
    assert place["failures"] == 0
    elapsed = place["elapsed"]
    assert 0 < elapsed["min"] <= elapsed["mean"] <= elapsed["max"]
    assert elapsed["min"] * 0.85 <= elapsed["p99"] <= elapsed["max"] * 1.2
    assert elapsed["variance"] <= (elapsed["max"] - elapsed["min"]) ** 2
    assert place["lateness"]["min"] >= 0
    named = timers.run("""
        local record = t:stats({ timers = "named" }).timers[1]
        return { record.handle == probe.h, record }
    """)
    assert named[0] is True
    record = named[1]
    assert record["name"] == "named"
    assert record["place"] == "sent:3"
    assert record["interval"] == pytest.approx(0.01)
    assert record["state"] in {"waiting", "running", "pending"}
    assert record["elapsed"]["p99"] > 0
    assert "lateness" in record
    assert re.search(r"^sent:3 \d+$", stats["flamegraph"]["elapsed"], re.MULTILINE)
    assert re.search(r"^sent:7 1$", stats["flamegraph"]["pending"], re.MULTILINE)


def test_debug_mode_has_call_stacks_over_tail_calls(timers: Timers) -> None:
    places = timers.run("""
        t:set_debug(true)
        local function inner() t:at(1000, print) end
        local function tail() return inner() end
        local function outer() tail() end
        outer()
        t:set_debug(false)
        t:at(1000, print)
        local out = {}
        for text in pairs(t:stats().places) do table.insert(out, text) end
        return out
    """)
    deep = [text for text in places if ";" in text]
    assert len(deep) == 1
    assert re.search(r"sent:7;sent:6;sent:4$", deep[0])
    assert "sent:9" in places


@pytest.mark.parametrize("name", ["@a b;c\\n\\td.lua", "=a b;c d", "return (...)  -- a;b c"])
def test_frames_of_folded_stacks_have_no_blanks(name: str, timers: Timers) -> None:
    stacks = timers.run(f"""
        local made = loadstring("local t = ... t:at(1000, print) return 1", "{name}")
        local plain = made(t)
        t:set_debug(true)
        made(t)
        return t:stats({{ flamegraph = true }}).flamegraph.pending
    """)
    lines = stacks.splitlines()
    assert len(lines) == 2
    assert all(re.fullmatch(r"[^\s;]+:\d+( 1|;.*)", line) for line in lines), lines
    assert all(re.fullmatch(r"[^\s]+ 1", line) for line in lines), lines
    assert lines[0].count(";") + lines[1].count(";") <= 2


def test_a_wrapper_names_its_caller(timers: Timers) -> None:
    places = timers.run("""
        local function later(f)
            local handle = t:at({ delay = 1000, level = 1 }, f)
            return handle
        end
        local _ = later(print)
        local out = {}
        for text in pairs(t:stats().places) do table.insert(out, text) end
        return out
    """)
    assert places == ["sent:7"]
