"""The tables and plots of the docs, drawn of runs that are made up."""

import dataclasses
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import figures
import history
import plot
import pytest
import report
from report import Metric

PAGE = "before\n<!-- figures: proxy -->\nold\n<!-- end of figures -->\nafter\n"
PARTS = re.compile(r"<!-- figures: ([\w-]+) -->")


def run(scenario: str, invalid: str | None = None, **values: float) -> history.Record:
    metrics = {
        name: Metric(value, "ratio", value * 0.9, value * 1.1) for name, value in values.items()
    }
    result = report.Result(scenario, invalid, metrics)
    results = history.collect([result])
    return history.Record("abcdefabcdef", "subject", "2026-11-21 12:00", "2 x CPU", results)


def written(folder: Path, page: str, *runs: history.Record) -> str:
    for record in runs:
        history.append(record, folder / "log")
    (folder / "page.md").write_text(page)
    figures.write(folder / "log", [folder / "page.md"])
    return (folder / "page.md").read_text()


def test_a_part_is_written_anew_and_the_rest_stays(tmp_path: Path) -> None:
    page = PAGE + "<!-- figures: start -->\nkept\n<!-- end of figures -->\n"
    text = written(tmp_path, page, run("proxy-plain", efficiency=1.0, rps_ratio=0.9))
    assert "old" not in text
    assert "before\n" in text
    assert "after\n" in text
    assert "kept" in text  # no run has it
    assert "Revision abcdefa, 2026-11-21 12:00 UTC, 2 x CPU." in text
    assert "1 (0.9 to 1.1)" in text
    assert "at least 0.94: met, within noise" in text
    figures.write(tmp_path / "log", [tmp_path / "page.md"])
    assert (tmp_path / "page.md").read_text() == text


def test_a_short_run_is_called_one(tmp_path: Path) -> None:
    record = dataclasses.replace(run("proxy-plain", efficiency=0.8), quick=True)
    assert "UTC, 2 x CPU, `QUICK=1`." in written(tmp_path, PAGE, record)


def test_runs_of_different_times_are_told_apart(tmp_path: Path) -> None:
    later = dataclasses.replace(run("proxy-plugins", efficiency=0.8), date="2026-11-22 12:00")
    lines = written(tmp_path, PAGE, run("proxy-plain", efficiency=0.8), later).splitlines()
    assert "- Revision abcdefa, 2026-11-21 12:00 UTC, 2 x CPU: `proxy-plain`." in lines
    assert "- Revision abcdefa, 2026-11-22 12:00 UTC, 2 x CPU: `proxy-plugins`." in lines


def test_the_latest_valid_run_of_each_scenario_counts(tmp_path: Path) -> None:
    text = written(
        tmp_path,
        PAGE,
        run("proxy-plain", efficiency=0.5),
        run("proxy-plain", efficiency=0.6),
        run("proxy-plain", invalid="an error", efficiency=0.7),
        run("proxy-plugins", efficiency=0.8),
    )
    assert "0.6 (" in text
    assert "0.8 (" in text
    assert "0.5 (" not in text
    assert "0.7 (" not in text


def test_pictures_are_whole_and_have_what_was_measured(tmp_path: Path) -> None:
    values = {
        f"rps_{side}{count}_1s": 1000.0 * number
        for side in ("", "ngx_", "none_")
        for number, count in enumerate(figures.COUNTS, 1)
    }
    page = PAGE.replace("proxy", "timers")
    text = written(tmp_path, page, run("timers-load", **values))
    assert text.count("plots/") == 1
    picture = (tmp_path / "plots" / "timers-rps-1s.svg").read_text()
    ElementTree.fromstring(picture)
    for word in ("100k", "timers", "ngx.timer", "no timers", "Requests a second"):
        assert f">{word}" in picture
    assert "sluice.timer: 4,000 ratio (3,600 to 4,400)" in picture


def test_an_axis_has_round_numbers_that_enclose_what_is_drawn() -> None:
    assert plot.ticks(3, 97, log=False) == [0, 25, 50, 75, 100]
    assert plot.ticks(3, 970, log=True) == [1, 10, 100, 1000]
    assert plot.ticks(30, 70, log=True) == [20, 50, 100]
    for low, high in ((0.001, 0.002), (1, 1), (5, 123456), (10, 100), (0.99, 1.01)):
        for log in (True, False):
            steps = plot.ticks(low, high, log)
            assert len(steps) > 1
            assert steps[0] <= low * 1.001
            assert steps[-1] >= high * 0.999
    zero = plot.Line("a", [Metric(0, "ms", 0, 0), None, Metric(1, "ms", 1, 1)])
    ElementTree.fromstring(plot.lines("t", ["x", "y", "z"], "a < b", [zero], log=True))


