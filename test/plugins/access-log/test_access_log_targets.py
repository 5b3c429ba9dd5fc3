"""Where the access log goes: files that are moved under load without the loss of a line, a full
disk, a stopped syslog; nobody waits for it."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from processes import waited_seconds
from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import wait_until


def test_lines_wait_in_a_buffer(gateway: Start, upstream: Upstream) -> None:
    running = gateway(
        proxying(upstream),
        access_log_format="$request_uri",
        access_log_buffer="4k",
        access_log_flush="1h",
        admin_access_log="logs/access.log",
    )
    running.ask("/first")
    assert running.access_log() == ""
    for _ in range(2):
        running.ask("/" + "x" * 2100)
    wait_until(lambda: "/first" in running.access_log(), "a full buffer")
    running.ask("/last")
    assert "/last" not in running.access_log()
    running.stop("quit")
    assert "/last" in running.access_log()


def test_a_buffer_is_flushed(gateway: Start, upstream: Upstream) -> None:
    settings = {"access_log_buffer": "64k", "access_log_flush": "500ms"}
    running = gateway(proxying(upstream), access_log_format="$request_uri", **settings)
    running.ask("/first")
    wait_until(lambda: running.access_log() == "/first\n", "the line")


class Load:
    """Clients that ask one after the other, and count the answers."""

    def __init__(self, running: Gateway, clients: int = 4) -> None:
        self.running, self.stopped, self.counts = running, False, [0] * clients
        self.slowest = 0.0
        self.waited = waited_seconds(*self.processes())
        self.threads = [threading.Thread(target=self._ask, args=(i,)) for i in range(clients)]

    def _ask(self, client: int) -> None:
        wire = self.running.wire()
        while not self.stopped:
            begun = time.monotonic()
            reply = wire.ask(f"/{client}/{self.counts[client]}")
            assert reply.status == 200
            self.slowest = max(self.slowest, time.monotonic() - begun)
            self.counts[client] += 1
            if reply.headers.get("connection") == "close":
                wire.close()
                wire = self.running.wire()
        wire.close()

    def __enter__(self) -> Load:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped = True
        for thread in self.threads:
            thread.join()

    def check_nobody_was_held_up(self) -> None:
        """Longer than they, or the gateway, have waited for a processor; so far, while they ask."""
        waited = waited_seconds(*self.processes()) - self.waited
        assert self.slowest < 3 + waited, f"{waited:.1f} s waited for a processor"

    def processes(self) -> list[int]:
        """Ours and the workers."""
        return [os.getpid(), *self.running.workers()]

    @property
    def asked(self) -> set[str]:
        """The paths of all that were answered."""
        return {f"/{i}/{n}" for i, count in enumerate(self.counts) for n in range(count)}


@pytest.mark.parametrize("buffer", ["0", "64k"])
def test_no_line_is_lost_when_logs_are_moved(
    gateway: Start, upstream: Upstream, buffer: str
) -> None:
    upstream.answer(200)
    running = gateway(
        proxying(upstream), workers=2, access_log_format="$request_uri", access_log_buffer=buffer
    )
    log = running.settings["prefix"] / "logs" / "access.log"
    # A worker that comes late to one turn finds the next one's file before nginx's master has
    # given it away; it keeps the file that it has until the turn after.
    running.expect_log(r'open\(\) ".*/access.log" failed \(13', range(100))
    with Load(running) as load:
        for turn in range(20):
            log.rename(log.with_name(f"access.log.{turn}"))
            assert running.command("reopen").returncode == 0
            if turn == 10:
                running.reload()
            wait_until(lambda: log.exists() and log.stat().st_size, "a line in the new file")
    running.stop("quit")
    files = [log, *log.parent.glob("access.log.*")]
    found = [line for path in files for line in path.read_text().splitlines()]
    assert len(found) == len(set(found))
    assert set(found) == load.asked


def test_a_full_disk_holds_nobody_up(gateway: Start, upstream: Upstream) -> None:
    upstream.answer(200)
    running = gateway(proxying(upstream), access_log="/dev/full", workers=2)
    running.expect_log(r'write\(\) to "/dev/full" failed \(28', range(1, 20))
    with Load(running) as load:
        wait_until(lambda: min(load.counts) > 300, "answers")
        load.check_nobody_was_held_up()


@pytest.fixture
def syslog() -> Iterator[socket.socket]:
    """A syslog server's socket that nobody reads; its queue holds a few datagrams.

    A test names it before `gateway`: its path then stands until the workers have ended, who connect
    anew after each failure and would find no file.
    """
    server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    folder = Path("/tmp")
    path = folder / f"sluice-syslog-{time.time_ns()}"
    server.bind(str(path))
    path.chmod(0o666)
    server.settimeout(10)
    yield server
    server.close()
    path.unlink(missing_ok=True)


def test_a_syslog_gets_lines(gateway: Start, upstream: Upstream) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        port = server.getsockname()[1]
        running = gateway(
            proxying(upstream),
            access_log=f"syslog:server=127.0.0.1:{port},facility=local3,severity=warn,tag=gw",
            access_log_format="json",
            access_log_buffer="8k",
        )
        running.ask("/?apikey=k")
        text = server.recv(65536).decode()
        head, _, line = text.partition(" gw: ")
        assert head.startswith("<156>")
        assert json.loads(line)["path"] == "/?apikey=REDACTED"


def test_a_stopped_syslog_holds_nobody_up(
    syslog: socket.socket, gateway: Start, upstream: Upstream
) -> None:
    upstream.answer(200)
    target = f"syslog:server=unix:{syslog.getsockname()}"
    running = gateway(proxying(upstream), access_log=target, workers=2)
    # The same line once a second, however many are lost.
    running.expect_log(r"(send|connect)\(\) failed \(111", range(1, 40))
    failed = "send() to syslog failed"
    begun = time.monotonic()
    # Nobody reads: the queue is full after a few lines.
    with Load(running) as load:
        wait_until(lambda: min(load.counts) > 200, "answers")
        # And then it is gone.
        syslog.close()
        before = list(load.counts)
        wait_until(
            lambda: all(n > m + 200 for n, m in zip(load.counts, before, strict=True)), "answers"
        )
        # One worker may have all clients, and they their answers within a second.
        wait_until(lambda: running.error_log().count(failed) >= 2, "the line of a second later")
        load.check_nobody_was_held_up()
    # Of each worker one line a second says so, and of hundreds that were lost no more.
    said = running.error_log().count(failed)
    assert 2 <= said <= 2 * (time.monotonic() - begun + 2)
