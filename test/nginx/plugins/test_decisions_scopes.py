"""Which configuration of a plugin a request runs, and what comes of it, with nginx and without:
scopes, requests and consumers at random, a plugin at a time.

The core says which one (module/core/chain/scope.h), and then what that decides
(test_decisions_random.py).
"""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from admin_client import Client
from decisions_compared import UPSTREAM_HEADERS
from decisions_plugins import Plugin, plugins
from decisions_run import SETTINGS, ask, attach, differences, judged, logged, make_people, oracle
from decisions_words import NAMED, PEOPLE, Case, Seen, World, draw_case, known
from log_server import LogServer
from seeds import seed_of
from soaks import soak

import guard
from sluice import Gateway
from upstream import Upstream

SEED = seed_of("decisions_scopes")
ROUNDS = soak(3, 12)
HEADS = soak(20, 60)

SERVICES = {"r0": "s", "r1": "s", "r2": "t"}
"""By their routes; the first has a part in most scopes."""
MEMBERS = {"zz": ["alice", "bob"], "b": ["bob", "ghost"], "a": ["carol", "bob"]}
NOBODYS = {"plugin": "", "decision": "pass", "status": 0}
"""What is said where none runs."""
LEFT_OUT = {
    "access-log": "its targets are compared by all that a whole test asks",
    "file-log": "its global configuration is the test's own log",
    "http-log": "it sends entries while its configuration is there; each round deletes its own",
    "mtls-auth": "its requests are made for the one configuration that they meet",
    "prometheus": "its counts are shown while it is configured",
    "rate-limiting": "its counters are a route's in the judge",
}

Scope = dict[str, str]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that workers of any user reach and write, unlike pytest's own."""
    path = guard.folder("sluice-decisions-")
    path.chmod(0o777)
    yield path
    guard.remove(path)


def test_nginx_and_the_core_agree(upstream: Upstream, log: LogServer, folder: Path) -> None:
    upstream.answer(200, UPSTREAM_HEADERS, b"up")
    with Gateway(None, **SETTINGS) as running:
        world = World(Client(running), folder, log)
        found = plugins()
        every = [plugin for plugin in found if plugin.name not in LEFT_OUT]
        people = make_people(world, found)
        make_owners(world, upstream)
        draw, numbers = random.Random(SEED), count()
        asked: list[tuple[Case, Seen]] = []
        ranks: list[int] = []
        for plugin in every * ROUNDS:
            answered, won = round_of(running, draw, world, plugin, numbers)
            asked += answered
            ranks += won
        attach(asked, upstream)
        entries = logged(folder / "entries.log", asked)
        by_name = {plugin.name: plugin for plugin in every}
        chosen = [pair for pair, rank in zip(asked, ranks, strict=True) if rank]
        said = iter(judged(people, chosen, by_name))
        problems = []
        for (case, seen), rank in zip(asked, ranks, strict=True):
            plugin = by_name[case.plugin] if rank else nobodys(by_name[case.plugin])
            answers = next(said) if rank else [NOBODYS]
            differ = differences(case, seen, answers, entries.get(case.number, {}), plugin)
            problems += [f"rank {rank}, {text}" for text in differ]
        shown = "\n".join([f"{len(problems)} of {len(asked)}, SEED={SEED}:", *problems[:5]])
        assert not problems, shown
        assert set(ranks) == set(range(13)), "each scope has won, and none"


def make_owners(world: World, upstream: Upstream) -> None:
    """All that a configuration may belong to, and the log of all requests."""
    client = world.client
    for name in sorted(set(SERVICES.values())):
        client.must(201, "POST", "/services", {"name": name, "url": upstream.url})
    for route, service in SERVICES.items():
        value = {"name": route, "paths": [f"/{route[1:]}/"]}
        client.must(201, "POST", f"/services/{service}/routes", value)
    for group, members in MEMBERS.items():
        client.must(201, "POST", "/consumer_groups", {"name": group})
        for name in members:
            client.must(201, "POST", f"/consumer_groups/{group}/consumers", {"consumer": name})
    entries = {"name": "file-log", "config": {"path": f"{world.folder}/entries.log"}}
    client.must(201, "POST", "/plugins", entries)


