"""Folders of tests, and an end for what runs in them when the tests themselves are killed.

A daemon is nobody's child and no signal of the kernel's follows it. So a process of
its own holds the reading end of a pipe, whose other end is the tests': when that
closes, however they ended, it kills what still runs in a folder that `folder` made,
and removes the folder.
"""

import atexit
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

SETTLED = 5
"""Looks in a row that have to find nothing: a command may be starting what the next one finds."""

LOOK_SECONDS = 0.1

_guard: IO[str] | None = None

made: set[Path] = set()
"""Folders that this process has made and not removed."""


def folder(prefix: str) -> Path:
    """A folder that everybody may enter: workers of a root-started nginx are another user."""
    new = Path(tempfile.mkdtemp(prefix=prefix))
    new.chmod(0o755)
    watch(new)
    return new


def watch(folder: Path) -> None:
    """Has what runs in a folder ended with the tests."""
    global _guard
    made.add(folder)
    if not _guard:
        # Deaf to the terminal's Ctrl-C, which ends the tests. Python's pipes go to no other child.
        process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, text=True, start_new_session=True
        )
        _guard = process.stdin
        atexit.register(process.wait)
        atexit.register(_guard.close)
    _guard.write(f"{folder}\n")
    _guard.flush()


def running_in(folders: Iterable[str]) -> Iterator[int]:
    """Processes whose command line, environment or directory names one of the folders, and the
    children of those: nginx's workers show none of it."""
    parents: dict[int, list[int]] = {}
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        if pid == os.getpid():
            continue
        with contextlib.suppress(OSError):
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            parents.setdefault(int(parent), []).append(pid)
            said = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            said += b"\0" + os.fsencode((entry / "cwd").readlink()) + b"/"
            if any(os.fsencode(folder) + end in said for folder in folders for end in ENDS):
                found.append(pid)
    while found:
        pid = found.pop()
        found += parents.pop(pid, [])
        yield pid


ENDS = (b"/", b"\0", b" ")
"""What a folder's name ends with where it is named, as one name may begin another."""


def end(folders: set[str]) -> None:
    """Kills what runs in the folders until nothing does, and removes them."""
    quiet = 0
    while quiet < SETTLED:
        found = list(running_in(folders))
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        quiet = 0 if found else quiet + 1
        time.sleep(LOOK_SECONDS)
    for name in folders:
        remove(Path(name))


def remove(folder: Path) -> None:
    """Removes a folder, and the images of gateways whose prefix is in it: those of one that was
    killed stand in shared memory."""
    made.discard(folder)
    for settings in folder.rglob("settings.json"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            images = json.loads(settings.read_text())["image_dir"]
            if images.startswith("/dev/shm/sluice-"):
                shutil.rmtree(images, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """The guard itself: reads folders until nobody can name one any more."""
    folders = {line.rstrip("\n") for line in sys.stdin}
    if left := {name for name in folders if os.path.exists(name)}:
        end(left)


if __name__ == "__main__":
    main()
