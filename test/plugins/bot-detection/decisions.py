"""What bot-detection decides, at random (test_decisions_random.py)."""

import random

from decisions_words import Case, Config, World, some

PATTERNS = ["^a", "bot", "(?i)CURL", "[0-9]$", "a|b", "^$"]


def configuration(draw: random.Random, world: World) -> Config:
    return {"allow": some(draw, PATTERNS), "deny": some(draw, PATTERNS)}


def request(draw: random.Random, case: Case, world: World) -> None:
    """The lines User-Agent that each may have are all that count."""
