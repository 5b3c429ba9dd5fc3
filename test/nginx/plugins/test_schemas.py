"""/schemas/plugins/NAME beside what Kong 3.9.3 answers, which the kong_schema.txt of the plugin's
folder of tests has: a line for each field. What has other limits, and what Kong has not, stands in
its facts.json, and is named by the section "Differences from Kong" of its page."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from admin_starts import Admin
from plugin_facts import FOLDER, PLUGINS, Kong
from plugin_facts import facts as facts_of

from sluice import ROOT, Gateway

KONG = sorted(path.parent.name for path in FOLDER.glob("*/kong_schema.txt"))
# Of our own: what the schema says to the gateway, and what people read.
OWN = {"description", "names_secrets", "secret", "supported"}
NESTED = {"elements": "[]", "keys": "<>", "values": "{}"}
LISTS = {"fields": ".", "shorthand_fields": "~"}


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


def expected(plugin: str) -> dict[str, str]:
    """Kong's."""
    found = (FOLDER / plugin / "kong_schema.txt").read_text().splitlines()
    return {line.split(" ")[0]: line for line in found}


def differences(plugin: str) -> Kong:
    """What is known to differ."""
    found = facts_of(plugin)["kong"]
    assert not isinstance(found, str), f"there is a kong_schema.txt, and facts.json says {found}"
    return found


@pytest.fixture(scope="module")
def admin() -> Iterator[Admin]:
    """A gateway without entities."""
    with Gateway(None) as running:
        yield Admin(running)


@pytest.mark.parametrize("plugin", KONG)
def test_the_schema_is_that_of_kong(admin: Admin, plugin: str) -> None:
    kong, ours = expected(plugin), facts(admin.get(f"/schemas/plugins/{plugin}"))
    common = [path for path in ours if path in kong]
    assert common == [*kong]
    known = differences(plugin)
    assert {path for path in kong if kong[path] != ours[path]} == {*known["changed"]}
    extra = {".".join(path.split(".")[:2]).split("[")[0] for path in ours if path not in kong}
    assert extra == {*known["extended"]}


@pytest.mark.parametrize("plugin", KONG)
def test_its_page_names_what_differs(plugin: str) -> None:
    page = (ROOT / "docs/plugins" / f"{plugin}.md").read_text()
    section = page.split("## Differences from Kong\n")[1].split("\n## ")[0]
    known = differences(plugin)
    for path in [*known["changed"], *known["extended"]]:
        name = re.split(r"\W", path)[1]
        assert f"`{name}`" in section, path


@pytest.mark.parametrize("plugin", PLUGINS)
def test_each_plugin_of_kongs_is_compared(plugin: str) -> None:
    rows = (ROOT / "cli/plugins/kong.txt").read_text().splitlines()
    edition = {row.split(" ")[1]: row.split(" ")[0] for row in rows if row and row[0] != "#"}
    if edition.get(plugin) == "free":
        assert plugin in KONG, (
            f"write test/plugins/{plugin}/kong_schema.txt: the lines of what Kong answers"
        )
    else:
        wanted = ["paid"] if edition.get(plugin) else ["ours", "ours alone"]
        assert facts_of(plugin)["kong"] in wanted
