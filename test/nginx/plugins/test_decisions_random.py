"""What plugins decide with nginx and without, of the same configurations and heads at random: each
plugin that decides by the head alone. What others decide (rate-limiting by its counters, mtls-auth
by the handshake) nobody knows without nginx, and the judge says so: test/unit/decisions_spec.lua.
"""

import hashlib
import hmac
import json
import os
import random
import subprocess
import time
from base64 import b64encode
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

import jwt
from admin_client import Client, uuid
from seeds import seed_of

from sluice import ROOT, Gateway
from upstream import Upstream
from wire import Reply

SEED = seed_of("decisions_random")
CONFIGURATIONS = 6
HEADS = 12

Heads = list[tuple[str, str]]

JSON = [("Accept", "application/json")]
WORDS = ["a", "b", "X-Close", "x_close", "Googlebot", "bot/1", "curl/8", "Spider", "%41", "", "="]
TARGETS = ["a", "b/c", "%41", "~", "'\"", "X-Close", "x-close=1", "a=1&b", "?", "%25", "{}"]
ADDRESSES = ["127.0.0.1", "10.1.2.3", "10.1.2.4", "11.0.0.1", "::1", "2001:db8::1", "2001:db9::"]
RANGES = ["127.0.0.0/8", "10.1.2.3", "10.0.0.0/9", "::/0", "2001:db8::/32", "0.0.0.0/1"]
PATTERNS = ["^a", "bot", "(?i)CURL", "[0-9]$", "a|b", "^$"]
ORIGINS = ["http://a.com", "https://b.org:443", "null", "http://xa.com", "a", "https://a.com:8443"]
ALLOWED = ["http://a.com", "https://b.org", ".*\\.?a\\.com", "*", "null", "https://a\\.com:.*"]
GROUPS = ["g1", "g2", "g3"]
SECRET = "a secret that is long enough for an HMAC, that of SHA-512 too: 64 bytes"

# Their names, their groups; "ghost" is the anonymous one.
PEOPLE = {"alice": ["g1"], "bob": ["g2", "g3"], "carol": [], "ghost": ["g3"]}
IDS = {name: uuid(number) for number, name in enumerate(PEOPLE, 1)}
KINDS = {
    "key-auth": ("keyauth_credentials", "key-auth", "key"),
    "basic-auth": ("basicauth_credentials", "basic-auth", "username"),
    "jwt": ("jwt_secrets", "jwt", "key"),
    "hmac-auth": ("hmacauth_credentials", "hmac-auth", "username"),
}


def some(draw: random.Random, values: list[str], least: int = 0) -> list[str]:
    """A few of them."""
    return draw.choices(values, k=draw.randint(least, 3))


def flag(draw: random.Random) -> bool:
    """One of the two."""
    return draw.random() < 0.5


def authenticator(draw: random.Random) -> dict[str, Any]:
    """What all of them have."""
    config = draw.choice([{}, {"anonymous": "ghost"}, {"anonymous": IDS["ghost"]}])
    return config | {"realm": draw.choice(["here", 'a "b"']), "hide_credentials": flag(draw)}


