"""What each plugin adds to the comparison of nginx with the judge: test/plugins/*/decisions.py."""

import importlib.util
import random
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from decisions_words import Case, Config, Done, Seen, World

from sluice import ROOT, Gateway

WANTED = """test/plugins/NAME/decisions.py is missing: plugins/NAME decides in C.

Write there, of what test/nginx/support/decisions_words.py has:
    def configuration(draw, world): a configuration at random
    def request(draw, case, world): adds what a request carries to a case, or not
and, where they apply:
    BESIDE = [...]: other plugins of the same route
    KIND, KEY, credentials(name): the kind of its credentials, the field that they are found by, and
        those of a consumer
    def prepare(world): what has to be there before
    DECISIONS = {...}: what the judge says, one or the other time; {"pass", "respond"} if not there
    def is_unknown(case): whether the judge cannot know it without nginx (else never)
    def own(case, seen): what it is told then; decisions.lua there makes `own` of it
    def alike(case, found, wanted): makes equal what need not be, or asserts more
    def written(done_list, world, running): asserts what targets have got of all cases
"""

WANTED_LUA = """test/plugins/NAME/decisions.lua is missing: plugins/NAME decides in C.

Write there a table with:
    cases: by hand, each a configuration, what is given of a request, what is decided, and what
        stands in the result (test/unit/decisions_spec.lua)
and, where they apply:
    compiled(people): what the plugin has beside its packed configuration, as a request's own
    own(told, given): what only nginx knows, as a request's own, made of what decisions.py's own()
        has said; nil: nobody knows
"""


@dataclass
class Plugin:
    """The functions of a decisions.py."""

    name: str
    configuration: Callable[[random.Random, World], Config]
    request: Callable[[random.Random, Case, World], None]
    beside: list[dict[str, Any]]
    kind: str
    key: str
    credentials: Callable[[str], list[Config]]
    prepare: Callable[[World], None]
    decisions: set[str]
    is_unknown: Callable[[Case], bool]
    own: Callable[[Case, Seen], dict[str, Any]]
    alike: Callable[[Case, dict[str, Any], dict[str, Any]], None]
    written: Callable[[list[Done], World, Gateway], None]


def _load(name: str) -> ModuleType:
    path = ROOT / "test" / "plugins" / name / "decisions.py"
    assert path.exists(), WANTED.replace("NAME", name)
    assert path.with_suffix(".lua").exists(), WANTED_LUA.replace("NAME", name)
    spec = importlib.util.spec_from_file_location("decisions_" + name.replace("-", "_"), path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _plugin(name: str) -> Plugin:
    module = _load(name)
    return Plugin(
        name,
        module.configuration,
        module.request,
        getattr(module, "BESIDE", []),
        getattr(module, "KIND", ""),
        getattr(module, "KEY", ""),
        getattr(module, "credentials", lambda _: []),
        getattr(module, "prepare", lambda _: None),
        getattr(module, "DECISIONS", {"pass", "respond"}),
        getattr(module, "is_unknown", lambda _: False),
        getattr(module, "own", lambda *_: {}),
        getattr(module, "alike", lambda *_: None),
        getattr(module, "written", lambda *_: None),
    )


def plugins() -> list[Plugin]:
    """All that decide in C."""
    names = {path.parent.name for path in (ROOT / "plugins").glob("*/sluice_*.c")}
    return [_plugin(name) for name in sorted(names)]
