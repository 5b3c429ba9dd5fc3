"""Names for code of files whose static functions lost theirs: Debian's nginx and its modules.

What is left are the exported functions. A compiler lays out a source file's
functions together, so code without a name is called `~f` after the exported
function f before it: mostly one of the same source file.
"""

from __future__ import annotations

import bisect
import functools
import subprocess
from collections.abc import Sequence

Table = tuple[Sequence[int], Sequence[str]]


def parse_nm(text: str) -> Table:
    """Reads `nm --dynamic --defined-only --numeric-sort`: addresses and names of functions."""
    addresses, names = [], []
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "TtWi":
            addresses.append(int(words[0], 16))
            names.append(words[2].partition("@")[0])
    return addresses, names


@functools.cache
def exported(path: str) -> Table:
    """Exported functions of a file; none if it cannot be read."""
    command = ["nm", "--dynamic", "--defined-only", "--numeric-sort", path]
    done = subprocess.run(command, capture_output=True, text=True)
    return parse_nm(done.stdout if done.returncode == 0 else "")


def near(table: Table, address: int) -> str | None:
    """`~f` for code behind the exported function f; None where there is none before it."""
    addresses, names = table
    index = bisect.bisect_right(addresses, address)
    return f"~{names[index - 1]}" if index else None
