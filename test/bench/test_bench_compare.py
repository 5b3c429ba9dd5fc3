"""Two revisions of a repository made up for it, and what a comparison says and stops."""

import shutil
import subprocess
import sys
from pathlib import Path

import compare
import gate
import kinds
import micro
import proxy
import pytest
import report
import revisions
import run
import scenario as scenarios
import selftest
import sides
import stats
from verify import InvalidRun

needs_wrk = pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root, "first", "one\n")
    commit(root, "second", "two\n")
    monkeypatch.setattr(sides, "ROOT", root)
    return root


def git(root: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    command = ["git", *who, *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def commit(root: Path, message: str, content: str) -> None:
    (root / "file").write_text(content)
    git(root, "add", "file")
    git(root, "commit", "--quiet", "--message", message)


def test_revisions_are_exported_and_gone_afterwards(repository: Path) -> None:
    (repository / "file").write_text("not committed\n")
    with revisions.exported("HEAD") as new, revisions.exported("HEAD~1") as old:
        assert (new / "file").read_text() == "two\n"
        assert (old / "file").read_text() == "one\n"
    assert not new.exists()
    assert not old.exists()
    assert revisions.changed()
    assert revisions.described(revisions.resolve("HEAD~1")).endswith(" first")


def test_the_base_of_a_branch_is_where_it_left_and_on_main_the_parent(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "end_on_signals", lambda: None)
    base = revisions.resolve("HEAD")
    assert revisions.base() == revisions.resolve("HEAD~1")
    git(repository, "checkout", "--quiet", "-b", "branch")
    commit(repository, "mine", "three\n")
    commit(repository, "mine, too", "four\n")
    assert revisions.base() == base
    git(repository, "checkout", "--quiet", "HEAD~3")
    git(repository, "branch", "--quiet", "--delete", "--force", "main")
    assert revisions.base() is None
    assert revisions.alone() == "this is the first commit"
    assert gate.main([]) == 0


def test_a_merge_on_main_is_held_against_its_first_parent(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "-b", "branch", "HEAD~1")
    (repository / "other").write_text("x\n")
    git(repository, "add", "other")
    git(repository, "commit", "--quiet", "--message", "mine")
    git(repository, "checkout", "--quiet", "main")
    before = revisions.resolve("HEAD")
    git(repository, "merge", "--quiet", "--no-ff", "--message", "merged", "branch")
    assert revisions.base() == before


def test_a_shallow_clone_has_nothing_to_compare_with_and_says_so(
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth", "1", repository.as_uri(), str(clone))
    monkeypatch.setattr(sides, "ROOT", clone)
    monkeypatch.setattr(run, "end_on_signals", lambda: None)  # they are pytest's here
    assert gate.main([]) == 0
    said = "gate: no revision to compare with; this clone is shallow: git fetch --unshallow\n"
    assert capsys.readouterr().out == said


def test_a_base_that_does_not_build_stops_nobody(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = repository / "scripts" / "build-module"
    script.parent.mkdir()
    for message, text in (("broken", "echo no luck; exit 1"), ("mended", "exit 0")):
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
        git(repository, "add", "scripts")
        git(repository, "commit", "--quiet", "--message", message)
    monkeypatch.setattr(run, "end_on_signals", lambda: None)
    assert gate.main([]) == 0
    assert "gate: nothing to compare with: " in (said := capsys.readouterr().out)
    assert "no luck" in said


def test_only_folders_that_run_are_looked_at(repository: Path) -> None:
    assert revisions.differ("HEAD~1", "HEAD", ["file"])
    assert not revisions.differ("HEAD~1", "HEAD", ["docs"])


def test_slowdowns_are_announced_in_messages_of_commits(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(repository, "third\n\nSlower: ring_event_64 9%: it looks\n  closer", "3")
    commit(repository, "4th\n\nSlower: proxy-plain 7.5%: more\nSlower: ring_event_64 2%: a", "4")
    commit(repository, "fifth", "5")
    assert gate.announced("HEAD", "HEAD~3") == {"ring_event_64": 1.09, "proxy-plain": 1.075}
    assert "gate: announced: ring_event_64 9%: it looks closer\n" in capsys.readouterr().out
    assert gate.announced("HEAD", "HEAD~1") == {}


@pytest.mark.parametrize(
    "wrong", ["proxy-plain: more", "proxy-plain 7%", "proxy-plain 7%: ", "proxy-plain much%: more"]
)
def test_an_announcement_of_another_form_is_an_error(repository: Path, wrong: str) -> None:
    commit(repository, f"third\n\nSlower: {wrong}", "3")
    with pytest.raises(revisions.RevisionError, match="is not of the form"):
        gate.announced("HEAD", "HEAD~1")


@pytest.mark.long
def test_a_slowed_build_writes_later_and_is_else_the_same(tmp_path: Path) -> None:
    start = tmp_path / "bin" / "sluice"
    start.parent.mkdir()
    writing = (
        "import os, time; null = os.open('/dev/null', os.O_WRONLY); t = time.process_time_ns();"
        "[os.writev(null, [b'x']) for _ in range(20000)]; print(time.process_time_ns() - t)"
    )
    start.write_text(f'#!/bin/sh\n{sys.executable} -c "{writing}"\n')
    start.chmod(0o755)
    before = min(int(subprocess.check_output([start])) for _ in range(9)) / 20000
    selftest.slow_down(tmp_path, 20_000)
    after = min(int(subprocess.check_output([start])) for _ in range(9)) / 20000
    # 10 us of each of two writes; how exactly, bench/selftest.py says on a machine that is idle.
    assert after - before > 3_000


def test_instructions_repeat_and_are_held_against_each_other(tmp_path: Path) -> None:
    loop = "int main(int c, char **v) { volatile long n = c * atol(v[2]) * %d; while (n--); }"
    for name, turns in (("new", 103), ("old", 100)):
        (tmp_path / name / "module").mkdir(parents=True)
        code = "#include <stdlib.h>\n" + (loop % turns).replace(
            "int c,", "int c __attribute__((unused)),"
        )
        (tmp_path / name / "module" / "loop.c").write_text(code)
    data = {"programs": {"loop": {"sources": ["module/loop.c"], "counted": 100, "cases": ["a"]}}}
    (tmp_path / "out").mkdir()
    rows, left = micro.compare(data, tmp_path / "new", tmp_path / "old", tmp_path / "out")
    assert left == []
    assert [row.verdict for row in rows] == ["slower"]
    assert rows[0].ratio.value == pytest.approx(1.03, abs=0.001)
    same, _ = micro.compare(data, tmp_path / "new", tmp_path / "new", tmp_path / "out")
    assert same[0].ratio.value == pytest.approx(1, abs=0.0001)
    with pytest.raises(InvalidRun, match="counted nothing"):
        micro.parse("==1== nothing")
    (tmp_path / "old" / "module" / "loop.c").write_text("int main(void) { return nothing; }\n")
    rows, left = micro.compare(data, tmp_path / "new", tmp_path / "old", tmp_path / "out")
    assert rows == []
    assert left[0].startswith("loop (the old revision: loop does not compile: ")
    with pytest.raises(InvalidRun, match="does not compile"):
        micro.compare(data, tmp_path / "old", tmp_path / "new", tmp_path / "out")


def test_what_is_no_revision_is_refused(repository: Path) -> None:
    with pytest.raises(revisions.RevisionError, match="nosuch"):
        revisions.resolve("nosuch")
    with pytest.raises(revisions.RevisionError, match="--output"):
        revisions.resolve("--output=file")


def test_a_module_that_does_not_build_says_why(repository: Path) -> None:
    script = repository / "scripts" / "build-module"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho no compiler today >&2\nexit 1\n")
    script.chmod(0o755)
    git(repository, "add", "scripts")
    git(repository, "commit", "--quiet", "--message", "broken")
    with (
        pytest.raises(revisions.RevisionError, match="no compiler today"),
        revisions.exported("HEAD"),
    ):
        pass


def outcome(low: float, high: float, invalid: str | None = None) -> compare.Outcome:
    middle = stats.Estimate((low + high) / 2, low, high)
    row = report.Compared("cpu_us", "us", 1, 1, middle, stats.verdict(middle))
    return compare.Outcome(report.Result("x", invalid), [row])


def test_only_a_slowdown_beyond_the_bound_stops_a_change() -> None:
    assert outcome(1.06, 1.08).stops() == "CPU time per request is more than 5% above the old one"
    assert outcome(1.04, 1.08).stops() is None
    assert outcome(1.06, 1.08).stops(bound=1.07) is None
    assert outcome(0.90, 0.92).stops() is None
    assert outcome(1, 1, "answers are wrong").stops() == "answers are wrong"
    noisy = outcome(1, 1, "only 2 pairs in the time allowed")
    noisy.blameless = True
    assert noisy.stops() is None


@needs_wrk
@pytest.mark.parametrize(("broken", "stops"), [("new", True), ("old", False)])
def test_a_revision_that_does_not_start_is_nobody_elses_fault(
    broken: str, stops: bool, tmp_path: Path
) -> None:
    start = tmp_path / "bin" / "sluice"
    start.parent.mkdir()
    start.write_text("#!/bin/sh\necho no luck today\nexit 1\n")
    start.chmod(0o755)
    trees = {"new": sides.ROOT, "old": sides.ROOT} | {broken: tmp_path}
    scenario = scenarios.load("proxy-plain")
    plan = proxy.Plan(lives=2, warm_up_s=1, limit_s=60)
    found = compare.compare(scenario, compare.Trees(**trees), plan)
    assert found.result.invalid == f"Sluice, {broken} did not start: no luck today"
    assert bool(found.stops()) is stops


def test_what_may_be_nothing_has_no_ratio_and_a_yardstick_is_not_compared() -> None:
    def run(value: float) -> dict[str, report.Metric]:
        units = {"quit_ms": "ms", "early": "timers", "cpu_ratio": "ratio", "create_ns_ngx": "ns"}
        values = {"early": 0.0}
        return {
            name: report.Metric(values.get(name, value), unit, 0, 0) for name, unit in units.items()
        }

    rows, left = report.compare_runs([run(2.0)] * 8, [run(1.0)] * 8)
    assert [(row.name, row.ratio.value, row.verdict) for row in rows] == [("quit_ms", 2, "slower")]
    assert left == ["early (0.000 to 0.000: 0 has no ratio)"]
    assert report.summary(rows) == "slower: quit_ms; 0 of 1 the same"
    _, left = report.compare_runs([run(2.0)], [{}])
    assert left == ["quit_ms (not in every run)", "early (not in every run)"]


def test_whole_runs_of_two_revisions_alternate(monkeypatch: pytest.MonkeyPatch) -> None:
    order = []

    def measure(_: object, __: float, variant: str, root: Path) -> dict[str, report.Metric]:
        assert variant == "compare"
        order.append(root.name)
        value = {"new": 3.0, "old": 2.0}[root.name]
        return {"ms": report.Metric(value, "ms", value, value)}

    monkeypatch.setattr(kinds, "measure", measure)
    found = compare.compare(
        scenarios.load("start"), compare.Trees(Path("new"), Path("old")), compare.QUICK
    )
    assert "".join(word[0] for word in order) == "noon" * 4
    assert found.rows[0].ratio.value == pytest.approx(1.5)
    said = compare.text(scenarios.load("start"), found, compare.Trees(Path(), Path()), 1)
    assert said.endswith("slower: ms; 0 of 1 the same; 1 s")


def test_a_scenario_that_compares_nothing_says_why() -> None:
    assert "0 has no ratio" in (compare.why_not(scenarios.load("events-idle")) or "")
    assert compare.why_not(scenarios.load("start")) is None
    assert compare.why_not(scenarios.load("proxy-plain")) is None


def test_comparisons_of_equals_are_counted() -> None:
    some = [stats.Estimate(1.07, 1.06, 1.08), stats.Estimate(1, 0.9, 1.1)]
    some.append(stats.Estimate(0.97, 0.96, 0.98))
    assert selftest.alarms(some) == 1
    said = selftest.told(some)
    assert said.startswith("1 false alarms in 3 (a lower end above 1.05; the highest is 1.060)")
    assert said.endswith("1 called slower, 1 faster; the widest interval is 0.900 to 1.100")


@pytest.mark.long
@needs_wrk
def test_a_checkout_is_compared_with_itself() -> None:
    scenario = scenarios.load("proxy-plain")
    assert isinstance(scenario, scenarios.Scenario)
    trees = compare.Trees(sides.ROOT, sides.ROOT, ("abc new", "abc old"))
    found = compare.compare(scenario, trees, proxy.Plan(lives=2, warm_up_s=1, limit_s=90))
    assert found.result.invalid is None
    # Nothing to do with speed, only with sides or units mixed up.
    assert 0.5 < found.cpu.ratio.value < 2
    said = compare.text(scenario, found, trees, 20)
    assert "new: abc new" in said
    assert f"{found.cpu.verdict}: CPU time per request" in said
