"""Writes over the Admin API while nginx's binary is upgraded."""

import os
import signal
import threading
import time

from admin_client import Client

from sluice import Gateway, Start, alive
from wire import wait_until

WRITERS = 10


class Writer(threading.Thread):
    """Writes one consumer again and again, each write until it is made."""

    def __init__(self, running: Gateway, number: int, ends: threading.Event) -> None:
        super().__init__(daemon=True)
        self.client, self.number, self.ends = Client(running), number, ends
        self.made = 0
        self.problems: list[str] = []

    def run(self) -> None:
        while not self.ends.is_set():
            self.write(self.made + 1)

    def write(self, value: int) -> None:
        """Tries until it is answered with 200."""
        while True:
            reply = self.client.ask(
                "PUT", f"/consumers/w{self.number}", {"custom_id": f"{self.number}-{value}"}
            )
            if reply.status == 200:
                self.made = value
                return
            if reply.status != 503 or reply.headers.get("retry-after") != "1":
                self.problems.append(str(reply))
                return
            time.sleep(0.05)


def test_ten_writers_over_upgrades_and_back(gateway: Start) -> None:
    """No answered write is lost, none refused for more than a moment."""
    running = gateway(None, workers=2)
    ends = threading.Event()
    writers = [Writer(running, number, ends) for number in range(WRITERS)]
    for writer in writers:
        writer.start()

    def must_go_on() -> None:
        before = [writer.made for writer in writers]
        wait_until(
            lambda: all(w.made > made for w, made in zip(writers, before, strict=True)),
            "all of them to write",
        )

    try:
        for ends_the_new in (False, True, False):
            must_go_on()
            old = running.master()
            new = running.start_new_master()
            wait_until(lambda: len(running.workers()) == 2, "the new workers")
            must_go_on()
            leaves = new if ends_the_new else old
            os.kill(leaves, signal.SIGQUIT)
            wait_until(lambda pid=leaves: not alive(pid), "it to leave")
            running.wait_for_master()
            must_go_on()
    finally:
        ends.set()
        for writer in writers:
            writer.join(10)
    assert [problem for writer in writers for problem in writer.problems] == []
    client = Client(running)
    for writer in writers:
        found = client.must(200, "GET", f"/consumers/w{writer.number}")["custom_id"]
        assert found == f"{writer.number}-{writer.made}"
