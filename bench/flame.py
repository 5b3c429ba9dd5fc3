#!/usr/bin/env python3
"""Draws where the CPU time of Sluice's worker goes: kernel, C and Lua in one flame graph.

    bench/flame.py --scenario proxy-plain                  this checkout
    bench/flame.py --scenario proxy-plain --compare main   HEAD against another revision
    bench/flame.py --folded FILE                           any stacks, `frame;frame count`

perf samples the worker; each sample also sends it SIGPROF (flame/perfsig.c),
which the JIT's profiler answers with the Lua stack (flame/sampler.lua);
stacks.py joins the two. Profiling costs up to a tenth of the speed: nothing is
timed here. Needs root's rights, or kernel.perf_event_paranoid of -1.
"""

from __future__ import annotations

import argparse
import colorsys
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import load
import outcome
import proxy
import revisions
import run
import scenario as scenarios
import sides
import stacks

FOLDER = Path(__file__).resolve().parent / "flame"
OUTPUT = sides.ROOT / "build" / "bench" / "flame"
# Of Debian's libdevel-nytprof-perl.
RENDERER = Path("/usr/share/perl5/Devel/NYTProf/flamegraph.pl")

SECONDS = 8
SETTLE_S = 2  # traces are compiled anew with the profiler's checks in them
HERTZ = 997  # no multiple of a timer's
STACK_BYTES = 16384
MARGIN_S = 3  # of load around the recording
CONNECTIONS = 100

Stacks = Counter[tuple[str, ...]]
# Puts load on the worker for so many seconds.
Loader = Callable[[int], object]


class FlameError(Exception):
    """A recording that could not be made; the message says what is missing or was printed."""


def missing() -> list[str]:
    """Debian packages that a flame graph needs and this machine lacks."""
    wanted = {"perf": "linux-perf", "gcc": "gcc", "nm": "binutils", "perl": "perl"}
    found = [package for program, package in wanted.items() if not shutil.which(program)]
    if not RENDERER.exists():
        found.append("libdevel-nytprof-perl")
    return sorted(found)


def permitted() -> bool:
    """Whether perf may watch processes here: a container may forbid it even root."""
    if missing():
        return False
    with tempfile.TemporaryDirectory(prefix="sluice-flame-") as folder:
        command = ["perf", "record", "-q", "-e", "cpu-clock", "-o", f"{folder}/data", "true"]
        return subprocess.run(command, capture_output=True).returncode == 0


def build_shim(folder: Path) -> Path:
    """Compiles what makes perf's samples signals."""
    target = folder / "perfsig.so"
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", target]
    done = subprocess.run([*command, FOLDER / "perfsig.c", "-ldl"], capture_output=True, text=True)
    if done.returncode != 0:
        raise FlameError(f"perfsig.c does not compile: {done.stderr.strip()}")
    return target


def write_sampler(folder: Path, name: str) -> Path:
    """Writes the worker's half under a module's file name; it records into `folder`."""
    folder.chmod(0o777)  # for workers of another user
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((FOLDER / "sampler.lua").read_text().replace("@folder@", str(folder)))
    return path


