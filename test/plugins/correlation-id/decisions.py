"""What correlation-id decides, at random (test_decisions_random.py)."""

import random
from typing import Any

from decisions_words import Case, Config, Seen, World, flag

DECISIONS = {"pass", "unknown"}


def configuration(draw: random.Random, world: World) -> Config:
    generator = draw.choice(["uuid", "uuid#counter", "tracker"])
    config = {"header_name": "X-Close", "echo_downstream": flag(draw)}
    return config | {"generator": generator}


def request(draw: random.Random, case: Case, world: World) -> None:
    """The lines X-Close that each may have are all that count."""


def is_unknown(case: Case) -> bool:
    """A new id: only nginx makes one."""
    return not any(case.header("X-Close")[:1])


def own(case: Case, seen: Seen) -> dict[str, Any]:
    """The one that the upstream has seen: the client and the log are to have it, too."""
    assert seen.request
    made = [value for name, value in seen.request.headers if name.lower() == "x-close"]
    return {"id": made[-1]}