def configuration(draw: random.Random, plugin: str) -> dict[str, Any]:
    """One of a plugin."""
    config: dict[str, Any] = {}
    match plugin:
        case "request-termination":
            config = {"status_code": draw.choice([200, 404, 418, 503])}
            said = draw.choice([{}, {"message": "a/b"}, {"body": "x"}])
            config |= said | draw.choice([{}, {"trigger": "X-Close"}])
        case "ip-restriction":
            config = {name: some(draw, RANGES, 1) for name in draw.choice([["allow"], ["deny"]])}
            config |= draw.choice([{}, {"status": 451}, {"message": "no"}])
        case "bot-detection":
            config = {"allow": some(draw, PATTERNS), "deny": some(draw, PATTERNS)}
        case "redirect":
            place = draw.choice(["https://a.com", "http://A.com:80/b?c#d", "app://x"])
            config = {"location": place, "keep_incoming_path": flag(draw)}
        case "cors":
            config = {"credentials": flag(draw), "private_network": flag(draw)}
            config |= {"preflight_continue": draw.random() < 0.2, "origins": some(draw, ALLOWED)}
            config |= {"exposed_headers": some(draw, WORDS[:3]), "methods": ["GET", "PUT"]}
        case "correlation-id":
            config = {"header_name": "X-Close", "echo_downstream": flag(draw)}
        case "request-size-limiting":
            config = {"allowed_payload_size": draw.choice([0, 3, 100]), "size_unit": "bytes"}
            config |= {"require_content_length": flag(draw)}
        case "acl":
            config = {draw.choice(["allow", "deny"]): some(draw, GROUPS, 1)}
            config |= {"always_use_authenticated_groups": flag(draw)}
        case "key-auth":
            config = authenticator(draw) | {"key_in_query": flag(draw), "key_in_body": False}
            config |= {"key_names": ["X_Close", "k"], "run_on_preflight": flag(draw)}
        case "basic-auth":
            config = authenticator(draw)
        case "hmac-auth":
            config = authenticator(draw) | {"enforce_headers": draw.choice([[], ["x-date"]])}
            config |= {"algorithms": draw.choice([["hmac-sha256"], ["hmac-sha1", "hmac-sha256"]])}
        case "jwt":
            config = authenticator(draw)
            del config["hide_credentials"]
            config |= {"claims_to_verify": draw.choice([[], ["exp"], ["exp", "nbf"]])}
            config |= {"run_on_preflight": flag(draw), "cookie_names": ["c"]}
    return config


AUTHENTICATES = """
local said = kong.request.get_header("X-Groups")
if said then
    local groups = {}
    for name in said:gmatch("[^,]+") do
        groups[#groups + 1] = name
    end
    kong.ctx.shared.authenticated_groups = groups
end
"""

PLUGINS = [
    "access-log",
    "acl",
    "basic-auth",
    "bot-detection",
    "correlation-id",
    "cors",
    "hmac-auth",
    "ip-restriction",
    "jwt",
    "key-auth",
    "prometheus",
    "redirect",
    "request-size-limiting",
    "request-termination",
]


@dataclass
class Case:
    """A head, and what it is asked of."""

    plugin: str
    config: dict[str, Any]
    target: str
    query: str
    headers: Heads
    address: str
    method: str = "GET"
    body: bytes | None = None
    who: str | None = None
    """Whose key another plugin has found: of a plugin that asks who it is."""
    groups: list[str] | None = None
    """Those that a plugin in Lua has authenticated."""

    def given(self) -> dict[str, Any]:
        """The same without nginx."""
        length = [] if self.body is None else [("Content-Length", str(len(self.body)))]
        return {
            "plugin": self.plugin,
            "config": self.config,
            "given": {
                "method": self.method,
                "path": self.target,
                "query": self.query or False,
                "address": self.address,
                "headers": [text for pair in self.headers + length for text in pair],
                "consumer": IDS[self.who] if self.who else False,
                "credential": IDS[self.who] if self.who not in (None, "ghost") else False,
                "acls": PEOPLE.get(self.who or "", []),
                "authenticated_groups": False if self.groups is None else self.groups,
                "now": int(time.time()),
                "head": True,
            },
        }


def basic(draw: random.Random, name: str) -> str:
    """A header of basic-auth, right or not."""
    text = draw.choice([f"{name}:{name}'s", f"{name}:wrong", name, f":{name}:{name}'s", ""])
    return (
        draw.choice(["Basic ", "basic  ", "xBasic ", "Bearer "]) + b64encode(text.encode()).decode()
    )


def token(draw: random.Random, name: str) -> str:
    """A token, right or not."""
    now = int(time.time())
    claims: dict[str, Any] = {"iss": name} if draw.random() < 0.9 else {"sub": name}
    claims |= draw.choice([{}, {"exp": now + 9000}, {"exp": now - 9000}, {"exp": "x"}])
    claims |= draw.choice([{}, {"nbf": now - 9000}, {"nbf": now + 9000}])
    made = jwt.encode(
        claims, draw.choice([SECRET, SECRET, SECRET + "x"]), draw.choice(["HS256", "HS512"])
    )
    return draw.choice([made] * 6 + [made[:-3], made + ".x", "a.b.c", made.split(".")[0]])


