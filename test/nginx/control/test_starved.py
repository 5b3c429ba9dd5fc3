"""A starved machine harms nothing: busy loops, and processes that are stopped at random."""

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count

import pytest
from admin_client import Client
from log_server import LogServer
from seeds import seed_of
from threads import beside

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import wait_until

SECONDS = 600.0
BUSY = 8
STOP_SECONDS = (0.2, 3.0)
LIMIT = 100

# Each request posts one event, which every worker counts, and sets one timer, which runs once.
BEATS = """
local Beats = { VERSION = "1", PRIORITY = 2 }
local config = { type = "record", fields = {} }
Beats.schema = { name = "beats", fields = { { config = config } } }
function Beats.init_worker()
    kong.worker_events.register(function(data)
        ngx.shared.kong:incr("heard " .. ngx.worker.id(), 1, 0)
        ngx.shared.kong:incr("sum " .. ngx.worker.id(), data.n, 0)
    end, "beats", "one")
end
function Beats:access()
    local n = tonumber(kong.request.get_query_arg("n"))
    local posted, err = kong.worker_events.post("beats", "one", { n = n })
    local set, why = kong.timer:at(0.05, function() ngx.shared.kong:incr("ran", 1, 0) end)
    if not posted or not set then
        return kong.response.exit(500, err or why)
    end
end
return Beats
"""
COUNTS = """
local Counts = { VERSION = "1", PRIORITY = 1 }
Counts.schema = { name = "counts", fields = { { config = { type = "record", fields = {} } } } }
function Counts:access()
    local found = {}
    for _, key in ipairs({ "heard 0", "heard 1", "sum 0", "sum 1", "ran" }) do
        found[key] = ngx.shared.kong:get(key) or 0
    end
    return kong.response.exit(200, found)
end
return Counts
"""


@contextmanager
def starved(running: Gateway) -> Iterator[None]:
    """Busy loops, and a process of the gateway stopped after the other, until the block ends."""
    draw = random.Random(seed_of("starved"))
    processes = [running.master(), running.control(), *running.workers()]
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(BUSY)]
    end = threading.Event()

    def stop_and_go() -> None:
        while not end.wait(draw.uniform(0, 2)):
            victim = draw.choice(processes)
            os.kill(victim, signal.SIGSTOP)
            try:
                end.wait(draw.uniform(*STOP_SECONDS))
            finally:
                os.kill(victim, signal.SIGCONT)

    try:
        with beside(stop_and_go, until=end):
            yield
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
    assert processes == [running.master(), running.control(), *running.workers()]


def configuration(upstream: Upstream, log: LogServer) -> dict:
    queue = {"max_coalescing_delay": 0.1, "max_retry_delay": 0.2}
    logs = {"http_endpoint": f"http://127.0.0.1:{log.port}/in", "queue": queue}
    limit = {"name": "rate-limiting", "config": {"year": LIMIT, "limit_by": "service"}}
    found = proxying(upstream, paths=["/beat"])
    (route,) = found["services"][0]["routes"]
    route["plugins"] = [{"name": "beats"}, {"name": "http-log", "config": logs}]
    counts = {"name": "counts", "paths": ["/counts"], "plugins": [{"name": "counts"}]}
    limited = {"name": "limited", "paths": ["/limited"], "plugins": [limit]}
    found["services"][0]["routes"] += [counts, limited]
    return found


@pytest.mark.long
def test_nothing_is_harmed_on_a_starved_machine(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    upstream.answer(200)
    running = gateway(None, workers=2, plugins={"beats": BEATS, "counts": COUNTS})
    admin = Client(running)
    admin.must(201, "POST", "/config", {"_format_version": "3.0"} | configuration(upstream, log))
    wait_until(lambda: running.ask("/counts").status == 200, "the configuration")
    until = time.monotonic() + SECONDS
    numbers, asked, passed, written = count(1), [], [], {}
    lock = threading.Lock()

    def going_on() -> bool:
        return time.monotonic() < until

    def beat() -> None:
        while going_on():
            with lock:
                number = next(numbers)
            reply = running.ask(f"/beat?n={number}")
            assert reply.status == 200, reply
            asked.append(number)

    def use_up() -> None:
        while going_on():
            reply = running.ask("/limited")
            assert reply.status == (200 if len(passed) < LIMIT else 429), reply
            if reply.status == 200:
                passed.append(1)

    def write() -> None:
        for number in count():
            if not going_on():
                return
            name = f"s{number % 50}"
            value = {"url": f"http://127.0.0.1:9/{number}"}
            reply = admin.ask("PUT", f"/services/{name}", value)
            assert reply.status == 200, reply
            written[name] = f"/{number}"

    failed: list[BaseException] = []

    def noting(work: object) -> object:
        def run() -> None:
            try:
                work()  # type: ignore[operator]
            except BaseException as problem:
                failed.append(problem)

        return run

    with starved(running), beside(*map(noting, (beat, beat, use_up, write))):
        with suppress(AssertionError):
            wait_until(lambda: failed or not going_on(), "the end", SECONDS + 60)
        until = min(until, time.monotonic())
    assert not failed, failed[0]
    assert len(passed) == LIMIT
    for name, path in written.items():
        assert admin.must(200, "GET", f"/services/{name}")["path"] == path

    def counts() -> dict[str, int]:
        return running.ask("/counts").json()

    total = len(asked)
    wait_until(lambda: counts()["ran"] == total, "each timer to run")
    assert counts() == {
        "heard 0": total,
        "heard 1": total,
        "sum 0": sum(asked),
        "sum 1": sum(asked),
        "ran": total,
    }
    log.wait_for_marks({str(number) for number in asked})
    assert len(log.entries) == total
