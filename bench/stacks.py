"""Stacks of kernel, C and Lua frames from a recording of perf and one of sampler.lua.

perf knows the kernel's and C's frames of a sample, but not what the Lua VM is
doing; the sampler answers the signal of the same sample with the Lua stack, a
little later, at the next bytecode. Joined by time:

- A stack that goes through the VM (libluajit, or code of the JIT) gets the Lua
  stack in the VM's place: between the C that called Lua and the C that Lua calls.
- A stack that does not go through the VM has no Lua: what the sampler said
  then was said about the Lua that ran next.
- perf cannot unwind through the JIT's code, so a stack may begin there. It
  borrows the C frames that other stacks of the same outermost Lua function have.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import symbols

# Ends of a frame's name in folded stacks, by what the frame is; C has none.
KERNEL, LUA, TRACE = "_[k]", "_[j]", "_[i]"
UNKNOWN = "[unknown]"  # perf's

_EVENT = re.compile(r"^\S.*\s(\d+)\.(\d{9}):\s")
_FRAME = re.compile(r"^\s+([0-9a-f]+) (.*) \((.*)\)$")
# Everything above is the same in all stacks of a worker.
_ROOTS = ("ngx_process_events_and_timers", "ngx_worker_process_cycle", "main")
_LUA_FOLDERS = re.compile(r"^/usr/(?:local/)?share/lua/5\.1/")


@dataclass(frozen=True)
class Frame:
    """A frame of perf's, as it prints it."""

    address: int
    symbol: str
    file: str

    @property
    def is_vm(self) -> bool:
        return "libluajit" in self.file

    @property
    def is_kernel(self) -> bool:
        return self.file.startswith("[kernel") or self.file.startswith("[guest")

    @property
    def name(self) -> str:
        if self.is_kernel:
            return self.symbol + KERNEL
        if self.symbol == UNKNOWN:
            return f"[{self.file.rpartition('/')[2]}]"
        return self.symbol


@dataclass(frozen=True)
class Sample:
    """A sample of perf's: nanoseconds of CLOCK_MONOTONIC, frames with the outermost first."""

    ns: int
    frames: tuple[Frame, ...]


@dataclass(frozen=True)
class Trace:
    """Code of the JIT: since when, where, and from which Lua."""

    ns: int
    start: int
    end: int
    label: str


@dataclass
class Said:
    """What the sampler said, in the order of time."""

    times: list[int] = field(default_factory=list)
    stacks: list[tuple[str, ...]] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)

    def at(self, ns: int) -> tuple[str, ...]:
        """The Lua stack of the first answer at or after a time; nothing if there is none."""
        index = bisect.bisect_left(self.times, ns)
        return self.stacks[index] if index < len(self.stacks) else ()

    def trace_at(self, ns: int, address: int) -> Trace | None:
        """The trace that had its code at an address at a time: addresses are used again."""
        found = None
        for trace in self.traces:
            if trace.ns <= ns and trace.start <= address < trace.end:
                found = trace
        return found


def parse_perf(text: str) -> list[Sample]:
    """Reads `perf script -F comm,tid,time,event,ip,sym,dso --ns`."""
    samples: list[Sample] = []
    ns: int | None = None
    frames: list[Frame] = []
    for line in [*text.splitlines(), ""]:
        if event := _EVENT.match(line):
            ns, frames = int(event.group(1)) * 10**9 + int(event.group(2)), []
        elif found := _FRAME.match(line):
            frames.append(Frame(int(found.group(1), 16), found.group(2), found.group(3)))
        elif not line.strip() and ns is not None:
            samples.append(Sample(ns, tuple(reversed(frames))))
            ns = None
    return samples


def parse_said(text: str, root: str = "") -> Said:
    """Reads the sampler's file; paths below `root` are shortened."""
    said = Said()
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "S" and rest.count(" ") >= 1:
            ns, _, stack = (rest + "  ").split(" ", 2)
            said.times.append(int(ns))
            frames = [frame for frame in stack.strip().split(";") if frame]
            said.stacks.append(tuple(_lua_name(frame, root) for frame in frames))
        elif kind == "T" and rest.count(" ") >= 4:
            ns, start, size, _, where = rest.split(" ", 4)
            begin = int(start)
            label = f"trace {_short(where, root)}{TRACE}"
            said.traces.append(Trace(int(ns), begin, begin + int(size), label))
    return said


def _short(path: str, root: str) -> str:
    path = path.removeprefix("@")
    return _LUA_FOLDERS.sub("", path.removeprefix(root.rstrip("/") + "/") if root else path)


def _lua_name(frame: str, root: str) -> str:
    function, _, where = frame.partition("@")
    return f"{function} {_short(where, root)}{LUA}" if where else function + LUA


def named(
    samples: Iterable[Sample], exported: Callable[[str], symbols.Table] = symbols.exported
) -> list[Sample]:
    """The same samples with names for C that perf only tells the place of in its file."""

    def frame(one: Frame) -> Frame:
        if one.symbol != UNKNOWN or one.is_vm or _is_jit(one):
            return one
        near = symbols.near(exported(one.file), one.address)
        return Frame(one.address, near, one.file) if near else one

    return [Sample(one.ns, tuple(frame(each) for each in one.frames)) for one in samples]


