"""Fixtures of the tests of the store."""

import subprocess
from collections.abc import Iterator

import pytest

from harness import ROOT, SHIM, Reader


@pytest.fixture(scope="session", autouse=True)
def shim() -> None:
    """Builds test/store/shim.c."""
    SHIM.parent.mkdir(parents=True, exist_ok=True)
    source = ROOT / "test/store/shim.c"
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(SHIM), "-ldl"], check=True)


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    """Reads the stores that are left behind."""
    running = Reader()
    yield running
    running.close()
