"""What an operator types first: nothing is deleted unsaid, nothing begun where it was not meant."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from instance import TWO, Instance
from processes import ran
from sluice import COMMAND

CREDENTIALS = """
_format_version: "3.0"
consumers:
- username: ann
  keyauth_credentials: [{key: shown-when-asked}]
  jwt_secrets: [{key: a, secret: shown-when-asked-which-is-long-enough}]
  hmacauth_credentials: [{username: a, secret: shown-when-asked}]
"""

DEFAULT = Path("/var/lib/sluice")


def sluice(*words: str, **more: str) -> tuple[int, str, list[str]]:
    """A command that is told no prefix: code, output, complaints."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_")} | more
    done = ran([str(COMMAND), *words], env=environment, cwd="/")
    return done.returncode, done.stdout, done.stderr.splitlines()


def test_a_file_in_between_takes_no_history(instance: Instance) -> None:
    """It once deleted all of it, without a word."""
    instance.succeed("start")
    instance.succeed("restart", "--no-file")
    instance.succeed("delete", "routes", "one")
    *_, first = instance.succeed("history").splitlines()
    assert "- route one" in first
    left = instance.succeed("get", "routes")
    instance.succeed("import", str(instance.file))
    instance.succeed("restart", file=str(instance.file))
    assert instance.status()["file"] == str(instance.file)
    instance.file.write_text(TWO.format(url="http://127.0.0.1:1"))
    instance.succeed("reload")
    instance.succeed("restart", "--no-file")
    _, newest, *_, oldest = instance.succeed("history").splitlines()
    assert "route two" in newest
    assert oldest.split() == first.split()
    instance.succeed("rollback", first.split()[0])
    assert instance.succeed("get", "routes") == left


def is_meant_elsewhere(instance: Instance, lines: list[str]) -> bool:
    """Whether a refusal names the instance as one that runs."""
    prefixes = lines[1].removeprefix("  running on this machine: --prefix ").split(", --prefix ")
    return str(DEFAULT) in lines[0] and str(instance.prefix) in prefixes


@pytest.mark.skipif(DEFAULT.exists(), reason="there is an instance in the default prefix")
def test_nothing_begins_in_the_default_prefix_beside_a_gateway(instance: Instance) -> None:
    """A second gateway once started there, or a store that nothing serves."""
    instance.succeed("start")
    file = str(instance.file)
    for words in (
        ["restart"],
        ["import", file],
        ["import", "--dry-run", file],
        ["restore", file],
        ["token", "add", "zz"],
        ["token", "list"],
        ["apply", file],
        ["delete", "routes", "one"],
        ["rollback", "1"],
    ):
        code, output, lines = sluice(*words)
        assert (code, output) == (3, ""), (words, lines)
        assert is_meant_elsewhere(instance, lines), (words, lines)
        assert not DEFAULT.exists(), words


def test_nothing_restarts_in_a_prefix_that_has_nothing(tmp_path: Path) -> None:
    """A mistyped name once started an empty gateway on the default ports."""
    prefix = tmp_path / "mistyped"
    code, output, lines = sluice("restart", "--prefix", str(prefix))
    assert (code, output) == (3, "")
    start = f"`{COMMAND} start --prefix {prefix}` starts a gateway there"
    assert lines == [f"sluice: not running in {prefix}; {start}"]
    assert not prefix.exists()


def test_a_variable_that_a_flag_of_the_start_overrides_is_named(instance: Instance) -> None:
    instance.succeed("start", "--no-file", file=None)
    instance.environment["SLUICE_FILE"] = str(instance.file)
    done = instance.run("reload")
    assert (done.returncode, done.stderr) == (
        0,
        "sluice: warning: SLUICE_FILE is not used: start was given --no-file, which overrides it; "
        "type the flag here, too\n",
    )
    assert instance.status()["file"] == ""
    # Once: it may stay in the environment of whoever has been told.
    instance.succeed("reload")


