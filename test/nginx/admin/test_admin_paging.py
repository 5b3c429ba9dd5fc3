"""A long list is paged through while it changes."""

import random
import threading
from typing import Any

from admin_client import Client, uuid
from changes import document
from soaks import soak

from sluice import Gateway
from wire import wait_until

COUNT = soak(4000, 1_000_000)

SIZE = 1000 if COUNT > 10000 else 100


def consumer(number: int) -> dict[str, Any]:
    """Every tenth may go."""
    return {"id": uuid(number), "username": f"c{number}"}


class Changes(threading.Thread):
    """Deletes, makes and changes some until it is told to end."""

    def __init__(self, running: Gateway) -> None:
        super().__init__(daemon=True)
        self.client, self.ends = Client(running), threading.Event()
        self.made = 0

    def run(self) -> None:
        source = random.Random(1)
        while not self.ends.is_set():
            number = source.randrange(0, COUNT, 10)
            gone = self.client.ask("DELETE", f"/consumers/{uuid(number)}").status == 204
            new = self.client.ask("PUT", f"/consumers/new-{self.made}", {}).status == 200
            stays = f"/consumers/{uuid(number + 1)}"
            changed = self.client.ask("PATCH", stays, {"tags": [str(self.made)]}).status == 200
            if not (gone and new and changed):
                return
            self.made += 1

    def must_go_on(self) -> None:
        """Waits for another one."""
        made = self.made
        wait_until(lambda: self.made > made or not self.is_alive(), "a change")
        assert self.is_alive(), "a change was refused"

    def end(self) -> None:
        """Waits for the last one."""
        self.ends.set()
        self.join()


def test_pages_while_it_changes() -> None:
    """What is there all the time comes once, in its order; nothing comes twice."""
    running = Gateway(None)
    file = running.prefix / "consumers.json"
    file.write_text(document({"consumers": [consumer(n) for n in range(COUNT)]}))
    done = running.command("import", str(file))
    assert done.returncode == 0, done.stderr
    with running:
        changes = Changes(running)
        changes.start()
        found = []
        path = f"/consumers?size={SIZE}"
        while path:
            page = changes.client.must(200, "GET", path)
            found += [entity["username"] for entity in page["data"]]
            path = page["next"]
            changes.must_go_on()
        changes.end()
    assert len(set(found)) == len(found)
    stay = {f"c{n}": None for n in range(COUNT) if n % 10}
    assert [name for name in found if name in stay] == list(stay)
