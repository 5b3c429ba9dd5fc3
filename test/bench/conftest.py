"""Makes the modules of bench/ importable the way its runner sees them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

sys.path.insert(0, str(ROOT / "bench"))


def pytest_sessionstart() -> None:
    """Builds the module, as make does, where pytest is called without it in a fresh clone."""
    if subprocess.run([ROOT / "scripts" / "build-module"], check=False).returncode != 0:
        pytest.exit("there is nothing to test without the module", 1)
