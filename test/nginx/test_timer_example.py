"""examples/timer runs as it stands."""

from __future__ import annotations

import json
import subprocess

import guard
from sluice import ROOT
from wire import DEADLINE, Wire, wait_until

PORT = 8012


def said(target: str) -> str:
    """What the example answers, "" while it does not."""
    try:
        with Wire(PORT) as wire:
            return wire.ask(target).body.decode()
    except ConnectionError:
        return ""


def test_the_example_runs() -> None:
    guard.watch(ROOT / "build" / "timer-example")
    program = subprocess.Popen(
        [ROOT / "examples" / "timer" / "run"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until(lambda: said("/boil?minutes=0.001&name=soft") == "boiling\n", "the example")
        assert said("/boil?minutes=9&name=hard") == "boiling\n"
        assert said("/boil?minutes=9&name=hard") == "already exists timer\n"
        wait_until(lambda: said("/eggs") == "soft\n", "the egg")
        assert said("/stop?name=hard") == "stopped\n"
        assert said("/stop?name=hard") == "timer not found\n"
        stats = json.loads(said("/stats"))
        assert stats["sys"]["runs"] == 1
        assert [timer["interval"] for timer in stats["timers"]] == [60]
    finally:
        program.terminate()
        log = program.communicate(timeout=DEADLINE)[0]
    assert not [line for line in log.splitlines() if "[notice]" not in line], log
