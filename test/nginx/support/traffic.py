"""Requests without end beside what a test does."""

from __future__ import annotations

import threading
import time

from sluice import Gateway, alive
from wire import DEADLINE, wait_until


class Traffic:
    """Clients that ask without a pause, each on a connection of its own."""

    def __init__(self, running: Gateway, count: int = 4) -> None:
        self.running = running
        self.answered = 0
        self.failed: list[str] = []
        self.slowest = 0.0
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(count)]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        wait_until(lambda: self.answered > 20, "traffic")
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join(DEADLINE)

    def _ask(self) -> None:
        while not self._done.is_set():
            begun = time.monotonic()
            try:
                reply = self.running.ask("/")
                if reply.status != 200:
                    self.failed.append(f"{reply.status} {reply.body!r}")
            except (OSError, ValueError) as problem:
                self.failed.append(repr(problem))
            self.slowest = max(self.slowest, time.monotonic() - begun)
            self.answered += 1

    def goes_on(self, requests: int = 200) -> None:
        """Waits for as many more answers."""
        target = self.answered + requests
        wait_until(lambda: self.answered > target or self.failed, "traffic to go on")


def successor(running: Gateway, victim: int) -> int:
    """The control worker after one that has died."""
    wait_until(lambda: not alive(victim), "its end")
    return wait_until(
        lambda: pid if (pid := running.control()) != victim else 0, "another control worker"
    )
