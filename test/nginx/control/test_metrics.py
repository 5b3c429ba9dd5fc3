"""`/metrics`: what is counted is what clients saw, in texts that a strict reader takes."""

import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from exposition import Family, Malformed, parse

from sluice import ROOT, Gateway, Start
from upstream import DeadPort, Exchange, Upstream
from wire import Reply, Wire, wait_until

OPEN = "application/openmetrics-text"


def config(url: str, routes: int = 1, **more: Any) -> dict[str, Any]:
    """One service with routes r0, r1 ... at /r0, /r1 ..."""
    names = [{"name": f"r{n}", "paths": [f"/r{n}"], **more} for n in range(routes)]
    return {"services": [{"name": "echo", "url": url, "routes": names}]}


def read(gateway: Gateway, accept: str | None = None) -> Reply:
    """One scrape."""
    headers = {"Accept": accept} if accept else {}
    with Wire(gateway.admin_port) as wire:
        return wire.ask("/metrics", headers=list(headers.items()))


def scrape(gateway: Gateway, accept: str | None = None) -> dict[str, Family]:
    """What one scrape says."""
    reply = read(gateway, accept)
    assert reply.status == 200
    return parse(reply.text, is_open=accept is not None)


def value(families: dict[str, Family], name: str, **labels: str) -> float:
    """One sample; 0 where it is not there."""
    family = families.get(name) or families[re.sub("_(total|bucket|sum|count)$", "", name)]
    wanted = set(labels.items())
    found = [v for (n, pairs), v in family.samples.items() if n == name and set(pairs) == wanted]
    return found[0] if found else 0


def requests(families: dict[str, Family], name: str = "sluice_http_requests_total") -> Counter[str]:
    """Requests by class, all other labels summed."""
    out: Counter[str] = Counter()
    for (_, pairs), count in families[name].samples.items() if name in families else []:
        out[dict(pairs)["code"]] += int(count)
    return out


def settles(
    gateway: Gateway, expected: dict[str, int], name: str = "sluice_http_requests_total"
) -> None:
    """Waits until the counts are these: a request counts just after its response."""
    wait_until(
        lambda: requests(scrape(gateway), name) == Counter(expected),
        f"{name} to be {expected}; it is {requests(scrape(gateway), name)}",
    )


def test_counts_are_what_clients_saw(gateway: Start, upstream: Upstream) -> None:
    running = gateway(config(upstream.url), workers=2)
    sent = received = 0
    for n in range(20):
        with running.wire() as wire:
            request = f"POST /r0/{n} HTTP/1.1\r\nHost: a\r\nContent-Length: {n}\r\n\r\n".encode()
            wire.send(request + b"x" * n)
            sent += len(request) + n
            data = wire.read_until(b"\r\n\r\n")
            length = int(re.search(rb"(?i)content-length: (\d+)", data)[1])
            received += len(data) + 4 + len(wire.read_exactly(length))
    settles(running, {"2xx": 20})
    families = scrape(running)
    assert value(families, "sluice_http_received_bytes_total") == sent
    assert value(families, "sluice_http_sent_bytes_total") == received
    for name in ("request", "upstream", "gateway"):
        assert value(families, f"sluice_http_{name}_duration_seconds_count") == 20
    reused = value(families, "sluice_upstream_connections_total", source="pool")
    assert reused + value(families, "sluice_upstream_connections_total", source="new") == 20


def test_every_answer_has_its_class(gateway: Start, upstream: Upstream) -> None:
    running = gateway(config(upstream.url))
    upstream.answer(304)
    assert running.get("/r0").status_code == 304
    assert running.get("/nowhere").status_code == 404
    with running.wire() as wire:
        wire.send(b"no request\r\n\r\n")
        assert b" 400 " in wire.read_to_end()
    settles(running, {"3xx": 1, "4xx": 2})
    families = scrape(running)
    assert value(families, "sluice_http_upstream_duration_seconds_count") == 1
    assert value(families, "sluice_http_gateway_duration_seconds_count") == 3


def test_times_are_in_their_buckets(gateway: Start, upstream: Upstream) -> None:
    running = gateway(config(upstream.url))
    slow = threading.Event()

    def wait(exchange: Exchange) -> None:
        slow.wait(0.3)
        exchange.reply(200)

    upstream.handler = wait
    assert running.get("/r0").status_code == 200
    settles(running, {"2xx": 1})
    families = scrape(running)
    for name in ("request", "upstream"):
        family = f"sluice_http_{name}_duration_seconds"
        assert 0.28 <= value(families, family + "_sum") < 5
        assert value(families, family + "_bucket", le="0.25") == 0
    assert value(families, "sluice_http_gateway_duration_seconds_sum") < 0.28


