"""What a scenario that is no `proxy` scenario runs in: its fields, its folder, its time."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stats
from progress import progress
from scenario import Described

FEWEST_ROUNDS = 4


@dataclass
class Setting:
    """A scenario's fields, its scratch folder, and when it began."""

    name: str
    data: dict[str, Any]
    folder: Path
    began: float

    def rounds(self, names: list[str], part: int, parts: int) -> Iterator[list[str]]:
        """Yields the order of the sides, round after round, while the part's time lasts.

        The scenario's time is divided evenly over its parts; what one leaves goes to the next.
        """
        ends = self.began + self.data["limit_s"] * (part + 1) / parts
        for number, order in enumerate(stats.orders(names, self.data["rounds"])):
            if number >= FEWEST_ROUNDS and number % 2 == 0 and time.monotonic() > ends:
                return
            progress(f"{self.name}: part {part + 1} of {parts}, round {number + 1}")
            yield order
        progress("")

    def fresh(self) -> Path:
        """A folder of its own for each part."""
        return Path(tempfile.mkdtemp(dir=self.folder))


@contextlib.contextmanager
def prepared(scenario: Described, quick: bool, began: float) -> Iterator[Setting]:
    """A scenario's setting; in a quick run the fields under `quick` replace others."""
    data = dict(scenario.data)
    shorter = data.pop("quick", {})
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        Path(folder).chmod(0o755)  # workers of a master run by root are somebody else
        yield Setting(scenario.name, data | shorter if quick else data, Path(folder), began)
