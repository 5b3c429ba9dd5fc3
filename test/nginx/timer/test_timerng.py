"""lua-resty-timer-ng's name on our timers, used as its README shows; its known faults are gone."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from nginx import Nginx
from wire import wait_until

HTTP = """
    init_worker_by_lua_block {
        local timers = require("resty.timerng").new({ min_threads = 2, max_threads = 16 })
        assert(timers:start())
        package.loaded.timers = timers
        package.loaded.notes = {}
        -- A callback that notes under a name when it runs, and what with.
        function package.loaded.notes_of(name)
            local notes = package.loaded.notes
            notes[name] = {}
            return function(premature, ...)
                ngx.update_time()
                table.insert(notes[name], { premature, ngx.now(), ... })
            end
        end
    }
    server {
        listen 127.0.0.1:@port@;
        location / {
            content_by_lua_block {
                local lua = ngx.unescape_uri(ngx.var.query_string)
                local run = assert(loadstring("local t, note, notes = ... " .. lua))
                local loaded = package.loaded
                local result = { pcall(run, loaded.timers, loaded.notes_of, loaded.notes) }
                ngx.say(require("cjson").encode(result))
            }
        }
    }
"""

Run = Callable[[str], Any]


@pytest.fixture
def nginx() -> Iterator[Nginx]:
    """A worker with a started system of timers."""
    with Nginx(HTTP, workers=1) as running:
        yield running


@pytest.fixture
def run(nginx: Nginx) -> Run:
    """Runs Lua in the worker and gives what it returns; an error as its text."""

    def run_lua(lua: str) -> object:
        ok, *results = json.loads(nginx.text("/?" + quote(lua)))
        if not ok:
            return f"error: {results[0]}"
        return results[0] if len(results) == 1 else results

    return run_lua


def test_the_readmes_synopsis(run: Run) -> None:
    lua = """ngx.update_time()
        return ngx.now(), t:at(0.1, note("once"), "a", nil, "b"), t:every(0.2, note("every"))"""
    begun, once, every = run(lua)
    assert isinstance(once, str)
    assert isinstance(every, str)
    wait_until(lambda: run("return #notes.every >= 3"), "three runs")
    premature, at, *arguments = run("return notes.once[1]")
    assert premature is False
    assert arguments == ["a", None, "b"]
    # ngx.now() has milliseconds, as a binary fraction.
    assert 0.1 <= round(at - begun, 3) < 2
    assert run("return #notes.once") == 1
    times = run("local out = {} for i, n in ipairs(notes.every) do out[i] = n[2] end return out")
    assert round(times[0] - begun, 3) >= 0.2
    assert run(f'return t:is_managed("{once}"), t:is_managed("{every}")') == [False, True]


def test_names(run: Run) -> None:
    assert run('return t:named_at("a", 60, print)') == "a"
    assert run('return t:named_every("a", 60, print)') == [False, "already exists timer"]
    assert run('return t:is_managed("a"), t:is_managed("b")') == [True, False]
    assert run('return t:cancel("a")') is True
    assert run('return t:is_managed("a")') is False
    for verb in ("cancel", "pause", "resume"):
        assert run(f'return t:{verb}("a")') == [False, "timer not found"]
    assert run('return t:named_at("a", 60, print)') == "a"
    names = run("return { t:at(60, print), t:at(60, print), t:every(60, print) }")
    assert len(set(names)) == 3


WRONG_OPTIONS = [
    "{ resolutoin = 0.1 }",
    *(
        f"{{ {name} = {value} }}"
        for name in (
            "resolution",
            "restart_thread_after_runs",
            "auto_scaling_load_threshold",
            "auto_scaling_interval",
        )
        for value in ("true", "'1'", "{}", "-1", "0", "0/0")
    ),
    "{ resolution = 0.09 }",
    "{ restart_thread_after_runs = 1.5 }",
    *(
        f"{{ min_threads = {least}, max_threads = {most} }}"
        for least, most in ((0, 4), (1.5, 4), (1, 4.5), (4, 4), (4, 2), ("'1'", 4), (1, "{}"))
    ),
    *(f"{{ wheel_setting = {value} }}" for value in ("true", "'x'", 0, "{}")),
    *(
        f"{{ wheel_setting = {{ level = {level}, slots_for_each_level = {slots} }} }}"
        for level, slots in (
            *((level, "{ 1, 1 }") for level in (0, -1, 1, 3, 1.5, "'2'", "nil", "{}")),
            *((2, slots) for slots in ("nil", "1", "{}", "{ 1 }", "{ 1, 1, 1 }")),
            *((2, f"{{ {slot}, 1 }}") for slot in (0, -1, 1.5, "'1'", "false", "{}", "nil")),
        )
    ),
    "{ wheel_setting = { level = 2, slots = { 1, 1 } } }",
    "{ debug = 1 }",
    "{ force_update_time = 1 }",
]


def test_wrong_use_throws(run: Run) -> None:
    for lua in (
        "t:at(-1, print)",
        't:at("1", print)',
        "t:at(1, 2)",
        "t:every(0, print)",
        "t:named_at(1, 1, print)",
        "t:cancel(1)",
        'require("resty.timerng").new(1)',
        'require("resty.timerng").new({ max_threads = 2 })',
        'require("resty.timerng").new({ min_threads = 4, max_threads = 2 })',
        *(f'require("resty.timerng").new({options})' for options in WRONG_OPTIONS),
        'require("resty.timerng").new():at(1, print)',
    ):
        assert str(run(lua)).startswith("error: "), lua
    options = """{ debug = false, resolution = 0.1, restart_thread_after_runs = 5000,
        auto_scaling_load_threshold = 5, min_threads = 32, max_threads = 256, wheel_setting = {
        level = 4, slots_for_each_level = { 10, 60, 60, 24 } } }"""
    assert run(f'return require("resty.timerng").new({options}):start()') is True


def test_pause_and_resume_reset_the_time(run: Run) -> None:
    lua = """t:named_at("a", 1, note("a")) ngx.sleep(0.2) return t:pause("a"), t:pause("a")"""
    assert run(lua) == [True, True]
    assert run('ngx.sleep(1) return #notes.a, t:is_managed("a")') == [0, True]
    resumed = run('ngx.update_time() return ngx.now(), t:resume("a")')
    assert resumed[1] is True
    wait_until(lambda: run("return #notes.a") == 1, "the run")
    assert run("return notes.a[1][2]") >= resumed[0] + 1
    assert run('return t:is_managed("a")') is False


def test_resume_of_an_active_timer_changes_nothing(run: Run) -> None:
    """The peer lets go of it: it goes on and can no longer be cancelled."""
    assert run('return t:named_every("a", 0.05, note("a"))') == "a"
    assert run('return t:resume("a")') == [False, "running"]
    assert run('return t:is_managed("a"), t:cancel("a")') == [True, True]
    runs = run("return #notes.a")
    assert run("ngx.sleep(0.2) return #notes.a") == runs


def test_a_one_shot_may_take_its_own_name_again(run: Run) -> None:
    lua = """
        local n = 0
        local function again()
            n = n + 1
            note("n" .. n)()
            if n < 3 then assert(t:named_at("a", 0.02, again)) end
        end
        return t:named_at("a", 0.02, again)"""
    assert run(lua) == "a"
    wait_until(lambda: run("return notes.n3 and #notes.n3") == 1, "its third run")


def test_any_error_leaves_a_recurrent_timer_going(nginx: Nginx, run: Run) -> None:
    nginx.expect_log("sluice", range(1, 50))
    for name, thrown in (("t", "{}"), ("n", "nil"), ("s", "'on purpose'")):
        lua = f"""local noted = note("{name}")
            return t:named_every("{name}", 0.02, function() noted() error({thrown}) end)"""
        assert run(lua) == name
        wait_until(lambda name=name: run(f"return #notes.{name} >= 3"), "three runs")


def test_delays_beyond_the_wheels_are_timers_of_nginx(run: Run) -> None:
    count = "ngx.timer.pending_count(), t:stats().sys.total"
    before, _ = run(f"return {count}")
    # The range is 24 hours less 2 s, unless the options have other wheels.
    assert isinstance(run("return t:at(86397, print)"), str)
    own = "local own = function() end "
    assert run(own + "return t:at(86398, own), t:every(10 * 86400, own)") == [1, 1]
    assert run(f"return {count}") == [before + 2, 1]
    small = "{ resolution = 0.1, wheel_setting = { level = 2, slots_for_each_level = { 10, 60 } } }"
    lua = f"""{own} local t = require("resty.timerng").new({small})
        t:start() -- its first context is a timer of nginx
        while ngx.timer.pending_count() > {before} + 2 do ngx.sleep(0.005) end
        t:at(57, own) t:at(58, own) t:every(57, own) t:every(58, own)
        return {count}"""
    assert run(lua) == [before + 4, 2]


def test_delays_too_short_for_the_peer_are_managed(run: Run) -> None:
    short = run("return t:at(0.05, print)")
    assert run(f'return t:is_managed("{short}")') is True
    assert run(f'return t:cancel("{short}")') is True
    name = run('return t:every(0.02, note("fast"))')
    wait_until(lambda: run("return #notes.fast >= 5"), "five runs")
    assert run(f'return t:cancel("{name}")') is True


def test_freeze_holds_and_start_lets_go(run: Run) -> None:
    assert run('t:every(0.02, note("a")) t:freeze() return #notes.a') == 0
    assert run("ngx.sleep(0.2) return #notes.a") == 0
    assert str(run("t:at(1, print)")).startswith("error: ")
    assert run("return t:start()") is True
    wait_until(lambda: run("return #notes.a >= 2"), "runs")


def test_freeze_stops_the_clocks(run: Run) -> None:
    lua = """t:named_at("once", 2, note("once")) t:named_every("every", 2, note("every"))
        ngx.sleep(0.1)
        t:freeze()
        ngx.sleep(1.5)
        t:start()
        ngx.update_time()
        return ngx.now()"""
    begun = run(lua)
    wait_until(lambda: run("return #notes.once + #notes.every >= 2"), "both")
    # What was left, less what the machine may have taken before the clocks stood.
    for name in ("once", "every"):
        assert run(f"return notes.{name}[1][2]") - begun > 0.5


def test_every_counts_from_the_end_of_a_run(run: Run) -> None:
    lua = """
        local gaps, ended = {}, nil
        t:named_every("a", 0.05, function()
            ngx.update_time()
            if ended then table.insert(gaps, ngx.now() - ended) end
            ngx.sleep(0.07)
            ngx.update_time()
            ended = ngx.now()
        end)
        for _ = 1, 3000 do if #gaps >= 3 then break end ngx.sleep(0.01) end
        t:cancel("a")
        return gaps"""
    gaps = run(lua)
    assert len(gaps) >= 3
    # ngx.now() has whole milliseconds.
    assert all(gap > 0.0485 for gap in gaps)


def test_pause_and_resume_during_a_run_start_no_second_one(run: Run) -> None:
    lua = """
        local now, most, runs = 0, 0, 0
        t:named_every("a", 0.02, function()
            now, runs = now + 1, runs + 1
            most = math.max(most, now)
            ngx.sleep(0.1)
            now = now - 1
        end)
        for _ = 1, 3000 do
            ngx.sleep(0.01)
            if now > 0 then assert(t:pause("a")) assert(t:resume("a")) end
            if runs >= 5 then break end
        end
        return most, runs, t:cancel("a")"""
    assert run(lua) == [1, 5, True]


def test_a_running_one_shot_is_in_the_statistics(run: Run) -> None:
    lua = """
        t:named_at("a", 0, function() ngx.sleep(0.5) end)
        for _ = 1, 3000 do if t:stats().sys.running == 1 then break end ngx.sleep(0.005) end
        local stats = t:stats({ verbose = true })
        return stats.sys.total, stats.timers.a.is_running, stats.timers.a.name"""
    assert run(lua) == [1, True, "a"]
    wait_until(lambda: run("return next(t:stats({ verbose = true }).timers) == nil"), "its end")


def test_destroy_ends_everything(run: Run) -> None:
    assert run('t:every(0.02, note("a")) t:at(0.02, note("b")) t:destroy() return 1') == 1
    assert run("ngx.sleep(0.1) return #notes.a, #notes.b") == [0, 0]


def test_statistics_in_the_peers_format(nginx: Nginx, run: Run) -> None:
    nginx.expect_log("on purpose", range(1, 50))
    run("""
        t:set_debug(true)
        t:named_every("good", 0.02, function() ngx.sleep(0.005) end)
        t:named_every("bad", 0.02, function() error("on purpose") end)
        t:named_at("later", 60, print)
        t:named_at("paused", 60, print)
        t:pause("paused")""")
    wait_until(lambda: run("return t:stats({ verbose = true }).timers.bad.stats.runs >= 3"), "runs")
    sys = run("return t:stats().sys")
    assert set(sys) == {"running", "pending", "waiting", "total", "runs"}
    assert sys["total"] == sys["running"] + sys["pending"] + sys["waiting"]
    assert run("return t:stats().timers == nil and t:stats().flamegraph == nil") is True
    found = run("return t:stats({ verbose = true, flamegraph = true })")
    assert set(found["timers"]) == {"good", "bad", "later", "paused"}
    good = found["timers"]["good"]
    assert good["name"] == "good"
    assert good["is_running"] in (True, False)
    assert good["stats"]["finish"] == good["stats"]["runs"]
    assert good["stats"]["elapsed_time"]["min"] >= 0.004
    assert set(good["stats"]["elapsed_time"]) == {"avg", "max", "min", "variance"}
    bad = found["timers"]["bad"]["stats"]
    assert bad["finish"] == 0
    assert "on purpose" in bad["last_err_msg"]
    assert found["timers"]["later"]["stats"]["runs"] == 0
    # The place is the caller's, not the library's own.
    for timer in found["timers"].values():
        assert "timerng" not in timer["meta"]["name"], timer
        assert re.search(r":\d+", timer["meta"]["name"]), timer
    assert set(found["flamegraph"]) == {"running", "pending", "elapsed_time"}
    assert re.search(r"\S+ \d+\n", found["flamegraph"]["pending"])


def test_an_options_table_leaves_the_place_as_it_is(run: Run) -> None:
    lua = """
        local t = require("sluice.timer").new()
        local function plain() local handle = t:at(60, print) return handle end
        local function table() local handle = t:at({ delay = 60 }, print) return handle end
        local function wrapped() local handle = t:at({ delay = 60, level = 1 }, print)
            return handle end
        local out = {}
        for i, make in ipairs({ plain, table, wrapped }) do
            local handle = make()
            out[i] = t:stats({ timers = handle }).timers[1].place:match("%d+$")
        end
        return out"""
    assert run(lua) == ["3", "4", "9"]


def test_debug_mode_keeps_call_stacks(run: Run) -> None:
    lua = """
        t:set_debug(true)
        local function inner() local name = t:at(60, print) return name end
        local function outer() local name = inner() return name end
        local name = outer()
        t:set_debug(false)
        return t:stats({ verbose = true }).timers[name].meta.callstack"""
    assert run(lua).count(";") >= 2


def test_verbose_statistics_give_others_a_turn_to_the_end(run: Run) -> None:
    """Also while the timers of sluice.timer become those of the interface."""
    lua = """
        local timerng, own = require("sluice.timer.timerng"), { nothing = function() end }
        local turns, first, last = 0, nil, nil
        own.timer = timerng.timer
        timerng.timer = function(...)
            first, last = first or turns, turns
            return own.timer(...)
        end
        for _ = 1, 100000 do t:at(3600, own.nothing) end
        local counting = ngx.thread.spawn(function()
            while true do ngx.sleep(0.001) turns = turns + 1 end
        end)
        local found, count = t:stats({ verbose = true }).timers, 0
        ngx.thread.kill(counting)
        timerng.timer = own.timer
        for _ in pairs(found) do count = count + 1 end
        return count, last - first"""
    count, turns = run(lua)
    assert count == 100000
    # It works for a tenth of a second, and does so for a millisecond at a time.
    assert turns >= 10
