"""What ip-restriction decides, at random (test_decisions_random.py)."""

import random

from decisions_words import Case, Config, World, some

RANGES = ["127.0.0.0/8", "10.1.2.3", "10.0.0.0/9", "::/0", "2001:db8::/32", "0.0.0.0/1"]


def configuration(draw: random.Random, world: World) -> Config:
    config: Config = {name: some(draw, RANGES, 1) for name in draw.choice([["allow"], ["deny"]])}
    if draw.random() < 0.2:
        config = {"allow": some(draw, RANGES, 1), "deny": some(draw, RANGES, 1)}
    return config | draw.choice([{}, {"status": 451}, {"message": "no"}])


def request(draw: random.Random, case: Case, world: World) -> None:
    """The address that each has is all that counts."""
