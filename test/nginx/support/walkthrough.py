"""docs/plugin-walkthrough.md: the files that it makes, and the commands that it has typed."""

import re

from sluice import ROOT

FILE = re.compile(r"^`([^`\n]+)`:\n\n(`{3,})\w*\n(.*?)^\2$", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text() -> str:
    """The page."""
    return (ROOT / "docs" / "plugin-walkthrough.md").read_text()


def files() -> dict[str, str]:
    """Texts by path, in the page's order."""
    return {path: body for path, _, body in FILE.findall(text())}


def commands() -> list[str]:
    """Those of a chapter each, in their order; an example within a file is none of them."""
    return COMMANDS.findall(FILE.sub("", text()))
