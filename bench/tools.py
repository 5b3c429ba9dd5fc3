"""Tools of the lab in C, compiled when they are first needed."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
from pathlib import Path

import sides

FOLDER = Path(__file__).resolve().parent


@functools.cache
def built(name: str, *, preloaded: bool = False, libraries: tuple[str, ...] = ()) -> Path:
    """The program of `bench/<name>.c`, or the library to preload, compiled anew if its source has
    changed.

    Raises `sides.StartError` if it does not compile.
    """
    source = FOLDER / f"{name}.c"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    program = FOLDER.parent / "build" / "bench" / f"{name}-{digest}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        draft = program.with_suffix(f".{os.getpid()}")
        command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", draft, source]
        command += ["-shared", "-fPIC"] if preloaded else []
        command += [f"-l{library}" for library in libraries]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise sides.StartError(f"{source.name} does not compile: {done.stderr.strip()}")
        draft.rename(program)
    return program
