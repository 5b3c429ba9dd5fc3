"""The command lines that README and docs/*.md show, in the order of the page.

A block of commands has no language, or `sh`, and its first word is one of PROGRAMS. Blocks of
diagrams, settings and answers are none.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sluice import ROOT

_PART = re.compile(r"^(#+) ([^\n]*)$|^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT = "$ "
PROGRAMS = frozenset(
    (
        "./configure",
        "CI_TOKEN=$(sluice",
        "SLUICE_PLUGIN_SOURCES=/opt/my/plugins",
        "apt",
        "bin/sluice",
        "curl",
        "export",
        "git",
        "go",
        "install",
        "make",
        "podman",
        "scripts/setup",
        "sed",
        "sluice",
        "source",
        "systemctl",
    )
)

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))


@dataclass(frozen=True)
class Command:
    """A command; a `#` behind it is a remark, or what it prints."""

    page: str
    chapter: str  # the heading with two hashes above it
    block: int
    kind: str
    line: str
    remark: str
    has_prompt: bool


def blocks(page: Path) -> Iterator[tuple[str, str, str]]:
    """The chapter, language and text of each block."""
    chapter = ""
    for hashes, heading, kind, text in _PART.findall(page.read_text()):
        if not hashes:
            yield chapter, kind, text
        elif len(hashes) == 2:
            chapter = heading


def is_of_commands(kind: str, text: str) -> bool:
    """Whether a block has commands."""
    first = text.removeprefix(_PROMPT).split(maxsplit=1)
    return kind in ("", "sh") and bool(first) and (text.startswith(_PROMPT) or first[0] in PROGRAMS)


def commands(page: Path) -> Iterator[Command]:
    """Those of a page."""
    for number, (chapter, kind, text) in enumerate(blocks(page)):
        if not is_of_commands(kind, text):
            continue
        has_prompt = text.startswith(_PROMPT)
        for line in text.replace("\\\n", " ").splitlines():
            if not has_prompt or line.startswith(_PROMPT):
                command, _, remark = line.removeprefix(_PROMPT).partition("  # ")
                yield Command(
                    page.name, chapter, number, kind, command.rstrip(), remark.strip(), has_prompt
                )
