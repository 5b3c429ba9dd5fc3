#!/usr/bin/env python3
"""Draws the history of all metrics as one page, which works from a file's address.

    bench/site_page.py    bench/results.jsonl and the flame graphs of build/bench/flame
                     -> build/bench/report/index.html

Plain HTML and SVG without a script: a chart a metric with the value of each full
run and its 95% interval, named by revision. Metrics with a bar come first, the
others fold away.
"""

from __future__ import annotations

import argparse
import html
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import flame
import history
import report
import scenario as scenarios
import sides
from plot import number

OUTPUT = sides.ROOT / "build" / "bench" / "report"

WIDTH, HEIGHT = 360, 150
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 26
LABELS = 4  # revisions named below a chart; every point tells its own when it is touched

STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --dim: #6b7280; --line: #0b6bcb;
        --band: #0b6bcb33; --edge: #d5d9de; --paper: #fff; --bar: #c2410c; }
@media (prefers-color-scheme: dark) {
    :root { --ink: #e6e8eb; --dim: #9aa3ad; --line: #6cb6ff; --band: #6cb6ff33;
            --edge: #3a4149; --paper: #16191d; --bar: #fb923c; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       margin: 0 auto; max-width: 72rem; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .25rem; }
p, summary { color: var(--dim); margin: .25rem 0; }
.charts { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(18rem, 1fr)); }
figure { margin: 0; border: 1px solid var(--edge); border-radius: 6px; padding: .5rem; }
figcaption { display: flex; justify-content: space-between; gap: .5rem; font-size: .85rem; }
figcaption span:first-child { overflow-wrap: anywhere; }
figcaption b { white-space: nowrap; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--dim); font: 12px system-ui, sans-serif; }
.flame { overflow-x: auto; } .flame img { min-width: 40rem; width: 100%; display: block; }
nav a { margin-right: .75rem; display: inline-block; }
"""


@dataclass(frozen=True)
class Point:
    """A metric in one run."""

    record: history.Record
    metric: report.Metric


def chart(points: Sequence[Point], bar: float | None) -> str:
    """A metric's history as SVG."""
    values = [end for point in points for end in (point.metric.low, point.metric.high)]
    values += [bar] if bar is not None else []
    low, high = min(values), max(values)
    margin = (high - low) * 0.08 or abs(high) * 0.05 or 1
    low, high = low - margin, high + margin

    def x(index: int) -> float:
        room = WIDTH - LEFT - RIGHT
        return LEFT + room * (index / (len(points) - 1) if len(points) > 1 else 0.5)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    out = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">']
    for value in (low + margin, high - margin):
        out.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" '
            'stroke="var(--edge)"/>'
            f'<text x="{LEFT - 5}" y="{y(value) + 3:.1f}" text-anchor="end">{number(value)}</text>'
        )
    if bar is not None:
        out.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(bar):.1f}" y2="{y(bar):.1f}" '
            'stroke="var(--bar)" stroke-dasharray="5 4"/>'
        )
    places = [(x(index), point.metric) for index, point in enumerate(points)]
    band = [f"{at:.1f},{y(metric.high):.1f}" for at, metric in places]
    band += [f"{at:.1f},{y(metric.low):.1f}" for at, metric in reversed(places)]
    out.append(f'<polygon points="{" ".join(band)}" fill="var(--band)"/>')
    line = " ".join(f"{at:.1f},{y(metric.value):.1f}" for at, metric in places)
    out.append(f'<polyline points="{line}" fill="none" stroke="var(--line)" stroke-width="2"/>')
    every = -(-len(points) // LABELS)
    for index, (point, (at, metric)) in enumerate(zip(points, places, strict=True)):
        out.append(_dot(point, at, y(metric.value), y(metric.low), y(metric.high)))
        if (len(points) - 1 - index) % every == 0:
            anchor = "end" if index == len(points) - 1 and index else "middle"
            name = html.escape(point.record.revision[:7])
            out.append(f'<text x="{at:.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{name}</text>')
    return "".join(out) + "</svg>"


def _dot(point: Point, x: float, y: float, low: float, high: float) -> str:
    metric, record = point.metric, point.record
    said = (
        f"{record.revision[:7]} {record.subject}, {record.date}: {number(metric.value)} "
        f"({number(metric.low)} to {number(metric.high)}) {metric.unit}"
    )
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="var(--line)"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="var(--line)">'
        f"<title>{html.escape(said)}</title></circle>"
    )


