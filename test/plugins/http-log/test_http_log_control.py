"""http-log in the control worker: who waits for whom, log servers that stand still, what deaths
lose, bursts, 1,000 configurations, quits."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from admin_client import Client
from changes import document, post, stopped
from log_server import DROPPED, LATE, REFUSED, Clients, LogServer, ask, dropped, logging_to

import guard
from sluice import Gateway, Start, alive
from upstream import Exchange, Upstream
from wire import request_bytes, wait_until

UNKNOWN = "http-log: 1 entry was dropped: the configuration of plugin 'http-log' does not exist"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that workers of any user reach and write, unlike pytest's own."""
    path = guard.folder("sluice-http-log-")
    path.chmod(0o777)
    yield path
    guard.remove(path)


def figures(running: Gateway) -> dict[str, Any]:
    return httpx.get(f"{running.admin}/status", trust_env=False).json()["log_entries"]


def lost(running: Gateway) -> int:
    return figures(running)["dropped"]["target"]


def is_read(running: Gateway, count: int) -> bool:
    """Whether so many entries were made, and all of them are out of the buffer."""
    found = figures(running)
    return found["written"] == count and found["waiting_bytes"] == 0


def with_file(config: dict[str, Any], path: Path) -> dict[str, Any]:
    """The same, with a file that has all entries, too."""
    config["plugins"].append({"name": "file-log", "config": {"path": str(path)}})
    return config


def marks_of(path: Path) -> set[str]:
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return {json.loads(line)["request"]["querystring"]["n"] for line in lines}


def without_upstream(config: dict[str, Any]) -> dict[str, Any]:
    """The gateway answers by itself, for tests of many requests."""
    config["plugins"].append({"name": "request-termination", "config": {"status_code": 200}})
    return config


def flood(running: Gateway, count: int) -> set[str]:
    """So many requests, many at a time."""
    with running.wire() as wire:
        for first in range(0, count, 100):
            numbers = range(first, min(first + 100, count))
            wire.send(b"".join(request_bytes(f"/?n={number}") for number in numbers))
            for _ in numbers:
                assert wire.read_reply().status == 200
    return {str(number) for number in range(count)}


# Who waits for whom


def test_a_log_server_that_stands_still_holds_up_nobody(
    gateway: Start, upstream: Upstream, log: LogServer, folder: Path
) -> None:
    path = folder / "all.log"
    with LogServer() as stalled:
        stalled.mood = "stall"
        config = with_file(logging_to(upstream, stalled.port, timeout=60000), path)
        (other, *_) = logging_to(upstream, log.port)["plugins"]
        other["instance_name"] = "other"
        config["services"][0]["routes"].append(
            {"name": "other", "paths": ["/other"], "plugins": [other]}
        )
        running = gateway(config, workers=2)
        running.expect_log(REFUSED)
        running.expect_log("delivered again")
        first = ask(running, "first")
        stalled.wait_for(1)
        marks = first | ask(running, *range(50))
        others = {f"other{number}" for number in range(20)}
        for mark in others:
            assert running.ask(f"/other?n={mark}").status == 200
        log.wait_for_marks(others)
        wait_until(lambda: marks | others <= marks_of(path), "all entries in the file", LATE)
        assert not stalled.entries
        stalled.mood = "well"
        stalled.drop_connections()
        stalled.let_go.set()
        stalled.wait_for_marks(marks)
        assert dropped(running) == lost(running) == 0


