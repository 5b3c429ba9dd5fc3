"""The commands in docs/*.md, shown as `$ command` with its output, print what stands below them.

Times and ids are not compared. A `yaml` block that begins with `# NAME` is a file of the reader's.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from pages import PAGES, blocks

from sluice import COMMAND, Start, sanitizers

COMMANDS = re.compile(r"^\$ (.*?)(?:    # exits (\d+))?\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
MASKS = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"\bin \d+ ms\b"), "in N ms"),
    # The width of a column.
    (re.compile(r"control socket \([^)]*\) *"), "control socket (USER) "),
    (re.compile(r"file \S*/(\S+) \([^)]*\) *"), r"file \1 (USER) "),
    (re.compile(r"\bwho +what$", re.MULTILINE), "who what"),
)


def is_shown(kind: str, text: str) -> bool:
    """Whether a block has commands with their output."""
    return kind == "" and text.startswith("$ ")


SHOWN = [page for page in PAGES if any(is_shown(kind, text) for _, kind, text in blocks(page))]


def masked(text: str) -> str:
    """What is compared of an output."""
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return text


def test_there_are_pages() -> None:
    assert {"changes.md", "commands.md"} <= {page.name for page in SHOWN}


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.stem)
def test_what_is_written(gateway: Start, page: Path) -> None:
    """Each command after the other, in a gateway whose store is empty."""
    running = gateway(None)
    # Names of others' machines, which nobody resolves here.
    running.expect_log("cannot be resolved", range(100))
    folder = running.prefix
    environment = {k: v for k, v in running.environment().items() if k not in sanitizers()}
    environment["PATH"] = f"{COMMAND.parent}:{os.environ['PATH']}"
    for _, kind, text in blocks(page):
        name = re.match(r"# (\S+\.yaml)\n", text)
        if kind == "yaml" and name:
            (folder / name[1]).write_text(text)
        for line, code, expected in COMMANDS.findall(text) if is_shown(kind, text) else []:
            done = subprocess.run(
                ["bash", "-c", line],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
                check=False,
            )
            assert masked(done.stdout) == masked(expected), line
            assert done.returncode == int(code or 0), line
