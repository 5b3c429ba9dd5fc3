"""What goes on beside the requests of a scenario, and a slice of these requests."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import load
import sides
import stats
from probe import ProbeError
from report import Metric, metric
from verify import InvalidRun


class Beside:
    """Does something again and again, by a timetable, as long as it is entered."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._over = threading.Event()
        self._trouble: str | None = None

    def once(self) -> None:
        """What is done; it may find the run invalid."""
        raise NotImplementedError

    def _run(self) -> None:
        due = time.monotonic()
        try:
            while not self._over.is_set():
                self.once()
                due += 1 / self._rate
                self._over.wait(max(0.0, due - time.monotonic()))
        except (InvalidRun, ProbeError) as error:
            self._trouble = str(error)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """It goes on meanwhile."""
        self._over.clear()
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()
        if self._trouble:
            raise InvalidRun(self._trouble)


def requests(gateway: sides.Sluice, file: Path, data: dict[str, Any], what: str) -> load.Slice:
    """A slice of load; `what` is beside it, for the message of a run that is invalid."""
    slice_ = load.run(
        gateway.address, file, gateway.workers, None, data["connections"], data["seconds"]
    )
    if errors := slice_.report.errors():
        raise InvalidRun(f"requests beside {what}: {errors}")
    return slice_


def noticed(
    beside: list[load.Slice], alone: list[load.Slice], suffix: str = ""
) -> dict[str, Metric]:
    """What requests notice of what is beside them, in pairs of slices.

    Throughput and latency tell of the machine's cores too; the workers' CPU time for a request
    is theirs alone.
    """
    fields = {"rps_share": "rps", "p99_ratio": "p99_ms", "cpu_ratio": "cpu_us"}
    return {
        f"{name}{suffix}": metric(
            "ratio",
            stats.ratio(
                [getattr(one, field) for one in beside], [getattr(one, field) for one in alone]
            ),
        )
        for name, field in fields.items()
    }
