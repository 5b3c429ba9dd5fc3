"""Entries of a worker that finds the memory for them locked: they wait in it, and none is lost."""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from log_server import LATE, ask

import guard
from sluice import Config, Gateway, Start, proxying
from upstream import Upstream
from wire import wait_until

MUTEX = 64
"""Where the writers' mutex is (module/core/spool/spool_area.h)."""

COUNT = 20


@pytest.fixture
def path() -> Iterator[Path]:
    """A file that workers of any user may write."""
    folder = guard.folder("sluice-file-log-")
    folder.chmod(0o777)
    yield folder / "a.log"
    guard.remove(folder)


def logging_to(upstream: Upstream, path: Path) -> Config:
    config = proxying(upstream)
    config["plugins"] = [{"name": "file-log", "config": {"path": str(path)}}]
    return config


def marks(path: Path) -> list[str]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["request"]["querystring"]["n"] for line in lines]


def numbers(*of: range) -> list[str]:
    return [str(n) for each in of for n in each]


@contextlib.contextmanager
def locked(running: Gateway) -> Iterator[None]:
    """Holds the lock, as a process does that has lost its processor."""
    folder = Path(f"/proc/{running.master()}/fd")
    (found,) = [each for each in folder.iterdir() if "sluice-spool" in os.readlink(each)]
    with found.open("r+b") as file, mmap.mmap(file.fileno(), 0) as area:
        anchor = ctypes.c_char.from_buffer(area)
        mutex = ctypes.c_void_p(ctypes.addressof(anchor) + MUTEX)
        libc = ctypes.CDLL(None)
        assert libc.pthread_mutex_lock(mutex) == 0
        try:
            yield
        finally:
            assert libc.pthread_mutex_unlock(mutex) == 0
            del anchor


def begin(gateway: Start, upstream: Upstream, path: Path) -> Gateway:
    running = gateway(logging_to(upstream, path), workers=1)
    ask(running, *range(3))
    wait_until(lambda: marks(path) == numbers(range(3)), "the first entries", LATE)
    return running


def test_they_are_written_when_the_lock_is_free(
    gateway: Start, upstream: Upstream, path: Path
) -> None:
    running = begin(gateway, upstream, path)
    with locked(running):
        ask(running, *range(10, 10 + COUNT))
        assert marks(path) == numbers(range(3))
    wanted = numbers(range(3), range(10, 10 + COUNT))
    wait_until(lambda: marks(path) == wanted, "all entries, without another request", LATE)
    ask(running, 90)
    wait_until(lambda: marks(path) == [*wanted, "90"], "the next one", LATE)
    found = httpx.get(running.admin + "/status", trust_env=False).json()
    assert found["log_entries"]["dropped"]["busy"] == 0


@pytest.mark.parametrize("how", ["reload", "quit"])
def test_a_worker_that_leaves_waits_for_the_lock(
    gateway: Start, upstream: Upstream, path: Path, how: str
) -> None:
    running = begin(gateway, upstream, path)
    end = running.reload if how == "reload" else lambda: running.stop("quit")
    worker = running.workers()[0]
    with locked(running):
        ask(running, *range(10, 10 + COUNT))
        ending = threading.Thread(target=end)
        ending.start()
        wait_until(lambda: worker in running.retiring(), "the worker to leave", LATE)
    ending.join()
    wanted = numbers(range(3), range(10, 10 + COUNT))
    wait_until(lambda: marks(path) == wanted, "all entries", LATE)
