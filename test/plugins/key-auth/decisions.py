"""What key-auth decides, at random (test_decisions_random.py)."""

import random

from decisions_words import Case, Config, World, authenticator, flag, post, some, somebody

KIND, KEY = "keyauth_credentials", "key"
DECISIONS = {"pass", "respond", "body"}
NAMES = ["X_Close", "k"]


def credentials(name: str) -> list[Config]:
    return [] if name == "ghost" else [{"key": f"{name}-key"}]


def configuration(draw: random.Random, world: World) -> Config:
    config = authenticator(draw, world) | {"key_names": NAMES, "run_on_preflight": flag(draw)}
    config |= {"key_in_header": draw.random() < 0.8, "key_in_query": flag(draw)}
    return config | {"key_in_body": world.nth % 3 != 0}


def request(draw: random.Random, case: Case, world: World) -> None:
    case.method = draw.choice(["GET", "OPTIONS"])
    key = f"{somebody(draw)}-key"
    for place in some(draw, ["header", "query", "body"]):
        if place == "header":
            case.headers.append((draw.choice(["X-Close", "k", "K"]), key))
        elif place == "query":
            more = draw.choice([f"k={key}", f"X_Close={key}&b", "k", f"%6b={key}"])
            case.query = f"{case.query}&{more}" if case.query else more
        elif case.body is None:
            fields = [("a", "1"), ("k", key), ("X_Close", key), ("k", "")]
            post(draw, case, draw.sample(fields, draw.randint(0, 3)))
