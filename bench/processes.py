"""What /proc says of other processes."""

from __future__ import annotations

from pathlib import Path


def children(pid: int) -> list[int]:
    """Child processes of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold anything; the parent is the second field after it.
            parent = stat.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == pid:
            found.append(int(stat.parent.name))
    return found


def title(pid: int) -> bytes:
    """What a process calls itself; nothing where it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
