"""/schemas/plugins/NAME beside what Kong 3.9.3 answers, which kong_schemas.txt has: a line for each
field. What differs is named by the plugin's page, or stands in it as a field that Kong has not."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from admin_starts import Admin

from sluice import ROOT, Gateway

FACTS = Path(__file__).with_name("kong_schemas.txt")
# Of our own: what the schema says to the gateway, and what people read.
OWN = {"description", "names_secrets", "secret", "supported"}
NESTED = {"elements": "[]", "keys": "<>", "values": "{}"}
LISTS = {"fields": ".", "shorthand_fields": "~"}

# What has other limits, and what has fields that Kong has not. The section "Differences from Kong"
# of the plugin's page names each.
CHANGED = {
    "hmac-auth": {"config.enforce_headers"},
    "http-log": {
        "config.timeout",
        "config.keepalive",
        "config.queue_size",
        "config.flush_timeout",
        "config.headers<>",
    },
    "jwt": {"config.uri_param_names", "config.cookie_names", "config.header_names"},
    "key-auth": {"config.key_names"},
    "rate-limiting": {
        "config.error_code",
        "config~redis_password",
        "config~redis_username",
    },
}
EXTENDED = {"key-auth": {"config.identity_realms"}, "rate-limiting": {"config.redis"}}


def text(key: str, value: object) -> str:
    """An attribute; of a message only that there is one, as its words are ours."""
    if key == "deprecation" and isinstance(value, dict):
        value = {name: said for name, said in value.items() if name != "message"}
    if key == "one_of" and isinstance(value, list):
        value = [one for one in value if one not in ("ws", "wss")]  # Enterprise's protocols
    return f"{key}={json.dumps(value, separators=(',', ':'), sort_keys=True)}"


def lines(field: dict[str, Any], path: str) -> Iterator[str]:
    """A field, and those within it, in order."""
    said = [text(key, field[key]) for key in sorted(field) if key not in {"type", *OWN}]
    shown = [one for one in said if one.split("=", 1)[0] not in {*NESTED, *LISTS}]
    yield " ".join([path, field["type"], *shown])
    for key, mark in NESTED.items():
        if key in field:
            yield from lines(field[key], path + mark)
    for key, mark in LISTS.items():
        for entry in field.get(key, []):
            for name, inner in entry.items():
                yield from lines(inner, f"{path}{mark}{name}")


def facts(schema: dict[str, Any]) -> dict[str, str]:
    """A whole schema: the line of each path, and of each check."""
    found = [
        line
        for entry in schema["fields"]
        for name, field in entry.items()
        for line in lines(field, name)
    ]
    checks = [text(*pair) for check in schema["entity_checks"] for pair in check.items()]
    return {line.split(" ")[0]: line for line in found} | {check: check for check in checks}


def expected() -> dict[str, dict[str, str]]:
    """Kong's, by plugin."""
    found = {}
    for block in FACTS.read_text().strip().split("\n\n"):
        name, *rest = block.split("\n")
        pairs = ((line.split(" ")[0], line) for line in rest)
        found[name] = dict(pairs)
    return found


KONG = expected()


@pytest.fixture(scope="module")
def admin() -> Iterator[Admin]:
    """A gateway without entities."""
    with Gateway(None) as running:
        yield Admin(running)


@pytest.mark.parametrize("plugin", KONG)
def test_the_schema_is_that_of_kong(admin: Admin, plugin: str) -> None:
    kong, ours = KONG[plugin], facts(admin.get(f"/schemas/plugins/{plugin}"))
    common = [path for path in ours if path in kong]
    assert common == [*kong]
    assert {path for path in kong if kong[path] != ours[path]} == CHANGED.get(plugin, set())
    extra = {".".join(path.split(".")[:2]).split("[")[0] for path in ours if path not in kong}
    assert extra == EXTENDED.get(plugin, set())


@pytest.mark.parametrize("plugin", [*CHANGED, *EXTENDED])
def test_its_page_names_what_differs(plugin: str) -> None:
    page = (ROOT / "docs/plugins" / f"{plugin}.md").read_text()
    section = page.split("## Differences from Kong\n")[1].split("\n## ")[0]
    for path in CHANGED.get(plugin, set()) | EXTENDED.get(plugin, set()):
        name = re.split(r"\W", path)[1]
        assert f"`{name}`" in section, path


def test_each_plugin_of_kongs_is_compared() -> None:
    ours = {handler.parent.name for handler in (ROOT / "plugins").glob("*/handler.lua")}
    assert ours - {*KONG} == {"access-log", "forward-auth", "mtls-auth"}  # ours, and a paid one
