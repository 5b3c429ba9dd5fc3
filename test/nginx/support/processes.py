"""Programs that a test runs to their end, and what the kernel says of a process."""

import contextlib
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SECONDS = 60

TRIES = 10
"""Of what is measured."""


def ran(command: Sequence[str | Path], **how: Any) -> subprocess.CompletedProcess[str]:
    """How a program ended, and what it said; it reads nothing unless it is given `input`."""
    given = {"check": False} | ({} if "input" in how else {"stdin": subprocess.DEVNULL}) | how
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, **given)


def children(pid: int) -> list[int]:
    """The children of a process of one thread; none when it is gone."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    before = None
    try:
        # The kernel may leave one out where another one ends meanwhile.
        while (found := listed.read_text()) != before:
            before = found
    except OSError:
        return []
    return [int(child) for child in found.split()]


def switches(pid: int) -> int:
    """How often a process, with its threads, has gone to sleep: so often has it been woken."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.M)
        assert found
        total += int(found[1])
    return total


def cpu_seconds(pid: int) -> float:
    """The processor time that a process has used so far."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def check_cost(pid: int, seconds: float, run: Callable[[], object]) -> None:
    """That a process needs less than so many seconds of processor time for something, at the best
    of several times: what shares the core's caches and units with it makes it slower."""
    costs: list[float] = []
    while not costs or (costs[-1] >= seconds and len(costs) < TRIES):
        before = cpu_seconds(pid)
        run()
        costs.append(cpu_seconds(pid) - before)
    assert costs[-1] < seconds, costs


def waited_seconds(*pids: int) -> float:
    """How long processes, with their threads, have waited for a processor so far: what a starved
    machine adds to what they take."""
    tasks = [task for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()]
    waited = 0
    for task in tasks:
        with contextlib.suppress(OSError):  # one that ends meanwhile
            waited += int((task / "schedstat").read_text().split()[1])
    return waited / 1e9


def descriptors(pid: int) -> int:
    """How many files a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))
