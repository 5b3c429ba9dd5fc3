"""Fixtures of the tests of the store."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from harness import ROOT, SHIM, Reader

sys.path.insert(0, str(ROOT / "test"))

import interrupts
import soaks
from failures import Failures


def pytest_configure(config: pytest.Config) -> None:
    interrupts.restore()
    config.pluginmanager.register(Failures(config))
    config.pluginmanager.register(soaks)


@pytest.fixture(scope="session", autouse=True)
def shim() -> None:
    """Builds test/store/shim.c, into its place at once: each of pytest's workers does."""
    SHIM.parent.mkdir(parents=True, exist_ok=True)
    made = SHIM.with_suffix(f".{os.getpid()}")
    source = ROOT / "test/store/shim.c"
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(made), "-ldl"], check=True)
    made.rename(SHIM)


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    """Reads the stores that are left behind."""
    running = Reader()
    yield running
    running.close()
