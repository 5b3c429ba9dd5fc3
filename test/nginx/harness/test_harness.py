"""The harness itself: an undeclared line of trouble fails a test, a declared one must come."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import evidence
import pytest
import trouble
from trouble import Trouble

import guard
from instance import Instances
from sluice import SUPPORT, Gateway, alive
from wire import wait_until


class Log:
    """A gateway that was never started, with a log to write."""

    def __init__(self) -> None:
        self.gateway = Gateway({}, workers=2)
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
    log.gateway.started = False
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
        "WRITE of size 8 at 0x1 thread T0\n",
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


def test_a_declared_line_may_come_after_the_answer(log: Log) -> None:
    log.gateway.expect_log("Connection refused")
    log.gateway.started = True
    log.gateway.stop = Mock()  # type: ignore[method-assign]
    late = threading.Timer(0.2, log.write, [REFUSED])
    late.start()
    log.gateway.close()
    late.join()
    assert log.gateway.expectations[0].seen == 1


CRASHED = "2026/01/01 00:00:00 [alert] 1#1: worker process 2 exited on signal 11"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where logs of failed tests go: none has failed."""
    monkeypatch.setattr(evidence, "FAILED", tmp_path)
    return tmp_path


def test_a_crash_is_noticed_whatever_a_test_fails_by(log: Log, kept: Path) -> None:
    log.write(CRASHED + "\n")
    gone = ConnectionError()
    log.gateway.__exit__(ConnectionError, gone, None)
    assert CRASHED in gone.__notes__[0]
    assert [path.read_text() for path in kept.rglob("*error.log")] == [CRASHED + "\n"]
    assert evidence.crashes() == [CRASHED]


@pytest.mark.usefixtures("kept")
def test_a_crash_is_noticed_where_the_command_is_tested() -> None:
    instances = Instances()
    error_log = instances.make().prefix / "logs" / "error.log"
    error_log.parent.mkdir(parents=True)
    error_log.write_text(CRASHED + "\n")
    with pytest.raises(AssertionError, match="exited on signal 11"):
        instances.__exit__(ConnectionError, ConnectionError(), None)
    assert evidence.crashes() == [CRASHED]


KILLED = "2026/01/01 00:00:00 [alert] 1#1: worker process {} exited on signal {}\n"


@pytest.fixture
def slow_ends(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Those so far: none."""
    found: list[str] = []
    monkeypatch.setattr(trouble, "_slow_ends", found)
    return found


def end_with(log: Log, *lines: str) -> None:
    """Has a test end: nginx says this while the harness stops it."""
    log.gateway.started = True
    log.gateway.stop = lambda: log.write("".join(lines))  # type: ignore[method-assign]
    try:
        log.gateway.close()
    finally:
        del log.gateway.stop
        log.path.parent.mkdir(parents=True, exist_ok=True)


def test_a_worker_that_is_slow_to_leave_is_no_trouble(log: Log, slow_ends: list[str]) -> None:
    with pytest.warns(UserWarning, match="slow end: .* worker process 7 exited"):
        end_with(log, QUIET, KILLED.format(7, 9))
    assert len(slow_ends) == 1


def test_many_of_them_are_trouble(log: Log, slow_ends: list[str]) -> None:
    many = [KILLED.format(pid, 9) for pid in range(trouble.SLOW_ENDS_AT_MOST + 1)]
    with (
        pytest.warns(UserWarning, match="slow end"),
        pytest.raises(Trouble, match="process 5 exited"),
    ):
        end_with(log, *many)
    assert len(slow_ends) == trouble.SLOW_ENDS_AT_MOST


@pytest.mark.parametrize("signal_of_death", [6, 11, 90])
def test_a_crash_at_the_end_is_trouble(log: Log, signal_of_death: int) -> None:
    with pytest.raises(Trouble, match="undeclared"):
        end_with(log, KILLED.format(7, signal_of_death))


def test_a_worker_killed_before_the_end_is_trouble(log: Log) -> None:
    log.write(KILLED.format(7, 9))
    with pytest.raises(Trouble, match="undeclared"):
        end_with(log, QUIET)


STARTED = """
import sys

from nginx import Nginx
from instance import Instances
from sluice import Gateway

instance = Instances().make()
instance.succeed("start")
bare = Nginx("server { listen 127.0.0.1:@port@; }")
gateway = Gateway({}, workers=2)
print(bare.start().prefix, gateway.start().prefix, instance.folder, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_what_killed_tests_have_started_ends(how: signal.Signals) -> None:
    tests = subprocess.Popen(
        [sys.executable, "-c", STARTED],
        cwd=SUPPORT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert tests.stdout
        folders = tests.stdout.readline().split()
        assert len(folders) == 3
        # A master, two workers, and the gateway's control worker; none is a child of the tests.
        for folder, processes in zip(folders, (3, 4, 4), strict=True):
            assert len(set(guard.running_in([folder]))) == processes, folder
        settings = [path for folder in folders for path in Path(folder).rglob("settings.json")]
        images = [Path(json.loads(path.read_text())["image_dir"]) for path in settings]
        assert len(images) == 2
        assert all(folder.is_dir() for folder in images)
    finally:
        tests.send_signal(how)
        tests.communicate()
    wait_until(lambda: not list(guard.running_in(folders)), "the daemons' end")
    wait_until(lambda: not any(Path(folder).exists() for folder in folders), "no folder")
    wait_until(lambda: not any(folder.exists() for folder in images), "no images")


def test_a_name_that_begins_another_is_not_that() -> None:
    folder = guard.folder("sluice-guard-")
    sleeping = subprocess.Popen(["sleep", "60"], cwd=folder)
    try:
        assert list(guard.running_in([str(folder)])) == [sleeping.pid]
        assert list(guard.running_in([str(folder)[:-1]])) == []
    finally:
        sleeping.kill()
        sleeping.wait()
        folder.rmdir()


def test_a_process_that_ends_while_it_is_looked_at_is_not_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between the opening and the reading of its file; reading it fails by ESRCH then."""
    sleeping = subprocess.Popen(["sleep", "60"])
    assert alive(sleeping.pid)
    opening = Path.open

    def opened_late(*given: object, **options: object) -> object:
        file = opening(*given, **options)
        sleeping.kill()
        sleeping.wait()
        return file

    monkeypatch.setattr(Path, "open", opened_late)
    assert not alive(sleeping.pid)
