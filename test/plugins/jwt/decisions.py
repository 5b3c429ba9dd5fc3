"""What jwt decides, at random (test_decisions_random.py)."""

import random
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from decisions_words import SECRET, Case, Config, Seen, World, authenticator, flag, somebody

KIND, KEY = "jwt_secrets", "key"
DECISIONS = {"pass", "respond", "unknown"}

SECRETS = ["HS256", "HS384", "HS512"]
CURVES = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}
RSA = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]
ALGORITHMS = [*SECRETS, *RSA, *CURVES, "EdDSA"]


@dataclass
class Token:
    """One, and what the test knows of it."""

    text: str
    is_right: bool
    is_public: bool
    """It is for a public key, which only nginx can ask."""


@cache
def _keys(algorithm: str) -> list[Any]:
    """The right one, and another; those of RSA serve all of its algorithms."""
    if algorithm in RSA[1:]:
        return _keys(RSA[0])
    if algorithm in CURVES:
        return [ec.generate_private_key(CURVES[algorithm]()) for _ in range(2)]
    if algorithm == "EdDSA":
        return [ed25519.Ed25519PrivateKey.generate() for _ in range(2)]
    return [rsa.generate_private_key(65537, 2048) for _ in range(2)]


def _public(algorithm: str) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    key = _keys(algorithm)[0].public_key()
    return key.public_bytes(serialization.Encoding.PEM, form).decode()


def credentials(name: str) -> list[Config]:
    """One of each algorithm; the first has the consumer's name."""
    if name == "ghost":
        return []
    made: list[Config] = [{"key": name, "secret": SECRET}]
    for algorithm in ALGORITHMS[1:]:
        is_secret = algorithm in SECRETS
        of_key = {"secret": SECRET} if is_secret else {"rsa_public_key": _public(algorithm)}
        made.append({"key": f"{name} {algorithm}", "algorithm": algorithm} | of_key)
    return made


def configuration(draw: random.Random, world: World) -> Config:
    config = authenticator(draw, world)
    del config["hide_credentials"]
    claims: list[list[str]] = [[], ["exp"], ["exp", "nbf"]]
    config |= {"claims_to_verify": draw.choice(claims)}
    if flag(draw):
        config["maximum_expiration"] = 3600
        if "exp" not in config["claims_to_verify"]:
            del config["claims_to_verify"]  # an empty one is refused, as by Kong
    return config | {"run_on_preflight": flag(draw), "cookie_names": ["c"]}


def _token(draw: random.Random) -> Token:
    wanted = draw.choice([*SECRETS, *ALGORITHMS])
    name = draw.choice(["alice", "bob", "carol", somebody(draw)])
    issuer = name if wanted == "HS256" else f"{name} {wanted}"
    used = wanted if draw.random() < 0.9 else draw.choice(ALGORITHMS)
    now = int(time.time())
    claims: dict[str, Any] = {"iss": issuer} if draw.random() < 0.9 else {"sub": issuer}
    claims |= draw.choice([{}, {"exp": now + 2000}, {"exp": now + 9000}, {"exp": now - 9000}])
    claims |= draw.choice([{}, {"nbf": now - 9000}, {"nbf": now + 9000}])
    if draw.random() < 0.1:
        claims["exp"] = "x"
    is_right = draw.random() < 0.7
    key: Any = SECRET if is_right else SECRET + "x"
    if used not in SECRETS:
        key = _keys(used)[0 if is_right else 1]
    text = jwt.encode(claims, key, used)
    if draw.random() < 0.2:
        is_right = False
        parts = text.split(".")
        other = jwt.encode({"iss": "other"}, key, used).split(".")[2]
        bad = [text[:-3], text + ".x", "a.b.c", parts[0]] if used in SECRETS else ["a.b.c"]
        text = draw.choice([*bad, ".".join([*parts[:2], other])])
        if text == "a.b.c":
            return Token(text, False, False)
    is_known = "iss" in claims and name not in ("nobody", "ghost")
    return Token(text, is_right, is_known and used == wanted and used not in SECRETS)


def request(draw: random.Random, case: Case, world: World) -> None:
    case.method = draw.choice(["GET", "OPTIONS"])
    if draw.random() < 0.1:
        return
    token = _token(draw)
    case.notes["token"] = token
    places = draw.choice([["header"], ["cookie"], ["query"], ["header", "cookie"]])
    for place in places:
        if place == "header":
            case.headers.append(("Authorization", f"Bearer {token.text}"))
        elif place == "cookie":
            case.headers.append(("Cookie", f"c={token.text}"))
        else:
            case.query = f"jwt={token.text}"


def is_unknown(case: Case) -> bool:
    """Where it comes to a signature by a public key."""
    token = case.notes.get("token")
    is_exempt = case.method == "OPTIONS" and not case.config["run_on_preflight"]
    return token is not None and token.is_public and not is_exempt


def own(case: Case, seen: Seen) -> dict[str, Any]:
    """Whether it is right."""
    token = case.notes.get("token")
    return {"is_right": token is not None and token.is_right}
