"""What mtls-auth decides, at random (test_decisions_random.py).

What OpenSSL says of a certificate the judge is told: by whom it is issued, and its fingerprint.
"""

import hashlib
import random
from functools import cache
from typing import Any

from decisions_words import Case, Config, Handshake, Seen, World
from tls_clients import OTHER_ID, ROOT_ID
from tls_clients import World as Clients

DECISIONS = {"pass", "respond", "unknown"}
NAMES = ["a.example", "b.example", "a.exampl"]


@cache
def _clients() -> Clients:
    return Clients()


def prepare(world: World) -> None:
    """CAs, one of which issues nothing that a configuration takes."""
    for at, pair in ((ROOT_ID, _clients().root), (OTHER_ID, _clients().other)):
        world.client.must(200, "PUT", f"/ca_certificates/{at}", {"cert": pair.cert})


def configuration(draw: random.Random, world: World) -> Config:
    ids = draw.choice([[ROOT_ID], [ROOT_ID, OTHER_ID], [OTHER_ID]])
    return {"ca_certificates": ids, "depth": draw.choice([0, 4])}


def request(draw: random.Random, case: Case, world: World) -> None:
    clients = _clients()
    trusted = set(case.config["ca_certificates"])
    kind = draw.choice(["good", "deep", "foreign", "own", "none", "plain"])
    host = draw.choice(NAMES)
    case.headers = [pair for pair in case.headers if pair[0] != "Host"] + [("Host", host)]
    if kind == "plain":
        return
    name = draw.choice([host, host, host, *NAMES, None])
    pair = None if kind == "none" else getattr(clients, kind)
    case.handshake = Handshake(name, pair)
    is_trusted = {
        "good": ROOT_ID in trusted,
        "deep": ROOT_ID in trusted and case.config["depth"] > 0,
        "foreign": OTHER_ID in trusted,
    }
    if pair:
        case.notes = {
            "subject": f"CN={kind} client",
            "fingerprint": hashlib.sha256(pair.der).hexdigest(),
            "is_trusted": is_trusted.get(kind, False),
        }


def is_unknown(case: Case) -> bool:
    """Unless the host is not the handshake's."""
    name = case.handshake.name if case.handshake else None
    return name is None or [name] == case.header("Host")


def own(case: Case, seen: Seen) -> dict[str, Any]:
    """What there is to know of the certificate."""
    return case.notes
