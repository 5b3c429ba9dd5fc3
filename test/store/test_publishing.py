"""Store and images together: a writer that is killed, a full folder of images."""

import errno
import pathlib
import random
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from seeds import seed_of

from harness import LUAJIT, ROOT, answered, environment

LAST, PERIOD = 24, 6


def publish(where: pathlib.Path, **shim: object) -> list[str]:
    """Runs a publisher to its end, or death, and gives its lines."""
    program = [LUAJIT, str(ROOT / "test/store/publisher.lua"), str(where), str(LAST), str(PERIOD)]
    ran = subprocess.run(
        program, env=environment(**shim), stdout=subprocess.PIPE, text=True, check=False
    )
    return ran.stdout.splitlines()


class Follower:
    """A test/store/follower.lua."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [LUAJIT, str(ROOT / "test/store/follower.lua")],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def follow(self, folder: pathlib.Path) -> tuple[int, int, str]:
        """What was published, what the store has, and from what a successor began."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{folder}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().strip()
        assert line.endswith(" fine"), f"{folder}: {line}"
        before, revision, begun, _ = line.split()
        return int(before), int(revision), begun


@pytest.fixture(scope="module")
def follower() -> Iterator[Follower]:
    """Follows the publishers that have died."""
    running = Follower()
    yield running
    running.process.communicate()


def test_killed_at_every_step(tmp_path: pathlib.Path, follower: Follower) -> None:
    """What is published is whole and committed; what was answered is published by the next."""
    stop, done, begun = 0, False, set()
    while not done:
        # every step of the beginning, then some
        stop += 1 if stop < 45 else 7
        folder = tmp_path / str(stop)
        folder.mkdir()
        lines = publish(folder, folder=folder, stop=stop)
        done = lines[-1:] == ["done"]
        before, revision, how = follower.follow(folder)
        assert before <= revision
        assert answered(lines) <= revision <= answered(lines) + 1
        begun.add(how)
    assert stop > 150, "the shim has seen too little"
    assert begun >= {"live", "rows"}


BACKUP = """
local place = require("test.store.publishing").place(arg[1])
local opts = { layouts = place.layouts, read_only = true }
local opened = assert(require("gateway.store.database").open(place.store, opts))
assert(opened:backup(arg[1] .. "/backup"))
"""


def test_the_first_start_of_a_backup_is_killed_at_every_step(
    tmp_path: pathlib.Path, follower: Follower
) -> None:
    """A death before it has another uuid keeps no start from it."""
    publish(tmp_path)
    program = [LUAJIT, "-", str(tmp_path)]
    subprocess.run(program, input=BACKUP, env=environment(), cwd=ROOT, text=True, check=True)
    deaths = 0
    for stop in range(1, 30):
        folder = tmp_path / str(stop)
        (folder / "store").mkdir(parents=True)
        shutil.copy(tmp_path / "backup", folder / "store" / "store.db")
        (folder / "store" / "store.db").chmod(0o600)
        lines = publish(folder, folder=folder, stop=stop)
        deaths += lines == []
        assert follower.follow(folder)[1] == LAST
    assert deaths > 10, "the shim has seen too little"


RESTORE = """
local evidence = require("gateway.writer.evidence")
local place = require("test.store.publishing").place(arg[1])
local folder = arg[1] .. "/store"
local instance = { prefix = arg[1], store_folder = folder, store = place.store }
if arg[2] then
    local user = require("posix.pwd").getpwuid(require("posix.unistd").geteuid()).pw_name
    local done, err = require("cli.instance.recovery").restore({ user = user }, instance, arg[2])
    print(done and "done" or err)
end
local now, err = evidence.examine(place.store, place.layouts)
print(now and now.revision or err.err)
"""