def test_retries_and_refusals(gateway: Start, upstream: Upstream) -> None:
    with DeadPort() as dead:
        made = config("http://both", 1)
        made["services"][0]["routes"].append(
            {
                "name": "few",
                "paths": ["/few"],
                "plugins": [{"name": "rate-limiting", "config": {"year": 2, "policy": "local"}}],
            }
        )
        targets = [{"target": upstream.address}, {"target": f"127.0.0.1:{dead.port}"}]
        made["upstreams"] = [{"name": "both", "targets": targets}]
        running = gateway(made)
        running.expect_log(r"connect\(\) failed", range(1, 20))
        for _ in range(10):
            assert running.get("/r0").status_code == 200
        statuses = [running.get("/few").status_code for _ in range(5)]
        assert statuses == [200, 200, 429, 429, 429]
        settles(running, {"2xx": 12, "4xx": 3})
        families = scrape(running)
        assert value(families, "sluice_http_rate_limited_total") == 3
        assert value(families, "sluice_http_retries_total") >= 4


def test_nothing_is_lost_by_kills_and_reloads(gateway: Start, upstream: Upstream) -> None:
    """A worker that is killed between requests has lost nothing, nor has one that is replaced."""
    made = config(upstream.url, 3)
    running = gateway(made, workers=4, metrics_series=10)
    running.expect_log(r"exited on signal 9", 4)
    seen: Counter[str] = Counter()

    def ask(n: int) -> str:
        return f"{running.get(f'/r{n % 4}').status_code // 100}xx"

    with ThreadPoolExecutor(8) as pool:
        for turn in range(4):
            seen.update(pool.map(ask, range(100)))
            settles(running, seen)
            workers = set(running.workers())
            victim = sorted(workers)[0]
            os.kill(victim, signal.SIGKILL)
            wait_until(
                lambda gone=victim: gone not in running.workers() and len(running.workers()) == 4,
                "another worker",
            )
            answers = pool.map(ask, range(100))
            running.reload(made)
            running.command("reload", "--new-workers") if turn == 3 else None
            seen.update(answers)
        settles(running, seen)
        assert seen == {"2xx": 600, "4xx": 200}
        families = scrape(running)
        assert requests(families, "sluice_route_requests_total") == {"2xx": 600}
        assert requests(families, "sluice_service_requests_total") == {"2xx": 600}
        for n in range(3):
            labels = {"route": f"r{n}", "service": "echo", "code": "2xx"}
            assert value(families, "sluice_route_requests_total", **labels) == 200


def test_counts_go_on_without_the_control_worker(gateway: Start, upstream: Upstream) -> None:
    running = gateway(config(upstream.url))
    running.expect_log(r"exited on signal 9", 1)
    assert running.get("/r0").status_code == 200
    settles(running, {"2xx": 1})
    os.kill(running.control(), signal.SIGKILL)
    assert running.get("/r0").status_code == 200
    settles(running, {"2xx": 2})
    families = scrape(running)
    assert value(families, "sluice_control_deaths_total") == 1
    assert value(families, "sluice_control_starts_total") == 2
    wait_until(
        lambda: value(scrape(running), "sluice_control_state", state="live") == 1,
        "the new one to be live",
    )


def test_a_binary_upgrade_keeps_the_counts(gateway: Start, upstream: Upstream) -> None:
    running = gateway(config(upstream.url), workers=2, metrics_series=10)
    for _ in range(10):
        assert running.get("/r0").status_code == 200
    settles(running, {"2xx": 10})
    old, prefix = running.master(), running.settings["prefix"]
    running.start_new_master()
    # Both masters' workers count.
    for _ in range(10):
        assert running.get("/r0").status_code == 200
    os.kill(old, signal.SIGQUIT)
    wait_until(lambda: not (prefix / "run/nginx.pid.oldbin").exists(), "the old one to leave")
    for _ in range(10):
        assert running.get("/r0").status_code == 200
    settles(running, {"2xx": 30}, "sluice_route_requests_total")
    settles(running, {"2xx": 30})


