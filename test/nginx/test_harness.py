"""The harness itself: an undeclared line of trouble fails a test, a declared one must come."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sluice import Gateway, Trouble


class Log:
    """A gateway that was never started, with a log to write."""

    def __init__(self) -> None:
        self.gateway = Gateway({})
        self.path = self.gateway.prefix / "run" / "logs" / "error.log"
        self.path.parent.mkdir(parents=True)

    def write(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)


@pytest.fixture
def log() -> Iterator[Log]:
    log = Log()
    yield log
    log.path.unlink(missing_ok=True)
    log.gateway.expectations.clear()
    log.gateway.close()


QUIET = "2026/01/01 00:00:00 [notice] 1#1: signal 17 (SIGCHLD) received from 2\n"
REFUSED = "2026/01/01 00:00:00 [error] 1#1: *1 connect() failed (111: Connection refused)\n"


@pytest.mark.parametrize(
    "line",
    [
        REFUSED,
        "2026/01/01 00:00:00 [crit] 1#1: *1 open() failed\n",
        "2026/01/01 00:00:00 [emerg] 1#1: bind() failed\n",
        "2026/01/01 00:00:00 [alert] 1#1: worker process 2 exited on signal 11\n",
        "2026/01/01 00:00:00 [notice] 1#1: worker process 2 exited with code 1\n",
        "==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1\n",
        "ring.c:10:3: runtime error: signed integer overflow\n",
        "2026/01/01 00:00:00 [warn] 1#1: *1 [lua] _G write guard: writing a global Lua variable\n",
    ],
)
def test_undeclared_trouble_fails(log: Log, line: str) -> None:
    log.write(QUIET + line)
    with pytest.raises(Trouble, match="undeclared"):
        log.gateway.check_log()


def test_quiet_lines_pass(log: Log) -> None:
    log.write(QUIET + "2026/01/01 00:00:00 [notice] 1#1: worker process 2 exited with code 0\n")
    log.gateway.check_log(final=True)


def test_declared_lines_pass_by_count(log: Log) -> None:
    log.gateway.expect_log("Connection refused", 2)
    log.write(REFUSED)
    log.gateway.check_log()
    log.write(REFUSED)
    log.gateway.check_log(final=True)


@pytest.mark.parametrize("lines", [0, 1, 3])
def test_another_count_than_declared_fails(log: Log, lines: int) -> None:
    log.gateway.expect_log("Connection refused", 2)
    log.write(REFUSED * lines)
    with pytest.raises(Trouble, match="declared 2"):
        log.gateway.check_log(final=True)


def test_a_line_is_reported_once(log: Log) -> None:
    log.write(REFUSED)
    with pytest.raises(Trouble):
        log.gateway.check_log()
    log.gateway.check_log(final=True)


def test_an_unfinished_line_waits_for_its_end(log: Log) -> None:
    log.write(REFUSED[:40])
    log.gateway.check_log()
    log.write(REFUSED[40:])
    with pytest.raises(Trouble, match="Connection refused"):
        log.gateway.check_log()
