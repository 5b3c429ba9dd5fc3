"""docs/plugin-walkthrough.md, walked: its files and its commands, in a copy of the checkout.

What its plugin does is tested in the check, too: plugins/test_native_plugin.py.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import walkthrough
from ports import Ports

import guard
from instance import optimise_less
from sluice import ROOT

# What the tools of tests and of lint are installed into.
INSTALLED = ("venv", "lint-lua", "stylua")


def git(*arguments: str) -> str:
    """What a command of git says of the checkout."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout() -> Iterator[Path]:
    """A clone, with what is not committed yet."""
    path = guard.folder("sluice-walkthrough-")
    path.rmdir()
    git("clone", "-q", "--no-hardlinks", str(ROOT), str(path))
    for name in git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if name and (ROOT / name).exists():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, path / name, follow_symlinks=False)
    (path / "build").mkdir()
    for name in INSTALLED:
        if (ROOT / "build" / name).exists():
            (path / "build" / name).symlink_to(ROOT / "build" / name)
    optimise_less(path)
    yield path
    guard.remove(path)


@pytest.mark.long
def test_each_command_does_what_the_page_says(checkout: Path) -> None:
    """In its order; with ports that are free, and without an owner's settings."""
    environment = {name: text for name, text in os.environ.items() if "SLUICE_" not in name}
    ports = Ports()
    proxy, admin = ports.take(), ports.take()
    for path, text in walkthrough.files().items():
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).write_text(text)
    said = ""
    try:
        for commands in walkthrough.commands():
            listens = f"--proxy-listen 127.0.0.1:{proxy} --admin-listen 127.0.0.1:{admin} --file"
            done = subprocess.run(
                ["bash", "-ec", commands.replace("--file", listens).replace("8000", str(proxy))],
                cwd=checkout,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout[-5000:]
            said += done.stdout
    finally:
        subprocess.run(
            [checkout / "bin" / "sluice", "stop", "--prefix", checkout / "demo"],
            env=environment,
            capture_output=True,
            check=False,
        )
        ports.release()
    assert "HTTP/1.1 405 " in said
    assert "Allow: GET, HEAD" in said
    page = (checkout / "docs" / "plugins" / "method-limit.md").read_text()
    assert "| `methods` | list of strings | required |" in page
    status = git("-C", str(checkout), "status", "--short", "--untracked-files=all")
    touched = {line[3:] for line in status.splitlines()}
    own = {path for path in walkthrough.files() if path != "demo.yaml"}
    # Beside its own files, what `make docs` writes.
    assert own <= touched
    made = {"docs/entities.md", "docs/openapi.json", "docs/plugins/index.md"}
    assert {path for path in touched - own if path != "scripts/build-module"} <= made | {
        line[3:] for line in git("status", "--short", "--untracked-files=all").splitlines()
    }
