"""A writer that is killed: at each step towards the disk, and at any moment."""

import pathlib
import random

import pytest
from seeds import seed_of

from harness import Reader, answered, start_writer, write

# with a commit for each, and with one for some; opened anew, so that logs are emptied on the way
RUNS = [{"count": 12, "together": 1, "reopen": 6}, {"count": 12, "together": 3, "reopen": 6}]


@pytest.mark.parametrize("tear", [0, 1])
@pytest.mark.parametrize("run", RUNS, ids=["single", "together"])
def test_killed_at_every_step(
    tmp_path: pathlib.Path, reader: Reader, run: dict[str, int], tear: int
) -> None:
    """What was answered is there, and of the rest each transaction whole or not at all."""
    stop, done = 0, False
    while not done:
        # every step of the beginning, then every third
        stop += 1 if stop < 30 else 3
        folder = tmp_path / str(stop)
        folder.mkdir()
        path = folder / "store.db"
        lines = write(path, folder=folder, stop=stop, tear=tear, **run)
        done = lines[-1:] == ["done"]
        revision = reader.revision(path)
        assert answered(lines) <= revision <= answered(lines) + run["together"]
    assert stop > 60, "the shim has seen too little"


def test_killed_at_any_moment(tmp_path: pathlib.Path, reader: Reader) -> None:
    """The same store again and again, killed under load."""
    path = tmp_path / "store.db"
    chance = random.Random(seed_of("store_kills"))
    last = 0
    for _ in range(25):
        lines = []
        with start_writer(path, 1_000_000, together=chance.randint(1, 4)) as writer:
            assert writer.stdout
            for _ in range(chance.randint(1, 60)):
                lines.append(writer.stdout.readline())
            writer.kill()
            lines += writer.stdout.readlines()
        # a line that was cut is no answer
        lines = [line for line in lines if line.endswith("\n")]
        revision = reader.revision(path)
        assert int(lines[0].split()[1]) == last
        assert answered(lines) <= revision <= max(last, answered(lines)) + 4
        last = revision + 1  # the reader makes a change of its own
