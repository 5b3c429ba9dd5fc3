"""The runner as a whole, with hand-written nginx on both sides: a few seconds of load each."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import proxy
import pytest
import run
import scenario
import sides

RUNNER = Path(run.__file__)

PLAIN = scenario.load("proxy-plain")

needs_wrk = pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")


@pytest.mark.parametrize(
    ("line", "logged"),
    [
        ("", True),
        ("--scenario proxy-plain", False),
        ("--quick", False),
        ("--record --scenario proxy-plain", True),
        ("--record --quick", True),
        ("--record --pairs 4", False),
        ("--record --self", False),
    ],
)
def test_what_goes_into_the_log(line: str, logged: bool) -> None:
    assert run.is_logged(run.parse(line.split())) is logged


def processes_in(folder: Path) -> list[str]:
    """Command lines of the processes that were started in a folder, or with a file of it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_text().replace("\0", " ").strip()
            directory = str((process / "cwd").readlink())
        except OSError:
            continue
        # "--output" is the runner's own, which is waited for.
        if (str(folder) in line and "--output" not in line) or directory.startswith(str(folder)):
            found.append(line)
    return found


@pytest.mark.long
@needs_wrk
def test_a_run_writes_its_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "FULL", proxy.Plan(2, 1, 60))
    result = run.run_scenario(PLAIN, run.Options(against_itself=True), tmp_path)
    assert result.invalid is None
    written = json.loads((tmp_path / "proxy-plain-self.json").read_text())
    assert set(written) == {"scenario", "invalid", "metrics"}
    wanted = {"efficiency", "rps_ratio", "p99_ratio", "rps", "rps_nginx"}
    assert wanted <= set(written["metrics"])
    for metric in written["metrics"].values():
        assert set(metric) == {"value", "unit", "low", "high"}
        assert 0 < metric["low"] <= metric["value"] <= metric["high"]
    # Nothing to do with speed, only with sides or units mixed up.
    assert 0.3 < written["metrics"]["efficiency"]["value"] < 3


@pytest.mark.long
@needs_wrk
def test_nothing_is_left_of_an_interrupted_comparison(tmp_path: Path) -> None:
    # Not in pytest's own folder: workers of another user have to enter the checkouts.
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as name:
        Path(name).chmod(0o755)
        interrupt_comparison(Path(name), tmp_path / "output")


def interrupt_comparison(scratch: Path, output: Path) -> None:
    what = ["--scenario", "proxy-plain", "--compare", "HEAD", "--output", output]
    runner = subprocess.Popen(
        [sys.executable, RUNNER, *what],
        env=os.environ | {"TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: any(" -s " in line for line in processes_in(scratch)), 120)
        runner.send_signal(signal.SIGINT)
        assert runner.wait(60) == 130
    finally:
        runner.kill()
        runner.wait()
    assert processes_in(scratch) == []
    assert list(scratch.iterdir()) == []


@needs_wrk
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_an_interrupted_run(number: signal.Signals, tmp_path: Path) -> None:
    scratch, output = tmp_path / "scratch", tmp_path / "output"
    scratch.mkdir()
    runner = subprocess.Popen(
        [sys.executable, RUNNER, "--scenario", "proxy-plain", "--self", "--output", output],
        env=os.environ | {"TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: any(" -s " in line for line in processes_in(scratch)))
        # Two masters, two workers, upstream, generator.
        wait_until(lambda: len(processes_in(scratch)) == 6)
        runner.send_signal(number)
        killed = number == signal.SIGKILL
        assert runner.wait(60) == (-number if killed else 130)
    finally:
        runner.kill()
        runner.wait()
    if killed:  # nobody is there to clean up: the kernel tells the servers
        wait_until(lambda: not processes_in(scratch))
    else:
        assert processes_in(scratch) == []
        assert list(scratch.iterdir()) == []
        written = json.loads((output / "proxy-plain-self.json").read_text())
        assert written["invalid"] == "interrupted"


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_side_that_does_not_start_makes_the_run_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sides.Sluice, "command", lambda self: ["sh", "-c", "echo no luck today; exit 1"]
    )
    result = run.run_scenario(PLAIN, run.Options(quick=True), tmp_path)
    assert result.invalid == "Sluice did not start: no luck today"
    assert json.loads((tmp_path / "proxy-plain.json").read_text())["invalid"] == result.invalid
