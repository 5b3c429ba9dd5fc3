"""examples/var runs as it stands."""

from __future__ import annotations

import subprocess

import guard
from sluice import ROOT
from wire import DEADLINE, Wire, wait_until

PORT = 8011


def said() -> str:
    """What the example answers, "" while it does not."""
    try:
        with Wire(PORT) as wire:
            return wire.ask("/a/b", headers={"X-Tenant": "acme"}).body.decode()
    except ConnectionError:
        return ""


def test_the_example_runs() -> None:
    guard.watch(ROOT / "build" / "var-example")
    program = subprocess.Popen(
        [ROOT / "examples" / "var" / "run"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until(lambda: said() == "acme at /a/b\n", "the example to answer")
    finally:
        program.terminate()
        log = program.communicate(timeout=DEADLINE)[0]
    assert "GET /a/b: 200 for acme" in log
    assert not [line for line in log.splitlines() if "[notice]" not in line], log
