"""What request-size-limiting decides, at random (test_decisions_random.py)."""

import random

from decisions_words import Case, Config, World, flag


def configuration(draw: random.Random, world: World) -> Config:
    config = {"allowed_payload_size": draw.choice([0, 3, 100]), "size_unit": "bytes"}
    return config | {"require_content_length": flag(draw)}


def request(draw: random.Random, case: Case, world: World) -> None:
    """With a body: of a length that is told, or not."""
    if draw.random() < 0.8:
        case.method, case.body = "POST", b"x" * draw.choice([0, 2, 3, 4, 100, 101])
        case.is_chunked = flag(draw)
        if draw.random() < 0.2:
            case.headers.append(("Expect", "100-Continue"))
