"""A log server for the tests of log plugins, and clients whose requests are counted in it."""

import contextlib
import json
import re
import ssl
import threading
from typing import Any

from sluice import Gateway, proxying
from upstream import Exchange, Upstream
from wire import wait_until

LATE = 40.0
"""Seconds for what retries and a busy machine may hold up."""


REFUSED = r"http-log \S+ to \S+: not delivered, \d+ entr"
DROPPED = r"http-log \S+ to \S+: (\d+) entr\w+ (was|were) dropped, "


class LogServer(Upstream):
    """Keeps the entries of the requests that it answered well.

    `mood` says what it does: "well", "500" (refuses), "stall" (reads and never answers), "reset".
    """

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.mood = "well"
        self.entries: list[dict[str, Any]] = []
        self.batches: list[int] = []
        self.answered = 0
        self.counting = threading.Lock()
        self.let_go = threading.Event()
        super().__init__(self.take, "log", port=port, tls=tls)

    def take(self, exchange: Exchange) -> None:
        """Answers one request as the mood is."""
        body = exchange.read_body()
        if self.mood == "stall":
            self.let_go.wait(LATE)
            exchange.keep = False
        elif self.mood == "reset":
            exchange.keep = False
            exchange.abort()
        elif self.mood == "500":
            exchange.reply(500, body=b"no room")
        else:
            found = json.loads(body)
            found = found if isinstance(found, list) else [found]
            # Before the answer: whoever has seen that finds them here.
            self.entries += found
            self.batches.append(len(found))
            try:
                exchange.reply(200, body=b"thanks")
            finally:
                with self.counting:
                    self.answered += 1

    def close(self) -> None:
        """Ends stalls, too."""
        self.let_go.set()
        super().close()

    def marks(self) -> list[str]:
        """The argument `n` of each entry's request, in the order of arrival."""
        return [entry["request"]["querystring"]["n"] for entry in self.entries]

    def wait_for_answers(self, deadline: float = LATE) -> None:
        """Waits until all that has arrived is answered."""
        wait_until(lambda: self.answered == len(self.batches), "answers to entries", deadline)

    def wait_for_marks(self, wanted: set[str], deadline: float = LATE) -> None:
        """Waits until each of them has arrived, and all that has is answered.

        A server closed between the two makes a failed delivery of one that was counted.
        """
        with contextlib.suppress(AssertionError):
            wait_until(lambda: wanted <= set(self.marks()), "all entries", deadline)
            self.wait_for_answers(deadline)
        missing = sorted(wanted - set(self.marks()))
        assert not missing, f"{len(missing)} of {len(wanted)} entries are missing: {missing[:10]}"


def logging_to(upstream: Upstream, port: int, queue: dict | None = None, **config: object) -> dict:
    """A gateway's configuration that sends entries of all requests to a port."""
    plugin = {
        "name": "http-log",
        "instance_name": "log",
        "config": {
            "http_endpoint": f"http://127.0.0.1:{port}/in",
            "queue": {"max_coalescing_delay": 0.1, "max_retry_delay": 0.2} | (queue or {}),
        }
        | config,
    }
    return proxying(upstream) | {"plugins": [plugin]}


class Clients:
    """Threads that ask for `/?n=...` until told to stop; `answered` has what got an answer."""

    def __init__(self, running: Gateway, count: int = 4) -> None:
        self.running = running
        self.answered: set[str] = set()
        self.done = threading.Event()
        self.threads = [
            threading.Thread(target=self._run, args=(f"c{number}",), daemon=True)
            for number in range(count)
        ]
        for thread in self.threads:
            thread.start()

    def _run(self, name: str) -> None:
        number = 0
        while not self.done.is_set():
            number += 1
            mark = f"{name}-{number}"
            # A connection that a reload closes: test_reload.py tells what that means.
            with contextlib.suppress(OSError):
                assert self.running.ask(f"/?n={mark}").status == 200
                self.answered.add(mark)

    def wait_for(self, more: int) -> None:
        """Waits until so many more requests were answered."""
        before = len(self.answered)
        wait_until(lambda: len(self.answered) >= before + more, "requests under load", LATE)

    def stop(self) -> set[str]:
        """Ends the load; the marks of what was answered."""
        self.done.set()
        for thread in self.threads:
            thread.join(LATE)
        return self.answered


def ask(running: Gateway, *marks: object) -> set[str]:
    """One request a mark, each answered."""
    for mark in marks:
        assert running.ask(f"/?n={mark}").status == 200
    return {str(mark) for mark in marks}


def dropped(running: Gateway) -> int:
    """The number of entries that the error log says were dropped."""
    return sum(int(match[1]) for match in re.finditer(DROPPED, running.error_log()))
