"""`sluice plugins`: every plugin of Kong and of ours, as docs/plugins/index.md has them."""

import json
import re
import subprocess
from pathlib import Path

from instance import COMMAND, Instance

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "plugins" / "index.md"


def ours() -> list[str]:
    """The plugins that there are, by their folders."""
    return sorted(path.parent.name for path in (ROOT / "plugins").glob("*/handler.lua"))


def said(*flags: str) -> str:
    """What the command says, without any setting."""
    command = [str(COMMAND), "plugins", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_table_has_each_once() -> None:
    head, *lines = said().splitlines()
    titles = ["name", "Kong", "here", "order", "cost", "purpose or status"]
    assert re.split(r"  +", head) == titles
    names = [line.split()[0] for line in lines]
    assert len(names) == len(set(names))
    assert len(names) >= 96
    here = [line.split()[0] for line in lines if line.split()[2] != "-"]
    assert sorted(here) == ours()
    page = PAGE.read_text()
    for line in lines:
        name, kong, language, order, cost, remark = line.split(None, 5)
        assert remark in page, name
        assert (name in ours()) == (language in ("C", "Lua"))
        assert kong in ("free", "paid", "-")
        assert (order == "-") == (language == "-")
        assert order == "-" or f"| {order} |" in page
        assert re.fullmatch(r"-|\d\.\d\d", cost)


def test_only_those_that_are_here() -> None:
    lines = said("--ours").splitlines()
    assert sorted(line.split()[0] for line in lines[1:]) == ours()


HANDLER = "return { VERSION = '1.0', PRIORITY = 5, access = function() end }"
SCHEMA = "return { name = '%s', %s fields = { { config = { type = 'record', fields = {} } } } }"


def test_ones_own_by_the_setting_of_the_gateway(instance: Instance) -> None:
    for name, more in (("greeting", "description = 'Says hello.',"), ("bare", "")):
        folder = instance.folder / "own" / "plugins" / name
        folder.mkdir(parents=True)
        (folder / "handler.lua").write_text(HANDLER)
        (folder / "schema.lua").write_text(SCHEMA % (name, more))
    own = f"{instance.folder}/own/?.lua"
    settings = {"plugins": "key-auth,greeting,bare", "lua_package_path": own}
    instance.succeed("start", **settings)

    def rows(text: str) -> dict[str, list[str]]:
        lines = text.splitlines()[1:]
        return {line.split()[0]: re.split(r"  +", line)[1:] for line in lines}

    found = rows(instance.succeed("plugins", "--ours"))
    assert list(found)[-2:] == ["bare", "greeting"]
    assert found["greeting"] == ["-", "Lua", "5", "-", "Says hello."]
    assert found["bare"] == ["-", "Lua", "5", "-", "Your own; its schema has no description."]
    assert found["key-auth"][:2] == ["free", "C"]
    assert found["cors"][:2] == ["free", "C, off"]
    assert set(found) == {*ours(), "bare", "greeting"}
    listed = json.loads(instance.succeed("plugins", "--json"))
    by_name = {each["name"]: each for each in listed}
    flags = ("is_ours", "is_own", "is_on")
    assert [by_name["bare"][flag] for flag in flags] == [False, True, True]
    assert [by_name["cors"][flag] for flag in flags] == [True, False, False]
    assert [by_name["zipkin"][flag] for flag in flags] == [False, False, False]
    # Those of another command's settings, with no gateway.
    said = instance.succeed("plugins", "--ours", prefix=None, **settings)
    assert rows(said) == found
    assert "greeting" not in instance.succeed("plugins", prefix=None)
    # Code of one's own is no setting: who has changed it is told how it is loaded.
    assert instance.succeed("reload") == (
        "nothing has changed; no worker was replaced "
        "(--new-workers replaces them, and loads changed code of plugins)\n"
    )
    instance.succeed("stop")


def test_a_mistake_in_ones_own_is_refused_in_one_line_by_all(instance: Instance) -> None:
    folder = instance.folder / "own" / "plugins" / "greeting"
    folder.mkdir(parents=True)
    handler, schema = folder / "handler.lua", folder / "schema.lua"
    settings = {"plugins": "greeting", "lua_package_path": f"{instance.folder}/own/?.lua"}
    handler.write_text(HANDLER)
    valid = SCHEMA % ("greeting", "")
    word = "schema.lua: conf: unknown field; did you mean config?"
    end = "handler.lua:1: '}' expected near '<eof>'"
    wrong = ((schema, valid.replace("config", "conf"), word), (handler, HANDLER[:-2], end))

    for file, text, said in wrong:
        schema.write_text(valid)
        handler.write_text(HANDLER)
        instance.succeed("start", **settings)
        file.write_text(text)
        refused = [instance.refuse(verb)[0] for verb in ("reload", "restart")]
        instance.succeed("stop")
        path = str(instance.file)
        refused.append(instance.refuse("check", path, prefix=None, **settings)[0])
        for more in ({}, {"file": ""}):
            refused.append(instance.refuse("start", **settings, **more)[0])
        assert refused == [f"sluice: plugins: plugin 'greeting': {said}"] * 5


def test_the_setting_may_not_lack_what_the_store_uses(instance: Instance) -> None:
    instance.file.write_text(
        '_format_version: "3.0"\nroutes: [{paths: [/a], plugins: [{name: cors}, {name: jwt, '
        "enabled: false}]}]\nplugins: [{name: key-auth}, {name: acl, config: {allow: [g]}}]\n"
    )
    instance.succeed("import", str(instance.file))
    refusal = (
        "sluice: plugins: the store has configurations of acl, cors, which the setting does not "
        f"have; add what is missing, or delete them first ({instance.hint('get plugins')})"
    )
    (said, *_) = instance.refuse("start", file="", plugins="key-auth,prometheus")
    assert said == refusal
    # What is disabled is not missed.
    instance.succeed("start", file="", plugins="key-auth,acl,cors")
    for command, more in (("reload", "reload refused"), ("restart", "restart refused")):
        (said, last) = instance.refuse(command, file="", plugins="key-auth")
        assert said == refusal
        assert last.startswith(f"sluice: {more}")
        assert instance.get("/a") == 401
    instance.succeed("stop")


def test_json() -> None:
    text = said("--json")
    found = {each["name"]: each for each in json.loads(text)}
    assert sorted(name for name, each in found.items() if each["is_ours"]) == ours()
    key_auth, oauth2, access_log = found["key-auth"], found["oauth2"], found["access-log"]
    assert (key_auth["kong"], key_auth["language"], key_auth["priority"]) == ("free", "C", 1250)
    assert (oauth2["kong"], oauth2["language"], oauth2["priority"]) == ("free", None, None)
    assert access_log["kong"] is None
    assert found["mtls-auth"]["kong"] == "paid"
    assert oauth2["remark"].startswith("Planned")
    assert said("--json", "--ours") != text
