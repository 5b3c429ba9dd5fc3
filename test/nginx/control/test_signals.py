"""The signals that docs/operations.md names and no command is a test of: sent by hand."""

import os
import signal

from instance import Instance
from sluice import alive
from wire import wait_until


def ready(instance: Instance) -> set[int]:
    """The workers that serve."""
    return set(instance.status()["workers"]["ready"])


def test_what_they_do(instance: Instance) -> None:
    instance.succeed("start")
    master, first = instance.status()["pid"], ready(instance)

    log = instance.prefix / "logs" / "access.log"
    moved = log.with_suffix(".1")
    log.rename(moved)
    os.kill(master, signal.SIGUSR1)
    wait_until(log.exists, "a new log")
    asked = 0

    # The master makes the file before it tells the workers, who write to the old one until then.
    def writes_there() -> bool:
        nonlocal asked
        asked += 1
        assert instance.get("/reopened") == 404
        return "GET /reopened " in log.read_text()

    def lines() -> int:
        return sum(path.read_text().count("GET /reopened ") for path in (moved, log))

    wait_until(writes_there, "a line in the new log")
    wait_until(lambda: lines() == asked, "a line for each request")

    os.kill(master, signal.SIGHUP)
    wait_until(lambda: len(ready(instance) - first) == 2, "new workers")

    victim = ready(instance).pop()
    os.kill(victim, signal.SIGQUIT)
    wait_until(lambda: not alive(victim) and len(ready(instance)) == 2, "another worker")

    os.kill(master, signal.SIGWINCH)
    wait_until(lambda: not any(instance.status()["workers"].values()), "all workers to leave")
    assert alive(master)
    os.kill(master, signal.SIGHUP)
    wait_until(lambda: len(ready(instance)) == 2, "workers again")
    assert instance.get("/nothing") == 404