def priority(client: Client, name: str) -> int:
    """Of a plugin: with a higher one it runs earlier."""
    found = client.must(200, "GET", "/")["plugins"]["available_on_server"]
    return found[name]["priority"]


def scopes_of(draw: random.Random, has_consumer: bool) -> list[Scope]:
    """Each once at most."""
    found: list[Scope] = []
    for _ in range(12 if has_consumer else 5):
        scope: Scope = {}
        if draw.random() < 0.5:
            scope["route"] = draw.choice([*SERVICES, "r0", "r0"])
        if draw.random() < 0.5:
            scope["service"] = SERVICES[scope.get("route", "r0")]
        owner = draw.choice(["consumer", "group", None]) if has_consumer else None
        if owner == "consumer":
            scope[owner] = draw.choice([*PEOPLE])
        elif owner == "group":
            scope[owner] = draw.choice([*MEMBERS])
        if scope not in found:
            found.append(scope)
    return found


def reference(owner: str, name: str) -> dict[str, Any]:
    """As the Admin API takes it."""
    key = "username" if owner == "consumer" else "name"
    return {"consumer_group" if owner == "group" else owner: {key: name}}


def configure(
    draw: random.Random, world: World, plugin: Plugin, scopes: list[Scope]
) -> tuple[list[Scope], list[dict[str, Any]]]:
    """Those scopes that the plugin may have, each with what the gateway has made of it."""
    may, made = [], []
    for scope in scopes:
        world.route += 1
        world.nth += 1
        value = {"name": plugin.name, "config": plugin.configuration(draw, world)}
        for owner, name in scope.items():
            value |= reference(owner, name)
        reply = world.client.ask("POST", "/plugins", value)
        # Many have no configuration for a consumer, as in Kong.
        if reply.status == 400 and set(reply.json()["fields"]) <= {"consumer", "consumer_group"}:
            continue
        assert reply.status == 201, reply
        may.append(scope)
        made.append(reply.json())
    return may, made


def round_of(
    running: Gateway, draw: random.Random, world: World, plugin: Plugin, numbers: Iterator[int]
) -> tuple[list[tuple[Case, Seen]], list[int]]:
    """Configurations of one plugin, requests with what nginx has answered, and the rank of the
    configuration that each runs; 0: none. The case gets that one."""
    client = world.client
    first = priority(client, "key-auth")
    # Who it is, is known to plugins that run after key-auth, and not to others that ask.
    has_consumer = priority(client, plugin.name) < first and not plugin.kind
    beside = [NAMED, *(one for one in plugin.beside if one != NAMED)] if has_consumer else []
    scopes, made = configure(draw, world, plugin, scopes_of(draw, has_consumer))
    ids = [one["id"] for one in made]
    ids += [client.must(201, "POST", "/plugins", one)["id"] for one in beside]
    asked, requests = [], []
    for _ in range(HEADS):
        route = draw.choice([*SERVICES, "r0"])
        case = draw_case(draw, next(numbers), int(route[1:]), plugin.name, {})
        plugin.request(draw, case, world)
        if has_consumer and case.who is None:
            known(draw, case, world)
        asked.append((case, ask(running, case)))
        requests.append({"route": route, "service": SERVICES[route], "consumer": case.who or False})
    for one in ids:
        client.must(204, "DELETE", f"/plugins/{one}")
    told = {"plugin": plugin.name, "members": MEMBERS, "bindings": scopes, "asked": requests}
    (line,) = oracle("scopes_oracle", [json.dumps(told)])
    ranks = []
    for (case, _), (binding, rank) in zip(asked, json.loads(line), strict=True):
        case.config = made[binding]["config"] if rank else {}
        ranks.append(rank)
    return asked, ranks


def nobodys(plugin: Plugin) -> Plugin:
    """The same where it does nothing."""
    return replace(plugin, is_unknown=lambda _: False, alike=lambda *_: None)
