"""What `sluice completion` prints completes commands, flags and kinds in a shell."""

import subprocess
from pathlib import Path

import pytest

from instance import Instance

# Completes as bash does when TAB is pressed after the words.
BASH = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
name=$(complete -p sluice | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"$name" sluice "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(instance: Instance) -> Path:
    """The script for bash."""
    path = instance.folder / "completion.bash"
    path.write_text(instance.succeed("completion", "bash"))
    return path


def complete(script: Path, *words: str) -> list[str]:
    """What may stand in the place of the last word."""
    done = subprocess.run(
        ["bash", "-c", BASH, "bash", str(script), "sluice", *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash(script: Path) -> None:
    commands = complete(script, "")
    assert {"start", "reload", "get", "apply", "delete", "history", "rollback"} <= set(commands)
    assert complete(script, "roll") == ["rollback"]
    assert "key-auths" in complete(script, "get", "")
    assert complete(script, "get", "rou") == ["routes"]
    assert complete(script, "delete", "key-a") == ["key-auths"]
    assert complete(script, "get", "routes", "--rev") == ["--reveal"]
    assert complete(script, "start", "--proxy-l") == ["--proxy-listen"]
    assert complete(script, "apply", "--kind", "serv") == ["services"]
    assert complete(script, "timers", "--so") == ["--sort"]
    assert complete(script, "completion", "z") == ["zsh"]
    assert complete(script, "help", "rel") == ["reload"]
    assert complete(script, "help", "sett") == ["settings"]
    assert complete(script, "start", "--no-f") == ["--no-file"]
    assert complete(script, "start", "--admin-secrets", "") == ["show", "hide"]
    assert complete(script, "reload", "--ask-client-certificate", "o") == ["on", "off"]


def test_zsh(instance: Instance) -> None:
    script = instance.folder / "_sluice"
    script.write_text(instance.succeed("completion", "zsh"))
    text = script.read_text()
    assert text.startswith("#compdef sluice\n")
    assert '": :(acls basic-auths ca_certificates certificates consumer_groups consumers ' in text
    subprocess.run(["zsh", "-n", str(script)], timeout=30, check=True)
