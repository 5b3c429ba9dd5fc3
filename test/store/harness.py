"""What the tests of the store share: the shim, a writer under it, a reader of what is left."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHIM = ROOT / "build" / "store" / "shim.so"
LUAJIT = os.environ.get("SLUICE_LUAJIT", "luajit")
PLACES = ("?.lua", "?/init.lua", "lib/?.lua", "lib/?/init.lua")
PATHS = ";".join(f"{ROOT}/{place}" for place in PLACES) + ";;"


def environment(**shim: object) -> dict[str, str]:
    """The environment of a program, with the shim where it has something to do."""
    env = dict(os.environ, LUA_PATH=PATHS)
    if shim:
        env["LD_PRELOAD"] = str(SHIM)
        env.update({f"SHIM_{name.upper()}": str(value) for name, value in shim.items()})
    return env


def start_writer(
    path: pathlib.Path, count: int, together: int = 1, reopen: int = 0, **shim: object
) -> subprocess.Popen[str]:
    """Starts test/store/writer.lua on a store."""
    program = [LUAJIT, str(ROOT / "test/store/writer.lua"), str(path)]
    return subprocess.Popen(
        [*program, str(count), str(together), str(reopen)],
        env=environment(**shim),
        stdout=subprocess.PIPE,
        text=True,
    )


def write(path: pathlib.Path, count: int, **options: int | str | pathlib.Path) -> list[str]:
    """Runs a writer to its end, or death, and gives its lines."""
    with start_writer(path, count, **options) as writer:  # type: ignore[arg-type]
        assert writer.stdout
        return writer.stdout.read().splitlines()


def answered(lines: list[str]) -> int:
    """The last revision that was answered."""
    return max((int(line.split()[1]) for line in lines if line.startswith("answered")), default=0)


class Reader:
    """A test/store/reader.lua, which opens one store after the other."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [LUAJIT, str(ROOT / "test/store/reader.lua")],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def revision(self, path: pathlib.Path) -> int:
        """The revision of a store that is whole; anything else fails the test."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().strip()
        assert line.endswith(" fine"), f"{path}: {line}"
        return int(line.split()[0])

    def close(self) -> None:
        """Ends it."""
        self.process.communicate()
