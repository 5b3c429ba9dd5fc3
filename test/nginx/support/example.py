"""A program of examples/, run as it stands."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import guard
from sluice import ROOT
from wire import DEADLINE, Pairs, Wire


def said(port: int, target: str, headers: Pairs | None = None) -> str:
    """What an example answers, "" while it does not."""
    try:
        with Wire(port) as wire:
            return wire.ask(target, headers=headers).body.decode()
    except ConnectionError:
        return ""


@contextmanager
def running(name: str) -> Iterator[list[str]]:
    """Runs examples/<name>/run; its output is in the list afterwards, and has only notices."""
    guard.watch(ROOT / "build" / f"{name}-example")
    program = subprocess.Popen(
        [ROOT / "examples" / name / "run"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines: list[str] = []
    try:
        yield lines
    finally:
        program.terminate()
        lines += program.communicate(timeout=DEADLINE)[0].splitlines()
    assert not [line for line in lines if "[notice]" not in line], lines
