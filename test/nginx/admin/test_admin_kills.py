"""Everything is killed at any time: what was answered is there after the next start, nothing half.

SEED: of an earlier run.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable

from admin_client import Client
from seeds import seed_of
from soaks import soak

from sluice import Gateway, alive
from wire import wait_until

KILLS = soak(4, 40)
SEED = seed_of("admin_kills")
WRITERS = 10


class Writer(threading.Thread):
    """Writes entities of its own, one after the other; knows what was answered."""

    def __init__(self, running: Gateway, number: int) -> None:
        super().__init__(daemon=True)
        self.client, self.number = Client(running), number
        self.answered = -1
        """The version of the last write with an answer."""
        self.asked = -1
        self.problem = ""

    def begin_again(self) -> Writer:
        """Its successor after a kill, which goes on where this one was."""
        after = Writer(self.client.running, self.number)
        after.answered = after.asked = self.asked
        return after

    def run(self) -> None:
        while True:
            self.asked += 1
            try:
                status = self.write(self.asked)
            except OSError:
                return
            if status != 200:
                self.problem = f"{self.number}: version {self.asked} was answered {status}"
                return
            self.answered = self.asked

    def write(self, version: int) -> int:
        """A service; every third time with a route and a consumer, all or none."""
        name, tags = f"w{self.number}", [f"v{version}"]
        service = {"host": "127.0.0.1", "tags": tags}
        if version % 3:
            return self.client.ask("PUT", f"/services/{name}", service).status
        route = {"paths": [f"/{name}"], "tags": tags}
        return self.client.ask("POST", "/batch", [
            {"method": "PUT", "path": f"/services/{name}", "body": service},
            {"method": "PUT", "path": f"/services/{name}/routes/{name}", "body": route},
            {"method": "PUT", "path": f"/consumers/{name}", "body": {"tags": tags}},
        ]).status  # fmt: skip

    def found(self, kind: str) -> int:
        """The version of what is there; -1: nothing."""
        reply = self.client.ask("GET", f"/{kind}/w{self.number}")
        assert reply.status in (200, 404), reply
        return int(reply.json()["tags"][0][1:]) if reply.status == 200 else -1

    def check(self) -> None:
        """The last that was answered, or the one that was under way."""
        assert not self.problem, self.problem
        service = self.found("services")
        assert service in (self.answered, self.asked), (service, self.answered, self.asked)
        whole = service - service % 3 if service >= 0 else -1
        assert [self.found("routes"), self.found("consumers")] == [whole, whole]


def kill_all(running: Gateway) -> None:
    """The master first, so that it starts nobody again."""
    pids = [running.master(), *running.workers(), running.control()]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(map(alive, pids)), "the end of all")


def test_what_was_answered_outlives_all(gateway: Callable[..., Gateway]) -> None:
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    running = gateway(None, workers=2)
    writers = [Writer(running, number) for number in range(WRITERS)]
    for _ in range(KILLS):
        for writer in writers:
            writer.start()
        time.sleep(rng.random())
        kill_all(running)
        for writer in writers:
            writer.join()
        done = running.command("start")
        assert done.returncode == 0, done.stderr
        for writer in writers:
            writer.check()
        writers = [writer.begin_again() for writer in writers]
        found = [writer.found("services") for writer in writers]
        for writer, version in zip(writers, found, strict=True):
            writer.answered = writer.asked = version
    assert sum(writer.asked for writer in writers) > KILLS
    done = running.command("check", "--store")
    assert done.returncode == 0, done.stderr
