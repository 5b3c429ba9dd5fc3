"""Scenario files: the templates' rules, and that both sides of each do the same work."""

import contextlib
import re
import shutil
import tempfile
import time
from pathlib import Path

import compare
import kinds
import proxy
import pytest
import run
import scenario
import sides
import verify
from probe import Recorder

BODY = b'{"message":"hello from upstream"}'


def test_expand_repeats_and_nests() -> None:
    data = {
        "services": [
            {
                "repeat": {"a": 2},
                "name": "s@a@",
                "routes": [{"repeat": {"b": 2}, "name": "r@a@-@b@"}, {"name": "plain@a@"}],
            }
        ]
    }
    names = [
        (service["name"], [route["name"] for route in service["routes"]])
        for service in scenario.expand(data)["services"]
    ]
    assert names == [("s1", ["r1-1", "r1-2", "plain1"]), ("s2", ["r2-1", "r2-2", "plain2"])]


def test_expand_repeats_by_two_words() -> None:
    out = scenario.expand([{"repeat": {"a": 2, "b": 3}, "x": "@a@@b@"}])
    assert [item["x"] for item in out] == ["11", "12", "13", "21", "22", "23"]


def test_expand_text_nests() -> None:
    text = "top\n# repeat a 2\nA@a@\n    # repeat b 2\n    B@a@@b@\n    # end b\n# end a\nend\n"
    expected = ["top", "A1", "B11", "B12", "A2", "B21", "B22", "end"]
    assert scenario.expand_text(text).split() == expected


def test_scenario_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(scenario.ScenarioError, match="proxy-plain"):
        scenario.load("nosuch")
    (tmp_path / "x.nginx.conf").write_text("")
    (tmp_path / "x.haproxy.cfg").write_text("")
    (tmp_path / "x.toml").write_text("title = ")
    with pytest.raises(scenario.ScenarioError, match=r"x\.toml: Invalid value"):
        scenario.load("x", tmp_path)
    (tmp_path / "x.toml").write_text("title = 'only'")
    with pytest.raises(scenario.ScenarioError, match="'body' is missing"):
        scenario.load("x", tmp_path)
    (tmp_path / "x.toml").write_text("title='t'\nbody='b'\nbarz=1\nrequests=[]\nsluice={}")
    with pytest.raises(scenario.ScenarioError, match="unknown fields: barz"):
        scenario.load("x", tmp_path)


@pytest.mark.parametrize(
    ("name", "bar", "requests", "routes", "consumers"),
    [
        ("proxy-plain", 0.94, 1, 1, 0),
        ("proxy-logging", 0.90, 1, 1, 0),
        ("proxy-plugins", 0.90, 1000, 2, 1000),
        ("proxy-routes-1000", 1.00, 1000, 1000, 0),
        ("proxy-routes-100000-equal", 0.93, 100_000, 100_000, 0),
        ("retry", 1.10, 1, 1, 0),
    ],
)
def test_scenarios_are_what_they_promise(
    name: str, bar: float, requests: int, routes: int, consumers: int
) -> None:
    loaded = scenario.load(name)
    assert loaded.bars == {"efficiency": bar}
    assert len({request.head() for request in loaded.requests}) == requests
    services = loaded.sluice["services"]
    assert sum(len(service["routes"]) for service in services) == routes
    usernames = [consumer["username"] for consumer in loaded.sluice.get("consumers", [])]
    assert len(usernames) == len(set(usernames)) == consumers


# That of a million is that of 100,000 with other numbers, and takes a quarter of a minute to read.
READ = [name for name in scenario.names() if name != "proxy-routes-1000000-equal"]
PROXY = [name for name in READ if scenario.describe(name).kind == "proxy"]
# More than ten seconds each.
DEAR = ["proxy-routes-100000-equal", "tls-handshake-full", "tls-handshake-resumed"]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long) if name in DEAR else name for name in PROXY],
)
def test_both_sides_send_the_same_upstream(name: str) -> None:
    loaded = scenario.load(name)
    assert isinstance(loaded, scenario.Scenario)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-bench-")))
        folder.chmod(0o755)  # pytest's own is closed to the workers' user
        running = proxy.Run(loaded, proxy.QUICK, proxy.beside_nginx(loaded)).start(
            stack, folder / "sides"
        )
        assert {side.trouble() for side in running} == {None}


