"""What an operator types first: nothing is deleted unsaid, nothing begun where it was not meant."""

import os
from pathlib import Path

import pytest

from instance import TWO, Instance
from processes import ran
from sluice import COMMAND

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
    assert oldest == first
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
        ["get", "routes"],
        ["history"],
        ["import", file],
        ["reload"],
        ["restart"],
        ["rollback", "1"],
        ["token", "list"],
    ):
        assert instance.refuse(*words, code=2)[0] == f"sluice: {said}", words
    for verb in ("status", "events", "timers", "reopen", "stop"):
        done = instance.run(verb)
        assert (done.returncode, done.stderr) == (0, f"sluice: warning: {said}\n"), verb
