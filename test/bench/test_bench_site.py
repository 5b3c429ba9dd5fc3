"""The log of full runs, and the page that is drawn of it."""

from html.parser import HTMLParser
from pathlib import Path

import history
import pytest
import report
import site_page

OPEN = {"meta", "img"}


def record(revision: str, value: float, invalid: str | None = None) -> history.Record:
    metrics = {
        "efficiency": report.Metric(value, "ratio", value - 0.02, value + 0.02),
        "rps": report.Metric(20_000 * value, "requests/s", 1, 30_000),
        "rps_ratio": report.Metric(value, "ratio", value, value),
        "p99_ratio": report.Metric(value, "ratio", value, value),
        "p99_ms": report.Metric(3, "ms", 2, 4),
    }
    result = report.Result("proxy-plain", invalid, {} if invalid else metrics)
    return history.Record(
        revision, "a <subject>", "2026-11-21", "2 x CPU", history.collect([result])
    )


class Checked(HTMLParser):
    """A page whose tags are in order; keeps what they refer to."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in OPEN:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass  # shapes of a chart

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def test_the_log_is_only_added_to(tmp_path: Path) -> None:
    log = tmp_path / "results.jsonl"
    assert history.read(log) == []
    for revision in ("aaaaaaaaaa", "bbbbbbbbbb"):
        history.append(record(revision, 0.8), log)
    assert [found.revision for found in history.read(log)] == ["aaaaaaaaaa", "bbbbbbbbbb"]
    metric = history.read(log)[0].metric("proxy-plain", "efficiency")
    assert metric == report.Metric(0.8, "ratio", pytest.approx(0.78), pytest.approx(0.82))
    assert history.read(log)[0].metric("proxy-plain", "nosuch") is None


def test_the_page_is_whole_and_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    log, flames = tmp_path / "results.jsonl", tmp_path / "flames"
    for number in range(9):
        history.append(record(f"{number}aaaaaaaaa", 0.8 + number / 100), log)
    flames.mkdir()
    (flames / "proxy-plain.svg").write_text("<svg/>")
    path = site_page.write(log, flames, tmp_path / "page")
    page = Checked()
    page.feed(path.read_text())
    assert page.stack == []
    for link in page.links:
        assert link.startswith("#") or (path.parent / link).exists(), link
    text = path.read_text()
    assert "8aaaaaa a &lt;subject&gt;, 2026-11-21: 0.88 (0.86 to 0.9) ratio" in text
    assert "stroke-dasharray" in text  # the bar
    assert 'name="viewport"' in text
    assert "<script" not in text


def test_runs_that_are_invalid_or_alone_are_told(tmp_path: Path) -> None:
    log = tmp_path / "results.jsonl"
    assert "No full run" in site_page.page([], [])
    history.append(record("aaaaaaaaaa", 0.8), log)
    assert "nan" not in site_page.page(history.read(log), [])
    history.append(record("bbbbbbbbbb", 0.8, invalid="1 status errors"), log)
    assert "invalid: 1 status errors" in site_page.page(history.read(log), [])
