"""The scenario of scrapes: what requests notice while `/metrics` of many routes is read.

Every route has been asked for, so that each has its lines. Then slices of load with and without
scrapes alternate. Requests are for routes at random.
"""

from __future__ import annotations

import contextlib
import random
import time

import beside
import load
import sides
import stats
from beside import Beside
from change import changed
from probe import Client
from progress import progress
from report import Metric, metric
from setting import Setting
from verify import InvalidRun

# Until each route that was asked for is in a scrape.
COUNTED_S = 10
LINE = b"sluice_route_received_bytes_total{"


class Scraper(Beside):
    """Reads `/metrics` at a fixed rate as long as it is entered."""

    def __init__(self, address: str, rate: float, routes: int) -> None:
        super().__init__(rate)
        self.seconds: list[float] = []
        self.bytes: list[float] = []
        self._address, self._routes = address, routes

    def once(self) -> None:
        """One scrape."""
        began = time.monotonic()
        with Client(self._address, 60) as client:
            answer = client.ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.seconds.append(time.monotonic() - began)
        self.bytes.append(len(answer.body))
        if answer.status != 200 or answer.body.count(LINE) < self._routes:
            raise InvalidRun(f"a scrape has {answer.body.count(LINE)} routes of {self._routes}")


def measure(setting: Setting) -> dict[str, Metric]:
    """Measures the scenario."""
    data = setting.data
    routes: int = data["routes"]
    found: dict[str, list[load.Slice]] = {"alone": [], "scraped": []}
    settings = {"SLUICE_METRICS_SERIES": str(routes)}
    with changed(setting, routes, sides.Sluice, settings) as gateway:
        if not gateway.admin:
            raise InvalidRun("there is no admin listener")
        _ask_each(gateway.address, routes)
        requests = gateway.folder / "requests"
        some = random.Random(1).choices(range(1, routes), k=min(routes, 10_000))
        requests.write_text("".join(_head(n) for n in some))
        scraper = Scraper(gateway.admin, data["scrapes"], routes - 1)
        _wait_for_all(scraper)
        beside.requests(gateway, requests, data, "scrapes")  # warm-up
        for order in setting.rounds(list(found), 0, 1):
            for name in order:
                progress(f"{setting.name}: {name}")
                quiet = contextlib.nullcontext()
                with scraper.at_work() if name == "scraped" else quiet:
                    found[name].append(beside.requests(gateway, requests, data, "scrapes"))
    progress("")
    return beside.noticed(found["scraped"], found["alone"]) | {
        "scrape_ms": metric("ms", stats.level([1000 * one for one in scraper.seconds])),
        "scrape_bytes": metric("bytes", stats.level(scraper.bytes)),
    }


def _head(n: int) -> str:
    return f"GET /route-{n} HTTP/1.1\r\nHost: bench\r\n\r\n"


def _ask_each(address: str, routes: int) -> None:
    with Client(address) as client:
        for n in range(1, routes):
            status = client.ask(_head(n).encode()).status
            if status != 200:
                raise InvalidRun(f"/route-{n} is answered {status}")


def _wait_for_all(scraper: Scraper) -> None:
    """The last request is counted just after its answer."""
    deadline = time.monotonic() + COUNTED_S
    while True:
        try:
            return scraper.once()
        except InvalidRun:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
