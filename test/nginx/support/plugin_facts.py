"""What tests of all plugins have to know of each: its facts.json, found by listing test/plugins."""

import json
from typing import Any, NotRequired, TypedDict

from sluice import ROOT

PLUGINS = sorted(path.parent.name for path in (ROOT / "plugins").glob("*/handler.lua"))
FOLDER = ROOT / "test" / "plugins"

Config = dict[str, Any]


class Page(TypedDict):
    """What the example of the plugin's page does."""

    requests: int
    """How many come to the service."""
    header: str
    """One of the last of them; or empty."""
    shows: str
    """A part of what the client sees; or empty."""


class Kong(TypedDict):
    """How the schema differs from that of kong_schema.txt: paths of fields."""

    changed: list[str]
    extended: list[str]


class Route(TypedDict):
    """A route with the plugin, for requests that lack what HTTP/1.1 has, with a key of alice's."""

    config: Config
    """Of its texts `@ca_certificate@`, `@folder@`, `@log@` and `@upstream@` are the test's."""
    consumer: NotRequired[str]
    """Whom the upstream sees: alice, or nobody."""
    says: NotRequired[str]
    """A part of the body that the plugin itself answers with."""
    says_without_tls: NotRequired[str]
    shows_certificate: NotRequired[bool]
    """Whether the upstream sees the client's certificate."""
    is_alone: NotRequired[bool]
    """Whether it cannot stand beside all others, as it answers each request."""
    is_global: NotRequired[bool]
    """Whether it is to see what no route matches, too."""


class Facts(TypedDict):
    """What a facts.json has."""

    minimal: Config
    """The smallest valid configuration; `@ca_certificate@` is the id of one that is there."""
    page: Page | str
    """A text: the file in its folder that tests the page's example, which needs more."""
    kong: Kong | str
    """A text: why there is no kong_schema.txt: `paid`, `ours`, or `ours alone`, whose page compares
    nothing either."""
    routes: dict[str, Route]
    """At least one, by names that no other plugin has."""


HELP = (
    'it is JSON with "minimal" (the smallest valid config), "page" (what its example does), '
    '"kong" (how its schema differs from kong_schema.txt) and "routes": '
    "test/nginx/support/plugin_facts.py says what each has"
)


def facts(plugin: str) -> Facts:
    """Those of a plugin."""
    path = FOLDER / plugin / "facts.json"
    if not path.is_file():
        raise AssertionError(f"write {path.relative_to(ROOT)}: {HELP}")
    found = json.loads(path.read_text())
    if {*found} != {*Facts.__annotations__} or not found["routes"]:
        raise AssertionError(f"{path.relative_to(ROOT)} has {', '.join(found)}: {HELP}")
    return found


def with_texts(config: Config, **texts: str) -> Config:
    """A configuration with texts in their places: `@name@`."""
    made = json.dumps(config)
    for name, text in texts.items():
        made = made.replace(f"@{name}@", json.dumps(text)[1:-1])
    return json.loads(made)
