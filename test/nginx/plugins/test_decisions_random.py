"""What plugins decide with nginx and without, of the same configurations and requests at random.

What each plugin in C needs for that stands in its folder, test/plugins/<name>/decisions.py.
Compared is what the client gets, what the upstream sees, and what the log has of it.
"""

import json
import os
import random
import ssl
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from admin_client import Client
from decisions_compared import UPSTREAM_HEADERS, Answer, found_of, wanted_of
from decisions_plugins import Plugin, plugins
from decisions_words import CUSTOM_IDS, IDS, PEOPLE, Case, Done, Seen, World, draw_case
from log_server import LATE, LogServer
from seeds import seed_of
from soaks import soak

import guard
from certificates import connect, context
from sluice import ROOT, Gateway
from upstream import Upstream
from wire import Stream, Wire, wait_until

SEED = seed_of("decisions_random")
CONFIGURATIONS = soak(8, 40)
HEADS = soak(24, 60)

People = list[dict[str, Any]]


class Secured(Wire):
    """The client's end of a connection with TLS."""

    def __init__(self, wrapped: ssl.SSLSocket) -> None:
        Stream.__init__(self, wrapped)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that workers of any user reach and write, unlike pytest's own."""
    path = guard.folder("sluice-decisions-")
    path.chmod(0o777)
    yield path
    guard.remove(path)


def test_nginx_and_the_judge_agree(upstream: Upstream, log: LogServer, folder: Path) -> None:
    upstream.answer(200, UPSTREAM_HEADERS, b"up")
    settings: dict[str, Any] = {"trusted_ips": ["127.0.0.1"], "real_ip_header": "X-Forwarded-For"}
    settings |= {"tls": "ssl", "ask_client_certificate": True, "access_log_format": "json"}
    with Gateway(None, **settings) as running:
        world = World(Client(running), folder, log)
        every = plugins()
        by_name = {plugin.name: plugin for plugin in every}
        people = make_people(world, every)
        cases = make_routes(world, every, upstream)
        asked = [(case, ask(running, case)) for case in cases]
        attach(asked, upstream)
        entries = logged(folder / "entries.log", asked)
        said = judged(people, asked, by_name)
        problems = []
        for (case, seen), answers in zip(asked, said, strict=True):
            entry = entries.get(case.number, {})
            problems += differences(case, seen, answers, entry, by_name[case.plugin])
        shown = "\n".join([f"{len(problems)} of {len(asked)}, SEED={SEED}:", *problems[:5]])
        assert not problems, shown
        pairs = zip(asked, said, strict=True)
        done = [Done(case, seen, answers[-1]) for (case, seen), answers in pairs]
        for plugin in every:
            plugin.written([one for one in done if one.case.plugin == plugin.name], world, running)
        check_decisions(asked, said, every)


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


def make_routes(world: World, every: list[Plugin], upstream: Upstream) -> list[Case]:
    """Routes, each with a configuration, and what is asked of it."""
    draw = random.Random(SEED)
    client = world.client
    client.must(201, "POST", "/services", {"name": "s", "url": upstream.url})
    entries = {"name": "file-log", "config": {"path": f"{world.folder}/entries.log"}}
    client.must(201, "POST", "/plugins", entries)
    for plugin in every:
        plugin.prepare(world)
    cases: list[Case] = []
    for number, plugin in enumerate(every * CONFIGURATIONS):
        world.route, world.nth = number, number // len(every)
        route = {"name": f"r{number}", "paths": [f"/{number}/"]}
        client.must(201, "POST", "/services/s/routes", route)
        value = {"name": plugin.name, "config": plugin.configuration(draw, world)}
        made = client.must(201, "POST", f"/routes/r{number}/plugins", value)
        for beside in plugin.beside:
            client.must(201, "POST", f"/routes/r{number}/plugins", beside)
        for _ in range(HEADS):
            case = draw_case(draw, len(cases), number, plugin.name, made["config"])
            plugin.request(draw, case, world)
            cases.append(case)
    return cases


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
    done = subprocess.run(
        ["luajit", "test/nginx/support/decisions_oracle.lua"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"LUA_PATH": "./?.lua;./?/init.lua;./lib/?.lua;./lib/?/init.lua;;"},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


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


def check_decisions(
    asked: list[tuple[Case, Seen]], said: list[list[Answer]], every: list[Plugin]
) -> None:
    """Each plugin has decided each way that it has."""
    met: defaultdict[str, set[str]] = defaultdict(set)
    for (case, _), answers in zip(asked, said, strict=True):
        met[case.plugin] |= {answer["decision"] for answer in answers}
    assert met == {plugin.name: plugin.decisions for plugin in every}
