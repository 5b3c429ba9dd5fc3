"""Each command of README and docs/*.md is run by a test, or stands in NOT_RUN with the reason.

Those with a `$` are test_pages.py's, with what they print. Here run the others, block by block as
they stand: each has to succeed, and each request to be answered well.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from pages import PAGES, PROGRAMS, Command, blocks, commands, is_of_commands
from ports import Ports

import certificates
import guard
from instance import Instance
from sluice import COMMAND, ROOT, Gateway, Start, sanitizers
from upstream import Exchange, Upstream

# A pattern of `PAGE: COMMAND`, and why no test runs it.
NOT_RUN = {
    r".*: apt install \./sluice_": "changes the system: `make deb` does it on bare ones",
    r".*: (make run|make test)$": "`make platforms` does what README says on bare systems",
    r".*: install (-d -o|-m 640 -g) sluice": "needs root and the user of the package",
    r".*: podman ": "needs podman: test_container*.py run what is in the image",
    r"service\.md: systemctl": "needs systemd: test_supervised.py has a supervisor of its own",
    r"operations\.md: sluice upgrade$": "needs another version: test_cli_upgrade.py has one",
    r"tls\.md: curl .* https://ca\.internal/": "the list of another machine",
    r"plugin-(development|walkthrough)\.md: .*(\.\.\.|/opt/my/)": "of the reader's own plugin",
    r"packages\.md: ": "needs another nginx and its sources",
    r"events\.md: (\./configure <|make modules)": "needs the sources of an nginx",
    r"benchmarks\.md: ": "takes hours: the lab has tests of its own (test/bench)",
    r"testing\.md: (make|scripts/setup|python3|go|git clone|test/suites/|h2spec) ?": "runs tests",
}


TO_A_FILE = ("operations.md", "From the store to a file")
"""A chapter after which the Admin API is read-only: it has a gateway of its own."""


def who_runs(command: Command) -> str | None:
    """The test that runs it; None: this one."""
    if command.has_prompt:
        return "test_pages.py"
    if command.page == "migrating-from-kong.md" and command.kind == "sh":
        return "test_migrating.py"
    if command.page == "migrating-from-kong.md" and command.line.startswith("sluice "):
        return "test_migrating.py"  # the same from the checkout
    if command.page == "plugin-walkthrough.md" and "/opt/my/" not in command.line:
        return "test_plugin_walkthrough.py"
    if command.page == "admin.md" and re.fullmatch(r"\d{3}", command.remark):
        return "test_admin_docs.py"
    if (command.page, command.chapter) == ("operations.md", "Finding out"):
        return "test_recipes.py"
    if (command.page, command.chapter) == TO_A_FILE:
        return "test_from_the_store_to_a_file"
    return None


def reason(command: Command) -> str | None:
    """Why nobody runs it, if so."""
    said = f"{command.page}: {command.line}"
    return next((why for pattern, why in NOT_RUN.items() if re.match(pattern, said)), None)


ALL = [command for page in PAGES for command in commands(page)]
OURS = [command for command in ALL if not who_runs(command) and not reason(command)]


class Session:
    """A reader with a home, who has what the pages take for granted."""

    def __init__(self, folder: Path, places: dict[str, str], environment: dict[str, str]) -> None:
        self.folder = folder
        self.places = places
        own = folder / "reader-bin"
        own.mkdir()
        (own / "sluice").symlink_to(COMMAND)
        # An answer of 400 or above is a failure; and Debian's curl does not start with sanitizers.
        self._write(own / "curl", f'{shutil.which("curl")} --fail --silent --show-error "$@"')
        # systemd starts and stops the service by these commands.
        self._write(
            own / "systemctl",
            'case "$*" in "stop sluice") exec sluice quit ;; "start sluice") exec sluice start ;;\n'
            '"restart sluice") exec sluice restart ;;\n'
            '"enable --now sluice") exec sluice status ;; *) exit 1 ;; esac',
        )
        self.environment = environment | {
            "PATH": f"{own}:{os.environ['PATH']}",
            "HOME": str(folder),
            "no_proxy": "*",
        }

    def _write(self, path: Path, line: str) -> None:
        path.write_text(f"#!/bin/sh\nunset {' '.join(sanitizers())}\n{line}\n")
        path.chmod(0o755)

    def run(self, lines: list[str]) -> str:
        """A block, in one shell; what it prints."""
        text = "\n".join(lines)
        for written, real in self.places.items():
            text = text.replace(written, real)
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-xc", text],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def read(self, page: str) -> str:
        """The blocks of a page that are ours, one after the other; what they print."""
        mine = [command for command in OURS if command.page == page]
        assert mine, page
        numbers = sorted({command.block for command in mine})
        return "".join(
            self.run([command.line for command in mine if command.block == number])
            for number in numbers
        )


def test_each_command_is_run_or_named() -> None:
    """A page with a command of ours has a test below; a reason that nothing needs goes."""
    pages = {command.page for command in OURS}
    assert pages == {"README.md", "admin.md", "commands.md", "operations.md"}
    lines = [f"{command.page}: {command.line}" for command in ALL]
    stale = [one for one in NOT_RUN if not any(re.match(one, line) for line in lines)]
    assert stale == []
    assert len(OURS) > 30
    for page in PAGES:
        for _, kind, text in blocks(page):
            if kind == "" and not is_of_commands(kind, text):
                first = {line.split()[0] for line in text.splitlines() if line.strip()}
                assert first & PROGRAMS == set(), f"{page.name}: commands that nobody runs: {text}"


def ok(exchange: Exchange) -> None:
    exchange.reply(200, body=b"served\n")


def beside(running: Gateway, upstream: Upstream) -> Session:
    """A reader of a page about this gateway."""
    places = {
        "127.0.0.1:8000": f"127.0.0.1:{running.proxy_port}",
        "127.0.0.1:8001": f"127.0.0.1:{running.admin_port}",
        "127.0.0.1:8443": f"127.0.0.1:{running.tls_port}",
        "10.0.0.5:8001": f"127.0.0.1:{running.admin_port}",
        "shop.internal:8080": upstream.address,
        "/var/backups/sluice": str(running.prefix / "backups"),
    }
    (running.prefix / "backups").mkdir()
    return Session(running.prefix, places, running.environment())


def write_example(folder: Path, upstream: Upstream) -> Path:
    """The file of `make run`, for this upstream."""
    text = (ROOT / "examples" / "quickstart.yaml").read_text()
    assert "127.0.0.1:9080" in text
    path = folder / "sluice.yaml"
    path.write_text(text.replace("127.0.0.1:9080", upstream.address))
    return path


def test_readme(gateway: Start, upstream: Upstream) -> None:
    upstream.handler = ok
    running = gateway(None, tls="ssl http2")
    reader = beside(running, upstream)
    reader.run([f"sluice import {write_example(running.prefix, upstream)}"])
    said = reader.read("README.md")
    # By HTTP, by TLS, with a key, and through the store.
    assert said.count("served\n") == 4
    assert "X-RateLimit-Remaining-Minute: 4" in said
    assert '"name":"private"' in said


def test_operations(gateway: Start, upstream: Upstream) -> None:
    upstream.handler = ok
    running = gateway(None)
    reader = beside(running, upstream)
    pair = certificates.make("api.example.com")
    (running.prefix / "fullchain.pem").write_text(pair.cert)
    (running.prefix / "privkey.pem").write_text(pair.key)
    said = reader.read("operations.md")
    assert said.count("served\n") == 1
    assert '"snis":["api.example.com"]' in said
    assert {path.name for path in (running.prefix / "backups").iterdir()} == {
        "store.db",
        "sluice.json",
    }
    assert running.get("/shop").text == "served\n"


def test_from_the_store_to_a_file(instance: Instance, upstream: Upstream) -> None:
    """As the page says: what the store has is the file's then; an edit of it is loaded."""
    upstream.handler = ok
    folder = instance.folder
    (folder / "sluice.conf").write_text("")
    named = {"conf": folder / "sluice.conf", "prefix": instance.prefix, "workers": 1}
    listens = {"proxy_listen": instance.proxy_port, "admin_listen": instance.admin_port}
    named |= {name: f"127.0.0.1:{port}" for name, port in listens.items()}
    own = {f"SLUICE_{name.upper()}": str(value) for name, value in named.items()}
    reader = Session(folder, {"/etc/sluice": str(folder)}, instance.environment | own)
    admin = f"http://127.0.0.1:{instance.admin_port}"
    put = f"curl -X PUT {admin}/services/shop"
    reader.run(
        [
            "sluice start",
            f"{put} -d url={upstream.url}",
            f"{put}/routes/shop -d 'paths[]=/shop'",
        ]
    )
    chapter = [command for command in ALL if (command.page, command.chapter) == TO_A_FILE]
    said = reader.run([command.line for command in chapter if not reason(command)])
    assert f"~ setting file: (unset) -> {folder}/sluice.yaml" in said
    assert instance.get("/shop") == 200
    assert "operation unsupported" in reader.run([f"curl --no-fail -X DELETE {admin}/routes/shop"])
    instance.file.write_text(instance.file.read_text().replace("- /shop", "- /new"))
    reader.run(["sluice reload"])
    assert (instance.get("/shop"), instance.get("/new")) == (404, 200)


