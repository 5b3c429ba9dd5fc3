"""Posts configurations to a running gateway and looks at what its workers serve."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
from versions import ask_every_worker

from sluice import Gateway
from wire import DEADLINE, wait_until

JSON = {"Content-Type": "application/json"}


def document(config: dict[str, Any]) -> str:
    """A configuration as the text of a declarative file."""
    return json.dumps({"_format_version": "3.0"} | config)


def post(
    running: Gateway,
    text: str | bytes,
    query: str = "?wait=1",
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    """Posts a declarative file on a connection of its own."""
    with httpx.Client(trust_env=False, timeout=DEADLINE) as client:
        return client.post(
            f"{running.admin}/config{query}",
            content=text,
            headers=JSON if headers is None else headers,
        )


def live(running: Gateway) -> tuple[int, str]:
    """Number and hash of what the answering worker serves."""
    found = httpx.get(f"{running.admin}/status", trust_env=False, timeout=DEADLINE).json()
    return found["configuration_version"], found["configuration_hash"]


def versions(running: Gateway) -> set[str]:
    """What all workers serve."""
    return set(ask_every_worker(running).values())


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A worker that does not run for a while."""
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: " T " in Path(f"/proc/{pid}/stat").read_text(), "the worker to stop")
        yield
    finally:
        with suppress(ProcessLookupError):  # a test may have killed it
            os.kill(pid, signal.SIGCONT)


class Later(threading.Thread):
    """A post whose answer is asked for later."""

    def __init__(self, running: Gateway, text: str) -> None:
        super().__init__(daemon=True)
        self.running, self.text = running, text
        self.reply: httpx.Response | None = None
        self.problem: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.reply = post(self.running, self.text)
        except httpx.HTTPError as problem:
            self.problem = problem

    def answer(self) -> httpx.Response:
        """The answer; fails when there is none."""
        self.join(2 * DEADLINE)
        assert self.reply is not None, self.problem
        return self.reply


def kill_all_workers(running: Gateway) -> None:
    """Every worker is killed once."""
    for pid in running.workers():
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: pid not in running.workers(), "the worker to die")
        wait_until(lambda: len(running.workers()) == 3, "its successor")


def change(running: Gateway, config: dict[str, Any]) -> None:
    """Posts a configuration."""
    answer = post(running, document(config))
    assert answer.status_code == 201, answer.text
