"""Plugins whose Lua does not end: who ends it, and what is said of it."""

import contextlib
import json
import os
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from admin_client import Client
from changes import document, post

import guard
from processes import children
from sluice import Gateway, Start, alive, proxying
from upstream import Upstream
from wire import wait_until

# The default is 30 s. For the control worker it is wall-clock time: room for a busy machine.
WATCHDOG = "6s"

LOOPS = """
local stop = false
local function spin()
    while not stop do end
end
local function walk()
    while not stop do end
end
jit.off(walk)
return {
    VERSION = "1.0.0", PRIORITY = 1,
    access = function(self, conf)
        local how = ngx.var.http_x_how
        if how == "compiled" then
            spin()
        elseif how == "interpreted" then
            walk()
        end
    end,
}
"""


def test_a_loop_is_ended_by_a_watchdog_that_names_it(gateway: Start, upstream: Upstream) -> None:
    """The interpreter ends at its line, with an answer; compiled code dies with its worker."""
    config = proxying(upstream) | {"plugins": [{"name": "loops"}]}
    plugins = {"loops": {"handler": LOOPS}}
    running = gateway(config, kong_plugins=plugins, watchdog_timeout=WATCHDOG)
    long = r"worker 1 \(pid \d+\) has run plugin 'loops' in access for \d+ ms of CPU time"
    running.expect_log(long, 2)
    line = r"plugin 'loops' failed in access: .*handler\.lua:\d+: ended by the watchdog"
    running.expect_log(line, 1)
    running.expect_log(r"worker 1 \(pid \d+\) is killed: it does not end plugin 'loops' in access")
    running.expect_log("exited on signal 9", 1)
    (worker,) = set(running.workers()) - {running.control()}
    with running.wire(timeout=120) as wire:
        assert wire.ask("/", headers={"X-How": "interpreted"}).status == 500
    assert worker in running.workers()
    with running.wire(timeout=120) as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: h\r\nX-How: compiled\r\n\r\n")
        wait_until(lambda: worker not in running.workers(), "the worker to be killed", 120)
    assert running.ask("/").status == 200
    text = Client(running).ask("GET", "/metrics").body.decode()
    assert 'sluice_plugin_failures_total{plugin="loops",phase="access"} 2\n' in text, "one each"
    taken = [int(ms) for ms in re.findall(r"for (\d+) ms of CPU time", running.error_log())]
    assert all(6000 <= ms < 20000 for ms in taken), "as much as is set, and no default"


