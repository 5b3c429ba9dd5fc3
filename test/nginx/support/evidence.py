"""What a failed test leaves behind: which processes crashed, and its logs in build/ci/failed."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import guard

FAILED = Path(__file__).resolve().parents[3] / "build" / "ci" / "failed"

SANITIZER = r"Sanitizer|runtime error:|^WRITE of size"
CRASH = re.compile(rf"exited on signal|exited with (?:fatal )?code [1-9]|{SANITIZER}")
"""Of the lines that a test has not declared: those that no second run excuses."""

TEXTS = {".log", ".conf", ".json", ".yaml", ".yml", ".txt"}
"""Files that are kept; stores and images are not."""

FILE_BYTES = 2 << 20
"""Kept of a file: its end."""

_crashes: list[str] = []


def notice(lines: Iterable[str]) -> None:
    """Remembers crashes among undeclared lines of an error log, whatever the test fails by."""
    _crashes.extend(line for line in lines if CRASH.search(line))


def crashes() -> list[str]:
    """What was noticed since the last call."""
    taken = list(_crashes)
    _crashes.clear()
    return taken


def keep(folder: Path) -> None:
    """Copies a folder's logs and configuration, and what its processes do, for the test that runs.

    Whatever is gone meanwhile, or cannot be read, is left out: this is about another failure.
    """
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    if not test or not folder.is_dir():
        return
    place = FAILED / re.sub(r"[^\w.-]+", "-", test)[:150] / folder.name
    place.mkdir(parents=True, exist_ok=True)
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            if path.suffix in TEXTS and path.is_file() and not path.is_symlink():
                _copy_end(path, place / "-".join(path.relative_to(folder).parts))
    (place / "processes.txt").write_text("".join(map(_described, guard.running_in([str(folder)]))))


def _copy_end(path: Path, copy: Path) -> None:
    with path.open("rb") as source, copy.open("wb") as target:
        source.seek(max(0, path.stat().st_size - FILE_BYTES))
        shutil.copyfileobj(source, target)


def _described(pid: int) -> str:
    proc = Path(f"/proc/{pid}")
    said = [f"pid {pid}: "]
    for name in ("cmdline", "stat", "wchan", "stack"):
        with contextlib.suppress(OSError):
            text = (proc / name).read_bytes().replace(b"\0", b" ").decode(errors="replace")
            said.append(f"{name}: {text.strip()}\n")
    return "".join(said) + "\n"
