"""The scenario of durable changes: one beside the bare commit of its row, and many at a time.

A plugin of the lab in the control worker (`lua/plugins/bench-store`) makes both. For those at a
time each sync of the disk is made slower, as on disks that are worse than this machine's.
"""

from __future__ import annotations

import stats
import tools
from ordered import Ordered, changed, with_plugin
from progress import progress
from report import Metric, metric
from setting import Setting

PLUGIN = with_plugin("bench-store")


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
