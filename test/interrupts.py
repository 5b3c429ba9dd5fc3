"""Ctrl-C for what tests start."""

import signal


def restore() -> None:
    """A shell that starts us in the background has us ignore Ctrl-C, and all that we start: shells
    among these cannot trap it then (POSIX, Shell & Utilities, 2.11)."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