def restore(where: pathlib.Path, *backup: pathlib.Path, **shim: object) -> list[str]:
    """Puts a backup in the place of a store, and says what a start would say of it."""
    program = [LUAJIT, "-", str(where), *map(str, backup)]
    env = environment(**shim)
    ran = subprocess.run(
        program, input=RESTORE, env=env, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return ran.stdout.splitlines()


def test_a_restore_is_killed_at_every_step(tmp_path: pathlib.Path, follower: Follower) -> None:
    """A start refuses what it leaves, or begins with one of the two; never with nothing."""
    publish(tmp_path)
    program = [LUAJIT, "-", str(tmp_path)]
    subprocess.run(program, input=BACKUP, env=environment(), cwd=ROOT, text=True, check=True)
    newer = tmp_path / "newer"
    shutil.copytree(tmp_path / "store", newer / "store")
    follower.follow(newer)
    left, stop, done = set(), 0, False
    while not done:
        # the files change places in the last steps
        stop += 9 if stop < 100 else 1
        folder = tmp_path / str(stop)
        shutil.copytree(newer / "store", folder / "store")
        said, found = restore(folder, tmp_path / "backup", folder=folder / "store", stop=stop)
        done = said == "done"
        assert done or "killed (9)" in said
        if found in ("missing", "foreign"):
            assert restore(folder, tmp_path / "backup") == ["done", str(LAST)]
        left.add(found)
    assert follower.follow(folder)[1] == LAST
    assert left == {str(LAST), str(LAST + 1), "missing", "foreign"}


def test_a_step_fails_once(tmp_path: pathlib.Path, follower: Follower) -> None:
    """A full disk, or folder of images: a change is refused and nowhere, the next one is made."""
    refused = 0
    for fail in range(40, 240, 9):
        folder = tmp_path / str(fail)
        folder.mkdir()
        lines = publish(folder, folder=folder, fail=fail, fails=1, errno=errno.ENOSPC)
        said = {line.split(" ", 1)[1] for line in lines if line.startswith("refused")}
        assert said <= {"full", "disk error", "cannot open"}, lines
        refused += len(said)
        before, revision, _ = follower.follow(folder)
        assert before == revision == answered(lines)
    assert refused > 3


def test_killed_at_any_moment(tmp_path: pathlib.Path, follower: Follower) -> None:
    """The same store again and again, killed under load."""
    chance = random.Random(seed_of("publishing"))
    last = 0
    for _ in range(8):
        program = [LUAJIT, str(ROOT / "test/store/publisher.lua"), str(tmp_path), "1000000", "5"]
        with subprocess.Popen(
            program, env=environment(), stdout=subprocess.PIPE, text=True
        ) as publisher:
            assert publisher.stdout
            lines = [publisher.stdout.readline() for _ in range(chance.randint(1, 60))]
            publisher.kill()
            lines += publisher.stdout.readlines()
        lines = [line.strip() for line in lines if line.endswith("\n")]
        assert int(lines[0].split()[1]) == last
        before, revision, _ = follower.follow(tmp_path)
        assert before <= revision
        assert answered(lines) <= revision <= max(last, answered(lines)) + 1
        last = revision + 1  # the follower makes one more


SMALL = """
set -e
mkdir "$1/images"
mount -t tmpfs -o size=100k,mode=700 none "$1/images"
"$2" test/store/publisher.lua "$1" 40 1000
mount -o remount,size=2m "$1/images"
"$2" test/store/publisher.lua "$1" 40 6
echo "$1" | "$2" test/store/follower.lua
"""


def test_a_small_tmpfs(tmp_path: pathlib.Path) -> None:
    """No room for the next base: refused, what is live stays; with room it goes on."""
    if subprocess.run(["unshare", "-rm", "true"], check=False).returncode != 0:
        pytest.skip("this machine has no namespaces for tests")
    ran = subprocess.run(
        ["unshare", "-rm", "sh", "-c", SMALL, "sh", str(tmp_path), LUAJIT],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = ran.stdout.splitlines()
    assert lines.count("refused full") == 3, (lines, ran.stderr)
    assert lines[-2:] == ["done", "40 40 live fine"], (lines, ran.stderr)