def record(worker: int, folder: Path, loader: Loader, seconds: int, root: Path) -> Stacks:
    """Records a worker that runs the sampler while there is load on it."""
    shim = build_shim(folder)
    thread = threading.Thread(target=loader, args=(SETTLE_S + seconds + MARGIN_S,))
    thread.start()
    try:
        time.sleep(SETTLE_S)
        data = folder / "perf.data"
        clock = ["-e", "cpu-clock", "-F", f"{HERTZ}", "-k", "CLOCK_MONOTONIC"]
        depth = ["--call-graph", f"dwarf,{STACK_BYTES}"]
        which = ["--per-thread", "-T", "-p", f"{worker}", "-o", str(data)]
        command = ["perf", "record", *clock, *depth, *which, "--", "sleep", f"{seconds}"]
        environment = os.environ | {"PERFSIG_TID": f"{worker}", "LD_PRELOAD": str(shim)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            raise FlameError(f"perf record failed: {done.stderr.strip()}")
    finally:
        thread.join()
    command = ["perf", "script", "-i", str(data), "--no-inline", "--ns"]
    fields = ["-F", "comm,tid,time,event,ip,sym,dso"]
    printed = subprocess.run([*command, *fields], capture_output=True, text=True)
    if printed.returncode != 0:
        raise FlameError(f"perf script failed: {printed.stderr.strip()}")
    said = stacks.parse_said((folder / "samples").read_text(), str(root))
    samples = stacks.named(stacks.parse_perf(printed.stdout))
    counts = stacks.join(samples, said)
    if not counts:
        raise FlameError("not one sample was taken")
    return counts


def profile(scenario: scenarios.Scenario, root: Path, seconds: int = SECONDS) -> Stacks:
    """Stacks of Sluice's worker, of the checkout at `root`, under a scenario's load."""
    cores = proxy.two_cores()
    upstream, sink = sides.free_address(), sides.free_address()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-flame-")))
        recording = folder / "recording"
        recording.mkdir()
        folder.chmod(0o755)
        # A folder, and the one file that an older tree loads.
        write_sampler(recording, "plugins/flame-sampler.lua")
        plugin = recording / "plugins" / "flame-sampler"
        plugin.mkdir()
        (plugin / "handler.lua").write_text('return require("plugins.flame-sampler")')
        (plugin / "schema.lua").write_text('return require("plugins.flame-sampler").schema')
        more = os.environ.get("SLUICE_LUA_PACKAGE_PATH", "")
        settings = proxy.settings(scenario)
        plugins = settings.get("SLUICE_PLUGINS", "bundled")
        settings |= {
            "SLUICE_PLUGINS": f"{plugins},flame-sampler",
            "SLUICE_LUA_PACKAGE_PATH": f"{recording}/?.lua;{proxy.LUA}/?.lua;{more}",
        }
        up = sides.Upstream(folder / "up", upstream, cores[1], scenario.body, scenario.listens)
        stack.enter_context(up)
        address = sides.free_address()
        if scenario.has_sink():
            stack.enter_context(sides.Upstream(folder / "sink", sink, cores[1], ""))
        side = sides.Sluice(
            scenario,
            folder / "sluice",
            address,
            upstream,
            cores[0],
            root=root,
            settings=settings,
            words={"sink": sink, "entries": sides.entries(folder)},
        )
        stack.enter_context(side)
        requests = folder / "requests"
        requests.write_bytes(b"".join(item.head() for item in scenario.requests))

        def loader(for_s: int) -> None:
            load.run(address, requests, side.workers, cores[1], CONNECTIONS, for_s)

        return record(side.worker, recording, loader, seconds, root)


# Hue, of 1, by what a frame is.
HUES = {stacks.KERNEL: 0.09, stacks.LUA: 0.33, stacks.TRACE: 0.5}
C_HUE = 0.0


def colour(name: str) -> str:
    """Colour of a frame: the hue says what it is, the shade is by name."""
    hue = next((hue for end, hue in HUES.items() if name.endswith(end)), C_HUE)
    shade = sum(map(ord, name)) % 20 / 100
    rgb = colorsys.hls_to_rgb(hue, 0.62 + shade, 0.65)
    return "rgb({},{},{})".format(*(round(part * 255) for part in rgb))


def plain(name: str) -> str:
    """A frame's name for readers."""
    for end in HUES:
        name = name.removesuffix(end)
    return name


def render(folded: str, title: str, subtitle: str, differential: bool = False) -> str:
    """An SVG of folded stacks that needs nothing beside itself."""
    with tempfile.TemporaryDirectory(prefix="sluice-flame-") as folder:
        heading = f"{title} ({subtitle})" if subtitle else title
        options = ["--title", heading, "--width", "1200", "--minwidth", "0.3"]
        if not differential:
            found = (stack for stack, _ in _split(folded, differential))
            names = {name for stack in found for name in stack.split(";")}
            table = "".join(f"{plain(name)}->{colour(name)}\n" for name in sorted(names))
            (Path(folder) / "palette.map").write_text(table)
            options.append("--cp")
        lines = (
            ";".join(plain(name) for name in stack.split(";")) + " " + count
            for stack, count in _split(folded, differential)
        )
        done = subprocess.run(
            ["perl", RENDERER, *options],
            input="\n".join(lines) + "\n",
            cwd=folder,
            capture_output=True,
            text=True,
        )
    if done.returncode != 0 or not done.stdout:
        raise FlameError(f"flamegraph.pl failed: {done.stderr.strip()}")
    return done.stdout


def _split(folded: str, differential: bool) -> Iterator[tuple[str, str]]:
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        if differential:
            stack, _, old = stack.rpartition(" ")
            count = f"{old} {count}"
        yield stack, count


@dataclass(frozen=True)
class Order:
    """What to draw, and where to."""

    scenario: scenarios.Scenario
    seconds: int
    output: Path


def draw(order: Order) -> None:
    """One checkout's flame graph."""
    counts = profile(order.scenario, sides.ROOT, order.seconds)
    name = order.scenario.name
    folded = stacks.fold(counts)
    (order.output / f"{name}.folded").write_text(folded)
    subtitle = "orange: kernel, red: C, green: Lua, aqua: the JIT's; ~f: unnamed C behind f"
    svg = render(folded, f"{name}: {order.scenario.title}", subtitle)
    _tell(order.output / f"{name}.svg", svg, counts)


def draw_difference(order: Order, revision: str) -> None:
    """HEAD's flame graph, coloured by what has changed."""
    new, old = revisions.resolve("HEAD"), revisions.resolve(revision)
    counts = []
    for each in (old, new):
        with revisions.exported(each) as tree:
            counts.append(profile(order.scenario, tree, order.seconds))
    name = f"{order.scenario.name}-{old[:7]}-{new[:7]}"
    title = f"{order.scenario.name}: {new[:7]} against {old[:7]}"
    subtitle = "width: new; red: more CPU time than before, blue: less"
    svg = render(stacks.difference(*counts), title, subtitle, differential=True)
    _tell(order.output / f"{name}.svg", svg, counts[1])


def _tell(path: Path, svg: str, counts: Stacks) -> None:
    path.write_text(svg)
    print(f"{sum(counts.values())} samples -> {os.path.relpath(path)}\n")
    for name, share in stacks.layers(counts).items():
        if share >= 0.01:
            print(f"{share:6.1%}  {name}")
    for name, share in stacks.unnamed(counts).items():
        if share >= 0.01:
            print(f"without a name: {share:.1%} in {name}")


def main(arguments: list[str]) -> int:
    """Draws what the command line asks for; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--scenario", metavar="NAME")
    what.add_argument("--folded", type=Path, help="a file of stacks")
    parser.add_argument("--compare", metavar="REV", help="draw what has changed since")
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder of the pictures")
    options = parser.parse_args(arguments)
    if lacking := missing():
        print(f"flame: missing; apt-get install {' '.join(lacking)}", file=sys.stderr)
        return 1
    run.end_on_signals()
    options.output.mkdir(parents=True, exist_ok=True)
    try:
        if options.folded:
            path = options.output / f"{options.folded.stem}.svg"
            path.write_text(render(options.folded.read_text(), options.folded.stem, ""))
            print(f"-> {os.path.relpath(path)}")
            return 0
        scenario = scenarios.load(options.scenario)
        if not isinstance(scenario, scenarios.Scenario):
            print(f"flame: {scenario.name} is no proxy scenario", file=sys.stderr)
            return 1
        order = Order(scenario, options.seconds, options.output)
        if options.compare:
            draw_difference(order, options.compare)
        else:
            draw(order)
    except (
        FlameError,
        sides.StartError,
        outcome.LoadError,
        revisions.RevisionError,
        scenarios.ScenarioError,
    ) as error:
        print(f"flame: {error}", file=sys.stderr)
        return 1
    except run.Interrupted:
        print("\nflame: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
