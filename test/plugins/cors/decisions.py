"""What cors decides, at random (test_decisions_random.py)."""

import random

from decisions_words import WORDS, Case, Config, World, flag, some

ORIGINS = ["http://a.com", "https://b.org:443", "null", "http://xa.com", "a", "https://a.com:8443"]
ALLOWED = ["http://a.com", "https://b.org", ".*\\.?a\\.com", "*", "null", "https://a\\.com:.*"]


def configuration(draw: random.Random, world: World) -> Config:
    config: Config = {"credentials": flag(draw), "private_network": flag(draw)}
    config |= {"preflight_continue": draw.random() < 0.2, "origins": some(draw, ALLOWED)}
    config |= draw.choice([{}, {"headers": ["X-A", "X-C"]}]) | draw.choice([{}, {"max_age": 9}])
    return config | {"exposed_headers": some(draw, WORDS[:3]), "methods": ["GET", "PUT"]}


def request(draw: random.Random, case: Case, world: World) -> None:
    case.method = draw.choice(["GET", "OPTIONS"])
    if draw.random() < 0.2:
        return
    case.headers.append(("Origin", draw.choice(ORIGINS)))
    for name, value in [
        ("Access-Control-Request-Method", "PUT"),
        ("Access-Control-Request-Headers", "X-A, X-B"),
        ("Access-Control-Request-Private-Network", draw.choice(["true", "false"])),
    ]:
        if flag(draw):
            case.headers.append((name, value))
