"""Scenarios of single changes among many routes: what they cost the requests beside them.

The gateway serves a large configuration; a plugin of the lab in the control worker changes one
route after the other through `gateway.writer.queue` (`lua/plugins/bench-change`), as the Admin
API does. `change`: requests with and without changes alternate in slices; and how long it takes
until a change is published (publish.py). `takeover`: changes go on until a new base is published,
again and again; slices in which that happens are compared with those before them. Requests come by
a timetable, for routes at random.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import beside
import load
import publish
import sides
import stats
from ordered import DONE, changed, with_plugin
from probe import Client
from progress import progress
from report import Metric, metric
from setting import Setting
from verify import InvalidRun

# Of the changes that were ordered; a machine that is too busy makes fewer.
FEWEST_DONE = 0.9
ORDER_TIMEOUT_S = 10
# It stands in /status from the first look of the control worker's maintenance on.
BASE_TIMEOUT_S = 30
FEWEST_BASES = 4


class Changed(sides.Sluice):
    """A gateway whose control worker makes changes when it is ordered to."""

    def order(self, rate: int) -> None:
        """So many changes a second from now on."""
        draft = self.folder / "order.new"
        draft.write_text(f"{rate}\n")
        draft.chmod(0o644)
        draft.rename(self.folder / "order")

    def done(self) -> int:
        """Changes that were made."""
        try:
            return int((self.folder / DONE).read_text().split()[0])
        except FileNotFoundError:
            return 0

    def base(self) -> int:
        """The number of the base that is live; waits until the control worker knows it."""
        deadline = time.monotonic() + BASE_TIMEOUT_S
        with Client(self.admin) as client:
            while True:
                answer = client.ask(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
                control = json.loads(answer.body).get("control", {})
                if "base" in control:
                    return int(control["base"])
                if time.monotonic() > deadline:
                    raise InvalidRun(f"/status names no base: {answer.status}, {control}")
                time.sleep(0.05)


def measure(setting: Setting) -> dict[str, Metric]:
    """Measures the scenario."""
    return _beside_requests(setting) | publish.measure(setting)


def _beside_requests(setting: Setting) -> dict[str, Metric]:
    data = setting.data
    rates: list[int] = data["rates"]
    found: dict[int, list[load.Slice]] = {rate: [] for rate in [0, *rates]}
    with changed(setting, data["routes"], Changed, with_plugin("bench-change")) as gateway:
        requests = gateway.folder / "requests"
        requests.write_bytes(b"GET /route-1 HTTP/1.1\r\nHost: bench\r\n\r\n")
        for rate in found:
            _slice(gateway, requests, rate, data)  # warm-up
        names = [str(rate) for rate in found]
        for order in setting.rounds(names, 0, 2):
            for name in order:
                progress(f"{setting.name}: {name} changes a second")
                found[int(name)].append(_slice(gateway, requests, int(name), data))
    out: dict[str, Metric] = {}
    for rate in rates:
        out |= beside.noticed(found[rate], found[0], f"_{rate}")
    return out


def takeover(setting: Setting) -> dict[str, Metric]:
    """Measures what requests notice of a new base."""
    data = setting.data
    found: dict[str, list[float]] = {"before": [], "change": []}
    with changed(setting, data["routes"], Changed, with_plugin("bench-change")) as gateway:
        requests = gateway.folder / "requests"
        some = random.Random(1).sample(range(1, data["routes"]), k=min(data["routes"] - 1, 50_000))
        heads = (f"GET /route-{n} HTTP/1.1\r\nHost: bench\r\n\r\n" for n in some)
        requests.write_text("".join(heads))
        gateway.order(data["rate"])
        quiet: list[float] = []
        deadline = setting.began + data["limit_s"]
        while len(found["change"]) < data["rounds"] and time.monotonic() < deadline:
            progress(f"{setting.name}: {len(found['change'])} of {data['rounds']} new bases")
            base = gateway.base()
            slice_ = load.run(
                gateway.address,
                requests,
                gateway.workers,
                None,
                data["connections"],
                1,
                way=load.Way(rate=data["requests"]),
            )
            if errors := slice_.report.errors():
                raise InvalidRun(f"requests beside a new base: {errors}")
            if gateway.base() == base:
                quiet.append(slice_.p99_ms)
            elif quiet:
                found["before"].append(stats.quantile(sorted(quiet), 0.5))
                found["change"].append(slice_.p99_ms)
                quiet = []
        gateway.order(0)
    progress("")
    if len(found["change"]) < FEWEST_BASES:
        raise InvalidRun(f"only {len(found['change'])} new bases were published")
    return {
        f"p99_ms_{name}": metric("ms", stats.level(values)) for name, values in found.items()
    } | {"p99_ratio": metric("ratio", stats.ratio(found["change"], found["before"]))}


def _slice(gateway: Changed, requests: Path, rate: int, data: dict[str, Any]) -> load.Slice:
    before, seconds = gateway.done(), data["seconds"]
    gateway.order(rate)
    deadline = time.monotonic() + ORDER_TIMEOUT_S
    while rate and gateway.done() == before:
        if time.monotonic() > deadline:
            raise InvalidRun("the control worker makes no change")
        time.sleep(0.01)
    begun = gateway.done()
    try:
        slice_ = load.run(
            gateway.address, requests, gateway.workers, None, data["connections"], seconds
        )
        made = gateway.done() - begun
    finally:
        gateway.order(0)
    if errors := slice_.report.errors():
        raise InvalidRun(f"requests beside {rate} changes a second: {errors}")
    if made < rate * seconds * FEWEST_DONE:
        raise InvalidRun(f"{made} changes were made where {rate * seconds} were ordered")
    return slice_


MEASURES = {"change": measure, "takeover": takeover}
