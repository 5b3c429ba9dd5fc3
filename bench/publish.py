"""How long it takes to publish a change, by the number of routes.

One route is changed among many: what has changed is read back from the store, staged in the delta,
linked, published. So it is all that a change takes from its validation until every worker sees it,
but for the change and the commit of the store, whose time is the disk's. The control worker's
threads take the times (`lua/timed`).
"""

from __future__ import annotations

import stats
from ordered import Ordered, changed, with_plugin
from progress import progress
from report import Metric, metric
from setting import Setting

PLUGIN = with_plugin("bench-publish")
# Case -> orders before it: `merge` leaves an empty delta, `fill` a part of it in percent.
CASES: dict[str, list[tuple[str, int]]] = {
    "empty": [("merge", 1)],
    "half": [("fill", 50)],
    "full": [("fill", 90)],
    "merging": [],
}


def measure(setting: Setting) -> dict[str, Metric]:
    """Times by the number of routes, of all cases together and of each, and their growth."""
    data = setting.data
    sizes: list[int] = sorted(data["publish_routes"])
    out: dict[str, Metric] = {}
    medians: dict[int, list[float]] = {}
    for routes in sizes:
        found = _of(setting, routes)
        rounds = [
            [took for case in CASES for took in found[case][number]]
            for number in range(data["publish_rounds"])
        ]
        medians[routes] = [stats.quantile(sorted(round_), 0.5) for round_ in rounds]
        for share in (50, 99):
            estimate = stats.pooled_quantile(rounds, share / 100)
            out[f"publish_us_p{share}_{routes}"] = metric("us", estimate)
            for case in CASES:
                estimate = stats.pooled_quantile(found[case], share / 100)
                out[f"publish_us_p{share}_{routes}_{case}"] = metric("us", estimate)
    if len(sizes) > 1:
        growth = stats.ratio(medians[sizes[-1]], medians[sizes[0]])
        out["publish_growth"] = metric("ratio", growth)
    return out


def _of(setting: Setting, routes: int) -> dict[str, list[list[float]]]:
    """Microseconds by case, round by round."""
    data = setting.data
    found: dict[str, list[list[float]]] = {case: [] for case in CASES}
    with changed(setting, routes, Ordered, PLUGIN) as gateway:
        gateway.order("publish", data["publish_changes"])  # warm-up
        for number in range(data["publish_rounds"]):
            for case, before in CASES.items():
                progress(f"{setting.name}: {routes} routes, round {number + 1}, {case}")
                for order in before:
                    gateway.order(*order)
                verb = "merging" if case == "merging" else "publish"
                took = gateway.order(verb, data["publish_changes"])
                found[case].append([nanoseconds / 1e3 for nanoseconds in took])
    progress("")
    return found
