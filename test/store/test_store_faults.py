"""A disk that is full or broken: clear words, nothing lost, and it goes on when the disk does."""

import errno
import pathlib
import subprocess

import pytest

from harness import LUAJIT, ROOT, Reader, answered, environment, write

STEPS = range(1, 60)


def started(tmp_path: pathlib.Path, number: int) -> pathlib.Path:
    """A store with one transaction, in a folder of its own."""
    folder = tmp_path / str(number)
    folder.mkdir()
    assert write(folder / "store.db", 1)[-1] == "done"
    return folder / "store.db"


def refusals(lines: list[str]) -> set[str]:
    """The words of what was refused."""
    return {line.split(" ", 1)[1] for line in lines if line.startswith("refused")}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
def test_a_step_fails_once(tmp_path: pathlib.Path, reader: Reader, number: int) -> None:
    """What meets it is refused and not made; the next one is made."""
    refused = 0
    for fail in STEPS:
        path = started(tmp_path, fail)
        lines = write(path, 8, reopen=4, folder=path.parent, fail=fail, fails=1, errno=number)
        said = refusals(lines)
        assert said <= {"full", "disk error", "cannot open"}
        if lines[-1] != "done":
            # an opening was refused
            assert lines[-1].startswith("refused")
            lines += write(path, 1)
        refused += len(said)
        assert lines[-1] == "done", f"step {fail}: {lines}"
        assert reader.revision(path) == answered(lines)
    assert refused > len(STEPS) / 4


def test_what_was_refused_does_not_come_back(
    tmp_path: pathlib.Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit whose sync failed stands in the log, whole: the next to open must not find it."""
    monkeypatch.setenv("STORE_DIES", "1")
    refused = 0
    for fail in STEPS:
        path = started(tmp_path, fail)
        lines = write(path, 8, folder=path.parent, fail=fail, fails=1, errno=errno.EIO)
        refused += len(refusals(lines))
        assert reader.revision(path) == max(1, answered(lines)), f"step {fail}: {lines}"
    assert refused > len(STEPS) / 4


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
def test_the_disk_stays_away(tmp_path: pathlib.Path, reader: Reader, number: int) -> None:
    """Changes are refused; what was answered is there."""
    for fail in STEPS[::3]:
        path = started(tmp_path, fail)
        lines = write(path, 12, folder=path.parent, fail=fail, fails=1_000_000, errno=number)
        before = max(1, answered(lines))
        if answered(lines) < 13:
            assert refusals(lines)
        assert reader.revision(path) in (before, before + 1)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
def test_a_step_of_filling_alone_fails(
    tmp_path: pathlib.Path, reader: Reader, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """All that it holds is there, or nothing; it goes on."""
    monkeypatch.setenv("STORE_ALONE", "1")
    refused = 0
    for fail in range(1, 40):
        folder = tmp_path / str(fail)
        folder.mkdir()
        path = folder / "store.db"
        lines = write(path, 1, folder=folder, fail=fail, fails=1, errno=number)
        said = refusals(lines)
        assert said <= {"full", "disk error", "cannot open"}
        refused += len(said)
        assert reader.revision(path) in ((0, 1) if "disk error" in said else (answered(lines),))
    assert refused > 10


def in_namespace(
    script: str, mount: pathlib.Path, program: str, *args: object
) -> subprocess.CompletedProcess[str]:
    """Runs a program of this folder where `script` has mounted something."""
    if subprocess.run(["unshare", "-rm", "true"], check=False).returncode != 0:
        pytest.skip("this machine has no namespaces for tests")
    lua = [LUAJIT, str(ROOT / "test/store" / program), *map(str, args)]
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", str(mount), *lua],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


FULL = """
set -e
mount -t tmpfs -o size=400k none "$1"
shift
exec "$@"
"""


def test_a_full_file_system(tmp_path: pathlib.Path) -> None:
    """A tmpfs of 400 KiB: full, still readable, and it goes on where there is room again."""
    done = in_namespace(FULL, tmp_path, "full.lua", tmp_path / "store.db")
    assert done.stdout.splitlines() == ["full", "all there", "goes on"], done.stderr


READ_ONLY = """
set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
shift
exec "$@"
"""


def test_a_file_that_cannot_be_written(tmp_path: pathlib.Path) -> None:
    """Said so, before anything is asked of it."""
    path = tmp_path / "store.db"
    assert write(path, 1)[-1] == "done"
    done = in_namespace(READ_ONLY, path, "writer.lua", path, 1, 1, 0)
    assert done.stdout.splitlines() == ["refused read only"], done.stderr
