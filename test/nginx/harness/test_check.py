"""The check (scripts/check): what it tries again, what it says, and that no stage hides one."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import evidence
import pytest

from sluice import ROOT

STAGES = ["lint", "prepare", "ring", "unit", "store", "nginx", "lab", "platforms", "bench-gate"]


@pytest.fixture(autouse=True)
def _is_no_part_of_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails here on purpose is not written down for the check that these tests are part of."""
    for name in ("FAILED_TO", "PYTEST_ADDOPTS", "SEED", "LONG", "BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CALM_SECONDS", "0")


class Check:
    """scripts/check beside a Makefile of the test's own, whose stages do what `stages` says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stages: dict[str, list[str]] = {}
        (folder / "scripts").mkdir()
        (folder / "test").mkdir()
        shutil.copy(ROOT / "scripts" / "check", folder / "scripts")
        shutil.copy(ROOT / "test" / "seed.h", folder / "test")

    def fails(self, stage: str, test: str, again: str, verdict: str = "failed") -> None:
        """Has a suite write down one failure."""
        line = "\\t".join([verdict, test, "assert 1 == 2", again])
        self.stages.setdefault(stage, []).append(f"printf '{line}\\n' >>\"$$FAILED_TO\"")

    def run(self, *stages: str) -> tuple[int, list[str]]:
        """Its exit status, and its last lines, from that of the stages on."""
        self.write_makefile()
        done = subprocess.run(
            ["scripts/check", *stages],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
        lines = done.stdout.splitlines()
        begin = max(i for i, line in enumerate(lines) if line.startswith("check: lint "))
        return done.returncode, lines[begin:]

    def write_makefile(self) -> None:
        """What the stages do."""
        rules = [".PHONY: " + " ".join(STAGES)]
        for stage in STAGES:
            rules += [f"{stage}:", *(f"\t@{line}" for line in self.stages.get(stage, ["true"]))]
        (self.folder / "Makefile").write_text("\n".join(rules) + "\n")


@pytest.fixture
def check(tmp_path: Path) -> Check:
    return Check(tmp_path)


def test_a_green_run_names_its_stages(check: Check) -> None:
    code, said = check.run("lint", "test", "platforms", "bench-gate")
    assert code == 0
    words = [part.split() for part in said[0].removeprefix("check: ").split(" | ")]
    # Of those that run beside each other, whichever ends first comes first.
    assert sorted(word[0] for word in words) == sorted(STAGES)
    assert {word[1] for word in words} == {"ok"}
    assert len(said) == 3


def test_what_passes_the_second_time_is_flaky_and_named(check: Check) -> None:
    check.fails("nginx", "test_a.py::test_b[c d]", "echo once >>tries")
    code, said = check.run("lint", "test")
    assert code == 0
    assert "nginx FLAKY" in said[0]
    assert said[1] == "FLAKY nginx: test_a.py::test_b[c d]: assert 1 == 2"
    assert (check.folder / "tries").read_text() == "once\n"


def test_failures_that_one_command_repeats_are_tried_once(check: Check) -> None:
    for test in ("test_a.py::one", "test_a.py::two"):
        check.fails("nginx", test, "echo once >>tries")
    code, said = check.run("lint", "test")
    assert code == 0
    assert [line.split(": ")[1] for line in said[1:3]] == ["test_a.py::one", "test_a.py::two"]
    assert (check.folder / "tries").read_text() == "once\n"


def test_what_fails_twice_is_red_with_its_command_and_hides_nothing(check: Check) -> None:
    check.fails("unit", "one", "exit 3")
    check.fails("nginx", "two", "true")
    check.stages["lab"] = ["echo 'E: no such thing, error'", "exit 1"]
    code, said = check.run("lint", "test")
    assert code == 1
    assert "unit RED" in said[0]
    assert "nginx FLAKY" in said[0]
    assert "lab RED" in said[0]
    assert said[1:6] == [
        "RED unit: one: assert 1 == 2",
        "  again: exit 3",
        "RED lab: lab: E: no such thing, error",
        "  again: make lab",
        "FLAKY nginx: two: assert 1 == 2",
    ]


def test_a_crash_is_not_tried_again(check: Check) -> None:
    check.fails("ring", "budget", "touch tried", verdict="crashed")
    code, said = check.run("lint", "test")
    assert code == 1
    assert said[1] == "RED ring: budget: assert 1 == 2 (a crash is not tried again)"
    assert not (check.folder / "tried").exists()


def test_nothing_is_tried_again_where_too_many_failed(check: Check) -> None:
    for i in range(11):
        check.fails("nginx", f"test {i}", "touch tried")
    code, said = check.run("lint", "test")
    assert code == 1
    assert said[1] == "RED nginx: test 0: assert 1 == 2 (not tried again: 11 failed)"
    assert "RED: 3 more, in build/ci/result" in said
    assert len(said) <= 25
    assert not (check.folder / "tried").exists()


@pytest.mark.parametrize(("stage", "verdict"), [("platforms", 0), ("bench-gate", 0), ("lint", 1)])
def test_a_stage_as_a_whole(check: Check, stage: str, verdict: int) -> None:
    """What depends on a mirror or a quiet machine may fail once; a linter finds the same again."""
    check.stages[stage] = ["test -e tried || { touch tried; exit 1; }"]
    code, said = check.run("lint", "test", "platforms", "bench-gate")
    assert code == verdict
    assert f"{stage} {'RED' if verdict else 'FLAKY'}" in said[0]


def test_without_a_build_no_suite_runs(check: Check) -> None:
    check.stages["prepare"] = ["echo 'build: the module does not build'", "exit 1"]
    check.stages["nginx"] = ["touch ran"]
    code, said = check.run("lint", "test", "bench-gate")
    assert code == 1
    assert said[1] == "RED prepare: prepare: build: the module does not build"
    assert "bench-gate ok" in said[0]
    assert not (check.folder / "ran").exists()


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("README.md", "whole"),
        ("cli/options/platform.lua", "whole"),
        ("module/x/y.c", "module"),
        ("plugins/x/y.h", "module"),
        ("plugins/x/y.lua", None),
        ("docs/a.md", None),
    ],
)
def test_of_bare_debians_a_change_has_what_it_can_have_touched(
    check: Check, changed: str, tests: str | None
) -> None:
    def git(*words: str, **environment: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *words],
            cwd=check.folder,
            env=os.environ | environment,
            check=True,
        )

    git("init", "--quiet", "--initial-branch", "main")
    # The change is two commits; what was there before it is older by a day.
    for file, hours in (("scripts/old", 30), (changed, 2), ("docs/b.md", 0)):
        path = check.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file)
        git("add", file)
        then = f"2026-01-02T{10 - hours:02}:00:00Z" if hours < 10 else "2026-01-01T00:00:00Z"
        git("commit", "--quiet", "--message", file, GIT_COMMITTER_DATE=then)
    # The second try is the same command.
    check.stages["platforms"] = [
        "echo $(or $(TESTS),whole) >ran",
        "test -e tried || { touch tried; exit 1; }",
    ]
    code, _ = check.run("lint", "test", "platforms")
    assert code == 0
    ran = check.folder / "ran"
    assert (ran.read_text().strip() if ran.exists() else None) == tests


def test_what_that_rule_names_is_there() -> None:
    rule = re.search(r"changed (Makefile [^;]*);", (ROOT / "scripts" / "check").read_text())
    assert rule
    for name in rule[1].split():
        assert (ROOT / name).exists(), name


def test_steady_counts_what_failed_over_many_runs(check: Check) -> None:
    check.fails("nginx", "now and then", "test -e twice || { touch twice; exit 1; }")
    check.fails("unit", "always", "false")
    check.write_makefile()
    shutil.copy(ROOT / "scripts" / "steady", check.folder / "scripts")
    done = subprocess.run(
        ["scripts/steady"],
        cwd=check.folder,
        env=os.environ | {"RUNS": "3", "LOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = done.stdout.splitlines()
    assert [line.split(",")[0] for line in lines[:3]] == [
        f"steady: run {i} of 3: red" for i in (1, 2, 3)
    ]
    assert lines[4:] == [
        "  3 red   0 flaky  unit: always",
        "  1 red   2 flaky  nginx: now and then",
    ]


# What suites write down.

PYTEST = """
import pytest