def join(samples: Iterable[Sample], said: Said) -> Counter[tuple[str, ...]]:
    """Counts whole stacks, outermost frame first."""
    borrowed: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    whole: list[tuple[str, ...]] = []
    rootless: list[tuple[str, ...]] = []
    last = said.times[-1] if said.times else 0
    for sample in samples:
        trace = [said.trace_at(sample.ns, frame.address) for frame in sample.frames]
        inside = [
            index
            for index, frame in enumerate(sample.frames)
            if frame.is_vm or trace[index] or _is_jit(frame)
        ]
        if not inside:
            whole.append(tuple(_cropped(sample.frames)))
            continue
        if sample.ns > last:  # the end of the sampler's file was never written
            continue
        first, final = inside[0], inside[-1]
        lua = said.at(sample.ns)
        above = tuple(_cropped(sample.frames[:first]))
        running = trace[final]
        below = (running.label,) if running else ()
        if not running and final == len(sample.frames) - 1:
            below = (_vm_name(sample.frames[final]),)
        stack = (*lua, *below, *(frame.name for frame in sample.frames[final + 1 :]))
        if above:
            whole.append((*above, *stack))
            borrowed[lua[0].partition(" ")[0] if lua else ""][above] += 1
        else:
            rootless.append(stack)
    for stack in rootless:
        roots = borrowed.get(stack[0].partition(" ")[0]) or borrowed.get("") or Counter()
        above = roots.most_common(1)[0][0] if roots else ("worker",)
        whole.append((*above, *stack))
    return Counter(whole)


def _is_jit(frame: Frame) -> bool:
    # Anonymous executable memory, for which perf looks for a map: nothing else in nginx has any.
    return frame.file.endswith(".map") or frame.file.startswith(("//anon", "[JIT]"))


def _vm_name(frame: Frame) -> str:
    return frame.symbol if frame.symbol != UNKNOWN else "LuaJIT"


def _cropped(frames: Sequence[Frame]) -> list[str]:
    if not frames:
        return []
    names = [frame.name for frame in frames]
    for root in _ROOTS:
        if root in names:
            return ["worker", *names[names.index(root) + 1 :]]
    return ["worker", *names]


def fold(counts: Counter[tuple[str, ...]]) -> str:
    """Stacks in the format that flame graph tools read: `frame;frame count`."""
    return "".join(
        f"{';'.join(name.replace(';', ',') for name in stack)} {count}\n"
        for stack, count in sorted(counts.items())
    )


def unfold(text: str) -> Counter[tuple[str, ...]]:
    """Reads that format."""
    counts: Counter[tuple[str, ...]] = Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        counts[tuple(stack.split(";"))] += int(count)
    return counts


def difference(old: Counter[tuple[str, ...]], new: Counter[tuple[str, ...]]) -> str:
    """Two recordings in one, `stack old new`, the old one brought to the size of the new one."""
    scale = sum(new.values()) / max(sum(old.values()), 1)
    return "".join(
        f"{';'.join(stack)} {round(old[stack] * scale)} {new[stack]}\n"
        for stack in sorted(old.keys() | new.keys())
    )


def shares(counts: Counter[tuple[str, ...]]) -> dict[str, float]:
    """The share of all samples in which a frame is anywhere in the stack."""
    found: Counter[str] = Counter()
    for stack, count in counts.items():
        for name in set(stack):
            found[name] += count
    total = sum(counts.values())
    return {name: count / total for name, count in found.most_common()}


def unnamed(counts: Counter[tuple[str, ...]]) -> dict[str, float]:
    """The share of the samples that end in a frame without a name, by the file it is in."""
    found: Counter[str] = Counter()
    for stack, count in counts.items():
        if stack[-1].startswith("["):
            found[stack[-1]] += count
    total = sum(counts.values())
    return {name: count / total for name, count in found.most_common()}


def layers(counts: Counter[tuple[str, ...]]) -> dict[str, float]:
    """The share of all samples by what they are spent on, each in one place.

    `kernel: f` is the kernel called by the C function f. `Lua: file` is Lua, and the C that it
    calls, by the innermost file that is Sluice's. All else is C of nginx or of its Lua module.
    """
    found: Counter[str] = Counter()
    for stack, count in counts.items():
        found[_layer(stack)] += count
    total = sum(counts.values())
    return {name: count / total for name, count in found.most_common()}


def _layer(stack: Sequence[str]) -> str:
    for index, name in enumerate(stack):
        if name.endswith(KERNEL):
            return f"kernel: {stack[index - 1].removeprefix('__GI_') if index else 'none'}"
    files = [name.removesuffix(LUA).split(" ")[-1] for name in stack if name.endswith(LUA)]
    if files:
        own = [file for file in files if file.startswith(("gateway/", "plugins/", "lib/"))]
        return f"Lua: {(own or files)[-1].rpartition(':')[0] or files[-1]}"
    leaf = stack[-1].lstrip("~")
    return (
        "C: the Lua module"
        if leaf.startswith(("ngx_http_lua", "lua"))
        else "C: nginx and libraries"
    )
