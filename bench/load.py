"""One slice of load, by any generator, with the CPU time that a worker spent on it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import h2load
import tools
from outcome import LoadError, Report

SCRIPT = Path(__file__).resolve().parent / "wrk.lua"
TLS = ("ssl", "crypto", "pthread")
MARK = "slice "

# Of smaps: the line that begins a mapping, and one of an image (gateway/writer/files.lua).
_MAPPING = re.compile(r"[0-9a-f]+-[0-9a-f]+ ")
_IMAGE = re.compile(r"/(base|delta)\.\d+( \(deleted\))?$")


@dataclass(frozen=True)
class Slice:
    """A second or so of load on one side.

    `cpu_ns`, `wait_ns` and `switches` are the workers'; `client_ns` is the generator's CPU time,
    `upstream_ns` that of the processes behind the workers.
    """

    report: Report
    cpu_ns: int
    wait_ns: int
    client_ns: int = 0
    upstream_ns: int = 0
    switches: int = 0

    @property
    def cpu_us(self) -> float:
        """CPU time of the worker per request."""
        return self.cpu_ns / self.report.requests / 1e3

    @property
    def client_us(self) -> float:
        """CPU time of the generator per request."""
        return self.client_ns / self.report.requests / 1e3

    @property
    def upstream_us(self) -> float:
        """CPU time of the upstream per request."""
        return self.upstream_ns / self.report.requests / 1e3

    @property
    def generating(self) -> float:
        """Share of the time in which the generator, or the upstream on its core, ran."""
        return (self.client_ns + self.upstream_ns) / self.report.duration_us / 1e3

    @property
    def switches_per_request(self) -> float:
        """Context switches of the worker per request, wanted and forced."""
        return self.switches / self.report.requests

    @property
    def rps(self) -> float:
        return self.report.requests / self.report.duration_us * 1e6

    @property
    def p50_ms(self) -> float:
        return max(self.report.p50_us, 1) / 1e3

    @property
    def p90_ms(self) -> float:
        return max(self.report.p90_us, 1) / 1e3

    @property
    def p99_ms(self) -> float:
        return max(self.report.p99_us, 1) / 1e3

    @property
    def p999_ms(self) -> float:
        return max(self.report.p999_us, 1) / 1e3

    @property
    def busy(self) -> float:
        """Share of the time in which the worker ran or wanted to: near 1, it was the bottleneck."""
        return (self.cpu_ns + self.wait_ns) / self.report.duration_us / 1e3


@dataclass(frozen=True)
class Memory:
    """Bytes of a worker: what is resident, its fair share of that (shared pages divided), and what
    is its alone: pages that no other process has mapped, images aside, which are the files'."""

    rss: int
    pss: int
    private: int


