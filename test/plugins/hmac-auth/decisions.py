"""What hmac-auth decides, at random (test_decisions_random.py)."""

import hashlib
import hmac
import random
import time
from base64 import b64encode
from email.utils import formatdate

from decisions_words import SECRET, Case, Config, World, authenticator, post, somebody

KIND, KEY = "hmacauth_credentials", "username"
DECISIONS = {"pass", "respond", "body"}


def credentials(name: str) -> list[Config]:
    return [] if name == "ghost" else [{"username": name, "secret": SECRET}]


def configuration(draw: random.Random, world: World) -> Config:
    config = authenticator(draw, world) | {"enforce_headers": draw.choice([[], ["x-date"]])}
    config |= {"clock_skew": 3000}  # longer than all of it takes
    config |= {"validate_request_body": world.nth % 3 != 0}
    return config | {"algorithms": draw.choice([["hmac-sha256"], ["hmac-sha1", "hmac-sha256"]])}


def request(draw: random.Random, case: Case, world: World) -> None:
    if draw.random() < 0.6:
        post(draw, case, [("a", draw.choice(["", "1"]))])
    if draw.random() < 0.8:
        right = draw.choice([case.body or b""] * 5 + [b"x"])
        digest = b64encode(hashlib.sha256(right).digest()).decode()
        case.headers.append(("Digest", f"SHA-256={digest}"))
    if draw.random() < 0.85:
        _sign(draw, case)


def _sign(draw: random.Random, case: Case) -> None:
    name = somebody(draw)
    date = formatdate(time.time() + draw.choice([0, 0, 0, 9000]), usegmt=True)
    secret = draw.choice([SECRET] * 4 + ["wrong"])
    digest, algorithm = draw.choice([(hashlib.sha256, "hmac-sha256"), (hashlib.sha1, "hmac-sha1")])
    covered = draw.choice(["x-date", "x-date", "host x-date", "x-other"])
    values = {"x-date": f"x-date: {date}", "host": "host: h", "x-other": "x-other:"}
    text = "\n".join(values[one] for one in covered.split())
    code = b64encode(hmac.new(secret.encode(), text.encode(), digest).digest()).decode()
    value = (
        f'hmac username="{name}", algorithm="{algorithm}", headers="{covered}", signature="{code}"'
    )
    case.headers += draw.choice([[("X-Date", date)]] * 8 + [[("X-Date", "yesterday")], []])
    place = draw.choice(["Authorization", "Proxy-Authorization"])
    case.headers.append((place, draw.choice([value] * 8 + [value[:-9], "hmac x"])))
