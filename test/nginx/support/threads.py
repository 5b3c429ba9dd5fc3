"""What goes on beside a test."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from wire import DEADLINE


@contextmanager
def beside(*work: Callable[[], object], until: threading.Event | None = None) -> Iterator[None]:
    """Runs each function in a thread of its own; at the end of the block sets `until`, and waits
    for all of them."""
    threads = [threading.Thread(target=one, daemon=True) for one in work]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        if until:
            until.set()
        for thread in threads:
            thread.join(5 * DEADLINE)
            assert not thread.is_alive(), "what goes on beside the test does not end"
