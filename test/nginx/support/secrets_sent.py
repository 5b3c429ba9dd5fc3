"""Secrets in each place of a request that may hold one."""

import base64
import itertools
import re

PARAMETERS = (
    "apikey",
    "APIKey",
    "%61pikey",
    "%61%70%69%6b%65%79",
    "api%6Bey",
    "x_token",
    "X_TOKEN",
    "x%5Ftoken",
    "x%5ftoken",
)


HEADERS = (
    "apikey",
    "ApiKey",
    "X_Token",
    "X-Token",
    "X.Token",
    "x~token",
    "Authorization",
    "AUTHORIZATION",
    "Proxy-Authorization",
    "Cookie",
    "Kong-Admin-Token",
)


class Secrets:
    """Makes secrets, each another, and looks for them."""

    def __init__(self) -> None:
        self.count = itertools.count()
        self.places: dict[str, str] = {}

    def new(self, place: str) -> str:
        """A secret; `place` is where it is put."""
        secret = f"S3cr{next(self.count):04d}t"
        self.places[secret] = place
        return secret

    def found(self, text: str) -> list[str]:
        """The places of those that the text has, or the most of."""
        spelt = set(re.findall(r"S3cr\d{4}t", text))
        for encoded in re.findall(r"[A-Za-z0-9+/]{16,}={0,2}", text):
            whole = encoded[: len(encoded) // 4 * 4]
            decoded = base64.b64decode(whole, validate=False).decode("latin-1")
            spelt |= set(re.findall(r"S3cr\d{4}t", decoded))
        return sorted(self.places[secret] for secret in spelt)


def basic(secret: str) -> str:
    """A secret as the password of Authorization: Basic."""
    return "Basic " + base64.b64encode(f"user:{secret}".encode()).decode()
