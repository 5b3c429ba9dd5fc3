"""Power cuts, simulated: what was not synced is lost, or not, sector by sector.

The steps of a writer towards the disk are recorded once (shim.c). Then, for every moment, files are
made as a disk might have them: everything that was synced, and of the rest none, all, or any choice
of sectors. A name is safe when its folder was synced.
"""

import copy
import dataclasses
import os
import pathlib
import random
import shutil
import struct
from collections.abc import Callable

import pytest
from seeds import seed_of

from harness import Reader, write

SECTOR = 512
HEAD = struct.Struct("=4Q")


@dataclasses.dataclass
class Step:
    """One step of a trace."""

    op: str
    path: str
    offset: int
    data: bytes


def steps_of(trace: pathlib.Path) -> list[Step]:
    """Reads a trace of shim.c."""
    text, at, steps = trace.read_bytes(), 0, []
    while at < len(text):
        op, path_length, offset, length = HEAD.unpack_from(text, at)
        at += HEAD.size
        path = text[at : at + path_length].decode()
        at += path_length
        if chr(op) == "W" or chr(op) == "R":
            steps.append(Step(chr(op), path, offset, text[at : at + length]))
            at += length
        else:
            steps.append(Step(chr(op), path, offset, b""))
    return steps


def put(content: bytearray, offset: int, data: bytes) -> None:
    """Writes into a file's content, which may have to grow."""
    if len(content) < offset + len(data):
        content.extend(bytes(offset + len(data) - len(content)))
    content[offset : offset + len(data)] = data


@dataclasses.dataclass
class File:
    """What the disk has of a file for sure, and what it has not yet."""

    content: bytearray = dataclasses.field(default_factory=bytearray)
    pending: list[Step] = dataclasses.field(default_factory=list)

    def sync(self) -> None:
        """All that is pending is on the disk."""
        self.content = self.after(lambda: True)
        self.pending = []

    def after(self, keeps: Callable[[], bool]) -> bytearray:
        """The content after a cut; `keeps` decides for each sector and truncation."""
        content = bytearray(self.content)
        for step in self.pending:
            if step.op == "T":
                if keeps():
                    put(content, step.offset, b"")
                    del content[step.offset :]
                continue
            for at in range(0, len(step.data), SECTOR):
                if keeps():
                    put(content, step.offset + at, step.data[at : at + SECTOR])
        return content


class Disk:
    """A folder on a disk that may lose its power."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.now: dict[str, File] = {}
        self.safe: dict[str, File] = {}

    def do(self, step: Step) -> None:
        """Takes a step."""
        if step.op == "C":
            self.now[step.path] = File()
        elif step.op == "U":
            self.now.pop(step.path)
        elif step.op == "R":
            self.now[step.data.decode()] = self.now.pop(step.path)
        elif step.op == "S" and step.path == self.folder:
            self.safe = dict(self.now)
        elif step.op == "S":
            self.now[step.path].sync()
        elif step.op in "WT":
            self.now[step.path].pending.append(step)

    def cut(self, to: pathlib.Path, keeps: Callable[[], bool]) -> None:
        """Writes what is left into a folder."""
        for path in self.now.keys() | self.safe.keys():
            file = (self.now if keeps() else self.safe).get(path)
            if file is not None:
                (to / os.path.basename(path)).write_bytes(file.after(keeps))


def chance(share: float) -> Callable[[], bool]:
    """Decides by chance."""
    return lambda: random.random() < share


MODES = {"nothing": chance(0), "everything": chance(1), "some": chance(0.5), "most": chance(0.9)}


@pytest.mark.parametrize("alone", [False, True], ids=["beside", "alone"])
@pytest.mark.parametrize("together", [1, 3])
def test_power_cut_at_every_step(
    tmp_path: pathlib.Path,
    reader: Reader,
    monkeypatch: pytest.MonkeyPatch,
    together: int,
    *,
    alone: bool,
) -> None:
    """What was answered is there, and of the rest each transaction whole or not at all."""
    if alone:
        monkeypatch.setenv("STORE_ALONE", "1")
    seed = seed_of("store_power")
    print(f"SEED={seed}")
    random.seed(seed)
    folder, trace = tmp_path / "live", tmp_path / "trace"
    folder.mkdir()
    lines = write(folder / "store.db", 12, together=together, reopen=6, folder=folder, trace=trace)
    assert lines[-1] == "done"
    disk, answered, cuts = Disk(str(folder)), 0, 0
    for number, step in enumerate(steps_of(trace)):
        if step.op == "M":
            if step.path.startswith("answered"):
                answered = int(step.path.split()[1])
            continue
        disk.do(step)
        for mode, keeps in MODES.items():
            left = tmp_path / f"{number}-{mode}"
            left.mkdir()
            copy.deepcopy(disk).cut(left, keeps)
            revision = reader.revision(left / "store.db")
            assert answered <= revision <= answered + together, f"{left}, seed {seed}"
            shutil.rmtree(left)
            cuts += 1
    assert answered >= 12
    assert cuts > 200