def cpu_ticks(pid: int) -> int:
    """User and system time, fields 14 and 15 of proc(5)."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(stat[11]) + int(stat[12])


def reload(running: Gateway, config: dict[str, Any]) -> None:
    """Until the new control worker is there; an old worker that is busy stays."""
    old = running.control()
    running.write_config(config)
    done = running.command("reload", "--new-workers")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: not alive(old), "the old control worker to leave")


@pytest.mark.parametrize("how", ["interpreted", "compiled"])
def test_a_loop_in_an_old_worker_is_ended_after_reloads(
    how: str, gateway: Start, upstream: Upstream
) -> None:
    """By the control worker of the configuration then, whose plugins have other numbers."""
    config = proxying(upstream) | {"plugins": [{"name": "loops"}]}
    plugins = {"loops": {"handler": LOOPS}}
    running = gateway(config, kong_plugins=plugins, watchdog_timeout=WATCHDOG)
    long = r"old worker \(pid \d+\) has run plugin 'loops' in access for \d+ ms of CPU time"
    running.expect_log(long, 1)
    if how == "interpreted":
        running.expect_log(r"plugin 'loops' failed in access: .*ended by the watchdog", 1)
    else:
        running.expect_log(r"old worker \(pid \d+\) is killed: it does not end plugin 'loops'", 1)
        running.expect_log("exited on signal 9", 1)
    (worker,) = set(running.workers()) - {running.control()}
    with running.wire(timeout=120) as wire:
        before = cpu_ticks(worker)
        wire.send(f"GET / HTTP/1.1\r\nHost: h\r\nX-How: {how}\r\n\r\n".encode())
        wait_until(lambda: cpu_ticks(worker) > before + 20, "the loop to begin")
        # What is stopped takes no CPU time: however long the reloads are.
        os.kill(worker, signal.SIGSTOP)
        reload(running, config)
        running.settings["plugins"] = ["bundled"]
        reload(running, proxying(upstream))
        os.kill(worker, signal.SIGCONT)
        wait_until(lambda: not alive(worker), "the old worker to end", 120)
        if how == "interpreted":
            assert wire.read_reply().status == 500
    assert running.ask("/").status == 200


def test_the_master_keeps_no_places_of_workers_that_have_left(
    gateway: Start, upstream: Upstream
) -> None:
    config = proxying(upstream)
    running = gateway(config)
    counts = []
    for _ in range(3):
        running.reload(config)
        wait_until(lambda: not running.retiring(), "the old workers to leave")
        maps = Path(f"/proc/{running.master()}/maps").read_text()
        counts.append(maps.count("/dev/zero (deleted)"))
    assert counts[1:] == counts[:1] * 2, "of the workers before alone"


# A stop is a signal, so it comes late where the worker does not take signals for a while. The
# request says in which step the worker asks itself to end it, and in which it takes the signal.
LATE = """
local ffi = require("ffi")
local turn = require("sluice.ffi.turn")
ffi.cdef("int pthread_sigmask(int how, const unsigned long *set, unsigned long *old);")
local BLOCK, UNBLOCK, SIGXCPU = 0, 1, 24

local function mask(how)
    local set = ffi.new("unsigned long[16]")
    set[0] = bit.lshift(1, SIGXCPU - 1)
    assert(ffi.C.pthread_sigmask(how, set, nil) == 0)
end

local function count()
    local sum = 0
    for i = 1, 10 do
        sum = sum + #tostring(i)
    end
    return sum
end

