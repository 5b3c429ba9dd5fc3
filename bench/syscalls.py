"""Counts the system calls of a process, by perf, where the kernel lets us.

The count costs time, so it is taken in slices that are not timed.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

EVENT = "raw_syscalls:sys_enter"


@dataclass
class Count:
    """The system calls within a block; None where they cannot be counted."""

    calls: int | None = None


def parse(output: str) -> int | None:
    """Reads `perf stat -x,`."""
    for line in output.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2] == EVENT and fields[0].isdigit():
            return int(fields[0])
    return None


@contextlib.contextmanager
def counted(pid: int) -> Iterator[Count]:
    """Counts the calls of a process while the block runs."""
    count = Count()
    if not shutil.which("perf"):
        yield count
        return
    command = ["perf", "stat", "-x,", "-e", EVENT, "-p", f"{pid}"]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # the terminal's Ctrl-C is for the runner alone
    )
    try:
        yield count
    finally:
        # It prints what it counted when it is interrupted.
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate(timeout=20)
        count.calls = parse(printed)
