"""A configuration change while workers die and stand still: on all workers, or on none."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import httpx
import pytest
from changes import Later, Start, document, kill_all_workers, post, stopped, versions
from test_reload import VERSION, versioned

from sluice import Gateway
from upstream import Upstream
from wire import DEADLINE, wait_until


@pytest.fixture
def running(gateway: Start, upstream: Upstream) -> Gateway:
    """A gateway of three workers that serves version 0."""
    return gateway(versioned(upstream, 0), workers=3, plugins=VERSION)


def asked_worker(running: Gateway) -> int:
    """The worker that has the lock of the changes."""
    lock = running.settings["prefix"] / "posted" / "lock"

    def find() -> int:
        inode = str(lock.stat().st_ino) if lock.exists() else ""
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if fields[1] == "POSIX" and fields[5].rpartition(":")[2] == inode:
                return int(fields[4])
        return 0

    return wait_until(find, "a worker to take the lock")


def test_the_asked_worker_dies_before_the_decision(running: Gateway, upstream: Upstream) -> None:
    running.expect_log("exited on signal 9", 1)
    assert post(running, document(versioned(upstream, 1))).status_code == 201
    silent = running.workers()[0]
    with stopped(silent):
        later = Later(running, document(versioned(upstream, 2)))
        asked = asked_worker(running)
        assert asked != silent
        time.sleep(0.2)
        os.kill(asked, signal.SIGKILL)
        later.join(DEADLINE)
        assert later.problem is not None
        wait_until(lambda: asked not in running.workers(), "the worker to die")
        wait_until(lambda: len(running.workers()) == 3, "its successor")
    assert versions(running) == {"1"}
    answer = post(running, document(versioned(upstream, 3)))
    assert answer.status_code == 201
    assert versions(running) == {"3"}


def test_another_worker_dies_before_it_is_prepared(running: Gateway, upstream: Upstream) -> None:
    running.expect_log("exited on signal 9", 1)
    victim = running.workers()[1]
    with stopped(victim):
        later = Later(running, document(versioned(upstream, 1)))
        asked_worker(running)
        time.sleep(0.2)
        os.kill(victim, signal.SIGKILL)
        answer = later.answer()
    # Its end was noticed: a worker that is only silent makes the change be withdrawn.
    assert answer.status_code == 201, answer.text
    wait_until(lambda: len(running.workers()) == 3, "its successor")
    assert versions(running) == {"1"}


def test_a_worker_that_stands_still_makes_it_be_withdrawn(
    running: Gateway, upstream: Upstream
) -> None:
    silent = running.workers()[2]
    with stopped(silent):
        answer = post(running, document(versioned(upstream, 1)))
        assert answer.status_code == 500
        assert f"worker {silent} did not answer in 10 seconds" in answer.json()["message"]
        # As many as are needed to meet the other two.
        assert {running.ask("/").headers.get("x-version") for _ in range(20)} == {"0"}
    assert versions(running) == {"0"}
    assert post(running, document(versioned(upstream, 2))).json()["version"] == 1
    assert versions(running) == {"2"}


def test_any_worker_dies_at_any_time(running: Gateway, upstream: Upstream) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    running.expect_log("exited on signal 9", range(1, 31))
    taken = {"0"}
    for number in range(1, 31):
        before = versions(running)
        assert len(before) == 1
        assert before <= taken
        later = Later(running, document(versioned(upstream, number)))
        time.sleep(rng.random() * 0.02)
        victim = rng.choice(running.workers())
        os.kill(victim, signal.SIGKILL)
        later.join(DEADLINE)
        assert not later.is_alive()
        wait_until(lambda victim=victim: victim not in running.workers(), "the worker to die")
        wait_until(lambda: len(running.workers()) == 3, "all workers")
        taken = before | {str(number)}
        if later.reply is not None and later.reply.status_code == 201:
            taken = {str(number)}
        # Nobody waits for it: a worker that starts has it when it serves.
        assert len(versions(running)) == 1
        assert versions(running) <= taken


def test_workers_that_start_again_keep_what_was_posted(
    running: Gateway, upstream: Upstream
) -> None:
    running.expect_log("exited on signal 9", 3)
    assert post(running, document(versioned(upstream, 1))).status_code == 201
    created = httpx.get(f"{running.admin}/routes/route", trust_env=False, timeout=DEADLINE).json()[
        "created_at"
    ]
    time.sleep(1.1)
    kill_all_workers(running)
    assert versions(running) == {"1"}
    for _ in range(6):
        found = httpx.get(f"{running.admin}/routes/route", trust_env=False, timeout=DEADLINE).json()
        assert found["created_at"] == created
    assert post(running, document(versioned(upstream, 2))).json()["version"] == 2
    assert versions(running) == {"2"}