return {
    VERSION = "1.0.0", PRIORITY = @priority@,
    access = function(self, conf)
        local worker = ngx.worker.id()
        if ngx.var.http_x_ask == conf.tag then
            mask(BLOCK)
            local found = turn.look(worker)
            assert(found.is_in_step)
            turn.stop(worker, found, false)
        end
        if ngx.var.http_x_take == conf.tag then
            mask(UNBLOCK)
            ngx.header["X-Taken"] = count()
        end
    end,
}
"""
TAG = '{ tag = { type = "string", required = true } }'


def late(priority: int) -> dict[str, str]:
    """One of two plugins that differ in their order alone."""
    return {"handler": LATE.replace("@priority@", str(priority)), "config": TAG}


def test_a_stop_that_comes_late_ends_no_other_step(gateway: Start, upstream: Upstream) -> None:
    """Neither the next plugin's of the request nor the next request's; its own it does."""
    config = proxying(upstream) | {
        "plugins": [
            {"name": "first", "config": {"tag": "first"}},
            {"name": "second", "config": {"tag": "second"}},
        ]
    }
    plugins = {"first": late(2), "second": late(1)}
    running = gateway(config, kong_plugins=plugins)
    line = r"plugin 'first' failed in access: .*handler\.lua:\d+: ended by the watchdog"
    running.expect_log(line, 1)
    own = running.ask("/", headers={"X-Ask": "first", "X-Take": "first"})
    assert own.status == 500
    other = running.ask("/", headers={"X-Ask": "first", "X-Take": "second"})
    assert (other.status, other.headers.get("x-taken")) == (200, "11")
    assert running.ask("/", headers={"X-Ask": "second"}).status == 200
    following = running.ask("/", headers={"X-Take": "first"})
    assert (following.status, following.headers.get("x-taken")) == (200, "11")
    text = Client(running).ask("GET", "/metrics").body.decode()
    assert 'failures_total{plugin="first"' not in text, "who asks counts: here it was the worker"


# Its step waits for a change, which is given to `configure` within it, and says what it is in.
NESTED = """
local pdk = require("gateway.pdk")
local turn = require("sluice.ffi.turn")
local given = 0
return {
    VERSION = "1.0.0", PRIORITY = 1,
    configure = function()
        given = given + 1
    end,
    access = function()
        if ngx.var.http_x_wait then
            local before, ends = given, ngx.now() + 20
            io.open("FUSE", "w"):close()
            while given == before and ngx.now() < ends do
                pdk.store():id()
                kong.client.load_consumer("anna", true)
                ngx.update_time()
            end
            local found = turn.look(ngx.worker.id())
            local is_in_step = found and found.is_in_step
            return kong.response.exit(200, {
                given = given - before,
                is_in_step = is_in_step,
                phase = found and require("gateway.kit.phases").name(found.kind),
            })
        end
    end,
}
"""


def test_a_step_is_watched_when_a_change_was_given_within_it(
    gateway: Start, upstream: Upstream
) -> None:
    fuse = guard.folder("sluice-fuse-") / "fuse"
    fuse.parent.chmod(0o777)
    plugin = {"name": "nested", "config": {"tag": "a"}}
    config = proxying(upstream) | {"plugins": [plugin], "consumers": [{"username": "anna"}]}
    source = NESTED.replace("FUSE", str(fuse))
    running = gateway(config, kong_plugins={"nested": {"handler": source, "config": TAG}})
    with running.wire(timeout=60) as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: h\r\nX-Wait: 1\r\n\r\n")
        wait_until(fuse.exists, "the step to begin")
        plugin["config"] = {"tag": "b"}
        assert post(running, document(config)).status_code == 201
        told = json.loads(wire.read_reply().body)
    assert told == {"given": 1, "is_in_step": True, "phase": "access"}
    guard.remove(fuse.parent)


# Its worker's place names another process, as it does when a worker has died and its pid is that
# of somebody else by the time that anybody looks.
REUSED = """
local turn = require("sluice.ffi.turn")
local ffi = require("ffi")
return {
    VERSION = "1.0.0", PRIORITY = 1,
    access = function()
        local worker, own = ngx.worker.id(), ffi.C.sluice_turn()
        local real, seen = own.pid, turn.look(worker)
        own.pid = tonumber(ngx.var.http_x_pid)
        local is_there = turn.look(worker) ~= nil
        turn.stop(worker, seen, false)
        turn.stop(worker, seen, true)
        own.pid = real
        return kong.response.exit(200, { seen = seen.pid == real, is_there = is_there })
    end,
}
"""


def test_who_has_the_pid_of_a_dead_worker_is_left_alone(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream) | {"plugins": [{"name": "reused"}]}
    running = gateway(config, kong_plugins={"reused": {"handler": REUSED}})
    with subprocess.Popen(["sleep", "60"]) as other:
        reply = running.ask("/", headers={"X-Pid": str(other.pid)})
        assert json.loads(reply.body) == {"seen": True, "is_there": False}
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(1)
        other.terminate()


def told(running: Gateway) -> list[dict[str, Any]]:
    """What the status says of plugins that are not started in the control worker."""
    with contextlib.suppress(OSError, httpx.HTTPError):
        found = httpx.get(f"{running.admin}/status", trust_env=False, timeout=2)
        return [one for one in found.json()["plugins_failed"] if one["phase"] == "control"]
    return []


STICKS = """
return {
    VERSION = "1.0.0", PRIORITY = 1,
    init_worker = function()
        if ngx.worker.id() == 0 and io.open("FUSE") then
            while true do end
        end
    end,
    access = function() ngx.header["X-Runs"] = "yes" end,
}
"""


def test_what_has_stuck_the_control_worker_twice_is_not_started_there(
    gateway: Start, upstream: Upstream
) -> None:
    fuse = guard.folder("sluice-fuse-") / "fuse"
    fuse.parent.chmod(0o777)
    config = proxying(upstream) | {"plugins": [{"name": "sticks"}]}
    source = STICKS.replace("FUSE", str(fuse))
    plugins = {"sticks": {"handler": source}}
    running = gateway(config, kong_plugins=plugins, watchdog_timeout=WATCHDOG)
    running.expect_log("exited on signal 9", 3)
    running.expect_log("the control worker has died in plugin 'sticks' in init_worker", 2)
    running.expect_log("plugin 'sticks' is not started in the control worker any more", 1)
    fuse.touch()
    os.kill(running.control(), 9)
    (status,) = wait_until(lambda: told(running), "the status to tell of it", 240)
    assert status["plugin"] == "sticks"
    assert running.ask("/").headers.get("x-runs") == "yes"
    fuse.unlink()
    guard.remove(fuse.parent)


STICKS_ALL = """
local function spin()
    local n, is_on = 0, io.open("FUSE") ~= nil
    while is_on do n = n + 1 end