def test_traffic_workers_know_no_log_server(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    """Where all of them stand still, entries still travel."""
    running = gateway(logging_to(upstream, log.port, {"max_coalescing_delay": 1}), workers=2)
    with contextlib.ExitStack() as stack:
        marks = ask(running, *range(20))
        # A worker makes the entry once the client has its response.
        wait_until(lambda: figures(running)["written"] == 20, "all entries", LATE)
        for pid in running.workers():
            stack.enter_context(stopped(pid))
        log.wait_for_marks(marks)


def test_a_burst_holds_up_no_change(gateway: Start, upstream: Upstream, log: LogServer) -> None:
    """All entries come at once, and the change with them."""
    queue = {"max_entries": 1000000, "max_batch_size": 50}
    config = without_upstream(logging_to(upstream, log.port, queue))
    running = gateway(config, workers=2, log_buffer_size="64m", keepalive_requests=100_000)
    control = running.control()
    replies: list[httpx.Response] = []

    def change() -> None:
        replies.append(post(running, document(config | {"consumers": [{"username": "ann"}]})))

    changing = threading.Thread(target=change, daemon=True)
    with stopped(control):
        marks = flood(running, 20_000)
        changing.start()
    changing.join(LATE)
    assert [reply.status_code for reply in replies] == [201]
    assert len(log.entries) < 20_000
    log.wait_for_marks(marks, 3 * LATE)
    assert running.control() == control
    assert dropped(running) == lost(running) == 0


BLOCKS = """
local function is_there()
    local file = io.open("FILE")
    return file and file:close()
end
local function look(premature)
    while not premature and is_there() do end
    if not premature then
        ngx.timer.at(0.01, look)
    end
end
return {
    VERSION = "1", PRIORITY = 1,
    schema = { name = "blocks", fields = { { config = { type = "record", fields = {} } } } },
    init_worker = function()
        if ngx.worker.id() == 0 then
            ngx.timer.at(0, look)
        end
    end,
}
"""


def test_a_control_worker_that_is_busy_drops_what_has_no_room(
    gateway: Start, upstream: Upstream, log: LogServer, folder: Path
) -> None:
    """Its thread reads on: entries of other plugins are not held up."""
    path, busy = folder / "all.log", folder / "busy"
    plugins = {"blocks": BLOCKS.replace("FILE", str(busy))}
    config = with_file(logging_to(upstream, log.port), path)
    running = gateway(config, plugins=plugins, log_buffer_size="64k")
    running.expect_log(
        r"log plugins: \d+ entr\w+ (was|were) dropped: the control worker did not take them",
        range(1, 10),
    )
    log.wait_for_marks(ask(running, "first"))
    busy.touch()
    marks: set[str] = set()
    for number in range(200):
        marks |= ask(running, number)
        wait_until(lambda number=number: str(number) in marks_of(path), "the entry in the file")
    busy.unlink()
    wait_until(lambda: lost(running) + len(log.entries) == 201, "the rest", LATE)
    assert lost(running) > 100
    assert log.marks() == ["first", *map(str, range(len(log.entries) - 1))]
    log.wait_for_marks(ask(running, "last"))


# Bounds


def test_max_entries_is_the_nodes(gateway: Start, upstream: Upstream, log: LogServer) -> None:
    log.mood = "stall"
    running = gateway(logging_to(upstream, log.port, {"max_entries": 10}, timeout=60000), workers=3)
    running.expect_log(DROPPED + "the queue is full", range(1, 10))
    running.expect_log(REFUSED)
    running.expect_log("delivered again")
    ask(running, 0)
    log.wait_for(1)
    for number in range(1, 30):
        ask(running, number)
        # A worker makes the entry once the client has its response: another's may be first.
        wait_until(
            lambda number=number: figures(running)["written"] == number + 1, "the entry", LATE
        )
    wait_until(lambda: lost(running) == 20, "all drops to be counted", LATE)
    assert figures(running)["written"] == 30
    wait_until(lambda: dropped(running) == 20, "all drops to be said", LATE)
    log.mood = "well"
    log.drop_connections()
    log.let_go.set()
    log.wait_for_marks({"0"} | {str(number) for number in range(21, 30)})
    assert len(log.entries) == 10


@pytest.mark.parametrize("when", ["at once", "at a quit"])
def test_a_thousand_configurations(
    gateway: Start, upstream: Upstream, log: LogServer, when: str
) -> None:
    """Each with a queue of its own, and at a quit all of them have something to send."""
    delay = 0.1 if when == "at once" else 3600
    config = logging_to(upstream, log.port)
    (plugin, *_) = config.pop("plugins")
    queue = {"max_batch_size": 2, "max_coalescing_delay": delay}
    config["services"][0]["routes"] = [
        {
            "name": f"r{number}",
            "paths": [f"/{number}/"],
            "plugins": [
                {
                    "name": "http-log",
                    "config": plugin["config"]
                    | {"headers": {"X-Number": str(number)}, "queue": queue},
                }
            ],
        }
        for number in range(1000)
    ]
    config["plugins"] = []
    running = gateway(without_upstream(config), keepalive_requests=10_000)
    with running.wire() as wire:
        for number in range(1000):
            assert wire.ask(f"/{number}/?n={number}").status == 200
    if when == "at a quit":
        assert not log.entries
        running.stop("quit")
    log.wait_for_marks({str(number) for number in range(1000)})
    assert len(log.entries) == 1000
    for request in log.requests:
        (entry,) = json.loads(request.body)
        assert entry["request"]["querystring"]["n"] == request.headers.get("x-number")


def test_an_entry_of_a_quarter_of_the_buffer(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    running = gateway(logging_to(upstream, log.port), log_buffer_size="64k")
    for mark, lines in (("small", 10), ("large", 25), ("last", 1)):
        long = [(f"X-{n}", "y" * 1000) for n in range(lines)]
        assert running.ask(f"/?n={mark}", headers=long).status == 200
    log.wait_for_marks({"small", "last"})
    assert log.marks() == ["small", "last"]
    assert figures(running)["dropped"]["large"] == 1


# Changes


class Slow:
    """A request whose response waits until it is told to end."""

    def __init__(self, running: Gateway, upstream: Upstream, mark: str) -> None:
        self.go_on = threading.Event()
        self.wire = running.wire()
        upstream.handler = self.answer
        self.wire.send(request_bytes(f"/?n={mark}"))
        wait_until(lambda: upstream.requests, "the request")

    def answer(self, exchange: Exchange) -> None:
        exchange.head(200, {"Content-Length": "4"})
        self.go_on.wait(LATE)
        exchange.send(b"body")

    def end(self) -> None:
        self.go_on.set()
        assert self.wire.read_reply().status == 200
        self.wire.close()


def remove(running: Gateway, config: dict[str, Any]) -> None:
    assert post(running, document(config | {"plugins": []})).status_code == 201


def test_a_removed_configuration_gets_its_requests_entries(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    config = logging_to(upstream, log.port)
    running = gateway(config)
    slow = Slow(running, upstream, "slow")
    remove(running, config)
    slow.end()
    log.wait_for_marks({"slow"})
    assert lost(running) == 0


def test_a_configuration_that_nobody_knows_any_more(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    """Where the control worker has died after it was removed."""
    config = logging_to(upstream, log.port)
    running = gateway(config)
    running.expect_log("exited on signal 9")
    running.expect_log(UNKNOWN)
    slow = Slow(running, upstream, "slow")
    remove(running, config)
    before = running.control()
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: running.control() not in (None, before), "the next control worker")
    slow.end()
    wait_until(lambda: lost(running) == 1, "it to be dropped", LATE)
    assert not log.entries


def test_a_reference_that_cannot_be_looked_up_refuses_no_request(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    running = gateway(None, env={"MY_TOKEN": "t"}, vault_env="MY_TOKEN")
    client = Client(running)
    client.must(200, "PUT", "/services/s", {"url": upstream.url})
    client.must(200, "PUT", "/services/s/routes/r", {"paths": ["/"]})
    plugin = logging_to(upstream, log.port, headers={"X-Token": "{vault://env/MY-TOKEN}"})
    client.must(200, "PUT", "/plugins/log", plugin["plugins"][0])
    log.wait_for_marks(ask(running, 1))
    assert log.last.headers.get("x-token") == "t"


# Deaths and ends


def test_the_next_control_worker_sends_what_waits(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    running = gateway(logging_to(upstream, log.port), workers=2)
    running.expect_log("exited on signal 9")
    control = running.control()
    with stopped(control):
        marks = ask(running, *range(100))
        os.kill(control, signal.SIGKILL)
    log.wait_for_marks(marks)
    assert sorted(log.marks()) == sorted(marks)


def test_a_control_worker_that_dies_loses_its_queues_alone(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    queue = {"max_batch_size": 1000, "max_coalescing_delay": 3600}
    running = gateway(logging_to(upstream, log.port, queue), workers=2)
    running.expect_log("exited on signal 9")
    ask(running, *range(10))
    wait_until(lambda: is_read(running, 10), "all entries to be made and read")
    before = running.control()
    os.kill(before, signal.SIGKILL)
    later = ask(running, *range(10, 20))
    # Nginx starts none once it quits.
    wait_until(lambda: running.control() != before, "the next control worker")
    running.stop("quit")
    log.wait_for_marks(later)
    assert set(log.marks()) == later


def test_traffic_workers_that_are_killed_lose_nothing(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    queue = {"max_batch_size": 1000, "max_coalescing_delay": 3600}
    running = gateway(logging_to(upstream, log.port, queue), workers=2)
    running.expect_log("exited on signal 9", 2)
    # Each is logged before the next of its connection is read, but maybe not when it is answered.
    with running.wire() as wire:
        for mark in range(21):
            assert wire.ask(f"/?n={mark}").status == 200
    for pid in running.workers():
        os.kill(pid, signal.SIGKILL)
    marks = {str(mark) for mark in range(20)} | ask(running, "last")
    running.stop("quit")
    log.wait_for_marks(marks)


def test_a_quit_under_load_delivers_all(gateway: Start, upstream: Upstream, log: LogServer) -> None:
    queue = {"max_batch_size": 50, "max_coalescing_delay": 3600}
    running = gateway(logging_to(upstream, log.port, queue), workers=2)
    clients = Clients(running)
    clients.wait_for(200)
    running.stop("quit")
    log.wait_for_marks(clients.stop())
    assert dropped(running) == 0


@pytest.mark.parametrize("is_new", [False, True])
def test_a_graceful_quit_sends_the_last_requests_entry(
    gateway: Start, upstream: Upstream, log: LogServer, is_new: bool
) -> None:
    """The control worker leaves last, be it one that has had no entries until then."""
    # One traffic worker begins to use a configuration once, which it says with an entry of its own.
    running = gateway(logging_to(upstream, log.port), workers=1 if is_new else 2)
    if is_new:
        running.expect_log("exited on signal 9")
        log.wait_for_marks(ask(running, "first"))
        before = running.control()
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: running.control() not in (None, before), "the next control worker")
        upstream.requests.clear()
    slow = Slow(running, upstream, "last")
    master = running.master()
    os.kill(master, signal.SIGQUIT)
    wait_until(lambda: "gracefully shutting down" in running.error_log(), "the end to begin")
    slow.end()
    log.wait_for_marks({"last"})
    wait_until(lambda: not alive(master), "nginx to be gone", LATE)
    running.started = False
    Gateway.live.remove(running)
