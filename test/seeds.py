"""Seeds of random tests: one number in the repository, and of it one for each name."""

import os
import re
from pathlib import Path


def seed_of(name: str) -> int:
    """The number of that name, made of test/seed.h; SEED of the environment takes its place."""
    given = os.environ.get("SEED")
    if given:
        return int(given)
    found = re.search(r"#define TEST_SEED +(\d+)", Path(__file__).with_name("seed.h").read_text())
    assert found, "test/seed.h has no seed"
    seed = int(found[1])
    for byte in name.encode():
        seed = (seed * 31 + byte) % 2147483647
    return seed