def test_both_formats_say_the_same(gateway: Start, upstream: Upstream) -> None:
    running = gateway(config(upstream.url), metrics_series=10, metrics_latencies=True)
    assert running.get("/r0").status_code == 200
    settles(running, {"2xx": 1})
    plain, strict = scrape(running), scrape(running, OPEN)
    assert {name.removesuffix("_total") for name in plain} == set(strict)
    samples = [
        {
            key: count
            for family in families.values()
            for key, count in family.samples.items()
            if family.type == "histogram" or "requests" in family.name
        }
        for families in (plain, strict)
    ]
    assert samples[0] == samples[1]
    assert "sluice_route_upstream_duration_seconds" in plain
    assert strict["sluice_http_sent_bytes"].unit == "bytes"


@pytest.mark.parametrize(
    ("accept", "is_open"),
    [
        (None, False),
        ("*/*", False),
        ("text/plain", False),
        (OPEN, True),
        (f"{OPEN}; version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", True),
        (f"{OPEN};version=1.0.0;q=0.3,text/plain;version=0.0.4;q=0.5", False),
        (f"{OPEN};version=7.0.0", False),
        (f"{OPEN};q=0", False),
    ],
)
def test_formats_by_accept(shared: Gateway, accept: str | None, is_open: bool) -> None:
    reply = read(shared, accept)
    parse(reply.text, is_open)
    assert reply.headers.get("Content-Type") == (
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
        if is_open
        else "text/plain; version=0.0.4; charset=utf-8"
    )


@pytest.fixture(scope="module")
def shared() -> Iterator[Gateway]:
    """One gateway for tests that only read."""
    with Gateway(config("http://127.0.0.1:1"), metrics_series=0) as running:
        yield running


def test_only_reads(shared: Gateway) -> None:
    with Wire(shared.admin_port) as wire:
        assert wire.ask("/metrics", "POST").status == 405
        head = wire.ask("/metrics", "HEAD")
        assert (head.status, head.body) == (200, b"")
        assert wire.ask("/metrics", headers=[("Host", "evil.example")]).status == 421


def test_what_is_off_has_no_lines(shared: Gateway) -> None:
    shared.get("/r0")
    shared.expect_log(r"connect\(\) failed", range(0, 100))
    assert not [name for name in scrape(shared) if re.match("sluice_(route|service)_", name)]


def test_documented_is_what_there_is(gateway: Start, upstream: Upstream) -> None:
    """Names, types and bounds of docs/metrics.md are those of a scrape."""
    running = gateway(config(upstream.url), metrics_series=1, metrics_latencies=True)
    assert running.get("/r0").status_code == 200
    settles(running, {"2xx": 1})
    page = (ROOT / "docs" / "metrics.md").read_text()
    documented = dict(re.findall(r"^\| `(sluice_\w+)` \| (\w+) \|", page, re.MULTILINE))
    families = scrape(running)
    assert documented == {family.name: family.type for family in families.values()}
    bounds = re.search(r"in seconds: (.+)\.\n", page)[1].split(", ")
    family = families["sluice_http_request_duration_seconds"]
    shown = [dict(labels)["le"] for name, labels in family.samples if name.endswith("_bucket")]
    assert [b if b == "+Inf" else str(float(b)) for b in bounds] == shown


def test_a_long_name_that_is_no_ascii(gateway: Start, upstream: Upstream) -> None:
    name = "\u00e9~" * 340
    made = config(upstream.url)
    made["services"][0]["routes"][0]["name"] = name
    running = gateway(made, metrics_series=10)
    running.get("/r0")
    settles(running, {"2xx": 1}, "sluice_route_requests_total")
    labels = {"route": name, "service": "echo", "code": "2xx"}
    assert value(scrape(running, OPEN), "sluice_route_requests_total", **labels) == 1


def test_labels_follow_the_configuration(gateway: Start, upstream: Upstream) -> None:
    """Also after a scrape: names that are others, ids where there are none, routes that come."""
    ids = [f"00000000-0000-4000-8000-00000000000{n}" for n in range(3)]

    def named(service: str | None, routes: list[str | None]) -> dict[str, Any]:
        made = config(upstream.url, len(routes))
        made["services"][0].update(id=ids[0], name=service)
        for route, id_, name in zip(made["services"][0]["routes"], ids[1:], routes, strict=False):
            route.update(id=id_, name=name)
        return made

    running = gateway(named("a", ["x"]), metrics_series=10)
    seen: list[dict[str, str]] = []
    for count, (service, routes) in enumerate(
        [("a", ["x"]), ("b", ["x"]), ("b", ["y"]), (None, [None]), ("a", ["y", "x"])], 1
    ):
        running.reload(named(service, routes))
        for n in range(len(routes)):
            assert running.get(f"/r{n}").status_code == 200
        total = count + len(routes) - 1
        settles(running, {"2xx": total}, "sluice_route_requests_total")
        labels = {"route": routes[0] or ids[1], "service": service or ids[0], "code": "2xx"}
        families = scrape(running)
        assert value(families, "sluice_route_requests_total", **labels) == count
        of_service = {"service": labels["service"], "code": "2xx"}
        assert value(families, "sluice_service_requests_total", **of_service) == total
        seen.append(labels)
    assert len({tuple(labels.items()) for labels in seen}) == 5


