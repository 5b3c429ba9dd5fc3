"""The plugins that ask who it is: how each is proven to, what it keeps, and a route behind some."""

import hashlib
import hmac
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from time import time
from typing import Any

import jwt
from admin_client import uuid

from sluice import ROOT, proxying
from upstream import Upstream
from wire import Pairs

JSON = {"Accept": "application/json"}
SECRET = "a secret that is long enough for an HMAC of SHA-256"
ALICE, BOB = uuid(1), uuid(2)


def basic(name: str, secret: str) -> Pairs:
    """Credentials of basic-auth."""
    return {"Authorization": "Basic " + b64encode(f"{name}:{secret}".encode()).decode()}


def signature(name: str, secret: str) -> Pairs:
    """Credentials of hmac-auth, at the place that no other plugin looks at."""
    date = formatdate(time(), usegmt=True)
    digest = hmac.new(secret.encode(), f"x-date: {date}".encode(), hashlib.sha256).digest()
    text = (
        f'hmac username="{name}", algorithm="hmac-sha256", headers="x-date", '
        f'signature="{b64encode(digest).decode()}"'
    )
    return {"X-Date": date, "Proxy-Authorization": text}


@dataclass(frozen=True)
class Authenticator:
    """How a plugin is proven to, and where it keeps what proves it."""

    name: str
    collection: str
    credential: Callable[[str], dict[str, Any]]
    proof: Callable[[str], Pairs]
    wrong: Pairs
    hidden: str | None
    challenge: str
    identifier: str | None = None


ALL = [
    Authenticator(
        "key-auth",
        "keyauth_credentials",
        lambda who: {"id": uuid(7 if who == "alice" else 8), "key": f"{who}-key"},
        lambda who: {"apikey": f"{who}-key"},
        {"apikey": "wrong"},
        "apikey",
        "Key",
        uuid(7),
    ),
    Authenticator(
        "basic-auth",
        "basicauth_credentials",
        lambda who: {"username": who, "password": SECRET},
        lambda who: basic(who, SECRET),
        basic("alice", "wrong"),
        "Authorization",
        'Basic realm="service"',
        "alice",
    ),
    Authenticator(
        "hmac-auth",
        "hmacauth_credentials",
        lambda who: {"username": who, "secret": SECRET},
        lambda who: signature(who, SECRET),
        signature("alice", "wrong"),
        "Proxy-Authorization",
        "hmac",
        "alice",
    ),
    Authenticator(
        "jwt",
        "jwt_secrets",
        lambda who: {"key": who, "secret": SECRET},
        lambda who: {"Cookie": "jwt=" + jwt.encode({"iss": who}, SECRET)},
        {"Cookie": "jwt=" + jwt.encode({"iss": "alice"}, SECRET[::-1])},
        None,
        "Bearer",
        "alice",
    ),
]

NAMES = [plugin.name for plugin in ALL]
# mtls-auth is not among them: it names no consumer, so it has neither a realm, nor an anonymous
# consumer, nor an identity to send upstream (test/plugins/mtls-auth has what it does).


def identifying() -> set[str]:
    """The bundled plugins whose handler says that they name the consumer."""
    says = re.compile(r"^ +identifies_consumer = true,$", re.MULTILINE)
    return {
        path.parent.name
        for path in (ROOT / "plugins").glob("*/handler.lua")
        if says.search(path.read_text())
    }


def named(name: str) -> Authenticator:
    """One of them."""
    return next(plugin for plugin in ALL if plugin.name == name)


def config_of(name: str, **config: Any) -> dict[str, Any]:
    """A configuration of a plugin, in which none looks where another one does."""
    if name == "jwt":
        config |= {"cookie_names": ["jwt"], "header_names": [], "uri_param_names": []}
    return {"name": name, "config": config}


def protected(upstream: Upstream, *plugins: dict[str, Any]) -> dict[str, Any]:
    """A route behind plugins; alice and bob, who have a credential of each."""
    consumers: list[dict[str, Any]] = [
        {"username": who, "id": number, "custom_id": f"{who}-custom"}
        | {plugin.collection: [plugin.credential(who)] for plugin in ALL}
        for who, number in (("alice", ALICE), ("bob", BOB))
    ]
    consumers += [{"username": f"anonymous-{name}"} for name in (*NAMES, "all")]
    return proxying(upstream) | {"consumers": consumers, "plugins": list(plugins)}


def seen(upstream: Upstream) -> dict[str, str | None]:
    """Who the upstream was told that asks."""
    headers = upstream.last.headers
    names = (
        "X-Consumer-ID",
        "X-Consumer-Username",
        "X-Consumer-Custom-ID",
        "X-Credential-Identifier",
        "X-Anonymous-Consumer",
    )
    assert all(len(headers.all(name)) <= 1 for name in names)
    return {name: headers.get(name) for name in names}
