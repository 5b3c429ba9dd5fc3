"""Workers that die, logs, and temporary files: the gateway as processes."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from processes import ran
from sluice import ROOT, Start, proxying
from upstream import Upstream
from wire import DEADLINE, ClosedEarly, wait_until

HEADLESS = """
import ctypes, os, sys, threading
threading.Thread(target=lambda: os._exit(0 if sys.stdin.readline() else 1)).start()
ctypes.CDLL(None).pthread_exit(None)
"""
"""Its first thread has ended, as a killed worker's has while another waits for the disk."""

ENDED = """
for _, pid in ipairs(arg) do print(require("cli.instance.process").has_ended(tonumber(pid))) end
"""


def test_a_process_is_there_until_all_its_threads_have_ended(tmp_path: Path) -> None:
    """It holds what it had open: a store that another start waits for."""
    script = tmp_path / "ended.lua"
    script.write_text(ENDED)

    def ended(*pids: int) -> list[str]:
        paths = "./?.lua;./?/init.lua;./lib/?.lua;./lib/?/init.lua;;"
        command = [os.environ.get("SLUICE_LUAJIT", "luajit"), script, *map(str, pids)]
        return ran(command, cwd=ROOT, env=os.environ | {"LUA_PATH": paths}).stdout.split()

    def state() -> str:
        return Path(f"/proc/{child.pid}/stat").read_text().rpartition(") ")[2][0]

    with subprocess.Popen(
        [sys.executable, "-c", HEADLESS], stdin=subprocess.PIPE, text=True
    ) as child:
        wait_until(lambda: state() == "Z", "the first thread to end")
        assert ended(child.pid, os.getpid()) == ["false", "false"]
        child.stdin.write("end\n")
        child.stdin.flush()
        wait_until(lambda: len(os.listdir(f"/proc/{child.pid}/task")) == 1, "the other thread")
        assert ended(child.pid) == ["true"]
    assert child.returncode == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_worker_is_replaced_within_traffic(
    gateway: Start, upstream: Upstream, workers: int
) -> None:
    running = gateway(proxying(upstream), workers=workers)
    running.expect_log(r"exited on signal 9", 3)
    done = threading.Event()
    answered: list[int] = []

    def client() -> None:
        while not done.is_set():
            try:
                answered.append(running.ask("/").status)
            except (ClosedEarly, OSError):
                continue

    thread = threading.Thread(target=client)
    thread.start()
    try:
        for _ in range(3):
            victim = running.workers()[0]
            before = len(answered)
            os.kill(victim, signal.SIGKILL)
            wait_until(
                lambda victim=victim: (
                    victim not in running.workers() and len(running.workers()) == workers
                ),
                "a new worker",
            )
            wait_until(lambda before=before: len(answered) > before + 5, "answers after the kill")
    finally:
        done.set()
        thread.join()
    assert set(answered) == {200}
    assert running.ask("/").status == 200


def test_traffic_workers_have_one_thread(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream), workers=2)

    def threads(pid: int) -> int:
        return len(os.listdir(f"/proc/{pid}/task"))

    assert [threads(pid) for pid in running.workers()] == [1, 1]
    assert threads(running.control()) > 1


def client_connections(pid: int, port: int) -> int:
    """How many established connections of the port's clients a process holds."""
    inodes = set()
    with open("/proc/net/tcp") as table:
        for line in list(table)[1:]:
            _, local, _, state, *rest = line.split()
            if int(local.split(":")[1], 16) == port and state == "01":
                inodes.add(rest[5])
    held = {os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")}
    return len([inode for inode in inodes if f"socket:[{inode}]" in held])


def test_a_killed_worker_takes_no_others_request_with_it(
    gateway: Start, upstream: Upstream
) -> None:
    running = gateway(proxying(upstream), workers=2)
    running.expect_log(r"exited on signal 9", 1)
    go_on = threading.Event()
    upstream.handler = lambda exchange: (go_on.wait(DEADLINE), exchange.reply(200, body=b"x"))[1]
    wires = [running.wire() for _ in range(20)]
    for wire in wires:
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    upstream.wait_for(20)
    victim = running.workers()[0]
    spared = 20 - client_connections(victim, running.proxy_port)
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in running.workers(), "the worker to be gone")
    wait_until(lambda: len(running.workers()) == 2, "a new worker")
    go_on.set()
    answered = 0
    for wire in wires:
        with wire, contextlib.suppress(ClosedEarly, OSError):
            answered += wire.read_reply().status == 200
    assert answered == spared
    assert running.ask("/").status == 200


def test_quit_finishes_what_was_begun(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream))
    go_on = threading.Event()
    upstream.handler = lambda exchange: (go_on.wait(DEADLINE), exchange.reply(200, body=b"done"))[1]
    wire = running.wire()
    wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    upstream.wait_for(1)
    quitting = threading.Thread(target=running.stop, args=("quit",))
    master = running.master()
    quitting.start()
    wait_until(lambda: "gracefully shutting down" in running.error_log(), "the quit to begin")
    assert os.path.exists(f"/proc/{master}")
    go_on.set()
    assert wire.read_reply().body == b"done"
    quitting.join()


def test_two_gateways_side_by_side(gateway: Start, upstream: Upstream) -> None:
    with Upstream(name="second") as second:
        one, two = gateway(proxying(upstream)), gateway(proxying(second))
        assert one.ask("/").json()["upstream"] == "upstream"
        assert two.ask("/").json()["upstream"] == "second"
        one.stop()
        assert two.ask("/").status == 200


def test_access_log_formats(gateway: Start, upstream: Upstream) -> None:
    import json

    running = gateway(proxying(upstream), access_log_format="json")
    running.ask('/a"b', headers={"User-Agent": 'x"y\\z'})
    running.stop("quit")
    line = json.loads(running.access_log().splitlines()[-1])
    assert (line["status"], line["path"], line["method"]) == (200, '/a"b', "GET")


def test_reopen_after_the_logs_were_moved(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream), access_log_format="$request_uri")
    running.ask("/before")
    log = running.settings["prefix"] / "logs" / "access.log"
    wait_until(lambda: "/before" in running.access_log(), "the first line")
    log.rename(log.with_name("access.log.1"))
    assert running.command("reopen").returncode == 0
    wait_until(log.exists, "a new log file")

    def new_line() -> bool:
        running.ask("/after")
        return "/after" in running.access_log()

    wait_until(new_line, "a line in the new file")


def test_nothing_is_written_outside_the_prefix(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream))
    running.ask("/", "POST", body=b"x" * 100_000)
    prefix = f"{running.settings['prefix']}/"
    for pid in (running.master(), *running.workers()):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            try:
                name = os.readlink(entry.path)
            except OSError:
                continue
            plain = name.startswith("/") and not name.startswith(("/dev/", "/proc/", "/memfd"))
            if plain:
                assert name.startswith(prefix), name
