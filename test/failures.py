"""What failed: the reason in a line, and the command that repeats it.

scripts/check names a file in FAILED_TO. Each suite writes its failures there, a line each: `failed`
or `crashed`, the test, the reason and the command, with tabs between. Whatever is written down may
be run once more, unless it crashed: docs/testing.md.
"""

import os
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

CRASH = "crash"
"""Of a report's properties: what a process died of, or a sanitizer's line."""

WITH_ITS_FILE = "with its file"
"""Of a report's properties: one before it may have left what it fails by; its file repeats it."""

KEPT = ("SEED", "LONG")
"""Variables that decide what a test does."""

REASON_CHARACTERS = 300


class Failures:
    """Says of each failed test why, at once, and writes it down at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.reasons: dict[str, str] = {}
        self.crashes: dict[str, str] = {}
        self.with_their_files: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        crash = next((line for kind, line in report.user_properties if kind == CRASH), None)
        if crash:
            self.crashes.setdefault(report.nodeid, crash)
        if any(kind == WITH_ITS_FILE for kind, _ in report.user_properties):
            self.with_their_files.add(report.nodeid)
        if not report.failed:
            return
        reason = reason_of(report)
        self.reasons.setdefault(report.nodeid, reason)
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if terminal:
            terminal.write_line("")
            terminal.write_line(f"FAILED {report.nodeid}: {reason}")
            terminal.write_line(f"again: {self._command(report.nodeid)}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        path = os.environ.get("FAILED_TO")
        is_worker = hasattr(self.config, "workerinput")
        if not path or is_worker or exitstatus != pytest.ExitCode.TESTS_FAILED:
            return
        with open(path, "a") as file:
            for test, reason in self.reasons.items():
                crash = self.crashes.get(test)
                words = ["crashed" if crash else "failed", test, crash or reason]
                print(*map(_one_line, words), self._command(test), sep="\t", file=file)

    def _command(self, test: str) -> str:
        file, colons, rest = test.partition("::")
        if test in self.with_their_files:
            colons = rest = ""
        place = os.path.relpath((self.config.rootpath / file).resolve(), ROOT)
        given = "".join(f"{name}={os.environ[name]} " for name in KEPT if os.environ.get(name))
        return f"{given}build/venv/bin/python -m pytest {shlex.quote(f'{place}{colons}{rest}')}"


def reason_of(report: pytest.TestReport) -> str:
    """The first line of what went wrong, and the second where the first announces it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else report.longreprtext.strip()).splitlines() or [""]
    if not crash:
        return _one_line(lines[-1])
    return _one_line(" ".join(lines[:2]) if lines[0].endswith(":") else lines[0])


def _one_line(text: str) -> str:
    return " ".join(text.split())[:REASON_CHARACTERS]
