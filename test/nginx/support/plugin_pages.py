"""The examples of docs/plugins, as somebody types them."""

import os
import re
import subprocess
from pathlib import Path

from sluice import ROOT, Gateway

SERVICE = "http://127.0.0.1:9000"
"""Where the services of all examples are."""


def page(plugin: str) -> str:
    """A plugin's page."""
    return (ROOT / "docs" / "plugins" / f"{plugin}.md").read_text()


def example(plugin: str, url: str, place: str = SERVICE) -> str:
    """The file of a plugin's page, with its service, or what else is at this place, at a URL."""
    found = re.search(r"```yaml\n(.*?)```", page(plugin), re.DOTALL)
    assert found
    assert place in found[1]
    return found[1].replace(place, url)


def typed(plugin: str, running: Gateway, start: str = "", folder: Path | None = None) -> str:
    """What the commands of the page say, in a folder; but for the first, where the gateway that
    it starts runs."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page(plugin), re.DOTALL | re.MULTILINE)
    commands = next(text for language, text in blocks if not language)
    assert commands.startswith(start)
    commands = commands.partition("\n")[2] if start else commands
    commands = commands.replace(":8000", f":{running.proxy_port}")
    commands = commands.replace(":8001", f":{running.admin_port}")
    commands = commands.replace(":8443", f":{running.tls_port}")
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", commands],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"no_proxy": "*"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
