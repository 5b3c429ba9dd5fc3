"""Scenarios of the kind `micro`: parts alone, in nanoseconds and instructions a turn.

A program is called with a case and a number of turns and prints the nanoseconds
of CPU time that these took; the least of several rounds counts, since nothing
makes a program faster than it is. Instructions are callgrind's, of twice as many
turns less those of once as many: so starting and preparing is not in them.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import report
import sides
import stats
from progress import progress
from report import Metric
from setting import FEWEST_ROUNDS, Setting
from verify import InvalidRun

LUAJIT = os.environ.get("SLUICE_LUAJIT", "luajit")
# Instructions, new over old, at which a change to a part in C is stopped.
INSTRUCTIONS_BOUND = 1.005

_COUNTED = re.compile(r"Collected : (\d+)")


@dataclass(frozen=True)
class Program:
    """A program of a scenario, and the checkout whose code it runs."""

    name: str
    data: dict[str, Any]
    root: Path
    folder: Path

    @property
    def in_c(self) -> bool:
        """Whether it is C, whose instructions repeat."""
        return "sources" in self.data

    def is_there(self) -> bool:
        """Whether the checkout has the code for it; an old one may not."""
        patterns = self.data.get("sources", [self.data.get("lua")])
        return all(self._files(pattern) for pattern in patterns)

    def command(self, case: str, turns: int) -> list[str]:
        """What runs a case."""
        start = [str(self._compiled)] if self.in_c else [LUAJIT, str(sides.ROOT / self.data["lua"])]
        return [*start, case, str(turns)]

    def environment(self) -> dict[str, str]:
        """LUA_PATH: the gateway of the checkout, the benchmarks of this one."""
        here, lib = f"{self.root}/?.lua;{self.root}/?/init.lua", f"{self.root}/lib/?.lua"
        return os.environ | {"LUA_PATH": f"{here};{lib};{sides.ROOT}/?.lua;;"}

    def _files(self, pattern: str) -> list[Path]:
        # The benchmark itself is always this checkout's.
        root = sides.ROOT if pattern.startswith("bench/") else self.root
        return sorted(root.glob(pattern))

    @functools.cached_property
    def _compiled(self) -> Path:
        target = self.folder / self.name
        sources = [path for pattern in self.data["sources"] for path in self._files(pattern)]
        # As the module is built, so that a function may move from one file to another.
        command = ["gcc", "-std=gnu11", "-O3", "-flto", "-g", "-Wall", "-Wextra", "-Werror"]
        command += [word for folder in _folders(sources) for word in ("-I", str(folder))]
        command += [*map(str, sources), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise InvalidRun(f"{self.name} does not compile: {done.stderr.strip()}")
        return target


def _folders(sources: list[Path]) -> list[Path]:
    """Where the sources are, and so their headers."""
    return sorted({path.parent for path in sources})


def programs(data: dict[str, Any], root: Path, folder: Path) -> list[Program]:
    """The programs of a scenario that a checkout has the code for."""
    folder.mkdir(exist_ok=True)
    every = [Program(name, fields, root, folder) for name, fields in data["programs"].items()]
    return [program for program in every if program.is_there()]


def nanoseconds(program: Program, case: str) -> float:
    """CPU time of a turn, in one round."""
    turns = program.data["turns"]
    return float(_run(program, program.command(case, turns)).stdout) / turns


def instructions(program: Program, case: str) -> float:
    """Instructions of a turn."""
    turns = program.data["counted"]
    once, twice = (_counted(program, program.command(case, turns * many)) for many in (1, 2))
    return (twice - once) / turns


def parse(output: str) -> int:
    """Reads callgrind's last lines."""
    found = _COUNTED.search(output)
    if not found:
        raise InvalidRun(f"callgrind counted nothing: {output.strip()[-300:]!r}")
    return int(found.group(1))


def _counted(program: Program, command: list[str]) -> int:
    # Without a debugger's pipes, which an interrupted run would leave behind.
    under = ["valgrind", "--vgdb=no", "--tool=callgrind", f"--callgrind-out-file={os.devnull}"]
    return parse(_run(program, [*under, *command]).stderr)


def _run(program: Program, command: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, env=program.environment())
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise InvalidRun(f"{program.name}: {said[-300:]}")
    return done


def measure(setting: Setting) -> dict[str, Metric]:
    """Measures every case of a scenario."""
    out: dict[str, Metric] = {}
    for program in programs(setting.data, setting.root, setting.folder / "programs"):
        for case in program.data["cases"]:
            out |= _case(setting, program, case)
    progress("")
    return out


def _case(setting: Setting, program: Program, case: str) -> dict[str, Metric]:
    progress(f"{setting.name}: {program.name} {case}")
    label = f"{program.name}_{case}"
    times = []
    for number in range(setting.data["rounds"]):
        late = time.monotonic() - setting.began > setting.data["limit_s"]
        if late and number >= FEWEST_ROUNDS:
            break
        times.append(nanoseconds(program, case))
    ordered = sorted(times)
    out = {f"{label}_ns": Metric(ordered[0], "ns", ordered[0], stats.quantile(ordered, 0.5))}
    if program.name in setting.data["callgrind"] and shutil.which("valgrind"):
        counted = instructions(program, case)
        out[f"{label}_instructions"] = Metric(counted, "instructions", counted, counted)
    return out


def compare(
    data: dict[str, Any], new: Path, old: Path, folder: Path
) -> tuple[list[report.Compared], list[str]]:
    """Instructions of the programs in C of two checkouts; and what cannot be compared, as the older
    one may not have what the benchmark calls."""
    rows, left = [], []
    before = {program.name: program for program in programs(data, old, folder / "old")}
    for program in programs(data, new, folder / "new"):
        if not program.in_c or program.name not in before:
            continue
        for case in program.data["cases"]:
            progress(f"instructions: {program.name} {case}")
            try:
                counts = [instructions(before[program.name], case)]
            except InvalidRun as error:
                left.append(f"{program.name} (the old revision: {str(error).splitlines()[0]})")
                break
            counts.append(instructions(program, case))
            ratio = counts[1] / counts[0]
            estimate = stats.Estimate(ratio, ratio, ratio)
            # What repeats to a thousandth has no interval.
            word = "same" if abs(ratio - 1) < 0.001 else stats.verdict(estimate)
            name = f"{program.name}_{case}"
            rows.append(report.Compared(name, "instructions", *counts, estimate, word))
    progress("")
    return rows, left
