"""The signals that docs/operations.md names and no command is a test of: sent by hand."""

import contextlib
import os
import signal
from pathlib import Path

from instance import Instance
from sluice import alive
from wire import wait_until


def ready(instance: Instance) -> set[int]:
    """The workers that serve."""
    return set(instance.status()["workers"]["ready"])


def open_files(pid: int) -> set[Path]:
    """What a worker has open; it may be closing some of it."""
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.add(entry.readlink())
    return found


def test_what_they_do(instance: Instance) -> None:
    instance.succeed("start")
    master, first = instance.status()["pid"], ready(instance)

    log = instance.prefix / "logs" / "access.log"
    log.rename(log.with_suffix(".1"))
    os.kill(master, signal.SIGUSR1)
    # The master makes the file, and tells the workers then.
    wait_until(lambda: all(log in open_files(pid) for pid in first), "the workers to open it")
    assert instance.get("/reopened") == 404
    wait_until(lambda: "GET /reopened " in log.read_text(), "its line")

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