def test_numbers_are_short_and_never_powers_of_ten() -> None:
    numbers = [0.0451234, 99.96, 999.4, 999.6, 1000, 12345.6]
    assert [plot.number(n) for n in numbers] == ["0.0451", "100", "999", "1,000", "1,000", "12,346"]


def test_the_pages_have_every_part_once() -> None:
    texts = "".join(page.read_text() for page in figures.PAGES)
    assert sorted(PARTS.findall(texts)) == sorted(figures.PARTS)


def test_what_stands_beside_the_bars_has_no_verdict(tmp_path: Path) -> None:
    record = run("events-throughput", ring_over_socket_64B_w2=8.0, ring_cpu_us_64B_w2=0.9)
    text = written(tmp_path, PAGE.replace("proxy", "events"), record)
    rows = [line for line in text.splitlines() if "`events-throughput`" in line and "_w2" in line]
    assert "at least 7.00: met" in rows[0]
    assert re.search(r"`ring_cpu_us_64B_w2` +\| 0.9 \(0.81 to 0.99\) +\| ratio \| +\|", rows[1])
    summary = written(tmp_path, PAGE.replace("proxy", "bars"), record)
    assert "ring_cpu_us" not in summary


def test_a_part_that_nobody_writes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(figures.FigureError, match="no part 'nosuch'; there are bars, "):
        written(tmp_path, PAGE.replace("proxy", "nosuch"), run("proxy-plain", efficiency=1))
    with pytest.raises(figures.FigureError, match="no run yet"):
        figures.write(tmp_path / "none", [tmp_path / "page.md"])


def beside(date: str, **cpu_us: float) -> history.Record:
    """A run of proxy-plain in which sides took so long; nginx half as long as Sluice."""
    values = {"efficiency": 0.5}
    for side, value in cpu_us.items():
        end = "" if side == "sluice" else f"_{side}"
        values |= {f"cpu_us{end}": value, f"pss_mb{end}": 10 * value}
        values |= {f"efficiency_over{end}": value / cpu_us["sluice"]} if end else {}
    return dataclasses.replace(run("proxy-plain", **values), date=date)


def test_the_table_of_peers_has_the_latest_run_that_they_took_part_in(tmp_path: Path) -> None:
    page = PAGE.replace("proxy", "peers") + PAGE.replace("proxy", "peers-short")
    all_sides = {"sluice": 12.0, "nginx": 6.0, "haproxy": 9.0, "envoy": 24.0, "caddy": 60.0}
    runs = [beside("2026-11-21 12:00", **all_sides), beside("2026-11-22 12:00", sluice=1, nginx=2)]
    lines = [re.sub(" +", " ", one) for one in written(tmp_path, page, *runs).splitlines()]
    assert "| | nginx | HAProxy | Sluice | Envoy | Caddy |" in lines
    row = "6 us, 60 MiB | 9 us, 90 MiB | 12 us, 120 MiB | 24 us, 240 MiB | 60 us, 600 MiB |"
    assert f"| one route (`proxy-plain`) | {row}" in lines
    assert "| one route | 1 | 1.50 | 2.00 | 4.00 | 10.00 |" in lines
    assert "Revision abcdefa, 2026-11-21 12:00 UTC, 2 x CPU." in lines


def test_the_table_of_peers_has_no_column_for_those_that_nobody_measured(tmp_path: Path) -> None:
    page = PAGE.replace("proxy", "peers") + PAGE.replace("proxy", "peers-short")
    text = written(tmp_path, page, beside("2026-11-22 12:00", sluice=12, nginx=6))
    assert re.search(r"^\| +\| nginx +\| Sluice +\|$", text, re.M)
    assert "Envoy" not in text
    other = written(tmp_path, PAGE.replace("proxy", "peers-short"), run("proxy-latency", x=1.0))
    assert "Sluice" in other  # the log has the first run still


def test_a_part_that_no_run_has_anything_for_stays(tmp_path: Path) -> None:
    page = PAGE.replace("proxy", "peers-short")
    assert written(tmp_path, page, run("proxy-latency", efficiency=1.0)) == page
