"""Makes the modules of bench/ importable the way its runner sees them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "test")]

import interrupts  # noqa: E402
import soaks  # noqa: E402
from failures import Failures  # noqa: E402


def pytest_configure(config: pytest.Config) -> None:
    interrupts.restore()
    config.pluginmanager.register(Failures(config))
    config.pluginmanager.register(soaks)


def pytest_sessionstart() -> None:
    """Builds the module, as make does, where pytest is called without it in a fresh clone."""
    if subprocess.run([ROOT / "scripts" / "build-module"], check=False).returncode != 0:
        pytest.exit("there is nothing to test without the module", 1)
