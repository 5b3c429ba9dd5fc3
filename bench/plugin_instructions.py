#!/usr/bin/env python3
"""Counts what each plugin in C adds to the user-space instructions of a request, by callgrind.

    bench/plugin_instructions.py                     all that the scenario of plugins describes
    bench/plugin_instructions.py jwt@hs256 six       these, with the functions that they cost

The gateway is that of the scenario `plugins`, counted as instructions.py counts.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import callgrind
import instructions
import plugin_cost
import report
import scenario as scenarios
import sides
import verify
from probe import Client
from progress import progress

# Fewer than a connection may carry: none is opened while it counts.
WARM_UP, REQUESTS = 200, 250
# The first request compiles the configuration, under valgrind.
TIMEOUT_S = 60
TOP = 25


def chosen(names: list[str], words: dict[str, str]) -> tuple[list[plugin_cost.Subject], list]:
    """The subjects of these names, all where there are none, and the consumers."""
    data = plugin_cost.described(dict(scenarios.describe("plugins").data))
    data = scenarios.fill(data, words)
    found = plugin_cost.subjects(data, plugin_cost.native(sides.ROOT))
    if unknown := set(names) - {each.name for each in found}:
        raise scenarios.ScenarioError(f"nothing is described as {', '.join(sorted(unknown))}")
    return [each for each in found if not names or each.name in names], data["consumers"]


def count(
    side: instructions.UnderCallgrind, subject: plugin_cost.Subject, way: str
) -> callgrind.Counts:
    """What requests for one of a subject's two routes cost, REQUESTS of them."""
    head = subject.head(way)
    status = subject.status if way == plugin_cost.WITH else 200
    with Client(side.address, TIMEOUT_S) as client:

        def ask(times: int) -> callgrind.Counts:
            for _ in range(times):
                if (answer := client.ask(head)).status != status:
                    raise verify.InvalidRun(f"/{way}/{subject.word}: answered {answer.status}")
            return side.dumped()

        ask(WARM_UP)
        once, twice = ask(REQUESTS), ask(2 * REQUESTS)
    twice.subtract(once)
    return callgrind.named(twice)


@contextlib.contextmanager
def _gateway(
    subjects: list[plugin_cost.Subject], consumers: list, folder: Path
) -> Iterator[instructions.UnderCallgrind]:
    upstream = sides.free_address()
    declared = plugin_cost.Configuration(subjects, consumers)
    with (
        sides.Upstream(folder / "upstream", upstream, None, plugin_cost.BODY),
        instructions.UnderCallgrind(
            declared, folder / "sluice", sides.free_address(), upstream, None
        ) as side,
    ):
        yield side
        if trouble := side.trouble():
            raise verify.InvalidRun(f"{side.name} logged: {trouble}")


def functions(without: callgrind.Counts, added: callgrind.Counts) -> str:
    """The functions of which requests with the plugin take most more."""
    change = {name: added[name] - without[name] for name in added.keys() | without.keys()}
    rows = [("function", "more instructions a request", "file")]
    for name in sorted(change, key=lambda name: -abs(change[name]))[:TOP]:
        rows.append((f"`{name[1]}`", f"{change[name] / REQUESTS:+,.0f}", name[0]))
    return report.grid(rows)


def main(arguments: list[str]) -> int:
    """Counts what the command line asks for; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("subject", nargs="*", help="as cost.toml of its plugin has it, or six")
    names = parser.parse_args(arguments).subject
    rows, texts = [("plugin", "without", "with", "more", "ratio")], []
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)  # workers of a master run by root are somebody else
        subjects, consumers = chosen(names, plugin_cost.credentials(folder))
        with _gateway(subjects, consumers, folder) as side:
            for subject in subjects:
                progress(subject.name)
                without = count(side, subject, plugin_cost.WITHOUT)
                added = count(side, subject, plugin_cost.WITH)
                a, b = (each.total() / REQUESTS for each in (without, added))
                rows.append(
                    (subject.name, f"{a:,.0f}", f"{b:,.0f}", f"{b - a:,.0f}", f"{b / a:.3f}")
                )
                if names:
                    texts.append(f"\n{subject.name}\n\n{functions(without, added)}")
    progress("")
    print("\n".join([report.grid(rows), *texts]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
