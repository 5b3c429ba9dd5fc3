"""Contexts of timers that die, are refused or come too late; nginx's own timers replaced."""

import json
import os
import re
import signal

import pytest
from timer_waits import wait_for

from processes import descriptors
from sluice import alive
from timer_nginx import Timers
from wire import Wire, request_bytes, wait_until


def gone(timers: Timers, pid: int) -> None:
    """Waits for a worker of a master that ends with it."""
    wait_until(lambda: not alive(pid), "the worker to exit")
    timers.started = False
    timers.live.remove(timers)


def test_callbacks_that_end_all_contexts_do_not_end_the_timers() -> None:
    with Timers("{ max_contexts = 3 }") as timers:
        timers.run("""
            probe.runs, probe.ended = 0, 0
            t:every(0.05, function() probe.runs = probe.runs + 1 end)
            for i = 1, 30 do
                t:at(0, function()
                    ngx.sleep(0.1)
                    probe.ended = probe.ended + 1
                    ngx.exit(0)
                end)
            end
        """)
        wait_for(timers, "probe.ended == 30", "all to end their contexts")
        runs = timers.run("return probe.runs")
        wait_for(timers, f"probe.runs > {runs} + 5", "the recurrent one to go on")


def test_threads_that_callbacks_left_end_no_timers(timers: Timers) -> None:
    timers.run("""
        probe.runs, probe.ended = 0, 0
        t:every(0.02, function() probe.runs = probe.runs + 1 end)
        for i = 1, 20 do
            t:at(0, function()
                ngx.thread.spawn(function()
                    ngx.sleep(0.05 * i)
                    probe.ended = probe.ended + 1
                    ngx.exit(0)
                end)
            end)
        end
    """)
    wait_for(timers, "probe.ended > 0", "a thread to end its context")
    runs = timers.run("ngx.sleep(1.2) return probe.runs")
    wait_for(timers, f"probe.runs > {runs} + 5", "the recurrent one to go on")


LATE = """
    location /late {
        content_by_lua_block {
            local probe = require("probe")
            probe.waits = true
            while not ngx.worker.exiting() do ngx.sleep(0.005) end
            ngx.sleep(0.3)
            local handle, err = probe.t:at(0, function(premature)
                ngx.log(ngx.WARN, "late run ", tostring(premature))
            end)
            assert(handle, err)
            ngx.say("made")
        }
    }
"""


def test_what_a_request_makes_after_the_contexts_have_ended_runs() -> None:
    timers = Timers(locations=LATE)
    timers.expect_log("late run true", 1)
    with timers, Wire(timers.proxy_port) as wire:
        pid = timers.pid()
        wire.send(request_bytes("/late", "GET"))
        wait_for(timers, "probe.waits", "the request")
        os.kill(timers.master(), signal.SIGQUIT)
        assert wire.read_reply("GET").body == b"made\n"
        gone(timers, pid)


def test_nothing_is_promised_when_no_context_can_come() -> None:
    timers = Timers(
        server="""
            exit_worker_by_lua_block {
                local handle, err = require("probe").t:at(0, print)
                ngx.log(ngx.WARN, "made at the end: ", tostring(handle), " ", tostring(err))
            }
        """,
    )
    timers.expect_log("made at the end: nil process exiting", 1)
    with timers:
        pid = timers.pid()
        os.kill(timers.master(), signal.SIGQUIT)
        gone(timers, pid)


def test_a_context_that_nginx_drops_is_made_again() -> None:
    timers = Timers(limits="lua_max_running_timers 4;")
    timers.expect_log("4 lua_max_running_timers are not enough", range(1, 50))
    with timers:
        timers.run("""
            probe.hold = true
            for _ = 1, 3 do
                ngx.timer.at(0, function() while probe.hold do ngx.sleep(0.01) end end)
            end
            ngx.sleep(0.05)
            probe.runs = 0
            for _ = 1, 6 do
                t:at(0, function() ngx.sleep(0.2) probe.runs = probe.runs + 1 end)
            end
        """)
        wait_for(timers, "probe.runs == 6", "all with what contexts there are")
        most = timers.run("""
            probe.hold = false
            ngx.sleep(1.5)
            local most, running = 0, 0
            for _ = 1, 6 do
                t:at(0, function()
                    running = running + 1
                    most = math.max(most, running)
                    ngx.sleep(0.3)
                    running = running - 1
                end)
            end
            repeat ngx.sleep(0.01) until t:stats().sys.total == 0
            return most
        """)
        assert most > 1, "the pool grows again"


ENDING = """
    probe.calls = 0
    for i = 1, 100 do
        t:at(0, function()
            probe.calls = probe.calls + 1
            if i % 10 == 1 then ngx.exit(0) end
            if i % 10 == 2 then ngx.sleep(0.001) ngx.exit(0) end
        end)
    end
"""