def test_every_command_names_a_variable_that_is_no_setting(instance: Instance) -> None:
    """Only those that look or end something go on, so that nobody is locked out."""
    instance.flags["--vault-env"] = "SLUICE_PASSWORD"
    instance.succeed("start")
    instance.environment |= {"SLUICE_PROXY_LISEN": "127.0.0.1:1", "SLUICE_PASSWORD": "x"}
    said = "environment: unknown variable SLUICE_PROXY_LISEN; did you mean SLUICE_PROXY_LISTEN?"
    file = str(instance.file)
    for words in (
        ["apply", file],
        ["delete", "routes", "one"],
        ["diff", file],
        ["import", file],
        ["reload"],
        ["restart"],
        ["rollback", "1"],
        ["token", "list"],
    ):
        assert instance.refuse(*words, code=2)[0] == f"sluice: {said}", words
    for verb in ("status", "get routes", "history", "events", "timers", "reopen", "stop"):
        done = instance.run(*verb.split())
        assert (done.returncode, done.stderr) == (0, f"sluice: warning: {said}\n"), verb


@pytest.mark.parametrize(
    "shape",
    [
        {"flags": {"vault_env": 5}, "environment": {}},
        {"flags": {"vault_env": {"text": 5}}, "environment": {}},
        {"flags": {}, "environment": 5},
        {"flags": {}, "environment": {}, "defaults": {"workers": {}}},
    ],
)
def test_what_start_was_given_is_damaged(instance: Instance, shape: dict[str, Any]) -> None:
    instance.succeed("start")
    (instance.prefix / "start.json").write_text(json.dumps(shape))
    assert instance.run("status").returncode == 0
    assert "the flags given to start are unknown" in instance.refuse("reload", code=1)[0]
    instance.succeed("stop")


def test_a_text_in_the_environment_is_named_where_it_has_to_be_changed(instance: Instance) -> None:
    variable = "SLUICE_DECLARATIVE_CONFIG_STRING"
    instance.flags.pop("--file", None)
    instance.environment[variable] = instance.file.read_text()
    instance.succeed("start")
    said = instance.refuse("import", str(instance.file), code=1)[0]
    assert f"is configured from environment {variable}; change that" in said
    # What it says; start has remembered the text.
    del instance.environment[variable]
    instance.succeed("restart", "--no-file", "--yes")
    instance.succeed("import", str(instance.file))


def test_tokens_that_are_missing(instance: Instance) -> None:
    path = instance.folder / "tokens"
    path.write_text("# nobody yet\n")
    path.chmod(0o600)
    instance.succeed("start", admin_named_tokens=str(path))
    assert instance.succeed("token", "list") == f"no tokens in {path}; the Admin API requires one\n"
    assert instance.succeed("token", "list", "--json") == "[]\n"
    for action in ("add", "remove"):
        assert instance.refuse("token", action, code=2) == [
            "sluice: missing argument 'name'",
            f"  usage: sluice token {action} <name> [flags]",
            "  more:  sluice help token",
        ]


def test_kong_has_a_help_and_suggestions() -> None:
    code, said, _ = sluice("help", "kong")
    assert (code, said) == sluice("kong", "--help")[:2]
    assert said.startswith("Usage: kong ")
    code, _, lines = sluice("kong", "star")
    assert code == 1
    assert lines[0].startswith("sluice: unknown command 'star'; did you mean 'start'")


def test_a_backup_says_how_to_restore_it(instance: Instance) -> None:
    instance.succeed("start")
    said = instance.succeed("backup", "b.db")
    hint = instance.hint("restore b.db")
    assert said == f"b.db is a backup of the store; to restore it: {hint}\n"
    assert f"restore 'a b.db' --prefix {instance.prefix}`" in instance.succeed("backup", "a b.db")


def test_secrets_are_revealed_in_tables(instance: Instance) -> None:
    instance.succeed("start")
    instance.succeed("restart", "--no-file")
    (instance.folder / "more.yaml").write_text(CREDENTIALS)
    instance.succeed("apply", "more.yaml")
    for kind in ("key-auths", "jwts", "hmac-auths"):
        assert "shown-when-asked" not in instance.succeed("get", kind), kind
        assert "shown-when-asked" in instance.succeed("get", kind, "--reveal"), kind
