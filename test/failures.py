"""Which failures may be tried once more: make's AGAIN, docs/testing.md."""

import re

import pytest

# Exit status of tests that may be tried once more (make's AGAIN): sysexits' EX_TEMPFAIL.
AGAIN = 75
AGAIN_AT_MOST = 5
# Of the lines of an error log that a test has not declared: those that no second run excuses.
GRAVE = re.compile(
    r"\[(?:emerg|alert|crit)\]|exited (?:on signal|with)|Sanitizer|runtime error:|WRITE of size"
    r"|a global Lua variable"
)


class Failures:
    """Tells a run in which few tests failed, and no error log had anything grave, from others."""

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self.grave = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
            _, undeclared, lines = report.longreprtext.partition("sluice.Trouble: undeclared")
            self.grave = self.grave or bool(undeclared and GRAVE.search(lines))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        few = 0 < len(self.failed) <= AGAIN_AT_MOST
        if exitstatus == pytest.ExitCode.TESTS_FAILED and few and not self.grave:
            session.exitstatus = AGAIN
