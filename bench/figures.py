#!/usr/bin/env python3
"""Writes the figures of README, docs/benchmarks.md and docs/figures.md anew, and their pictures.

    bench/figures.py    of bench/results.jsonl, of each scenario the latest valid run

What stands between `<!-- figures: NAME -->` and `<!-- end of figures -->` is replaced
by what PARTS makes of NAME; a part that no run has anything for stays as it is.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import history
import plot
import report
import scenario as scenarios
import sides
from events import SIZES
from events_scenarios import CASES
from report import Metric

PAGES = [sides.ROOT / name for name in ("docs/benchmarks.md", "docs/figures.md", "README.md")]

_PART = re.compile(r"(<!-- figures: ([\w-]+) -->\n).*?(<!-- end of figures -->)", re.S)

# What people would pick, by the ends of their metrics' names; the scenarios that all take part in.
PICKED = {side: report.SIDES[side] for side in ("nginx", "HAProxy", "Sluice", "Envoy", "Caddy")}
JOBS = {
    "proxy-plain": "one route",
    "proxy-plugins": "key-auth and rate-limiting",
    "proxy-routes-1000": "1,000 routes",
    "proxy-tls": "clients over TLS",
    "proxy-h2": "clients over HTTP/2 and TLS",
}

TRANSPORTS = ("ring", "socket", "poll")
INTERVALS = {"100ms": "0.1 s", "1s": "1 s", "mix": "1 to 60 s"}
COUNTS = ("100", "1k", "10k", "100k")
PERCENTILES = {"50": "p50", "90": "p90", "99": "p99", "999": "p99.9"}


class FigureError(Exception):
    """A page or a log that cannot be used; the message says why."""


@dataclass
class Found:
    """The latest valid run of each scenario, and the pictures that were made of them."""

    log: Sequence[history.Record]
    records: dict[str, history.Record]
    pictures: dict[str, str]

    def __init__(self, log: Sequence[history.Record]) -> None:
        self.log, self.records, self.pictures = log, {}, {}
        for record in log:
            for name, result in record.scenarios.items():
                if not result["invalid"]:
                    self.records[name] = record

    def having(self, metric: str) -> Found:
        """The same of those runs alone that have a metric."""
        return Found(
            [
                replace(
                    record,
                    scenarios={
                        name: result
                        for name, result in record.scenarios.items()
                        if metric in result["metrics"]
                    },
                )
                for record in self.log
            ]
        )

    def get(self, scenario: str, metric: str) -> Metric | None:
        """A metric, if it was measured."""
        record = self.records.get(scenario)
        return record.metric(scenario, metric) if record else None

    def names(self, scenario: str) -> list[str]:
        """The metrics of a scenario, in its own order."""
        record = self.records.get(scenario)
        return list(record.scenarios[scenario]["metrics"]) if record else []

    def cell(self, scenario: str, metric: str) -> str:
        """A metric with its interval, for a table."""
        found = self.get(scenario, metric)
        if not found:
            return ""
        if found.low == found.high:
            return plot.number(found.value)
        value, low, high = (plot.number(one) for one in (found.value, found.low, found.high))
        return f"{value} ({low} to {high})"

    def grid(
        self, head: str, rows: Mapping[str, tuple[str, str]], columns: Mapping[str, str]
    ) -> str:
        """A table: `rows` have a scenario and a word, which stands for `{}` in the metric's name
        of each column. Rows and columns with nothing in them are left out."""
        cells = {
            label: [self.cell(scenario, name.format(word)) for name in columns.values()]
            for label, (scenario, word) in rows.items()
        }
        return _filled(head, list(columns), [(label, *row) for label, row in cells.items()])

    def bars(self, names: Sequence[str], beside: bool = True) -> str:
        """All metrics of some scenarios that have a bar, and whether it is met; and those that
        their files want beside them."""
        rows: list[tuple[str, ...]] = [("scenario", "metric", "value", "unit", "bar")]
        for name in names:
            described = scenarios.describe(name)
            verdicts = [(described.bars, report.verdict)]
            verdicts += [(described.limits, report.verdict_at_most)]
            for bars, judge in verdicts:
                for metric, bar in bars.items():
                    if found := self.get(name, metric):
                        said = judge(found, bar)
                        cell = self.cell(name, metric)
                        rows.append((f"`{name}`", f"`{metric}`", cell, found.unit, said))
            if beside:
                for metric in described.data.get("beside", []):
                    if found := self.get(name, metric):
                        cell = self.cell(name, metric)
                        rows.append((f"`{name}`", f"`{metric}`", cell, found.unit, ""))
        return report.grid(rows)

    def source(self, names: Sequence[str]) -> str:
        """Which revisions were measured, when, and on what."""
        runs: dict[str, list[str]] = {}
        for name in names:
            if record := self.records.get(name):
                quick = ", `QUICK=1`" if record.quick else ""
                said = f"Revision {record.revision[:7]}, {record.date} UTC, {record.machine}{quick}"
                runs.setdefault(said, []).append(f"`{name}`")
        if len(runs) == 1:
            return f"{next(iter(runs))}."
        return "\n".join(f"- {said}: {', '.join(which)}." for said, which in runs.items())

    def picture(self, file: str, title: str, *drawn: object, **more: bool) -> str:
        """Draws a picture and refers to it; nothing where a line has no point."""
        places, across, lines = drawn
        assert isinstance(places, Sequence)
        assert isinstance(across, str)
        assert isinstance(lines, Sequence)
        present = [line for line in lines if any(line.points)]
        if not present:
            return ""
        self.pictures[file] = plot.lines(title, places, across, present, **more)
        return f"![{title}](plots/{file})"


def with_peers(found: Found) -> Found:
    """The runs that Envoy took part in; all, as long as there is none."""
    beside = found.having("cpu_us_envoy")
    return beside if beside.records else found


def peers(found: Found) -> str:
    """CPU time a request and memory of all that people would pick."""
    chosen = with_peers(found)
    rows: list[tuple[str, ...]] = []
    for scenario, job in JOBS.items():
        cells = []
        for end in PICKED.values():
            cpu, memory = (chosen.get(scenario, name + end) for name in ("cpu_us", "pss_mb"))
            cells.append(
                f"{plot.number(cpu.value)} us, {plot.number(memory.value)} MiB"
                if cpu and memory
                else ""
            )
        rows.append((f"{job} (`{scenario}`)", *cells))
    return _joined(_filled("", list(PICKED), rows), chosen.source(list(JOBS)))


def peers_short(found: Found) -> str:
    """Three lines of the same: CPU time alone, relative to hand-written nginx."""
    chosen = with_peers(found)
    rows = [
        (job, *(_relative(chosen, scenario, end) for end in PICKED.values()))
        for scenario, job in list(JOBS.items())[:3]
    ]
    return _joined(_filled("", list(PICKED), rows))


def _relative(found: Found, scenario: str, end: str) -> str:
    """CPU time a request of a side over that of nginx; the log has both over that of Sluice."""
    ours = found.get(scenario, "efficiency")
    over = found.get(scenario, f"efficiency_over{end}")
    if not ours:
        return ""
    if end == "_nginx":
        return "1"
    share = over.value if over else 1 if end == "" else None
    return f"{share / ours.value:.2f}" if share else ""


def _filled(head: str, names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> str:
    """A table without the rows and columns that have nothing in them."""
    kept = [index for index in range(len(names)) if any(row[1 + index] for row in rows)]
    out: list[tuple[str, ...]] = [(head, *(names[index] for index in kept))]
    out += [(row[0], *(row[1 + index] for index in kept)) for row in rows if any(row[1:])]
    return report.grid(out)


def proxy(found: Found) -> str:
    """Sluice beside nginx and HAProxy."""
    names = [name for name in scenarios.names() if scenarios.describe(name).kind == "proxy"]
    rows = {f"`{name}`": (name, "") for name in names}
    columns = {
        "efficiency": "efficiency",
        "RPS ratio": "rps_ratio",
        "p99 ratio": "p99_ratio",
        "efficiency over HAProxy": "efficiency_over_haproxy",
        "over Envoy": "efficiency_over_envoy",
        "over Caddy": "efficiency_over_caddy",
    }
    ends = report.SIDES
    readings = {
        "CPU us a request": "cpu_us",
        "RPS": "rps",
        "p99 ms": "p99_ms",
        "system calls a request": "syscalls",
        "PSS MiB": "pss_mb",
    }
    tables = [
        found.grid(head, rows, {side: name + end for side, end in ends.items()})
        for head, name in readings.items()
    ]
    lines = [
        plot.Line(side, [found.get("proxy-latency", f"p{p}_ms{end}") for p in PERCENTILES])
        for side, end in ends.items()
    ]
    title = "Latency in ms at 5,000 requests a second"
    picture = found.picture(
        "proxy-latency.svg", title, list(PERCENTILES.values()), "percentile", lines, log=True
    )
    return _joined(
        found.source(names),
        found.bars(names),
        found.grid("scenario", rows, columns),
        *tables,
        picture,
    )


def events(found: Found) -> str:
    """Events on each transport."""
    names = [name for name in scenarios.names() if name.startswith("events-")]
    workers = {f"{count} workers": f"w{count}" for count in (2, 4, 8, 36)}
    tables, pictures = [], []
    for size, label in SIZES.items():
        rows = {
            f"{label}, {name}": ("events-throughput", f"{label}_{end}")
            for name, end in workers.items()
        }
        columns = {f"{name}: events/s": f"{name}_eps_{{}}" for name in TRANSPORTS}
        columns |= {f"{name}: CPU us": f"{name}_cpu_us_{{}}" for name in TRANSPORTS}
        columns |= {"ring over socket": "ring_over_socket_{}"}
        tables.append(found.grid("throughput", rows, columns))
        lines = [
            plot.Line(
                name,
                [
                    found.get("events-throughput", f"{name}_eps_{label}_{end}")
                    for end in workers.values()
                ],
            )
            for name in TRANSPORTS
        ]
        places = [name.split()[0] for name in workers]
        if size != min(SIZES):  # 36 workers have one size only
            places, lines = places[:-1], [plot.Line(one.label, one.points[:-1]) for one in lines]
        file, title = f"events-throughput-{label}.svg", f"Events a second, {label}"
        pictures.append(found.picture(file, title, places, "workers", lines, log=True))
    counts = ("2", "4", "8")
    for share in ("50", "99"):
        lines = [
            plot.Line(
                name,
                [found.get("events-latency", f"{name}_p{share}_us_w{count}") for count in counts],
            )
            for name in TRANSPORTS
        ]
        title = f"Latency of an event in us, p{share}"
        file = f"events-latency-p{share}.svg"
        pictures.append(found.picture(file, title, counts, "workers", lines, log=True))
    rows = {f"{count} workers": ("events-latency", f"us_w{count}") for count in counts}
    columns = {
        f"{name} p{share}": f"{name}_p{share}_{{}}" for name in TRANSPORTS for share in (50, 99)
    }
    tables.append(found.grid("latency, us", rows, columns))
    for connections in ("", "_c10000"):
        rows = {
            f"{name}, {case}{connections}": ("events-interference", f"{name}_{case}{connections}")
            for name in TRANSPORTS
            for case in CASES
        }
        ends = ("rps", "p99_ms", "cpus", "rps_share", "p99_ratio", "delivered_share")
        tables.append(found.grid("interference", rows, {end: f"{{}}_{end}" for end in ends}))
    return _joined(
        found.source(names), found.bars(names), *tables, "\n".join(filter(None, pictures))
    )


def timers(found: Found) -> str:
    """Timers beside those of nginx."""
    names = ["timers-load", "timers-cost"]
    cells = scenarios.describe("timers-load")
    rows = {cell["name"]: ("timers-load", cell["name"]) for cell in cells.data["cells"]}
    columns = {
        "CPU ns a fire": "cpu_ns_{}",
        "ngx.timer": "cpu_ns_ngx_{}",
        "ratio": "cpu_ratio_{}",
        "RPS share": "rps_share_{}",
        "of ngx.timer": "rps_share_ngx_{}",
        "p99 ratio": "p99_ratio_{}",
        "that of ngx.timer": "p99_ratio_ngx_{}",
        "fires": "fires_{}",
        "fires of ngx.timer": "fires_ngx_{}",
    }
    who = {"sluice.timer": "", "ngx.timer": "ngx_", "no timers": "none_"}
    pictures = []
    for reading, said, log in (("rps", "Requests a second", False), ("p99_ms", "p99 in ms", True)):
        for end, label in INTERVALS.items():
            lines = [
                plot.Line(
                    side,
                    [
                        found.get("timers-load", f"{reading}_{prefix}{count}_{end}")
                        for count in COUNTS
                    ],
                )
                for side, prefix in who.items()
            ]
            file, title = f"timers-{reading.partition('_')[0]}-{end}.svg", f"{said}, each {label}"
            pictures.append(found.picture(file, title, COUNTS, "timers", lines, log=log))
    costs = {name: ("timers-cost", name) for name in found.names("timers-cost")}
    mine = {name: row for name, row in costs.items() if not name.endswith("_ngx")}
    return _joined(
        found.source(names),
        found.bars(names),
        found.grid("timers", rows, columns),
        found.grid("cost", mine, {"sluice.timer": "{}", "ngx.timer": "{}_ngx"}),
        "\n".join(filter(None, pictures)),
    )


def variables(found: Found) -> str:
    """Variables beside ngx.var."""
    names = ["var-access", "var-request"]
    tables = []
    for what in ("get", "set"):
        words = [
            name.removeprefix(f"{what}_ns_")
            for name in found.names("var-access")
            if re.fullmatch(rf"{what}_ns_(?!ngx_).*(?<!_jit_off)", name)
        ]
        rows = {f"`${word}`": ("var-access", word) for word in words}
        columns = {}
        for end, said in (("", "JIT on"), ("_jit_off", "JIT off")):
            columns |= {
                f"ns, {said}": f"{what}_ns_{{}}{end}",
                f"ngx.var, {said}": f"{what}_ns_ngx_{{}}{end}",
                f"ratio, {said}": f"{what}_ratio_{{}}{end}",
            }
        tables.append(found.grid(what, rows, columns))
    floors = {name: ("var-access", name) for name in found.names("var-access") if "floor" in name}
    tables.append(found.grid("floor", floors, {"ns": "{}"}))
    whole = {name: ("var-request", name) for name in found.names("var-request")}
    tables.append(found.grid("requests", whole, {"value": "{}"}))
    return _joined(found.source(names), found.bars(names), *tables)


def others(*names: str) -> Callable[[Found], str]:
    """Scenarios whose metrics stand below each other as they are."""

    def part(found: Found) -> str:
        rows = {name: (one, name) for one in names for name in found.names(one)}
        return _joined(
            found.source(names), found.bars(names), found.grid("", rows, {"value": "{}"})
        )

    return part


def plugins(found: Found) -> str:
    """What plugins cost, beside the same by hand in nginx and HAProxy where these can."""
    words = [
        name.removesuffix("_cpu_ratio")
        for name in found.names("plugins")
        if re.fullmatch(r"(?!.*_(nginx|haproxy)_)\w+_cpu_ratio", name)
    ]
    rows = {word.replace("_", "-"): ("plugins", word) for word in words}
    columns = {
        "Sluice": "{}_cpu_ratio",
        "nginx": "{}_nginx_cpu_ratio",
        "HAProxy": "{}_haproxy_cpu_ratio",
    }
    return _joined(
        found.source(["plugins"]),
        found.bars(["plugins"]),
        found.grid("CPU time relative to the route without it", rows, columns),
    )


def bars(found: Found) -> str:
    """The bars of all scenarios."""
    return found.bars(scenarios.names(), beside=False)


# By the name that a page gives a part: the beginning of its scenarios' names, and who writes it.
PARTS: dict[str, tuple[str, Callable[[Found], str]]] = {
    "bars": ("", bars),
    "peers": ("proxy-", peers),
    "peers-short": ("proxy-", peers_short),
    "proxy": ("proxy-", proxy),
    "plugins": ("plugins", plugins),
    "events": ("events-", events),
    "config-change": ("config-", others("config-change", "config-push")),
    "variables": ("var-", variables),
    "timers": ("timers-", timers),
    "memory": ("memory", others("memory")),
    "start": ("start", others("start")),
    "micro": ("micro", others("micro")),
}


def _joined(*texts: str) -> str:
    # A table of nothing but its head says nothing.
    empty = re.compile(r"\|.*\n\|.*")
    return "\n\n".join(text for text in texts if text and not empty.fullmatch(text))


def redrawn(page: str, found: Found) -> str:
    """The page with the parts of which there is a run."""

    def part(match: re.Match[str]) -> str:
        name = match.group(2)
        if name not in PARTS:
            raise FigureError(f"no part {name!r}; there are {', '.join(PARTS)}")
        start, write = PARTS[name]
        if not any(scenario.startswith(start) for scenario in found.records):
            return match.group()
        text = write(found)
        return f"{match.group(1)}\n{text}\n\n{match.group(3)}" if text else match.group()

    return _PART.sub(part, page)


def write(log: Path, pages: Sequence[Path]) -> list[Path]:
    """Writes pages and pictures; what was written."""
    found = Found(history.read(log))
    if not found.records:
        raise FigureError(f"{log.name} has no run yet; `make bench` adds one")
    texts = [redrawn(page.read_text(), found) for page in pages]
    folder = pages[0].parent / "plots"
    folder.mkdir(exist_ok=True)
    for page, text in zip(pages, texts, strict=True):
        page.write_text(text)
    for name, picture in found.pictures.items():
        (folder / name).write_text(picture)
    return [*pages, *(folder / name for name in found.pictures)]


def main(arguments: list[str]) -> int:
    """Writes the figures; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--log", type=Path, default=history.LOG)
    parser.add_argument("--page", type=Path, action="append", help="instead of those in docs/")
    options = parser.parse_args(arguments)
    try:
        written = write(options.log, options.page or PAGES)
    except (FigureError, scenarios.ScenarioError) as error:
        print(f"figures: {error}", file=sys.stderr)
        return 1
    print("\n".join(f"-> {path}" for path in written))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
