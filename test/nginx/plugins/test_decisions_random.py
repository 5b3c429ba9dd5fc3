"""What plugins decide with nginx and without, of the same configurations and requests at random.

What each plugin in C needs for that stands in its folder, test/plugins/<name>/decisions.py.
Compared is what the client gets, what the upstream sees, and what the log has of it.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from admin_client import Client
from decisions_compared import UPSTREAM_HEADERS, Answer
from decisions_plugins import Plugin, plugins
from decisions_run import SETTINGS, ask, attach, differences, judged, logged, make_people
from decisions_words import Case, Done, Seen, World, draw_case
from log_server import LogServer
from seeds import seed_of
from soaks import soak

import guard
from sluice import Gateway
from upstream import Upstream

SEED = seed_of("decisions_random")
CONFIGURATIONS = soak(8, 40)
HEADS = soak(24, 60)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that workers of any user reach and write, unlike pytest's own."""
    path = guard.folder("sluice-decisions-")
    path.chmod(0o777)
    yield path
    guard.remove(path)


def test_nginx_and_the_judge_agree(upstream: Upstream, log: LogServer, folder: Path) -> None:
    upstream.answer(200, UPSTREAM_HEADERS, b"up")
    with Gateway(None, **SETTINGS) as running:
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


def check_decisions(
    asked: list[tuple[Case, Seen]], said: list[list[Answer]], every: list[Plugin]
) -> None:
    """Each plugin has decided each way that it has."""
    met: defaultdict[str, set[str]] = defaultdict(set)
    for (case, _), answers in zip(asked, said, strict=True):
        met[case.plugin] |= {answer["decision"] for answer in answers}
    assert met == {plugin.name: plugin.decisions for plugin in every}
