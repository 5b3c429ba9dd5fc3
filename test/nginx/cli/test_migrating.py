"""The commands of docs/migrating-from-kong.md do what stands behind them."""

import copy
import os
import re
import shutil
import subprocess
from pathlib import Path

from ports import Ports

import guard
from sluice import COMMAND, ROOT, sanitizers
from upstream import Exchange, Upstream

# A heading, or a block that has a language; commands without one need root or other machines.
PART = re.compile(r"^## ([^\n]*)$|^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
START = "Start your own file, now"
PAGE = ROOT / "docs" / "migrating-from-kong.md"
PORTS = ("6000", "6001", "7000", "7001", "9000", "9001")


def page() -> list[tuple[str, str, str]]:
    """Its blocks: the chapter, language and text."""
    found, chapter = [], ""
    for heading, kind, text in PART.findall(PAGE.read_text()):
        chapter = heading or chapter
        found += [] if heading else [(chapter, kind, text)]
    return found


def words_of_the_table() -> list[str]:
    """What the page says that a check says."""
    text = PAGE.read_text()
    table = text.partition("| message | what to do |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


class Reader:
    """Does what the page says, with addresses of its own."""

    def __init__(self, folder: Path, addresses: dict[str, str]) -> None:
        self.folder = folder
        self.addresses = addresses
        (folder / "bin").mkdir()
        (folder / "bin" / "sluice").symlink_to(COMMAND)
        # Debian's curl does not come to its main() with them.
        curl = folder / "bin" / "curl"
        without = f"unset {' '.join(sanitizers())}"
        curl.write_text(f'#!/bin/sh\n{without}\nexec {shutil.which("curl")} "$@"\n')
        curl.chmod(0o755)
        names = [name for name in os.environ if not name.startswith("SLUICE_")]
        self.environment = {name: os.environ[name] for name in names} | {
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "HOME": str(folder),
            "SLUICE_WORKERS": "2",
            "SLUICE_WORKER_CONNECTIONS": "512",
            "no_proxy": "*",
        }
        self.said = ""
        self.cwd = folder

    def in_checkout(self, addresses: dict[str, str]) -> "Reader":
        """The same reader in the checkout, with Kong's ports by the environment alone."""
        other = copy.copy(self)
        other.cwd = ROOT
        other.addresses = addresses
        proxy, admin = (addresses[f"127.0.0.1:{port}"] for port in (8000, 8001))
        listens = {"SLUICE_PROXY_LISTEN": proxy, "SLUICE_ADMIN_LISTEN": admin}
        other.environment = self.environment | listens
        return other

    def run(self, line: str) -> None:
        """One command of a block; a comment says how it ends where that is not well."""
        command, _, comment = line.partition("    # exits ")
        for written, ours in self.addresses.items():
            command = command.replace(written, ours)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.cwd,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == int(comment or 0), f"{line}\n{done.stdout}"
        self.said += done.stdout

    def read(self, kind: str, text: str) -> None:
        """A block of the page."""
        if kind == "yaml":
            for written, ours in self.addresses.items():
                text = text.replace(written, ours)
            (self.folder / text.partition("\n")[0].removeprefix("# ")).write_text(text)
        elif kind == "sh":
            self.said = ""
            for line in text.splitlines():
                self.run(line)
        else:
            said = [" ".join(line.split()) for line in self.said.splitlines()]
            for line in text.splitlines():
                wanted = " ".join(line.split())
                while said and not said[0].startswith(wanted):
                    said.pop(0)
                assert said, f"not said, or not in this order: {line}\n{self.said}"


def greet(exchange: Exchange) -> None:
    exchange.reply(200, body=b"orders")


def test_what_is_written() -> None:
    """Kong is an upstream that answers what the service does."""
    ports = Ports()
    folder = guard.folder("sluice-migrating-")
    with Upstream(greet) as service, Upstream(greet) as kong:
        addresses = {f"127.0.0.1:{port}": f"127.0.0.1:{ports.take()}" for port in PORTS} | {
            "127.0.0.1:8000": kong.address,
            "shop.internal:8080": service.address,
        }
        reader = Reader(folder, addresses)
        own_ports = {f"127.0.0.1:{port}": f"127.0.0.1:{ports.take()}" for port in (8000, 8001)}
        starting = reader.in_checkout(addresses | own_ports)
        try:
            refused = ""
            blocks = page()
            assert len(blocks) > 15
            assert [chapter for chapter, *_ in blocks[:4]] == [START] * 4
            for chapter, kind, text in blocks:
                (starting if chapter == START else reader).read(kind, text)
                refused = refused or reader.said
            # What a plugin's own file is refused with is tested where plugins are loaded.
            words = [each for each in words_of_the_table() if not each.startswith("module ")]
            assert len(words) == 5
            assert [each for each in words if each not in refused] == []
            assert len(kong.requests) >= 10
        finally:
            for name in ("sluice", "front", "trial", "store"):
                subprocess.run(
                    [COMMAND, "stop", "--prefix", folder / name],
                    env=reader.environment,
                    capture_output=True,
                    check=False,
                )
            guard.remove(folder)
            ports.release()
