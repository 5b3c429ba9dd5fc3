"""What a worker keeps of the services that it was asked for."""

import re
from pathlib import Path
from typing import Any

import pytest
from changes import document, post

from sluice import Gateway, Start, sanitizers
from upstream import Upstream
from wire import request_bytes, wait_until

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
def test_a_service_takes_little(upstream: Upstream, are_balanced: bool, each: int) -> None:
    """By one of two gateways: where a process has its memory from the kernel is chance."""
    upstream.answer(200)

    def taken() -> float:
        with Gateway(services(upstream, are_balanced), workers=1) as running:
            (worker,) = running.workers()
            ask(running, 0, BATCH)
            before = private_bytes(worker)
            ask(running, BATCH, COUNT)
            return (private_bytes(worker) - before) / (COUNT - BATCH)

    found = [taken()]
    if found[0] >= each:
        found.append(taken())
    assert min(found) < each, found


LARGE = 60000
LARGE_KEPT = 20 * 1024 * 1024


@pytest.mark.skipif(bool(sanitizers()), reason="a sanitizer keeps more")
def test_a_large_file_leaves_little(gateway: Start) -> None:
    """Of what it takes to check and to write one, 4.5 KB an entity, the control worker keeps what
    does not depend on its size."""
    running = gateway({"services": []}, workers=1)
    pid = running.control()
    before = private_bytes(pid)
    for round_ in range(2):
        routes = [{"name": f"r{n}", "paths": [f"/{round_}/{n}/"]} for n in range(LARGE)]
        config = {"services": [{"name": "s", "host": "127.0.0.1", "routes": routes}]}
        assert post(running, document(config)).status_code == 201
    wait_until(lambda: private_bytes(pid) - before < LARGE_KEPT, "its memory to go back")
