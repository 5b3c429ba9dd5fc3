"""http-log's queue: no entry is lost while a log server fails, at changes, reloads and quits."""

import itertools
import os
import signal
import time

import pytest
from changes import document, post
from log_server import DROPPED, LATE, REFUSED, Clients, LogServer, ask, dropped, logging_to
from ports import Ports

from sluice import Gateway, Start, alive
from upstream import Blackhole, DeadPort, Exchange, Upstream
from wire import wait_until

# Nothing is lost


@pytest.mark.parametrize("mood", ["500", "reset", "stall"])
@pytest.mark.parametrize("size", [1, 20])
def test_nothing_is_lost_while_the_log_server_fails(
    gateway: Start, upstream: Upstream, log: LogServer, mood: str, size: int
) -> None:
    log.mood = mood
    # Only a stall is to outlast it: what was delivered and not answered in time comes twice.
    timeout = 1500 if mood == "stall" else 60000
    running = gateway(logging_to(upstream, log.port, {"max_batch_size": size}, timeout=timeout))
    running.expect_log(REFUSED, range(1, 10))
    running.expect_log("delivered again")
    if mood == "reset":
        running.expect_log(r"recv\(\) failed \(104", range(1, 50))
    marks = ask(running, *range(50))
    log.wait_for(3)
    assert not log.entries
    log.mood = "well"
    log.let_go.set()
    log.wait_for_marks(marks)
    arrived = list(dict.fromkeys(log.marks())) if mood == "stall" else log.marks()
    assert arrived == [str(number) for number in range(50)]
    assert dropped(running) == 0


def test_nothing_is_lost_while_the_log_server_is_away(gateway: Start, upstream: Upstream) -> None:
    ports = Ports()
    port = ports.take()
    running = gateway(logging_to(upstream, port, {"max_batch_size": 10}))
    running.expect_log(REFUSED, range(1, 30))
    running.expect_log("delivered again", range(1, 6))
    marks: set[str] = set()
    for round_ in range(3):
        marks |= ask(running, *(f"{round_}-{number}" for number in range(25)))
        wait_until(lambda: "not delivered" in running.error_log(), "an attempt")
        with LogServer(port) as log:
            log.wait_for_marks({mark for mark in marks if mark.startswith(f"{round_}-")})
    ports.release()


def test_attempts_come_later_each_time(gateway: Start, upstream: Upstream, log: LogServer) -> None:
    times: list[float] = []
    take = log.take

    def note(exchange: Exchange) -> None:
        times.append(time.monotonic())
        take(exchange)

    log.handler = note
    queue = {"initial_retry_delay": 0.1, "max_retry_delay": 0.4}
    running = gateway(logging_to(upstream, log.port, queue))
    running.expect_log(REFUSED, range(1, 20))
    running.expect_log("delivered again", range(1, 20))

    def later_each_time() -> bool:
        log.mood = "500"
        times.clear()
        marks = ask(running, len(log.entries))
        wait_until(lambda: len(times) >= 6, "attempts", LATE)
        log.mood = "well"
        log.wait_for_marks(marks)
        waits = [after - before for before, after in itertools.pairwise(times)]
        for wait, least in zip(waits, [0.1, 0.2, 0.4, 0.4, 0.4], strict=False):
            assert least - 0.01 <= wait, waits
        return waits[0] < waits[2]

    # A busy machine may hold up the first.
    wait_until(later_each_time, "shorter waits at first", LATE)


