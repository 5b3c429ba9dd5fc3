"""What a scenario that is no `proxy` scenario runs in: fields, folder, time, checkout."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import sides
import stats
from progress import progress
from scenario import Data, Described, ScenarioError

FEWEST_ROUNDS = 4


class Fields(dict[str, Any]):
    """Fields of a scenario's file, tables in them as well; one that is missing is the file's
    mistake."""

    def __init__(self, file: str, fields: dict[str, Any]) -> None:
        super().__init__({name: _fields(file, value) for name, value in fields.items()})
        self._file = file

    def __missing__(self, name: str) -> NoReturn:
        raise ScenarioError(f"{self._file}: {name!r} is missing")


def _fields(file: str, value: Data) -> Data:
    if isinstance(value, dict):
        return Fields(file, value)
    return [_fields(file, item) for item in value] if isinstance(value, list) else value


@dataclass
class Setting:
    """A scenario's fields, its scratch folder, when it began, and the checkout that it measures."""

    name: str
    data: dict[str, Any]
    folder: Path
    began: float
    root: Path

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
def prepared(
    scenario: Described, began: float, variant: str | None = None, root: Path = sides.ROOT
) -> Iterator[Setting]:
    """A scenario's setting; the fields under `variant` (`quick`, `compare`) replace others."""
    data = {name: value for name, value in scenario.data.items() if name not in VARIANTS}
    if variant:
        data |= scenario.data.get(variant, {})
    for name in NUMBERS & data.keys():
        if not isinstance(data[name], int | float):
            raise ScenarioError(f"{scenario.name}.toml: {name!r} is no number")
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        Path(folder).chmod(0o755)  # workers of a master run by root are somebody else
        yield Setting(
            scenario.name, Fields(f"{scenario.name}.toml", data), Path(folder), began, root
        )


VARIANTS = ("quick", "compare")
NUMBERS = {"rounds", "limit_s"}