@pytest.mark.parametrize("lost", ["X-Real-IP", "X-Forwarded-Path", "Connection"])
def test_a_missing_header_is_noticed(lost: str, tmp_path: Path) -> None:
    class Careless(sides.HandWritten):
        def write(self) -> None:
            super().write()
            path = self.folder / "forwarded.conf"
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join(line for line in lines if lost not in line))

    plain = scenario.load("proxy-plain")
    upstream = sides.free_address()
    core = proxy.two_cores()[0]
    addresses = sides.free_address(), sides.free_address()
    with (
        sides.HandWritten(plain, tmp_path / "a", addresses[0], upstream, core) as good,
        Careless(plain, tmp_path / "b", addresses[1], upstream, core) as bad,
        Recorder(upstream, BODY) as recorder,
    ):
        verify.same_work(plain, recorder, good, good)
        with pytest.raises(verify.InvalidRun, match=lost.lower()):
            verify.same_work(plain, recorder, good, bad)


def test_a_wrong_body_is_noticed(tmp_path: Path) -> None:
    plain = scenario.load("proxy-plain")
    address, upstream = sides.free_address(), sides.free_address()
    core = proxy.two_cores()[0]
    with sides.HandWritten(plain, tmp_path / "a", address, upstream, core) as side:
        wrong_body = pytest.raises(verify.InvalidRun, match="with 200 'not this'")
        with Recorder(upstream, b"not this"), wrong_body:
            verify.answers(plain, side, added=False)
        with pytest.raises(verify.InvalidRun, match="with 502"):
            verify.answers(plain, side, added=False)


@pytest.mark.parametrize("name", READ)
def test_each_scenario_has_somebody_to_measure_it(name: str) -> None:
    loaded = scenario.load(name)
    if isinstance(loaded, scenario.Described):
        kinds.check(loaded)
        assert loaded.title
    else:
        assert loaded.kind == "proxy"


@pytest.mark.parametrize("name", READ)
def test_each_scenario_says_what_it_does_with_two_revisions(name: str) -> None:
    loaded = scenario.load(name)
    assert ".toml needs" not in (compare.why_not(loaded) or "")


@pytest.mark.parametrize("name", scenario.names())
def test_the_variants_of_a_scenario_replace_fields_that_it_has(name: str) -> None:
    loaded = scenario.describe(name)
    for variant in ("quick", "compare") if loaded.kind != "proxy" else ():
        fields = loaded.data.get(variant, {})
        assert isinstance(fields, str) or set(fields) <= set(loaded.data), variant


def test_each_part_alone_runs_every_case() -> None:
    loaded = scenario.load("micro")
    assert isinstance(loaded, scenario.Described)
    programs = {name: program | {"turns": 640} for name, program in loaded.data["programs"].items()}
    data = {"programs": programs, "rounds": 1, "limit_s": 0, "callgrind": []}
    small = scenario.Described("micro", "micro", "micro", {}, {}, data)
    found = kinds.measure(small, time.monotonic())
    cases = sum(len(program["cases"]) for program in programs.values())
    assert len(found) == cases
    assert all(metric.value > 0 for metric in found.values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('title = "x"', "x.toml: x.nginx.conf is missing beside it"),
        ("title = ", "x.toml: Invalid value"),
        ('kind = "start"', "x.toml: 'title' is missing"),
        ('kind = "nosuch"\ntitle = "x"', "x.toml: no kind 'nosuch'; the kinds are: proxy, "),
        ('kind = "start"\ntitle = "x"', "x.toml: 'routes' is missing"),
        ('kind = "start"\ntitle = "x"\nrounds = "many"', "x.toml: 'rounds' is no number"),
    ],
)
def test_a_broken_file_is_named_with_its_mistake(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(text + "\n")
    with pytest.raises(scenario.ScenarioError, match=re.escape(said)):
        kinds.measure(scenario.load("x", tmp_path), time.monotonic())


def test_all_files_are_read_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(scenario.FOLDER / "start.toml", tmp_path / "a.toml")
    (tmp_path / "b.toml").write_text("title =\n")
    monkeypatch.setattr(scenario, "FOLDER", tmp_path)
    monkeypatch.setattr(scenario, "names", lambda: ["a", "b"])
    real = scenario.load
    monkeypatch.setattr(scenario, "load", lambda name: real(name, tmp_path))
    monkeypatch.setattr(run, "end_on_signals", lambda: None)  # they are pytest's here
    monkeypatch.setattr(kinds, "measure", lambda *_: pytest.fail("a was measured"))
    assert run.main(["--quick", "--output", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.startswith("bench: b.toml: Invalid value")
    assert run.main(["--scenario", "nosuch"]) == 1
    assert capsys.readouterr().err == "bench: no scenario 'nosuch'; there are a, b\n"
