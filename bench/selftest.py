#!/usr/bin/env python3
"""Shows that a comparison sees what it is to see: 3% more CPU time, and not less than nothing.

HEAD is compared with itself, then with a build of itself that spends 3% more
CPU time on each request. Ten minutes at most, on a machine with nothing else to do.
"""

from __future__ import annotations

import sys
import time
import zlib
from pathlib import Path

import compare
import report
import revisions
import scenario as scenarios
import stats

SCENARIO = "proxy-plain"
SLOWER = 0.03
CALIBRATION_BYTES = 200_000
ENTRY = "gateway/init.lua"

# zlib is in every nginx; its checksum costs so much a byte and touches no memory of the gateway.
SLOWED = """
local slowed = require("ffi")
slowed.cdef("unsigned long crc32(unsigned long sum, const char *data, unsigned int length);")
local zlib, data, access = slowed.load("libz.so.1"), ("x"):rep(@bytes@), _M.access

function _M.access()
    zlib.crc32(0, data, @bytes@)
    access()
end

return _M
"""


def ns_a_byte() -> float:
    """CPU time of zlib's checksum: the least of many, as with everything that can only be late."""
    data = b"x" * CALIBRATION_BYTES
    times = []
    for _ in range(50):
        start = time.thread_time_ns()
        zlib.crc32(data)
        times.append(time.thread_time_ns() - start)
    return min(times) / CALIBRATION_BYTES


def slow_down(tree: Path, ns: float) -> None:
    """Makes a checkout spend so many nanoseconds more on each request."""
    path = tree / ENTRY
    text = path.read_text()
    if not text.endswith("return _M\n"):
        raise revisions.RevisionError(f"{ENTRY} does not end as it did")
    added = SLOWED.replace("@bytes@", str(max(1, round(ns / ns_a_byte()))))
    path.write_text(text.removesuffix("return _M\n") + added.lstrip("\n"))


def main() -> int:
    """Runs both comparisons; returns the exit status."""
    scenario = scenarios.load(SCENARIO)
    assert isinstance(scenario, scenarios.Scenario)
    head = revisions.resolve("HEAD")
    with revisions.exported(head) as new, revisions.exported(head) as old:
        same = _compare(scenario, new, old, "the same")
        if same is None:
            return 1
        slow_down(new, same.old * 1e3 * SLOWER)
        slowed = _compare(scenario, new, old, f"{SLOWER:.0%} slower")
    if slowed is None:
        return 1
    right = same.verdict != "slower" and slowed.verdict == "slower"
    near = stats.Estimate(1 + SLOWER, slowed.ratio.low, slowed.ratio.high)
    print(f"\nidentical: {same.verdict}; slowed: {slowed.verdict}")
    print(f"its interval {'has' if near.low <= near.value <= near.high else 'misses'} the truth")
    print("selftest: passed" if right else "selftest: FAILED")
    return 0 if right else 1


def _compare(
    scenario: scenarios.Scenario, new: Path, old: Path, label: str
) -> report.Compared | None:
    trees = compare.Trees(new, old, (f"HEAD, {label}", "HEAD"))
    began = time.monotonic()
    outcome = compare.compare(scenario, trees, compare.FULL)
    print(compare.text(scenario, outcome, trees, time.monotonic() - began), flush=True)
    return None if outcome.result.invalid else outcome.cpu


if __name__ == "__main__":
    sys.exit(main())
