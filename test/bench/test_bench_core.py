"""The core's scenario: what its programs print, and that they compile and say all that is told."""

from pathlib import Path

import core
import pytest
import sides
from verify import InvalidRun


def test_lines_for_people_are_passed_over() -> None:
    printed = "bench: SEED=12\nmatch_ns 1234.500\nbuild_ms 0.5\n"
    assert core.parse(printed) == {"match_ns": 1234.5, "build_ms": 0.5}


@pytest.mark.long
def test_the_programs_say_every_metric(tmp_path: Path) -> None:
    bench, lines = core.built(sides.ROOT, tmp_path / "programs")
    said = core.ask(bench, 1000) | core.ask(lines, 1000)
    assert said.keys() >= core.UNITS.keys()
    assert said["cold_lines"] >= 3  # table, entry, record
    assert 96 + 64 <= said["image_bytes_per_route"] <= 250


def test_a_program_that_fails_makes_the_run_invalid(tmp_path: Path) -> None:
    program = tmp_path / "fails"
    program.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(InvalidRun, match="broken"):
        core.ask(program, 1)
