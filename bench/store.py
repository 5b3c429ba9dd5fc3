"""The scenario of durable changes: one beside the bare commit of its row, and many at a time.

A plugin of the lab in the control worker (`lua/plugins/bench-store.lua`) makes both. For those at a
time each sync of the disk is made slower, as on disks that are worse than this machine's.
"""

from __future__ import annotations

import time

import sides
import stats
import tools
from change import DONE, changed, with_plugin
from progress import progress
from report import Metric, metric
from setting import Setting
from verify import InvalidRun

ANSWER_TIMEOUT_S = 60
PLUGIN = with_plugin("bench-store")


class Ordered(sides.Sluice):
    """A gateway whose control worker makes changes and says what each took."""

    number = 0

    def order(self, case: str, count: int) -> list[float]:
        """Milliseconds of so many."""
        self.number += 1
        draft = self.folder / "order.new"
        draft.write_text(f"{self.number} {case} {count}\n")
        draft.chmod(0o644)
        draft.rename(self.folder / "order")
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while time.monotonic() < deadline:
            words = self._said()
            if words and words[0] == str(self.number):
                try:
                    return [float(word) for word in words[1:]]
                except ValueError:
                    raise InvalidRun(f"{case}: {' '.join(words[1:])}") from None
            time.sleep(0.005)
        raise InvalidRun(f"{case}: the control worker does not say what it took")

    def _said(self) -> list[str]:
        try:
            return (self.folder / DONE).read_text().split()
        except FileNotFoundError:
            return []


def measure(setting: Setting) -> dict[str, Metric]:
    """Measures the scenario."""
    return _beside_commit(setting) | _many(setting)


def _beside_commit(setting: Setting) -> dict[str, Metric]:
    data = setting.data
    found: dict[str, list[list[float]]] = {"apply": [], "commit": []}
    with changed(setting, data["routes"], Ordered, PLUGIN) as gateway:
        for case in found:
            gateway.order(case, data["changes"])  # warm-up
        for order in setting.rounds(list(found), 0, 2):
            for case in order:
                progress(f"{setting.name}: {case}")
                found[case].append(gateway.order(case, data["changes"]))
    out = {
        f"{case}_ms_p{share}": metric("ms", stats.pooled_quantile(rounds, share / 100))
        for case, rounds in found.items()
        for share in (50, 99)
    }
    medians = [
        stats.quantile(sorted(applied), 0.5) - stats.quantile(sorted(bare), 0.5)
        for applied, bare in zip(found["apply"], found["commit"], strict=True)
    ]
    return out | {"apply_minus_commit_ms_p50": metric("ms", stats.mean(medians))}


def _many(setting: Setting) -> dict[str, Metric]:
    data = setting.data
    slow = PLUGIN | {
        "LD_PRELOAD": str(tools.built("slow_sync", preloaded=True)),
        "SLOW_SYNC_US": str(data["slow_sync_us"]),
    }
    found: dict[str, list[float]] = {"apply": [], "bulk": []}
    with changed(setting, data["routes"], Ordered, slow) as gateway:
        for case in found:
            gateway.order(case, data["slow_changes"])  # warm-up
        for order in setting.rounds(list(found), 1, 2):
            for case in order:
                progress(f"{setting.name}: {case}, slow syncs")
                took = gateway.order(case, data["slow_changes"])
                found[case].append(sum(took) / len(took))
    return {
        "slow_commit_ms": metric("ms", stats.level(found["apply"])),
        "bulk_ms": metric("ms", stats.level(found["bulk"])),
        "bulk_over_slow_commit": metric("ratio", stats.ratio(found["apply"], found["bulk"])),
    }
