"""Ports that no two tests take."""

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

import pytest

OUTSIDE_EPHEMERAL = range(10240, 32000)
"""Ports from which no outgoing connection starts, so that none can take one that we picked."""


class Ports:
    """Ports of 127.0.0.1 that no other test process picks as long as they are held."""

    def __init__(self) -> None:
        self._locks: list[IO[str]] = []
        self._folder = Path(tempfile.gettempdir()) / f"sluice-test-ports-{os.getuid()}"
        self._folder.mkdir(exist_ok=True)

    def take(self) -> int:
        """A port on which nobody listens."""
        for _ in range(1000):
            port = random.choice(OUTSIDE_EPHEMERAL)
            lock = open(self._folder / str(port), "w")  # noqa: SIM115 held until release()
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with socket.socket() as probe:
                    probe.bind(("0.0.0.0", port))
            except OSError:
                lock.close()
                continue
            self._locks.append(lock)
            return port
        raise RuntimeError("no free port found")

    def release(self) -> None:
        """Gives all of them back."""
        for lock in self._locks:
            lock.close()
        self._locks.clear()


def has_ipv6() -> bool:
    """True where ::1 can be bound."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 loopback here")
