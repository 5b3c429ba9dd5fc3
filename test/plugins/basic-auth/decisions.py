"""What basic-auth decides, at random (test_decisions_random.py)."""

import random
from base64 import b64encode

from decisions_words import Case, Config, World, authenticator, somebody

KIND, KEY = "basicauth_credentials", "username"


def credentials(name: str) -> list[Config]:
    return [] if name == "ghost" else [{"username": name, "password": f"{name}'s"}]


def configuration(draw: random.Random, world: World) -> Config:
    return authenticator(draw, world)


def request(draw: random.Random, case: Case, world: World) -> None:
    places = ["Authorization", "Proxy-Authorization"]
    for place in draw.sample(places, draw.choice([0, 1, 1, 2])):
        name = somebody(draw)
        text = draw.choice([f"{name}:{name}'s"] * 3 + [f"{name}:no", name, f":{name}:a", ""])
        kind = draw.choice(["Basic ", "basic  ", "xBasic ", "Bearer "])
        value = kind + b64encode(text.encode()).decode()
        case.headers.append((place, value.strip()))