def signed(draw: random.Random, name: str) -> Heads:
    """Headers of hmac-auth, right or not."""
    date = formatdate(time.time() + draw.choice([0, 0, 0, 9000]), usegmt=True)
    secret = draw.choice([SECRET, SECRET, "wrong"])
    digest, algorithm = draw.choice([(hashlib.sha256, "hmac-sha256"), (hashlib.sha1, "hmac-sha1")])
    covered = draw.choice(["x-date", "x-date", "host x-date", "x-other"])
    values = {"x-date": f"x-date: {date}", "host": "host: h", "x-other": "x-other:"}
    text = "\n".join(values[one] for one in covered.split())
    code = b64encode(hmac.new(secret.encode(), text.encode(), digest).digest()).decode()
    value = (
        f'hmac username="{name}", algorithm="{algorithm}", headers="{covered}", signature="{code}"'
    )
    place = draw.choice(["Authorization", "Proxy-Authorization"])
    dates = draw.choice([[("X-Date", date)]] * 5 + [[("X-Date", "yesterday")], []])
    return [*dates, (place, draw.choice([value] * 8 + [value[:-9], "hmac x"]))]


def proofs(draw: random.Random, plugin: str) -> Heads:
    """What a plugin asks for, or not."""
    name = draw.choice([*PEOPLE, "nobody"])
    if draw.random() < 0.2:
        return []
    match plugin:
        case "basic-auth":
            return [(draw.choice(["Authorization", "Proxy-Authorization"]), basic(draw, name))]
        case "jwt":
            text = token(draw, name)
            pairs = [("Authorization", f"Bearer {text}"), ("Cookie", f"c={text}")]
            return draw.choice([pairs[:1], pairs[1:], pairs])
        case "hmac-auth":
            return signed(draw, name)
        case "key-auth":
            return [(draw.choice(["X-Close", "k", "K"]), f"{name}-key")]
        case "cors":
            asked = [("Access-Control-Request-Method", "PUT")] if flag(draw) else []
            asked += [("Access-Control-Request-Headers", "X-A, X-B")] if flag(draw) else []
            asked += [("Access-Control-Request-Private-Network", "true")] if flag(draw) else []
            return [("Origin", draw.choice(ORIGINS)), *asked]
        case _:
            return []


def case(draw: random.Random, path: str, plugin: str, config: dict[str, Any]) -> Case:
    """A head at random."""
    query = draw.choice(["", "&".join(some(draw, TARGETS))])
    address = draw.choice(ADDRESSES)
    headers = [*JSON, ("Host", "h"), ("X-Forwarded-For", address), *proofs(draw, plugin)]
    for name in some(draw, ["User-Agent", "user-agent", "X-Close", "X_Close", "x-closed"]):
        headers.append((name, draw.choice(WORDS)))
    found = Case(plugin, config, path, query, headers, address)
    if plugin in ("cors", "key-auth", "jwt"):
        found.method = draw.choice(["GET", "OPTIONS"])
    if plugin == "request-size-limiting" and flag(draw):
        found.method, found.body = "POST", b"x" * draw.choice([0, 2, 3, 4, 101])
    if plugin == "acl":
        found.who = draw.choice([*PEOPLE])
        found.headers += [("apikey", f"{found.who}-key")] if found.who != "ghost" else []
        found.groups = draw.choice([None, some(draw, GROUPS)])
        found.headers += [] if found.groups is None else [("X-Groups", ",".join(found.groups))]
    return found


def told(headers: dict[str, str]) -> dict[str, str]:
    """What of a response's head plugins decide."""
    lowered = {name.lower(): value for name, value in headers.items()}
    names = ("location", "www-authenticate", "x-close")
    return {
        name: value
        for name, value in lowered.items()
        if name in names or name.startswith("access-control-")
    }


def outcome(reply: Reply, is_plain: bool, username: str | None) -> dict[str, Any]:
    """What nginx has answered."""
    found: dict[str, Any] = {"headers": told(dict(reply.headers))}
    if reply.headers.get("X-Kong-Upstream-Latency") is not None:
        return found | {"decision": "pass", "username": username}
    text = reply.body.decode() if is_plain else reply.json()["message"]
    return found | {"decision": "respond", "status": reply.status, "message": text}


