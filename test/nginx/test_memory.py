"""What a worker keeps of the services that it was asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sluice import Gateway, sanitizers
from upstream import Upstream
from wire import request_bytes

Start = Callable[..., Gateway]

COUNT = 2000
BATCH = 100  # requests on their way at once


def private_bytes(pid: int) -> int:
    """What a process wrote: pages of files that no other has touched yet are not its memory."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    (kib,) = re.findall(r"^Anonymous:\s+(\d+) kB", text, re.M)
    return int(kib) * 1024


def services(upstream: Upstream, are_balanced: bool) -> dict[str, Any]:
    """So many, each with a route and, where they are balanced, an upstream of its own."""
    hosts = [f"u{n}" if are_balanced else "127.0.0.1" for n in range(COUNT)]
    return {
        "services": [
            {
                "name": f"s{n}",
                "host": host,
                "port": upstream.port,
                "routes": [{"name": f"r{n}", "paths": [f"/{n}/"]}],
            }
            for n, host in enumerate(hosts)
        ],
        "upstreams": [{"name": host, "targets": [{"target": upstream.address}]} for host in hosts]
        if are_balanced
        else [],
    }


def ask(running: Gateway, first: int, last: int) -> None:
    """Asks for routes, many on one connection."""
    with running.wire() as wire:
        for begin in range(first, last, BATCH):
            numbers = range(begin, min(begin + BATCH, last))
            wire.send(b"".join(request_bytes(f"/{n}/") for n in numbers))
            assert [wire.read_reply().status for _ in numbers] == [200] * len(numbers)


@pytest.mark.skipif(bool(sanitizers()), reason="a sanitizer keeps more")
@pytest.mark.parametrize(("are_balanced", "each"), [(False, 240), (True, 1800)])
def test_a_service_takes_little(
    gateway: Start, upstream: Upstream, are_balanced: bool, each: int
) -> None:
    upstream.answer(200)
    running = gateway(services(upstream, are_balanced), workers=1)
    (worker,) = running.workers()
    ask(running, 0, BATCH)
    before = private_bytes(worker)
    ask(running, BATCH, COUNT)
    grown = private_bytes(worker) - before
    assert grown < (COUNT - BATCH) * each, grown / (COUNT - BATCH)
