"""Scenarios of what Sluice costs beside requests: memory, and time to start and to reload.

`memory`: a worker's share of memory (PSS: pages that workers share are divided
by their number) and what is its alone, by the number of routes, after requests
to all of them; and after many configurations were posted. `start`: from the
command to the first answer, and from `sluice reload` to its end, when every
worker has the new file. `load`: a large file from the command to the first
answer, cold and unchanged, over the time in which Python parses it.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import load
import report
import sides
from config_change import Changing, Routes, sides_of
from probe import Client
from progress import progress
from report import Metric
from setting import Setting
from verify import InvalidRun

ASKED = 20_000  # requests before memory is read: the JIT has compiled, buffers are made
RELOAD_TIMEOUT_S = 120


@contextlib.contextmanager
def _gateway(
    setting: Setting, routes: int, *, admin: bool = False
) -> Iterator[tuple[sides.Sluice, float]]:
    """A gateway with so many routes, and the milliseconds from its start to its first answer."""
    address = sides.free_address() if admin else "off"
    gateway, upstream = sides_of(setting, routes, sides.Sluice, admin=address)
    with upstream:
        began = time.monotonic()
        with gateway:
            _expect(gateway, "/version-0", 200)
            yield gateway, (time.monotonic() - began) * 1e3
            if trouble := gateway.trouble():
                raise InvalidRun(f"{gateway.name} logged: {trouble}")


def memory(setting: Setting) -> dict[str, Metric]:
    """Memory of a worker by routes, and what a thousand configurations leave."""
    out: dict[str, Metric] = {}
    found: dict[int, list[load.Memory]] = {routes: [] for routes in setting.data["routes"]}
    for _ in setting.rounds(["all"], 0, 2):
        for routes, seen in found.items():
            progress(f"{setting.name}: {routes} routes")
            with _gateway(setting, routes) as (gateway, _):
                _warm(gateway, routes)
                seen.append(load.memory(gateway.workers))
    for routes, seen in found.items():
        for kind in ("rss", "pss", "private"):
            values = [getattr(one, kind) / 2**20 for one in seen]
            out[f"{kind}_mb_{routes}"] = report.spread("MiB", values)
    fewest, most = min(found), max(found)
    thousands = (most - fewest) / 1000
    each = [
        (large.pss - small.pss) / 2**10 / thousands
        for small, large in zip(found[fewest], found[most], strict=True)
    ]
    out["pss_kb_per_1000_routes"] = report.spread("KiB", each)
    ratios = [
        large.private / small.private
        for small, large in zip(found[fewest], found[most], strict=True)
    ]
    out[f"private_ratio_{most}"] = report.spread("ratio", ratios)
    return out | _pushes(setting)


def _pushes(setting: Setting) -> dict[str, Metric]:
    pushes, routes = setting.data["pushes"], setting.data["pushed_routes"]
    with _gateway(setting, routes, admin=True) as (gateway, _):
        changing = Changing(gateway, gateway.upstream)
        try:
            for _ in range(pushes // 10):
                changing.change(routes)
            _warm(gateway, routes)
            before = load.memory(gateway.workers)
            for number in range(pushes):
                progress(f"{setting.name}: configuration {number + 1} of {pushes}")
                changing.change(routes)
            _warm(gateway, routes)
            after = load.memory(gateway.workers)
        finally:
            changing.close()
    out = {}
    for name, value in (("before", before), ("after", after)):
        megabytes = value.pss / 2**20
        out[f"pss_mb_{name}_{pushes}_pushes"] = Metric(megabytes, "MiB", megabytes, megabytes)
    ratio = after.pss / before.pss
    out[f"pss_ratio_{pushes}_pushes"] = Metric(ratio, "ratio", ratio, ratio)
    return out


def _warm(gateway: sides.Sluice, routes: int) -> None:
    """Asks for every route, each worker for most of them."""
    requests = gateway.folder / "requests"
    heads = [f"GET /route-{n} HTTP/1.1\r\nHost: bench\r\n\r\n" for n in range(1, routes)]
    asked, wanted = 0, max(ASKED, 3 * routes * gateway.count)
    while asked < wanted:
        # The generator begins with the first one: where the last slice ended.
        first = asked % len(heads)
        requests.write_text("".join(heads[first:] + heads[:first]))
        slice_ = load.run(gateway.address, requests, gateway.workers, None, 50, 1)
        if errors := slice_.report.errors():
            raise InvalidRun(f"{gateway.name}: {errors}")
        asked += slice_.report.requests


def start(setting: Setting) -> dict[str, Metric]:
    """Time to the first answer, and of a reload with another file."""
    sizes = setting.data["routes"]
    starts: dict[int, list[float]] = {routes: [] for routes in sizes}
    reloads: dict[int, list[float]] = {routes: [] for routes in sizes}
    for _ in setting.rounds(["all"], 0, 1):
        for routes in sizes:
            with _gateway(setting, routes) as (gateway, started_ms):
                starts[routes].append(started_ms)
                reloads[routes].append(_reload(gateway, routes) * 1e3)
    out = {f"start_ms_{routes}": report.spread("ms", values) for routes, values in starts.items()}
    return out | {
        f"reload_ms_{routes}": report.spread("ms", values) for routes, values in reloads.items()
    }


def _reload(gateway: sides.Sluice, routes: int) -> float:
    file = Routes(routes, 1).sluice_file({"upstream": gateway.upstream})
    (gateway.folder / "sluice.json").write_text(file)
    began = time.monotonic()
    done = subprocess.run(
        [*gateway.program, "reload"],
        env=gateway.environment(),
        capture_output=True,
        text=True,
        timeout=RELOAD_TIMEOUT_S,
    )
    took = time.monotonic() - began
    if done.returncode != 0:
        raise InvalidRun(f"sluice reload: {(done.stderr or done.stdout).strip()}")
    _expect(gateway, "/version-1", 200)
    _expect(gateway, "/version-0", 404)
    return took


def _expect(gateway: sides.Sluice, path: str, status: int) -> None:
    with Client(gateway.address) as client:
        got = client.ask(f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()).status
    if got != status:
        raise InvalidRun(f"{path} was answered with {got} instead of {status}")


def large(setting: Setting) -> dict[str, Metric]:
    """A large file: its first start, a start with it unchanged, and its mere parsing."""
    routes = setting.data["routes"]
    found: dict[str, list[float]] = {"start": [], "restart": [], "parse": []}
    for _ in setting.rounds(["all"], 0, 1):
        gateway, upstream = sides_of(setting, routes, Kept)
        with upstream:
            for kind in ("start", "restart"):
                progress(f"{setting.name}: {kind}")
                began = time.monotonic()
                with gateway:
                    _expect(gateway, "/version-0", 200)
                    found[kind].append(time.monotonic() - began)
                    if trouble := gateway.trouble():
                        raise InvalidRun(f"{gateway.name} logged: {trouble}")
        found["parse"].append(_parse(gateway.folder / "sluice.json"))
    out = {f"{kind}_s_{routes}": report.spread("s", values) for kind, values in found.items()}
    over = [start / parse for start, parse in zip(found["start"], found["parse"], strict=True)]
    return out | {"start_over_parse": report.spread("ratio", over)}


class Kept(sides.Sluice):
    """A gateway that may be started again where it was."""

    def write(self) -> None:
        if not (self.folder / "sluice.json").exists():
            super().write()


def _parse(path: Path) -> float:
    """Seconds in which Python's json reads a file, in a process of its own."""
    code = (
        "import json, sys, time\n"
        "began = time.monotonic()\n"
        "json.load(open(sys.argv[1], 'rb'))\n"
        "print(time.monotonic() - began)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


MEASURES = {"memory": memory, "start": start, "load": large}
