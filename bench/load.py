"""One slice of load by wrk, with the CPU time that a worker spent on it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "wrk.lua"
MARK = "slice "


class LoadError(Exception):
    """wrk that could not run, or printed something else than expected."""


@dataclass(frozen=True)
class Report:
    """What wrk counted (bench/wrk.lua prints it)."""

    requests: int
    bytes: int
    duration_us: int
    p50_us: int
    p99_us: int
    connect: int
    read: int
    write: int
    timeout: int
    status: int

    def errors(self) -> str | None:
        """The kinds of errors that happened, with their numbers, as text."""
        kinds = ("connect", "read", "write", "timeout", "status")
        found = [f"{getattr(self, kind)} {kind}" for kind in kinds if getattr(self, kind)]
        return ", ".join(found) + " errors" if found else None


@dataclass(frozen=True)
class Slice:
    """A second or so of load on one side."""

    report: Report
    cpu_ns: int
    wait_ns: int

    @property
    def cpu_us(self) -> float:
        """CPU time of the worker per request."""
        return self.cpu_ns / self.report.requests / 1e3

    @property
    def rps(self) -> float:
        return self.report.requests / self.report.duration_us * 1e6

    @property
    def p99_ms(self) -> float:
        return max(self.report.p99_us, 1) / 1e3

    @property
    def busy(self) -> float:
        """Share of the time in which the worker ran or wanted to: near 1, it was the bottleneck."""
        return (self.cpu_ns + self.wait_ns) / self.report.duration_us / 1e3


def parse(output: str) -> Report:
    """Reads wrk's output."""
    lines = [line for line in output.splitlines() if line.startswith(MARK)]
    if len(lines) != 1:
        raise LoadError(f"wrk printed no result: {output.strip()!r}")
    try:
        return Report(**json.loads(lines[0].removeprefix(MARK)))
    except (ValueError, TypeError) as error:
        raise LoadError(f"wrk printed {lines[0]!r}: {error}") from None


def schedstat(pid: int) -> tuple[int, int]:
    """Nanoseconds that a process has run, and has waited for a CPU, since it started."""
    run, wait, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    return int(run), int(wait)


def schedstats(pids: Sequence[int]) -> tuple[int, int]:
    """The same of several processes together."""
    both = [schedstat(pid) for pid in pids]
    return sum(run for run, _ in both), sum(wait for _, wait in both)


def run(
    address: str,
    requests: Path,
    workers: Sequence[int],
    core: int | None,
    connections: int,
    seconds: int,
) -> Slice:
    """Puts load on `address` for a slice; `core` is the generator's, None: any."""
    command = [] if core is None else ["taskset", "-c", str(core)]
    command += ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s"]
    command += ["-s", str(SCRIPT), f"http://{address}/", "--", str(requests)]
    run_before, wait_before = schedstats(workers)
    done = subprocess.run(command, capture_output=True, text=True, env=_environment())
    run_after, wait_after = schedstats(workers)
    if done.returncode != 0:
        raise LoadError(f"wrk failed: {(done.stderr or done.stdout).strip()}")
    return Slice(parse(done.stdout), run_after - run_before, wait_after - wait_before)


def _environment() -> dict[str, str]:
    # A LUA_PATH or LUA_INIT of the caller must not reach the generator's own LuaJIT.
    return {name: value for name, value in os.environ.items() if not name.startswith("LUA_")}