def test_a_slot_of_another_route_begins_at_zero(gateway: Start, upstream: Upstream) -> None:
    running = gateway(config(upstream.url), metrics_series=1)
    for n in range(5):
        made = config(upstream.url)
        made["services"][0]["routes"] = [{"name": f"turn{n}", "paths": ["/r0"]}]
        running.reload(made)
        for _ in range(n + 1):
            assert running.get("/r0").status_code == 200
        wait_until(
            lambda total=(n + 1) * (n + 2) // 2: requests(scrape(running))["2xx"] == total, "counts"
        )
        families = scrape(running)
        found = families.get("sluice_route_requests_total", Family("")).samples
        unnamed = value(families, "sluice_http_unnamed_requests_total")
        assert all(dict(labels)["route"] == f"turn{n}" for _, labels in found)
        assert sum(found.values()) in (0, n + 1)
        assert sum(found.values()) == n + 1 or unnamed > 0


def test_routes_beyond_the_limit_are_the_nodes(gateway: Start, upstream: Upstream) -> None:
    running = gateway(config(upstream.url, 4), metrics_series=2)
    for n in range(4):
        assert running.get(f"/r{n}").status_code == 200
    settles(running, {"2xx": 4})
    families = scrape(running)
    named = requests(families, "sluice_route_requests_total")["2xx"]
    assert 1 <= named <= 2
    assert value(families, "sluice_http_unnamed_requests_total") == 4 - named
    assert requests(families, "sluice_service_requests_total") == {"2xx": 4}


def test_ten_thousand_routes_beside_traffic(gateway: Start, upstream: Upstream) -> None:
    running = gateway(config(upstream.url, 10000), metrics_series=10000)
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda n: running.get(f"/r{n}"), range(0, 10000, 50)):
            pass
        asked = pool.submit(lambda: [running.get("/r0").status_code for _ in range(200)])
        for _ in range(5):
            families = scrape(running, OPEN)
            assert len(families["sluice_route_received_bytes"].samples) == 200
        assert asked.result() == [200] * 200
    settles(running, {"2xx": 400}, "sluice_route_requests_total")


def test_series_take_what_is_said_and_when_they_count(gateway: Start, upstream: Upstream) -> None:
    """448 bytes for each route and worker, in whole pages; none of a route without requests."""
    running = gateway(config(upstream.url, 1000), workers=1)

    def taken() -> int:
        folder = Path(f"/proc/{running.master()}/fd")
        (memory,) = [fd for fd in folder.iterdir() if "sluice-images" in os.readlink(fd)]
        return memory.stat().st_blocks * 512

    for path in ("/r0", "/none"):
        running.get(path)
    before = taken()
    for n in range(500):
        running.get(f"/r{n}")
    settles(running, {"2xx": 501}, "sluice_route_requests_total")
    grown = taken() - before
    print(grown / 499, "bytes a route")
    assert 440 * 499 < grown < 470 * 499
    assert before < 1_000_000


def test_a_client_that_leaves_amid_a_scrape(gateway: Start, upstream: Upstream) -> None:
    running = gateway(config(upstream.url, 2000), metrics_series=10000, metrics_latencies=True)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: running.get(f"/r{n}"), range(2000)))
    for _ in range(5):
        with Wire(running.admin_port) as wire:
            wire.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            wire.read_some()
    settles(running, {"2xx": 2000})


@pytest.mark.parametrize(
    "text",
    [
        "a 1",
        '# TYPE a gauge\n# HELP a b\na{b="c\nd"} 1\n',
        "# TYPE a gauge\n# HELP a b\na 1\na 1\n",
        "# TYPE a gauge\na 1\n",
        "# TYPE a gauge\n# HELP a b\nb 1\n",
        "# TYPE a counter\n# HELP a b\na 1\n",
        '# TYPE a histogram\n# HELP a b\na_bucket{le="1.0"} 1\na_sum 1\na_count 1\n',
    ],
)
def test_the_reader_is_strict(text: str) -> None:
    with pytest.raises(Malformed):
        parse(text, is_open=False)