def test_passes():
    pass

@pytest.mark.parametrize("what", ["a b", "$x'y"])
def test_fails(what):
    assert what == 1, "no\\ttab"

@pytest.fixture
def broken():
    raise ValueError("two\\nlines")

def test_is_not_set_up(broken):
    pass

def test_fails_by_another(record_property):
    record_property("with its file", True)
    assert False, "left"

def test_crashes(record_property):
    record_property("crash", "worker process 1 exited on signal 11")
    assert False
"""

CONFTEST = """
import sys
sys.path.insert(0, {test!r})
from failures import Failures

def pytest_configure(config):
    config.pluginmanager.register(Failures(config))
"""


@pytest.mark.parametrize("jobs", ["0", "2"])
def test_pytest_writes_down_what_failed(tmp_path: Path, jobs: str) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.format(test=str(ROOT / "test")))
    # Names of tests begin here, wherever the checkout is.
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(PYTEST)
    written = tmp_path / "failed"
    python = ROOT / "build" / "venv" / "bin" / "python"
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-n", jobs, "-p", "no:cacheprovider", tmp_path],
        env=os.environ | {"FAILED_TO": str(written), "SEED": "7"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout
    found = sorted(line.split("\t") for line in written.read_text().splitlines())
    assert [words[:3] for words in found] == [
        ["crashed", "test_it.py::test_crashes", "worker process 1 exited on signal 11"],
        ["failed", "test_it.py::test_fails[$x'y]", "AssertionError: no tab"],
        ["failed", "test_it.py::test_fails[a b]", "AssertionError: no tab"],
        ["failed", "test_it.py::test_fails_by_another", "AssertionError: left"],
        ["failed", "test_it.py::test_is_not_set_up", "ValueError: two"],
    ]
    assert "\nFAILED test_it.py::test_fails[a b]: AssertionError: no tab\nagain: " in done.stdout
    # What another test has left is there only when that runs, too.
    assert [words[3].endswith("/test_it.py") for words in found] == [
        words[1].endswith("test_fails_by_another") for words in found
    ]
    for words in found:
        assert words[3].startswith("SEED=7 build/venv/bin/python -m pytest ")
        again = subprocess.run(["sh", "-c", words[3]], cwd=ROOT, capture_output=True, text=True)
        assert again.returncode == 1
        assert re.search(r"\d (failed|error)", again.stdout)


CRASHES = """
import signal, os
from nginx import Nginx

