"""What `export` writes is what the commands that read files read."""

import json

import pytest

from instance import Instance

# What JSON cannot have as it is, what YAML cannot, what ends lines, and some of each plane.
CODES = [
    *range(0x100),
    *range(0x2020, 0x2070),
    *range(0xD7F0, 0xD800),
    *range(0xE000, 0xE010),
    *range(0xFEF0, 0x10000),
    *(plane * 0x10000 + low for plane in range(1, 17) for low in (0, 1, 0xF600, 0xFFFE, 0xFFFF)),
]


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_any_character_comes_back(instance: Instance, ending: str) -> None:
    body = "".join(f" {chr(code)}a{chr(code)} " for code in CODES)
    config = {"status_code": 200, "body": body, "content_type": "text/plain"}
    written = {
        "_format_version": "3.0",
        "services": [{"name": "s", "host": "127.0.0.1", "tags": ["\u00e9\u2028", "b"]}],
        "plugins": [{"name": "request-termination", "config": config}],
    }
    given = instance.folder / "given.json"
    given.write_text(json.dumps(written))
    instance.succeed("import", str(given))
    exported = instance.folder / f"exported.{ending}"
    instance.succeed("export", str(exported))
    instance.succeed("check", str(exported))
    assert instance.succeed("diff", str(exported)).startswith("no changes, ")
    before = instance.succeed("export", "-")
    assert json.loads(before)["plugins"][0]["config"]["body"] == body
    instance.succeed("import", str(exported))
    assert instance.succeed("export", "-") == before
    if ending == "yaml":
        assert instance.succeed("export", "--yaml", "-") == exported.read_text()
    instance.file.write_bytes(exported.read_bytes())
    instance.succeed("start")
    assert instance.succeed("diff", str(exported)).startswith("no changes, ")
