"""A configuration change while workers die and stand still: on all workers, or on none."""

import os
import random
import signal
import time

import httpx
import pytest
from changes import Later, document, kill_all_workers, post, stopped, versions
from seeds import seed_of
from versions import VERSION, versioned

from processes import waited_seconds
from sluice import Gateway, Start, alive
from upstream import Upstream
from wire import DEADLINE, wait_until


@pytest.fixture
def running(gateway: Start, upstream: Upstream) -> Gateway:
    """A gateway of three workers that serves version 0."""
    return gateway(versioned(upstream, 0), workers=3, plugins=VERSION)


def kill_control(running: Gateway) -> None:
    """Kills the control worker, and waits for its successor."""
    victim = running.control()
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: not alive(victim), "its end")
    wait_until(lambda: running.control() != victim, "another control worker")


def test_the_control_worker_dies_at_any_time(running: Gateway, upstream: Upstream) -> None:
    """What was answered is live; what was not is live on all, or on none."""
    seed = seed_of("control_worker_deaths")
    print(f"seed {seed}")
    rng = random.Random(seed)
    running.expect_log("exited on signal 9", range(1, 31))
    # After three deaths in a minute it builds nothing by itself, and says so.
    running.expect_log("control worker", range(100))
    taken = {"0"}
    for number in range(1, 11):
        before = versions(running)
        assert len(before) == 1
        assert before <= taken
        later = Later(running, document(versioned(upstream, number)))
        time.sleep(rng.random() * 0.05)
        kill_control(running)
        later.join(2 * DEADLINE)
        assert not later.is_alive()
        # Killed, a connection ends; nobody waits for an answer that does not come.
        assert not isinstance(later.problem, httpx.TimeoutException), number
        taken = before | {str(number)}
        if later.reply is not None and later.reply.status_code == 201:
            taken = {str(number)}
        assert len(versions(running)) == 1
        assert versions(running) <= taken


def test_a_traffic_worker_dies_meanwhile(running: Gateway, upstream: Upstream) -> None:
    running.expect_log("exited on signal 9", 1)
    victim = running.workers()[1]
    with stopped(victim):
        later = Later(running, document(versioned(upstream, 1)))
        os.kill(victim, signal.SIGKILL)
        answer = later.answer()
    assert answer.status_code == 201, answer.text
    wait_until(lambda: len(running.workers()) == 3, "its successor")
    assert versions(running) == {"1"}


def test_a_worker_that_stands_still_holds_nothing_up(running: Gateway, upstream: Upstream) -> None:
    """And serves no request with what was live before."""
    silent = running.workers()[2]
    others = [os.getpid(), running.control(), *running.workers()[:2]]
    with stopped(silent):
        begun, waited = time.monotonic(), waited_seconds(*others)
        assert post(running, document(versioned(upstream, 1))).status_code == 201
        assert time.monotonic() - begun < 5 + waited_seconds(*others) - waited
        # As many as are needed to meet the other two.
        assert {running.ask("/").headers.get("x-version") for _ in range(20)} == {"1"}
    assert versions(running) == {"1"}
    assert post(running, document(versioned(upstream, 2))).status_code == 201
    assert versions(running) == {"2"}


def test_any_worker_dies_at_any_time(running: Gateway, upstream: Upstream) -> None:
    seed = seed_of("worker_deaths")
    print(f"seed {seed}")
    rng = random.Random(seed)
    running.expect_log("exited on signal 9", range(1, 31))
    for number in range(1, 31):
        later = Later(running, document(versioned(upstream, number)))
        time.sleep(rng.random() * 0.02)
        victim = rng.choice(running.workers())
        os.kill(victim, signal.SIGKILL)
        assert later.answer().status_code == 201
        wait_until(lambda victim=victim: victim not in running.workers(), "the worker to die")
        wait_until(lambda: len(running.workers()) == 3, "all workers")
        assert versions(running) == {str(number)}


def test_workers_that_start_again_keep_what_was_posted(
    running: Gateway, upstream: Upstream
) -> None:
    running.expect_log("exited on signal 9", 4)
    assert post(running, document(versioned(upstream, 1))).status_code == 201
    url = f"{running.admin}/routes/route"
    created = httpx.get(url, trust_env=False, timeout=DEADLINE).json()["created_at"]
    time.sleep(1.1)
    kill_all_workers(running)
    kill_control(running)
    assert versions(running) == {"1"}
    found = httpx.get(url, trust_env=False, timeout=DEADLINE).json()
    assert found["created_at"] == created
    assert post(running, document(versioned(upstream, 2))).status_code == 201
    assert versions(running) == {"2"}
