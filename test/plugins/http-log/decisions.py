"""What http-log decides, at random: every request passes, and its entry is sent."""

import random

from decisions_words import Case, Config, Done, World
from log_server import LATE

from sluice import Gateway
from wire import wait_until

DECISIONS = {"pass"}


def configuration(draw: random.Random, world: World) -> Config:
    queue = {"max_batch_size": draw.choice([1, 50]), "max_coalescing_delay": 0.1}
    method = draw.choice(["POST", "PUT"])
    place = f"{world.log.url}/{world.route}"
    return {"http_endpoint": place, "method": method, "queue": queue} | draw.choice(
        [{}, {"headers": {"X-A": "1"}}]
    )


def request(draw: random.Random, case: Case, world: World) -> None:
    """Any will do."""


def written(done: list[Done], world: World, running: Gateway) -> None:
    """An entry of each request, once."""
    wanted = sorted(str(one.case.number) for one in done)

    def read() -> bool:
        entries = list(world.log.entries)
        return sorted(one["request"]["headers"]["x-case"] for one in entries) == wanted

    wait_until(read, "an entry of each request", LATE)
