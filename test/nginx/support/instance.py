"""Runs the sluice command on instances of its own, for the tests of the command."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import evidence
from ports import Ports
from trouble import is_slow_end

import guard
from processes import ran
from sluice import COMMAND, ROOT, sanitizers

SECONDS = 60

ONE = """\
_format_version: "3.0"
services:
  - name: one
    url: {url}
    routes: [{{name: one, paths: [/one]}}]
"""

TWO = ONE.replace("one", "two")

BAD = """\
_format_version: "3.0"
services:
  - name: one
    bogus: 1
    url: http://127.0.0.1:9
    routes: [{name: one, paths: [one]}]
"""

AS_ROOT = os.geteuid() == 0


class Instance:
    """A prefix, two ports and a declarative file, with the sluice command on them."""

    def __init__(self, folder: Path, ports: Ports) -> None:
        self.folder = folder
        self.command = COMMAND
        """The checkout's, or that of a copy."""
        self.prefix = folder / "run"
        self.file = folder / "sluice.yaml"
        self.proxy_port = ports.take()
        self.admin_port = ports.take()
        self.flags = {
            "--file": str(self.file),
            "--proxy-listen": f"127.0.0.1:{self.proxy_port}",
            "--admin-listen": f"127.0.0.1:{self.admin_port}",
            "--workers": "2",
            "--worker-connections": "512",
        }
        if sanitizers():  # which a binary upgrade passes on if they are named
            self.flags["--vault-env"] = ",".join(sanitizers())
        self.cuts_off_requests = False
        """Whether the test does: nginx then alerts of each open socket."""
        self.kills_workers = False
        """Whether the test does: nginx then tells of each."""
        self.url = ""
        """Of the upstream, where the test has one."""
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_")}

    def line(self, verb: str, *more: str, **flags: str | None) -> list[str]:
        """The command line; `flags` replace the usual ones, None leaves one out."""
        given = {"--prefix": str(self.prefix)}
        if verb == "start":
            given |= self.flags
        given |= {f"--{name.replace('_', '-')}": value for name, value in flags.items()}
        words = [
            word for name, value in given.items() if value is not None for word in (name, value)
        ]
        return [str(self.command), verb, *words, *more]

    def run(self, verb: str, *more: str, **flags: str | None) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end."""
        return ran(self.line(verb, *more, **flags), env=self.environment, cwd=self.folder)

    def succeed(self, verb: str, *more: str, **flags: str | None) -> str:
        """Runs a command that has to succeed in silence; what it said."""
        done = self.run(verb, *more, **flags)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def refuse(self, verb: str, *more: str, code: int = 1, **flags: str | None) -> list[str]:
        """Runs a command that has to fail; the lines that say why."""
        done = self.run(verb, *more, **flags)
        assert (done.returncode, done.stdout) == (code, ""), (done.stdout, done.stderr)
        assert "traceback" not in done.stderr
        return done.stderr.splitlines()

    def hint(self, command: str, flags: str = "") -> str:
        """A command as a line names it; `flags` are those that the refused one was given."""
        return f"`{self.command} {command} --prefix {self.prefix}{flags and ' '}{flags}`"

    def status(self) -> dict:
        """What `sluice status --json` says."""
        return json.loads(self.run("status", "--json").stdout)

    def error_log(self) -> str:
        """The text of the error log so far."""
        log = self.prefix / "logs" / "error.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def get(self, path: str, port: int | None = None) -> int:
        """The status code of one request; 0 when nobody answers.

        Nobody listens then, or nginx -t does for a moment, before a start in the foreground.
        """
        connection = http.client.HTTPConnection(
            "127.0.0.1", port or self.proxy_port, timeout=SECONDS
        )
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except (ConnectionRefusedError, ConnectionResetError):
            return 0
        finally:
            connection.close()

    def end(self) -> list[str]:
        """Stops it and removes its files: the lines of its error log that are trouble."""
        before = self.error_log()
        self.run("stop")
        ending = self.error_log()[len(before) :].splitlines()
        trouble = [line for line in before.splitlines() if self._is_trouble(line)]
        trouble += [line for line in ending if self._is_trouble(line) and not is_slow_end(line)]
        if trouble:
            evidence.keep(self.folder)
        guard.remove(self.folder)
        return trouble

    def _is_trouble(self, line: str) -> bool:
        if "exited on signal" in line:
            return not self.kills_workers
        if "[alert]" in line:
            return not self.cuts_off_requests
        return re.search(evidence.SANITIZER, line) is not None


def built_for() -> str:
    """The version of nginx that the checkout's module is built for."""
    return (ROOT / "build" / "module" / "nginx_version").read_text().strip()


def optimise_less(checkout: Path) -> None:
    """Has the build of a copy take a third of its time: what all other tests run is optimised."""
    script = checkout / "scripts" / "build-module"
    text = script.read_text()
    optimised = 'more_cc="-O3 -flto=auto -fno-semantic-interposition"'
    fast = text.replace(optimised, 'more_cc="-O0 -U_FORTIFY_SOURCE"')
    fast = fast.replace('more_ld="-O3 -flto=auto"', "more_ld=")
    assert "O3" in text
    assert "O3" not in fast
    script.write_text(fast)


def copy_checkout(folder: Path, version: str | None = "") -> Path:
    """What a user has of Sluice, without git, in a folder to be made; what `make build` made is in
    it, for that version of nginx where one is given, nothing of that where it is None. The command
    in it.
    """
    for name in (
        "bin",
        "cli",
        "compat",
        "examples",
        "gateway",
        "lib",
        "module",
        "plugins",
        "scripts",
    ):
        shutil.copytree(ROOT / name, folder / name)
    if version is not None:
        built = folder / "build" / "module"
        built.mkdir(parents=True)
        (built / "nginx_version").write_text((version or built_for()) + "\n")
        shutil.copy(ROOT / "build" / "module" / "ngx_sluice_module.so", built)
        shutil.copytree(ROOT / "build" / "core", folder / "build" / "core")
    return folder / "bin" / "sluice"


def is_untouched(instance: Instance) -> bool:
    """Whether a refused start left nothing behind: no prefix, no nginx."""
    return not instance.prefix.exists() and instance.status()["running"] is False


class Instances:
    """Makes instances; at the end stops those that still run, and removes their files."""

    def __init__(self) -> None:
        self._ports = Ports()
        self._made: list[Instance] = []

    def __enter__(self) -> Instances:
        return self

    def __exit__(self, *_: object) -> None:
        trouble = [line for instance in self._made for line in instance.end()]
        self._ports.release()
        evidence.notice(trouble)
        assert not trouble, "undeclared lines in the error log:\n" + "\n".join(trouble[:20])

    def make(self) -> Instance:
        """One more, with a declarative file, not started."""
        folder = guard.folder("sluice-cli-")
        instance = Instance(folder, self._ports)
        instance.file.write_text(ONE.format(url="http://127.0.0.1:9"))
        self._made.append(instance)
        return instance
