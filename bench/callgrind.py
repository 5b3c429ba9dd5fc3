"""Reads what callgrind dumps: instructions by function, each function's own."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import symbols

# By file (a program or a library) and function.
Counts = Counter[tuple[str, str]]

# Of a name only the first mention is spelled out: "(12) name", later "(12)".
_NAME = re.compile(r"\((\d+)\)(?: (.*))?")
_SUM = re.compile(r"totals: (\d+)")
JIT = "code of the JIT"
VM = "LuaJIT"
# What a compiler puts behind the name of a function that it has changed for its callers.
_CHANGED = re.compile(r"(\.(constprop|isra|part|lto_priv|cold)(\.\d+)?)+$")
# libc's functions that hand out memory and take it back.
_HEAP = re.compile(
    r"_*(GI_+)?(libc_|int_|mid_|posix_)?"
    r"(malloc|malloc_consolidate|calloc|realloc|memalign|aligned_alloc|free|unlink_chunk)\b"
)


class CallgrindError(Exception):
    """A dump that is not what it should be; the message says how."""


def parse(text: str) -> Counts:
    """Instructions by file and function of one dump, without those of the functions called.

    Raises CallgrindError where they do not add up to the total that the dump states.
    """
    files: dict[str, str] = {}
    functions: dict[str, str] = {}
    counts: Counts = Counter()
    file = function = ""
    is_callee = False
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key in ("ob", "cob"):
            name = _spelled(files, value)
            file = name if key == "ob" else file
        elif key in ("fn", "cfn"):
            name = _spelled(functions, value)
            function = name if key == "fn" else function
        elif key == "calls":
            is_callee = True  # the next line is what the callee took
        elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
            if not is_callee:
                counts[file, function] += int(line.split()[1])
            is_callee = False
    found = _SUM.search(text)
    if not found or counts.total() != int(found.group(1)):
        said = found.group(1) if found else "no"
        raise CallgrindError(
            f"callgrind's dump has {said} instructions, read were {counts.total()}"
        )
    return counts


def _spelled(names: dict[str, str], value: str) -> str:
    found = _NAME.fullmatch(value)
    if not found or (found[2] is None and found[1] not in names):
        raise CallgrindError(f"callgrind's dump names {value!r}, which is unknown")
    if found[2] is not None:
        names[found[1]] = found[2]
    return names[found[1]]


def named(counts: Counts) -> Counts:
    """The same by a file's own name, with names for functions that callgrind has only addresses of:
    `~f` behind the exported function f, in one sum; variants of a function are one."""
    out: Counts = Counter()
    for (file, function), count in counts.items():
        out[Path(file).name, _name(file, function)] += count
    return out


def heap(counts: Counts) -> int:
    """Instructions of libc's malloc, free and their like, of named counts.

    How many they are depends on how the heap happens to lie.
    """
    return sum(
        count
        for (file, function), count in counts.items()
        if file.startswith("libc") and _HEAP.match(function)
    )


def _name(file: str, function: str) -> str:
    if not function.startswith("0x"):
        return _CHANGED.sub("", function)
    if file == "???":
        return JIT
    if "libluajit" in file:
        return VM
    # Tail calls count for the nameless function that they leave, so an address would say too much.
    return symbols.near(symbols.exported(file), int(function, 16)) or function
