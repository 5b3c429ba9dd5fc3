"""examples/events runs as it stands."""

from __future__ import annotations

import subprocess

import guard
from sluice import ROOT
from wire import DEADLINE, Wire, wait_until

PORT = 8010


def said(target: str) -> str:
    """What the example answers, "" while it does not."""
    try:
        with Wire(PORT) as wire:
            return wire.ask(target).body.decode()
    except ConnectionError:
        return ""


def test_the_example_runs() -> None:
    guard.watch(ROOT / "build" / "events-example")
    program = subprocess.Popen(
        [ROOT / "examples" / "events" / "run"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until(lambda: said("/heard").count("here I am") == 4, "the example to answer")
        assert said("/say?text=hello") == "true\n"
        wait_until(lambda: ": hello" in said("/heard"), "the text to arrive")
        assert '"transport":"ring"' in said("/figures")
    finally:
        program.terminate()
        log = program.communicate(timeout=DEADLINE)[0]
    assert not [line for line in log.splitlines() if "[notice]" not in line], log
