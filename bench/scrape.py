"""The scenario of scrapes: what requests notice while `/metrics` of many routes is read.

Every route has been asked for, so that each has its lines. Then slices of load with and without
scrapes alternate. Requests are for routes at random.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import load
import sides
import stats
from change import changed
from probe import Client, ProbeError
from progress import progress
from report import Metric, metric
from setting import Setting
from verify import InvalidRun

# Until each route that was asked for is in a scrape.
COUNTED_S = 10
LINE = b"sluice_route_received_bytes_total{"


class Scraper:
    """Reads `/metrics` at a fixed rate as long as it is entered."""

    def __init__(self, address: str, rate: float, routes: int) -> None:
        self.seconds: list[float] = []
        self.bytes: list[float] = []
        self._address, self._rate, self._routes = address, rate, routes
        self._over = threading.Event()
        self._trouble: str | None = None

    def read(self) -> None:
        """One scrape."""
        began = time.monotonic()
        with Client(self._address, 60) as client:
            answer = client.ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.seconds.append(time.monotonic() - began)
        self.bytes.append(len(answer.body))
        if answer.status != 200 or answer.body.count(LINE) < self._routes:
            raise InvalidRun(f"a scrape has {answer.body.count(LINE)} routes of {self._routes}")

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                due = time.monotonic() + 1 / self._rate
                self.read()
                self._over.wait(max(0.0, due - time.monotonic()))
        except (InvalidRun, ProbeError) as error:
            self._trouble = str(error)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Scrapes go on meanwhile."""
        self._over.clear()
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()
        if self._trouble:
            raise InvalidRun(self._trouble)


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
        _slice(gateway, requests, data)  # warm-up
        for order in setting.rounds(list(found), 0, 1):
            for name in order:
                progress(f"{setting.name}: {name}")
                quiet = contextlib.nullcontext()
                with scraper.at_work() if name == "scraped" else quiet:
                    found[name].append(_slice(gateway, requests, data))
    progress("")
    pairs = [
        [[getattr(one, field) for one in found[of]] for of in ("scraped", "alone")]
        for field in ("rps", "p99_ms")
    ]
    return {
        "rps_share": metric("ratio", stats.ratio(*pairs[0])),
        "p99_ratio": metric("ratio", stats.ratio(*pairs[1])),
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
            return scraper.read()
        except InvalidRun:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _slice(gateway: sides.Sluice, requests: Path, data: dict[str, Any]) -> load.Slice:
    slice_ = load.run(
        gateway.address, requests, gateway.workers, None, data["connections"], data["seconds"]
    )
    if errors := slice_.report.errors():
        raise InvalidRun(f"requests beside scrapes: {errors}")
    return slice_
