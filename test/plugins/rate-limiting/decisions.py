"""What rate-limiting decides, at random (test_decisions_random.py).

Without counters the judge knows nothing; then it has some of its own, and is told of the requests
in the order in which nginx was asked.
"""

import random
import time
from typing import Any

from decisions_words import ADDRESSES, NAMED, Case, Config, Seen, World, flag, known, near
from soaks import soak

DECISIONS = {"pass", "respond", "unknown"}
BESIDE = [NAMED]
DAY = 86400
SECONDS = soak(120, 900)
"""Seconds that all of it takes at most."""


def prepare(world: World) -> None:
    """No day ends before nginx was asked for the last time: its clock may be another second's."""
    left = DAY - time.time() % DAY
    if left < SECONDS:
        time.sleep(left + 1)


def configuration(draw: random.Random, world: World) -> Config:
    by = ["header", "consumer", "credential", "ip", "service", "path"][world.nth % 6]
    config: Config = {"limit_by": by, "hide_client_headers": draw.random() < 0.3}
    if by == "header":
        config["header_name"] = "X-Close"
    if by == "path":
        config["path"] = draw.choice([f"/{world.route}/a", f"/{world.route}/"])
    for number, period in enumerate(["day", "month", "year"]):
        if flag(draw) or number == 0:
            config[period] = [1.5, 3, 5][number] + draw.randint(0, 1)
    return config | draw.choice([{}, {"error_code": 418, "error_message": "slow"}])


def request(draw: random.Random, case: Case, world: World) -> None:
    """With several lines of the header, too: the first counts."""
    known(draw, case, world)
    if draw.random() < 0.4:  # as another's address: those two are not counted together
        case.headers.insert(0, ("X-Close", draw.choice(ADDRESSES)))


def is_unknown(case: Case) -> bool:
    """Always: counters are nginx's."""
    return True


def own(case: Case, seen: Seen) -> dict[str, Any]:
    """Each configuration is a rule of its own."""
    return {"slot": case.route}


def alike(case: Case, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """The seconds that are left: nginx's clock may be a little behind."""
    near(found, wanted, ["ratelimit-reset", "retry-after"], 2)
    found["headers"].sort()