end
return { VERSION = "1.0.0", PRIORITY = 1, init_worker = spin, access = function() end }
"""


def test_old_workers_serve_while_a_plugin_keeps_new_ones_from_starting(
    gateway: Start, upstream: Upstream
) -> None:
    """What has stuck new workers twice is left out of the next ones; no request is refused."""
    fuse = guard.folder("sluice-fuse-") / "fuse"
    fuse.parent.chmod(0o777)
    config = proxying(upstream) | {"plugins": [{"name": "sticks"}]}
    plugins = {"sticks": {"handler": STICKS_ALL.replace("FUSE", str(fuse))}}
    running = gateway(config, kong_plugins=plugins, watchdog_timeout=WATCHDOG)
    running.expect_log("exited on signal 9", range(3, 9))
    running.expect_log("control worker has died in plugin 'sticks' in init_worker", range(2, 6))
    running.expect_log("has run plugin 'sticks' in init_worker for", range(4))
    running.expect_log("is killed: it does not end plugin 'sticks' in init_worker", range(1, 4))
    running.expect_log("'sticks' is not started in the control worker any more", range(1, 4))
    running.expect_log("'sticks' is not started in worker 1 any more", 1)
    fuse.touch()
    with ThreadPoolExecutor(1) as threads:
        command = threads.submit(running.command, "reload", "--new-workers")
        statuses = [running.ask("/").status]
        while not command.done():
            statuses.append(running.ask("/").status)
    assert set(statuses) == {200}
    done = command.result()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("reloaded: 1 new worker")
    assert "waiting for new workers to accept connections\n" in done.stderr
    fuse.unlink()
    guard.remove(fuse.parent)


def test_a_stop_is_not_delayed_by_a_reload_that_is_stuck(
    gateway: Start, upstream: Upstream
) -> None:
    """The master asks its old workers once, and did so at the reload."""
    fuse = guard.folder("sluice-fuse-") / "fuse"
    fuse.parent.chmod(0o777)
    config = proxying(upstream) | {"plugins": [{"name": "sticks"}]}
    plugins = {"sticks": {"handler": STICKS_ALL.replace("FUSE", str(fuse))}}
    running = gateway(config, kong_plugins=plugins, watchdog_timeout="300s")
    running.expect_log("exited on signal 9", range(9))
    old = set(running.workers())
    control, master = running.control(), running.master()
    fuse.touch()
    os.kill(master, signal.SIGHUP)
    wait_until(lambda: len(children(master)) >= 4, "new workers")
    for _ in range(100):
        assert running.ask("/").status == 200
    (worker,) = old - {control}
    assert alive(worker)
    os.kill(master, signal.SIGQUIT)
    wait_until(lambda: not alive(worker), "the old worker to leave")
    fuse.unlink()
    guard.remove(fuse.parent)