def test_it():
    with Nginx("server { listen 127.0.0.1:@port@; }", workers=1) as nginx:
        os.kill(nginx.workers()[0], signal.SIGSEGV)
        while "exited on signal" not in nginx.error_log():
            pass
        raise ConnectionError
"""


def test_a_crash_is_written_down_whatever_the_test_fails_by(tmp_path: Path) -> None:
    nginx = ROOT / "test" / "nginx"
    conftest = (nginx / "conftest.py").read_text()
    conftest += f"\nimport evidence, pathlib\nevidence.FAILED = pathlib.Path({str(tmp_path)!r})\n"
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(CRASHES)
    written = tmp_path / "failed"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path],
        env=os.environ
        | {"FAILED_TO": str(written), "PYTHONPATH": f"{nginx / 'support'}:{ROOT / 'test'}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout
    verdict, test, reason, _ = written.read_text().split("\t")
    assert (verdict, test) == ("crashed", "test_it.py::test_it")
    assert "exited on signal 11" in reason


@pytest.mark.parametrize("place", ["test/unit", "test/plugins/some-plugin"])
def test_busted_writes_down_what_failed(tmp_path: Path, place: str) -> None:
    folder = tmp_path / place
    folder.mkdir(parents=True)
    (folder / "some_spec.lua").write_text(
        'it("passes", function() end)\n'
        'it("is one", function() error("two\\nlines") end)\n'
        'it("is 1", function() assert.equal(1, 2) end)\n'
    )
    written = tmp_path / "failed"
    output = ROOT / "test" / "unit" / "support" / "output.lua"
    done = subprocess.run(
        ["busted", "--lua=luajit", f"--output={output}", f"{place}/some_spec.lua"],
        env=os.environ | {"FAILED_TO": str(written), "SEED": "7"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0, done.stdout
    found = sorted(line.split("\t") for line in written.read_text().splitlines())
    assert [words[:2] for words in found] == [["failed", "is 1"], ["failed", "is one"]]
    assert "Expected objects to be equal" in found[0][2]
    assert found[1][2].endswith("two lines")
    assert {words[3] for words in found} == {f"SEED=7 make unit ONLY={place}/some_spec.lua"}


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("echo it FAILED at a.c:1 >&2; exit 1", "failed\tprogram\tit FAILED at a.c:1\t"),
        ("echo a.c:1: runtime error: x >&2; exit 1", "crashed\tprogram\ta.c:1: runtime error: x\t"),
        ("kill -SEGV $$", "crashed\tprogram\tSegmentation fault\t"),
    ],
)
def test_programs_in_c_write_down_what_failed(tmp_path: Path, program: str, line: str) -> None:
    folder = tmp_path / "test" / "core"
    folder.mkdir(parents=True)
    (folder / "program").write_text(f"#!/bin/sh\n{program}\n")
    (folder / "program").chmod(0o755)
    written = tmp_path / "failed"
    words = [ROOT / "test" / "try", "./program"]
    for more, code in (({}, 1), ({"FAILED_TO": str(written)}, 0)):
        done = subprocess.run(words, cwd=folder, env=os.environ | {"CASES": "5"} | more)
        assert done.returncode == code
    assert written.read_text() == f"{line}cd test/core && CASES=5 ./program\n"


def test_logs_of_a_failed_test_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "FAILED", tmp_path / "failed")
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "proxy/test_a.py::test_b[c/d] (call)")
    folder = tmp_path / "prefix"
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "error.log").write_bytes(b"x" * (evidence.FILE_BYTES + 1) + b"end\n")
    (folder / "store").write_bytes(b"x")
    (folder / "link.log").symlink_to("/etc/passwd")
    evidence.keep(folder)
    (kept,) = (tmp_path / "failed").glob("proxy-test_a.py-test_b-c-d-/prefix")
    assert sorted(path.name for path in kept.iterdir()) == ["logs-error.log", "processes.txt"]
    assert (kept / "logs-error.log").stat().st_size == evidence.FILE_BYTES
    assert (kept / "logs-error.log").read_bytes().endswith(b"xend\n")
