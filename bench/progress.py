"""One line on the terminal that says what is going on, if there is a terminal."""

from __future__ import annotations

import sys


def progress(text: str) -> None:
    """Shows a text in place of the last one; "" clears it."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