@pytest.mark.parametrize("room", [1, 2, 3])
def test_callbacks_that_end_the_only_contexts_do_not_end_the_timers(room: int) -> None:
    """Where nginx has room for few, they once counted on those that it dropped."""
    timers = Timers("{ max_contexts = 16 }", limits=f"lua_max_running_timers {room};")
    timers.expect_log("lua_max_running_timers are not enough", range(1000))
    with timers:
        timers.run(ENDING)
        if room > 1:
            wait_for(timers, "probe.calls == 100", "all to be called")
        else:
            # Each that ends its context ends the only one; another comes in a second.
            wait_for(timers, "probe.calls > 12", "others to be called")


def dropped() -> Timers:
    """Timers whose first context nginx drops: others have all places for a while."""
    hold = "ngx.timer.at(0, function() ngx.sleep(1.2) package.loaded.probe.free = true end) "
    timers = Timers(limits="lua_max_running_timers 3;", before=hold * 3)
    timers.expect_log("3 lua_max_running_timers are not enough", range(1, 10))
    return timers


def test_a_first_context_that_nginx_dropped_comes_later() -> None:
    with dropped() as timers:
        wait_for(timers, "probe.free", "the place to be free")
        timers.run("t:at(0, function() probe.done = true end)")
        wait_for(timers, "probe.done", "a context to come after all")


def test_a_context_that_nginx_dropped_keeps_no_worker() -> None:
    with dropped() as timers:
        pid = timers.pid()
        timers.run("t:at(1000, print)")
        os.kill(timers.master(), signal.SIGQUIT)
        gone(timers, pid)


def test_a_start_that_fails_keeps_nothing() -> None:
    timers = Timers(limits="lua_max_pending_timers 8;")
    timers.expect_log("no context for timers: too many pending timers", range(20))
    with timers:
        before = descriptors(timers.pid())
        said = timers.run(
            """
            local hold = 0
            while ngx.timer.at(0.5, function() probe.free = true end) do hold = hold + 1 end
            local late = require("sluice.timer").new()
            probe.late = late
            late:at(0, function() probe.ran = true end)
            local out = {}
            for i = 1, 10 do out[i] = select(2, late:start()) or "started" end
            return out
        """
        )
        assert set(said) == {"too many pending timers"}
        assert descriptors(timers.pid()) <= before + 2
        wait_for(timers, "probe.free", "a place")
        wait_until(lambda: timers.run("return probe.late:start()") is True, "a start")
        wait_for(timers, "probe.ran", "its timer")


def test_destroyed_timers_keep_no_descriptor(timers: Timers) -> None:
    timers.run("collectgarbage() collectgarbage('stop')")
    before = descriptors(timers.pid())
    timers.run(
        """
        for _ = 1, 50 do
            local other = require("sluice.timer").new()
            assert(other:start())
            other:every(1, print)
            ngx.sleep(0.002)
            other:destroy()
        end
        probe.count = ngx.timer.running_count
    """
    )
    wait_for(timers, "probe.count() <= 4", "the contexts to end")
    assert descriptors(timers.pid()) <= before + 2
    timers.run("collectgarbage('restart')")


@pytest.mark.parametrize("where", ["worker", "master"])
def test_each_worker_draws_jitter_of_its_own(where: str) -> None:
    made = 'probe.t = require("sluice.timer").new()' if where == "master" else ""
    draw = b"""local t = ...
        local out = { ngx.worker.pid() }
        for i = 1, 5 do
            local handle = t:at({ delay = 1000, jitter = 1000 }, print)
            out[i + 1] = t:stats({ timers = handle }).timers[1].next_due
            t:cancel(handle)
        end
        return unpack(out)"""
    drawn: dict[int, list[float]] = {}

    def asked_both() -> bool:
        with Wire(timers.proxy_port) as wire:
            wire.send(request_bytes("/run", "POST", body=draw))
            pid, *due = json.loads(wire.read_reply("POST").body)
        drawn.setdefault(pid, due)
        return len(drawn) == 2

    with Timers(workers=2, init=made) as timers:
        wait_until(asked_both, "an answer of each worker")
    one, other = drawn.values()
    assert all(1000 - 30 < due < 2000 for due in one + other)
    assert max(abs(a - b) for a, b in zip(one, other, strict=True)) > 50


def test_timers_start_in_workers_only() -> None:
    init = 'probe.said = { require("sluice.timer").new():start() }'
    with Timers(init=init) as timers:
        assert timers.run("return probe.said[1] == nil, probe.said[2]") == [True, "not in a worker"]


def test_without_the_module_it_says_so() -> None:
    before = """
        local made, err = pcall(require("sluice.timer").new)
        ngx.log(ngx.WARN, "made: ", tostring(made), ": ", err)
        do return end
    """
    timers = Timers(before=before, module=None)
    timers.expect_log("made: false: the Sluice module is not loaded: put 'load_module ", 1)
    with timers:
        timers.pid()


