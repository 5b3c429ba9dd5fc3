"""Asks nginx and the judge the same, and says what differs (test_decisions_random.py,
test_decisions_scopes.py).
"""

import json
import os
import ssl
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from decisions_compared import Answer, found_of, wanted_of
from decisions_plugins import Plugin
from decisions_words import CUSTOM_IDS, IDS, PEOPLE, Case, Seen, World
from log_server import LATE

from certificates import connect, context
from sluice import ROOT, Gateway
from upstream import Upstream
from wire import Stream, Wire, wait_until

People = list[dict[str, Any]]
SETTINGS: dict[str, Any] = {
    "trusted_ips": ["127.0.0.1"],
    "real_ip_header": "X-Forwarded-For",
    "tls": "ssl",
    "ask_client_certificate": True,
    "access_log_format": "json",
}
"""Of the gateway that is asked."""


class Secured(Wire):
    """The client's end of a connection with TLS."""

    def __init__(self, wrapped: ssl.SSLSocket) -> None:
        Stream.__init__(self, wrapped)


def make_people(world: World, every: list[Plugin]) -> People:
    """Consumers with credentials of each kind; as the judge wants them."""
    people = []
    for name, groups in PEOPLE.items():
        value = {"username": name, "custom_id": CUSTOM_IDS.get(name)}
        world.client.must(200, "PUT", f"/consumers/{IDS[name]}", value)
        for group in groups:
            world.client.must(201, "POST", f"/consumers/{name}/acls", {"group": group})
        credentials = []
        for plugin in every:
            for value in plugin.credentials(name):
                path = f"/consumers/{name}/{plugin.name}"
                made = world.client.must(201, "POST", path, value)
                one = {"plugin": plugin.name, "kind": plugin.kind, "key": made[plugin.key]}
                credentials.append(one | {"entity": made})
                world.credentials.setdefault((plugin.name, name), made["id"])
        people.append({"id": IDS[name], "username": name, "credentials": credentials})
    return people


def ask(running: Gateway, case: Case) -> Seen:
    """What nginx answers."""
    now = int(time.time())
    headers, body = case.sent_headers, case.sent_body
    if case.handshake:
        using = context(client=case.handshake.pair)
        with connect(running.tls_port, case.handshake.name, using) as wrapped:
            reply = Secured(wrapped).ask(case.target, case.method, headers, body)
    else:
        reply = running.ask(case.target, case.method, headers, body)
    return Seen(reply, None, now)


def attach(asked: list[tuple[Case, Seen]], upstream: Upstream) -> None:
    """What the upstream has got, to what was asked; each request once at most."""
    for request in upstream.requests:
        seen = asked[int(request.headers.get("x-case") or "-1")][1]
        assert seen.request is None
        seen.request = request


def logged(path: Path, asked: list[tuple[Case, Seen]]) -> dict[int, dict[str, Any]]:
    """The log entry of each request, but of those that are logged elsewhere."""
    wanted = {case.number for case, _ in asked if case.plugin != "file-log"}

    def read() -> dict[int, dict[str, Any]] | None:
        found = [json.loads(line) for line in path.read_text().splitlines()]
        by_case = {int(entry["request"]["headers"]["x-case"]): entry for entry in found}
        return by_case if len(found) >= len(wanted) else None

    entries = wait_until(read, "a log entry of each request", LATE)
    assert set(entries) == wanted
    return entries


def judged(
    people: People, asked: list[tuple[Case, Seen]], by_name: dict[str, Plugin]
) -> list[list[Answer]]:
    """All that the judge says of each: at first, and when it knows more."""
    lines = [json.dumps(people)]
    for case, seen in asked:
        own = by_name[case.plugin].own(case, seen)
        one = {"plugin": case.plugin, "config": case.config, "given": case.given(seen.now)}
        lines.append(json.dumps(one | {"own": own}))
    return [json.loads(line) for line in oracle("decisions_oracle", lines)]


def oracle(name: str, lines: Iterable[str]) -> list[str]:
    """What an oracle in Lua beside this file says of these lines."""
    done = subprocess.run(
        ["luajit", f"test/nginx/support/{name}.lua"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"LUA_PATH": "./?.lua;./?/init.lua;./lib/?.lua;./lib/?/init.lua;;"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def differences(
    case: Case, seen: Seen, answers: list[Answer], entry: dict[str, Any], plugin: Plugin
) -> list[str]:
    """Between what nginx has done and what was decided without."""
    said = [answer["decision"] for answer in answers]
    problems = []
    if ("unknown" in said) != plugin.is_unknown(case):
        problems.append(
            f"said: {said}, of what is{'' if plugin.is_unknown(case) else ' not'} unknown"
        )
    if said[-1] in ("pass", "respond"):
        wanted = wanted_of(case, answers[-1])
        found = found_of(seen, answers[-1].get("type") is not None, entry)
        plugin.alike(case, found, wanted)
        for name in sorted(found.keys() | wanted.keys()):
            one, other = found.get(name), wanted.get(name)
            if one != other:
                problems.append(f"{name}: nginx {one!r}, without it {other!r}")
    else:
        problems.append(f"nothing is decided: {answers}")
    return ["\n  ".join([*problems, f"{case}", f"{seen.reply}"])] if problems else []
