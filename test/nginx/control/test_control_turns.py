"""Large changes take turns with other requests of the control worker."""

from pathlib import Path

from admin_tokens import send
from changes import document, post
from turns import WATCH

import guard
from sluice import Start
from wire import wait_until

COUNT = 10000
RUNS = 6


class Turns:
    """What the plugin has noted since it was made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.unlink(missing_ok=True)
        wait_until(path.exists, "the plugin to begin anew")

    def share(self) -> float:
        """The longest work without a pause, of all that was done."""
        begun = self._read()[0]
        wait_until(lambda: self._read()[0] > begun, "the plugin to write")
        _, longest, done = self._read()
        return longest / done

    def _read(self) -> list[int]:
        return [int(word) for word in self.path.read_text().split()]


def test_large_changes_take_turns(gateway: Start) -> None:
    """Of what the event loop works for them, no stretch without a pause is more than a quarter.

    The deletion is short in all, 45 ms on a fast machine, of which 5 to 11 go in one stretch, and
    what else happens to fall into it makes one run worse than another: one of some runs counts.
    Lists that went to threads in one piece took half a second of the loop for 50,000, in each run.
    """
    folder = guard.folder("sluice-turns-")
    folder.chmod(0o777)
    path = folder / "turns"
    running = gateway(None, plugins={"turns": WATCH.replace("@path@", str(path))})
    services = [{"name": f"s{n}", "host": "127.0.0.1"} for n in range(COUNT)]
    text = document({"services": services})
    send(running, "PUT", "/consumers/first", json={})
    turns = Turns(path)
    assert post(running, text).status_code == 201
    shares = {"config": [turns.share()]}
    revision = int(send(running, "GET", "/").headers["Sluice-Revision"])
    for _ in range(RUNS):
        for to in (revision - 1, revision):
            turns = Turns(path)
            reply = send(running, "POST", "/rollback", json={"revision": to})
            assert reply.json()["changes"] == COUNT + 1, reply.text
            shares.setdefault(f"rollback {to}", []).append(turns.share())
        if max(min(found) for found in shares.values()) < 1 / 4:
            break
    guard.remove(folder)
    assert max(min(found) for found in shares.values()) < 1 / 4, shares