def _figure(records: Sequence[history.Record], scenario: str, name: str, bar: float | None) -> str:
    found = [(record, record.metric(scenario, name)) for record in records]
    points = [Point(record, metric) for record, metric in found if metric]
    last = points[-1].metric
    return (
        f"<figure><figcaption><span>{html.escape(name)}</span>"
        f"<b>{number(last.value)} {html.escape(last.unit)}</b></figcaption>"
        f"{chart(points, bar)}</figure>"
    )


def _section(records: Sequence[history.Record], name: str) -> str:
    known = scenarios.names()
    described = scenarios.describe(name) if name in known else None
    bars = {**described.limits, **described.bars} if described else {}
    present = [record for record in records if record.scenarios.get(name, {}).get("metrics")]
    out = [f'<h2 id="{html.escape(name)}">{html.escape(name)}</h2>']
    if described:
        out.append(f"<p>{html.escape(described.title)}</p>")
    last = records[-1].scenarios.get(name, {})
    if last.get("invalid"):
        out.append(f"<p>The latest run is invalid: {html.escape(last['invalid'])}</p>")
    if not present:
        return "".join(out)
    metrics = list(present[-1].scenarios[name]["metrics"])
    first = [metric for metric in metrics if metric in bars] or metrics[:3]
    rest = [metric for metric in metrics if metric not in first]
    charts = [_figure(present, name, metric, bars.get(metric)) for metric in first]
    out.append(f'<div class="charts">{"".join(charts)}</div>')
    if rest:
        others = "".join(_figure(present, name, metric, None) for metric in rest)
        out.append(
            f"<details><summary>{len(rest)} more</summary>"
            f'<div class="charts">{others}</div></details>'
        )
    return "".join(out)


def _flames(pictures: Sequence[str]) -> str:
    if not pictures:
        return ""
    out = ['<h2 id="flames">Flame graphs</h2><p>Open one to search and to look closer.</p>']
    for name in pictures:
        safe = html.escape(name)
        out.append(
            f'<details><summary>{safe}</summary><p class="flame"><a href="{safe}">'
            f'<img src="{safe}" alt="flame graph {safe}" loading="lazy"></a></p></details>'
        )
    return "".join(out)


def page(records: Sequence[history.Record], pictures: Sequence[str]) -> str:
    """The whole page; `pictures` are names of files beside it."""
    names = sorted({name for record in records for name in record.scenarios})
    if records:
        last = records[-1]
        text = f"{len(records)} runs; the latest is {last.revision[:7]} of {last.date}"
        head = f"<p>{html.escape(text)}, {html.escape(last.machine)}.</p>"
    else:
        head = "<p>No full run is recorded yet: <code>make bench</code> adds one.</p>"
    links = "".join(f'<a href="#{html.escape(name)}">{html.escape(name)}</a>' for name in names)
    body = "".join(_section(records, name) for name in names)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Sluice, measured</title><style>{STYLE}</style></head><body>"
        f"<h1>Sluice, measured</h1>{head}<p>Bands are 95% intervals, dashed lines are bars.</p>"
        f"<nav>{links}</nav>{body}{_flames(pictures)}</body></html>\n"
    )


def write(log: Path, flames: Path, output: Path) -> Path:
    """Writes the page with its pictures beside it."""
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    pictures = sorted(path.name for path in flames.glob("*.svg"))
    for name in pictures:
        shutil.copy2(flames / name, output / name)
    path = output / "index.html"
    path.write_text(page(history.read(log), pictures))
    return path


def main(arguments: list[str]) -> int:
    """Writes the page; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--log", type=Path, default=history.LOG)
    parser.add_argument("--flames", type=Path, default=flame.OUTPUT)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(arguments)
    print(f"-> {os.path.relpath(write(options.log, options.flames, options.output))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
