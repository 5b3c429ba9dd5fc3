"""What file-log decides, at random: every request passes, and is in its file."""

import json
import random
from pathlib import Path

from decisions_words import Case, Config, Done, World, flag
from log_server import LATE

from sluice import Gateway
from wire import wait_until

DECISIONS = {"pass"}


def configuration(draw: random.Random, world: World) -> Config:
    return {"path": f"{world.folder}/{world.route}.log", "reopen": flag(draw)}


def request(draw: random.Random, case: Case, world: World) -> None:
    """Any will do."""


def _read(path: str) -> list[str]:
    lines = Path(path).read_text().splitlines() if Path(path).exists() else []
    return sorted(json.loads(line)["request"]["headers"]["x-case"] for line in lines)


def written(done: list[Done], world: World, running: Gateway) -> None:
    """An entry of each request, in the file of its configuration."""
    cases = [one.case for one in done]
    for path in {case.config["path"] for case in cases}:
        wanted = sorted(str(case.number) for case in cases if case.config["path"] == path)
        wait_until(lambda p=path, w=wanted: _read(p) == w, f"all entries in {path}", LATE)