def test_a_full_queue_drops_the_oldest_and_says_how_many(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    log.mood = "stall"
    running = gateway(logging_to(upstream, log.port, {"max_entries": 10}, timeout=60000))
    running.expect_log(DROPPED + "the queue is full", range(1, 10))
    ask(running, 0)
    log.wait_for(1)
    ask(running, *range(1, 30))
    log.mood = "well"
    # The first is under way and counts; nine wait. What the first drop's line does not count is
    # said when ten seconds are over.
    wait_until(lambda: dropped(running) == 20, "all drops to be counted", LATE)
    running.expect_log(REFUSED)
    running.expect_log("delivered again")
    log.drop_connections()
    log.let_go.set()
    log.wait_for_marks({"0"} | {str(number) for number in range(21, 30)})
    assert len(log.entries) == 10


def test_max_bytes_is_a_bound_too(gateway: Start, upstream: Upstream, log: LogServer) -> None:
    log.mood = "stall"
    running = gateway(logging_to(upstream, log.port, {"max_bytes": 20_000}, timeout=60000))
    running.expect_log(DROPPED + "the queue is full", range(1, 10))
    ask(running, 0)
    log.wait_for(1)
    size = len(log.requests[0].body)
    fit = 20_000 // (size + 20)
    ask(running, *range(1, 60))
    assert running.ask(f"/?n=huge&x={'x' * 7000}", headers={"X-Big": "y" * 7000}).status == 200
    wait_until(lambda: dropped(running) >= 60 - fit - 2, "drops to be counted", LATE)
    log.mood = "well"
    running.expect_log(REFUSED)
    running.expect_log("delivered again")
    log.drop_connections()
    log.let_go.set()
    log.wait_for_marks({"0"})
    wait_until(lambda: len(log.entries) + dropped(running) >= 61, "the rest", LATE)
    assert len(log.entries) + dropped(running) == 61


@pytest.mark.parametrize("max_retry_time", [-1, 3])
def test_a_batch_is_given_up_after_the_time_for_retries(
    gateway: Start, upstream: Upstream, log: LogServer, max_retry_time: int
) -> None:
    log.mood = "500"
    running = gateway(logging_to(upstream, log.port, {"max_retry_time": max_retry_time}))
    running.expect_log(REFUSED)
    running.expect_log(DROPPED + r"not delivered in time: 127.0.0.1:\d+ answered 500")
    running.expect_log("delivered again")
    begun = time.monotonic()
    ask(running, 1)
    wait_until(lambda: dropped(running) == 1, "it to be given up", LATE)
    assert time.monotonic() - begun > 0.95 or max_retry_time == -1
    assert (len(log.requests) == 1) == (max_retry_time == -1)
    log.mood = "well"
    log.wait_for_marks(ask(running, 2))
    assert log.marks() == ["2"]


@pytest.mark.parametrize("limit", [1, -1])
def test_batches_go_one_by_one_or_side_by_side(
    gateway: Start, upstream: Upstream, log: LogServer, limit: int
) -> None:
    log.mood = "stall"
    running = gateway(logging_to(upstream, log.port, {"concurrency_limit": limit}, timeout=60000))
    running.expect_log(REFUSED, range(1, 10))
    running.expect_log("delivered again", range(1, 10))
    marks = ask(running, *range(100))
    if limit == -1:
        log.wait_for(64)
    else:
        log.wait_for(1)
        marks |= ask(running, 100)
    assert len(log.requests) == (64 if limit == -1 else 1)
    log.mood = "well"
    log.drop_connections()
    log.let_go.set()
    log.wait_for_marks(marks)


# A change, a reload, a quit


def test_a_posted_change_loses_nothing_and_moves_what_waits(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    with Blackhole() as hole, LogServer() as second:
        queue = {"max_batch_size": 5}
        running = gateway(logging_to(upstream, hole.port, queue, timeout=500), workers=2)
        running.expect_log(REFUSED, range(1, 10))
        running.expect_log("delivered again", range(1, 10))
        clients = Clients(running)
        clients.wait_for(100)
        assert post(running, document(logging_to(upstream, log.port, queue))).status_code == 201
        log.wait_for(3)
        change = document(logging_to(upstream, second.port, {"max_batch_size": 1}))
        assert post(running, change).status_code == 201
        clients.wait_for(20)
        # The last entries are gathered at once before the plugin is gone.
        without = logging_to(upstream, second.port)
        del without["plugins"]
        marks = clients.stop()
        assert post(running, document(without)).status_code == 201
        wait_until(lambda: marks <= {*log.marks(), *second.marks()}, "all entries", LATE)
        assert log.entries
        assert second.entries
        assert dropped(running) == 0


def test_a_reload_under_load_loses_nothing(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    config = logging_to(upstream, log.port, {"max_batch_size": 20, "max_coalescing_delay": 2})
    running = gateway(config, workers=2)
    clients = Clients(running)
    for _ in range(4):
        clients.wait_for(60)
        running.reload(config)
    clients.wait_for(60)
    log.wait_for_marks(clients.stop())
    assert dropped(running) == 0


def test_a_reload_while_the_log_server_is_away_loses_nothing(
    gateway: Start, upstream: Upstream
) -> None:
    ports = Ports()
    port = ports.take()
    config = logging_to(upstream, port, {"max_batch_size": 20, "max_retry_delay": 60})
    running = gateway(config, workers=2)
    running.expect_log(REFUSED, range(1, 20))
    running.expect_log("delivered again", range(1, 20))
    clients = Clients(running)
    clients.wait_for(100)
    wait_until(lambda: "not delivered" in running.error_log(), "an attempt")
    running.reload(config)
    clients.wait_for(50)
    marks = clients.stop()
    with LogServer(port) as log:
        log.wait_for_marks(marks)
        wait_until(lambda: not running.retiring(), "the old workers to leave", LATE)
    assert dropped(running) == 0
    ports.release()


def test_a_graceful_quit_delivers_what_waits(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    queue = {"max_batch_size": 1000, "max_coalescing_delay": 3600}
    running = gateway(logging_to(upstream, log.port, queue), workers=2)
    marks = ask(running, *range(60))
    assert not log.entries
    running.stop("quit")
    log.wait_for_marks(marks)
    assert len(log.batches) <= 2


def test_a_graceful_quit_waits_for_a_log_server_that_comes_back(
    gateway: Start, upstream: Upstream
) -> None:
    ports = Ports()
    port = ports.take()
    running = gateway(logging_to(upstream, port, {"max_retry_delay": 3600}))
    running.expect_log(REFUSED, range(1, 5))
    running.expect_log("delivered again")
    marks = ask(running, *range(30))
    wait_until(lambda: "not delivered" in running.error_log(), "an attempt")
    master = running.master()
    os.kill(master, signal.SIGQUIT)
    wait_until(lambda: "gracefully shutting down" in running.error_log(), "the worker to leave")
    with LogServer(port) as log:
        log.wait_for_marks(marks)
        wait_until(lambda: not alive(master), "nginx to be gone", LATE)
    running.started = False
    Gateway.live.remove(running)
    ports.release()


@pytest.mark.parametrize("how", ["dead", "stalled"])
def test_a_graceful_quit_gives_up_in_time_and_says_how_many(
    gateway: Start, upstream: Upstream, how: str
) -> None:
    with DeadPort() as dead, LogServer() as stalled:
        stalled.mood = "stall"
        port = dead.port if how == "dead" else stalled.port
        running = gateway(logging_to(upstream, port, timeout=1000))
        running.expect_log(REFUSED, range(1, 10))
        running.expect_log(DROPPED, range(1, 4))
        ask(running, *range(30))
        wait_until(lambda: "not delivered" in running.error_log(), "an attempt")
        master = running.master()
        os.kill(master, signal.SIGQUIT)
        begun = time.monotonic()
        wait_until(lambda: not alive(master), "nginx to be gone", 2 * LATE)
        assert time.monotonic() - begun > 15
        assert dropped(running) == 30
        running.started = False
        Gateway.live.remove(running)