def expected(answer: dict[str, Any]) -> dict[str, Any]:
    """The same of what was decided without."""
    headers = dict(answer["headers"] or {})
    if answer.get("challenge"):
        headers["WWW-Authenticate"] = answer["challenge"]
    found: dict[str, Any] = {"headers": told(headers), "decision": answer["decision"]}
    if answer["decision"] != "respond":
        return found | {"username": answer.get("username")}
    return found | {name: answer[name] for name in ("status", "message")}


def judged(cases: list[Case], people: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is decided of each without nginx."""
    path = "./?.lua;./?/init.lua;./lib/?.lua;./lib/?/init.lua;;"
    done = subprocess.run(
        ["luajit", "test/nginx/support/decisions_oracle.lua"],
        input="\n".join(json.dumps(one) for one in [people, *(one.given() for one in cases)]),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"LUA_PATH": path},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def make_people(client: Client) -> list[dict[str, Any]]:
    """Consumers with a credential of each kind; as the judge wants them."""
    people = []
    for name, groups in PEOPLE.items():
        client.must(200, "PUT", f"/consumers/{IDS[name]}", {"username": name})
        for group in groups:
            client.must(201, "POST", f"/consumers/{name}/acls", {"group": group})
        values = {
            "key-auth": {"key": f"{name}-key"},
            "basic-auth": {"username": name, "password": f"{name}'s"},
            "jwt": {"key": name, "secret": SECRET},
            "hmac-auth": {"username": name, "secret": SECRET},
        }
        credentials = []
        for plugin, (kind, collection, key) in KINDS.items():
            if name == "ghost":
                continue
            made = client.must(201, "POST", f"/consumers/{name}/{collection}", values[plugin])
            one = {"plugin": plugin, "kind": kind, "key": made[key], "entity": made}
            credentials.append(one)
        people.append({"id": IDS[name], "username": name, "credentials": credentials})
    return people


def compare(one: Case, answer: dict[str, Any], running: Gateway, upstream: Upstream) -> None:
    """What nginx does, beside what was decided."""
    target = one.target + ("?" + one.query if one.query else "")
    reply = running.ask(target, one.method, one.headers, one.body)
    seen = upstream.requests[-1].headers.get("X-Consumer-Username") if upstream.requests else None
    found = outcome(reply, answer.get("type") is not None, seen)
    wanted = expected(answer)
    if one.plugin not in KINDS:
        found.pop("username", None)
        wanted.pop("username", None)
    if answer["decision"] == "unknown":  # a new id: only nginx makes one
        assert one.plugin == "correlation-id"
        assert found.pop("decision") == "pass"
        assert ("x-close" in found["headers"]) == one.config["echo_downstream"]
        return
    assert found == wanted, f"SEED={SEED} {one}"


def test_nginx_and_the_judge_agree(upstream: Upstream) -> None:
    draw = random.Random(SEED)
    cases = []
    with Gateway(None, trusted_ips=["127.0.0.1"], real_ip_header="X-Forwarded-For") as running:
        client = Client(running)
        people = make_people(client)
        client.must(201, "POST", "/services", {"name": "s", "url": upstream.url})
        for number, plugin in enumerate(PLUGINS * CONFIGURATIONS):
            route = {"name": f"r{number}", "paths": [f"/{number}/"]}
            client.must(201, "POST", "/services/s/routes", route)
            value = {"name": plugin, "config": configuration(draw, plugin)}
            made = client.must(201, "POST", f"/routes/r{number}/plugins", value)
            if plugin == "acl":
                found = {"name": "key-auth", "config": {"anonymous": "ghost"}}
                client.must(201, "POST", f"/routes/r{number}/plugins", found)
                found = {"name": "pre-function", "config": {"access": [AUTHENTICATES]}}
                client.must(201, "POST", f"/routes/r{number}/plugins", found)
            for _ in range(HEADS):
                cases.append(case(draw, f"/{number}/a", plugin, made["config"]))
        answers = judged(cases, people)
        for one, answer in zip(cases, answers, strict=True):
            compare(one, answer, running, upstream)
    assert {answer["decision"] for answer in answers} == {"pass", "respond", "unknown"}


def test_each_decision_is_here_or_unknown() -> None:
    deciding = {path.parent.name for path in (ROOT / "plugins").glob("*/sluice_*.c")}
    # a log's target; counters; the handshake
    assert deciding - {*PLUGINS} == {"file-log", "http-log", "mtls-auth", "rate-limiting"}
