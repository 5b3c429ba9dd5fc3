"""Who measures which kind of scenario."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import admin
import change
import config_change
import config_push
import core
import events_scenarios
import footprint
import match_hostile
import micro
import plugin_cost
import scrape
import sides
import store
import timers
import timers_cost
import var
from report import Metric
from scenario import Described, ScenarioError
from setting import Setting, prepared

# All but `proxy`, whose sides alternate in slices (proxy.py).
KINDS: dict[str, Callable[[Setting], dict[str, Metric]]] = {
    **admin.MEASURES,
    **events_scenarios.MEASURES,
    **change.MEASURES,
    "config-change": config_change.measure,
    "config-push": config_push.measure,
    "core": core.measure,
    **footprint.MEASURES,
    "match-hostile": match_hostile.measure,
    "micro": micro.measure,
    "plugins": plugin_cost.measure,
    "scrape": scrape.measure,
    "store": store.measure,
    "timers-cost": timers_cost.measure,
    "timers-load": timers.measure,
    **var.MEASURES,
}


def check(scenario: Described) -> None:
    """Fails if nobody measures this kind."""
    if scenario.kind not in KINDS:
        known = ", ".join(sorted(KINDS))
        raise ScenarioError(
            f"{scenario.name}.toml: no kind {scenario.kind!r}; the kinds are: proxy, {known}"
        )


def measure(
    scenario: Described, began: float, variant: str | None = None, root: Path = sides.ROOT
) -> dict[str, Metric]:
    """Measures a scenario on the checkout at `root`; `variant` as in setting.prepared."""
    check(scenario)
    with prepared(scenario, began, variant, root) as setting:
        return KINDS[scenario.kind](setting)
