"""Which failures may be tried once more: make's AGAIN, docs/testing.md."""

from __future__ import annotations

import pytest

# Exit status of tests that may be tried once more (make's AGAIN): sysexits' EX_TEMPFAIL.
AGAIN = 75
AGAIN_AT_MOST = 3


class Failures:
    """Tells a run in which few tests failed, and no error log had anything to say, from others."""

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self.trouble = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
            self.trouble = self.trouble or "sluice.Trouble: undeclared" in report.longreprtext

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        few = 0 < len(self.failed) <= AGAIN_AT_MOST
        if exitstatus == pytest.ExitCode.TESTS_FAILED and few and not self.trouble:
            session.exitstatus = AGAIN
