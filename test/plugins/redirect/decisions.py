"""What redirect decides, at random (test_decisions_random.py)."""

import random

from decisions_words import Case, Config, World, flag

DECISIONS = {"respond"}


def configuration(draw: random.Random, world: World) -> Config:
    place = draw.choice(["https://a.com", "http://A.com:80/b?c#d", "app://x"])
    config = {"location": place, "keep_incoming_path": flag(draw)}
    return config | draw.choice([{}, {"status_code": 308}])


def request(draw: random.Random, case: Case, world: World) -> None:
    """The target that each has is all that counts."""
