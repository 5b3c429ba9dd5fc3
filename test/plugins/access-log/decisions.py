"""What access-log decides, at random: every request passes, and is in the log or not."""

import json
import random

from decisions_words import Case, Config, Done, World, flag

from sluice import Gateway
from wire import wait_until

DECISIONS = {"pass"}


def configuration(draw: random.Random, world: World) -> Config:
    return {"sample": [0, 0.5, 1][world.nth % 3], "errors": flag(draw)}


def request(draw: random.Random, case: Case, world: World) -> None:
    """Any will do."""


def _sample(done: Done) -> float:
    """Of all requests, as it was decided."""
    return done.answer["sample"]["share"] / 2**31


def _id(done: Done) -> str:
    return done.seen.reply.headers.get("x-kong-request-id") or ""


def written(done: list[Done], world: World, running: Gateway) -> None:
    """With a sample of 1 each request is in the log, with one of 0 none; none is an error."""
    every = {_id(one) for one in done if _sample(one) == 1}
    none = {_id(one) for one in done if _sample(one) == 0}

    def read() -> set[str]:
        lines = running.access_log().splitlines()
        return {json.loads(line)["request_id"] for line in lines}

    wait_until(lambda: every <= read(), "all requests of a sample of 1")
    assert every
    assert none
    assert not none & read()