# ngx.timer replaced


def test_nginxs_timers_are_replaced_and_put_back(timers: Timers) -> None:
    said = timers.run("""
        local at, every = ngx.timer.at, ngx.timer.every
        local undo = t:replace_ngx_timer()
        local got, runs, most, now = {}, 0, 0, 0
        local function note(...) got = { select("#", ...), ... } end
        local once = ngx.timer.at(0, note, nil, "b")
        local again = ngx.timer.every(0.01, function()
            runs, now = runs + 1, now + 1
            most = math.max(most, now)
            ngx.sleep(0.1)
            now = now - 1
        end)
        for _ = 1, 3000 do if runs >= 10 and most > 1 then break end ngx.sleep(0.01) end
        local places = t:stats().places
        local out = {
            got[1], got[2], got[4], runs >= 10, most > 1,
            places["sent:7"] ~= nil and places["sent:8"] ~= nil,
            t:cancel(once) == nil and t:cancel(again),
            undo(), select(2, undo()), ngx.timer.at == at and ngx.timer.every == every,
        }
        return out
    """)
    expected = [3, False, "b", True, True, True, True, True, "not in place", True]
    assert said == expected


def test_misuse_of_what_replaces_throws_at_the_callers_line(timers: Timers) -> None:
    said = timers.run("""
        local undo = t:replace_ngx_timer()
        local out, odd = {}, { interval = 1, jiter = 1 }
        for i, call in ipairs({
            function() local r = ngx.timer.at(-1, print) return r end,
            function() local r = ngx.timer.at(1, 2) return r end,
            function() local r = ngx.timer.every(0, print) return r end,
            function() local r = ngx.timer.every(odd, print) return r end,
        }) do
            out[i] = select(2, pcall(call))
        end
        undo()
        return out
    """)
    for line, (error, word) in enumerate(
        zip(said, ("'delay'", "'callback'", "'interval'", "'jiter'"), strict=True), 6
    ):
        assert re.match(rf"sent:{line}: .*{word}", error), error


def test_contexts_are_nginxs_own_while_its_timers_are_replaced(timers: Timers) -> None:
    timers.run("""
        probe.undo = t:replace_ngx_timer()
        probe.runs = 0
        for _ = 1, 200 do
            ngx.timer.at(0, function() ngx.sleep(0.02) probe.runs = probe.runs + 1 end)
        end
    """)
    wait_for(timers, "probe.runs == 200", "all")
    sys = timers.run("return t:stats().sys")
    assert (sys["created"], sys["runs"]) == (200, 200)
    others = timers.run("""
        local undo_other = require("sluice.timer").new():replace_ngx_timer()
        local refused = select(2, probe.undo())
        return { refused, undo_other(), probe.undo() }
    """)
    assert others == ["not in place", True, True]


def test_no_context_outlives_what_premature_callbacks_make() -> None:
    with Timers(events="worker_connections 512;") as timers:
        timers.run("""
            local function last(_, n)
                if n > 0 then
                    t:at(0, last, n - 1)
                    ngx.sleep(0.001)
                end
            end
            for i = 1, 30 do
                t:at(1000, function()
                    ngx.sleep(0.02)
                    for _ = 1, 3 do t:at(0, last, i % 3) end
                end)
            end
        """)
        pid = timers.pid()
        os.kill(timers.master(), signal.SIGQUIT)
        gone(timers, pid)


def test_callbacks_of_several_pages_each_get_what_is_theirs(timers: Timers) -> None:
    """The dispatcher keeps the page of the last run: pages in turns, errors, waits, arguments."""
    timers.expect_log("a timer made at .* failed.*: .*of itself", 2)  # at two places
    timers.run("""
        probe.got, probe.wrong, probe.failed = 0, 0, 0
        local handles = {}
        for i = 1, 5000 do
            local function callback(premature, argument)
                if premature or argument ~= (i % 3 == 0 and i or nil) then
                    probe.wrong = probe.wrong + 1
                end
                probe.got = probe.got + 1
                if i % 50 == 0 then
                    ngx.sleep(0)
                elseif i % 101 == 0 then
                    probe.failed = probe.failed + 1
                    error("of itself")
                end
            end
            if i % 3 == 0 then
                handles[i] = t:at(0.2, callback, i)
            else
                handles[i] = t:at(0.2, callback)
            end
        end
        -- 1,024 to a page, so two of one and two of another in turns
        for i = 1, 2500, 2 do
            for _, first in ipairs({ 0, 2500 }) do
                t:restart(handles[first + i])
                t:restart(handles[first + i + 1])
            end
        end
    """)
    wait_for(timers, "t:stats().sys.total == 0", "all to end")
    assert timers.run("return { probe.got, probe.wrong }") == [5000, 0]
    assert timers.run("return t:stats().sys.failures == probe.failed") is True