def test_admin(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None)
    reader = beside(running, upstream)
    write_example(running.prefix, upstream)
    said = reader.read("admin.md")
    assert re.search(r"^ci +write", said, re.MULTILINE)
    with running.wire() as wire:
        assert wire.ask("/").status == 404  # it serves; and who has no token learns nothing
    assert running.client.get(f"{running.admin}/").status_code == 401


def test_commands(upstream: Upstream) -> None:
    upstream.handler = ok
    ports, folder = Ports(), guard.folder("sluice-pages-")
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_")}
    listens = {f"SLUICE_{name}_LISTEN": f"127.0.0.1:{ports.take()}" for name in ("PROXY", "ADMIN")}
    small = {"SLUICE_WORKERS": "1", "SLUICE_WORKER_CONNECTIONS": "512"}
    reader = Session(folder, {}, clean | listens | small)
    write_example(folder, upstream)
    (folder / ".zsh" / "completions").mkdir(parents=True)
    try:
        said = reader.read("commands.md")
        assert "sluice.yaml is valid: 2 services, 2 routes" in said
        assert (folder / "copy.db").stat().st_size > 0
        assert "sluice" in (folder / ".zsh" / "completions" / "_sluice").read_text()
    finally:
        for name in ("gateway", "store"):
            command = ["sluice", "stop", "--prefix", str(folder / name)]
            subprocess.run(command, env=reader.environment, capture_output=True, check=False)
        guard.remove(folder)
        ports.release()