def memory(pids: Sequence[int]) -> Memory:
    """Memory of one of these processes, their mean."""
    found = dict.fromkeys(("Rss", "Pss", "Private_Clean", "Private_Dirty"), 0)
    for pid in pids:
        is_image = False
        for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in found:
                is_private = name.startswith("Private")
                found[name] += 0 if is_private and is_image else int(rest.split()[0]) * 1024
            elif _MAPPING.match(line):
                is_image = _IMAGE.search(line) is not None
    rss, pss, clean, dirty = (bytes_ // len(pids) for bytes_ in found.values())
    return Memory(rss, pss, clean + dirty)


def parse(output: str) -> Report:
    """Reads wrk's output."""
    lines = [line for line in output.splitlines() if line.startswith(MARK)]
    if len(lines) != 1:
        raise LoadError(f"the generator printed no result: {output.strip()!r}")
    try:
        return Report(**json.loads(lines[0].removeprefix(MARK)))
    except (ValueError, TypeError) as error:
        raise LoadError(f"the generator printed {lines[0]!r}: {error}") from None


def _of_threads(pid: int, name: str) -> Iterator[str]:
    """A file of /proc of each thread of a process; one that ends meanwhile has none."""
    for path in Path(f"/proc/{pid}/task").glob(f"*/{name}"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield path.read_text()


def schedstat(pid: int) -> tuple[int, int]:
    """Nanoseconds that the threads of a process have run, and have waited for a CPU."""
    each = [text.split() for text in _of_threads(pid, "schedstat")]
    return sum(int(run) for run, _, _ in each), sum(int(wait) for _, wait, _ in each)


def schedstats(pids: Sequence[int]) -> tuple[int, int]:
    """The same of several processes together."""
    both = [schedstat(pid) for pid in pids]
    return sum(run for run, _ in both), sum(wait for _, wait in both)


def switches(pids: Sequence[int]) -> int:
    """Context switches of processes since they started, those that they wanted and others."""
    total = 0
    for status in (text for pid in pids for text in _of_threads(pid, "status")):
        for line in status.splitlines():
            if "voluntary_ctxt_switches" in line:  # nonvoluntary_... as well
                total += int(line.split()[1])
    return total


@dataclass(frozen=True)
class Way:
    """How requests come: as soon as the last is answered (wrk), or otherwise.

    `rate`: by a timetable, latency counts from when they were due (pace.c). `handshake`: each on a
    TLS connection of its own, `full` or `resumed` (handshake.c). `streams`: HTTP/2 (h2load.py).
    `awake`: the generator does not sleep (awake.c).
    """

    scheme: str = "http"
    rate: int | None = None
    handshake: str = ""
    streams: int = 0
    awake: bool = False

    def command(self, address: str, requests: Path, connections: int, seconds: int) -> list[str]:
        """What puts this load on an address."""
        if self.streams:
            return h2load.command(address, requests, connections, self.streams, seconds)
        host, _, port = address.rpartition(":")
        rest = [host, port, str(requests), str(connections)]
        if self.handshake:
            return [
                str(tools.built("handshake", libraries=TLS)),
                self.handshake,
                *rest,
                f"{seconds}",
            ]
        if self.rate is not None:
            return [str(tools.built("pace")), *rest, f"{self.rate}", f"{seconds}"]
        wrk = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(SCRIPT)]
        return [*wrk, f"{self.scheme}://{address}/", "--", str(requests)]

    def report(self, output: str, requests: Path) -> Report:
        """What the command has counted."""
        if self.streams:
            return h2load.take(output, requests)
        return parse(output)


DEFAULT_WAY = Way()


def run(
    address: str,
    requests: Path,
    workers: Sequence[int],
    core: int | None,
    connections: int,
    seconds: int,
    upstream: Sequence[int] = (),
    way: Way = DEFAULT_WAY,
) -> Slice:
    """Puts load on `address` for a slice; `core` is the generator's, None: any."""
    command = [] if core is None else ["taskset", "-c", str(core)]
    command += way.command(address, requests, connections, seconds)
    before = _clocks(workers, upstream)
    environment = _environment() | (awake() if way.awake else {})
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    after = _clocks(workers, upstream)
    if done.returncode != 0:
        raise LoadError(f"the generator failed: {(done.stderr or done.stdout).strip()}")
    spent = {name: after[name] - before[name] for name in before}
    return Slice(way.report(done.stdout, requests), **spent)


def _clocks(workers: Sequence[int], upstream: Sequence[int]) -> dict[str, int]:
    run_ns, wait_ns = schedstats(workers)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "cpu_ns": run_ns,
        "wait_ns": wait_ns,
        "client_ns": int((children.ru_utime + children.ru_stime) * 1e9),
        "upstream_ns": schedstats(upstream)[0],
        "switches": switches(workers),
    }


def awake() -> dict[str, str]:
    """What a process of the load's core gets into its environment, so that it does not sleep."""
    return {"LD_PRELOAD": str(tools.built("awake", preloaded=True))}


def _environment() -> dict[str, str]:
    # A LUA_PATH or LUA_INIT of the caller must not reach the generator's own LuaJIT.
    return {name: value for name, value in os.environ.items() if not name.startswith("LUA_")}
