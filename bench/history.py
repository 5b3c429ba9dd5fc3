"""The log of runs: `bench/results.jsonl`, a record a line, the oldest first.

A record has `revision`, `subject`, `date` (UTC), `machine`, `quick` (whether it was
a short run), and `scenarios`: by name what the scenario's JSON has. Records are only
ever added.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import report
import sides

LOG = sides.ROOT / "bench" / "results.jsonl"


@dataclass(frozen=True)
class Record:
    """A run of one revision."""

    revision: str
    subject: str
    date: str
    machine: str
    scenarios: dict[str, dict[str, Any]]
    quick: bool = False

    def metric(self, scenario: str, name: str) -> report.Metric | None:
        """A metric of a scenario, if this run has it."""
        found = self.scenarios.get(scenario, {}).get("metrics", {}).get(name)
        return report.Metric(**found) if found else None


def append(record: Record, path: Path = LOG) -> None:
    """Adds a record."""
    with path.open("a") as file:
        file.write(json.dumps(vars(record), allow_nan=False) + "\n")


def collect(results: Sequence[report.Result]) -> dict[str, dict[str, Any]]:
    """The `scenarios` of a record."""
    return {result.scenario: result.to_json() for result in results}


def read(path: Path = LOG) -> list[Record]:
    """All records; none where there is no log yet."""
    if not path.exists():
        return []
    return [Record(**json.loads(line)) for line in path.read_text().splitlines() if line]
