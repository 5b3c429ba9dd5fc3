"""The prometheus plugin: Kong's families and labels, and counts that are what clients saw, over
workers, kills and reloads, with hostile names and too many series.

Long on purpose: one plugin, each promise once.
"""

import itertools
import os
import random
import re
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from admin_client import Client, uuid
from exposition import Family, parse
from tunnels import SAID, by_http2, opened, where_asked
from websocket import ASKING, KEY, switched

from sluice import ROOT, Gateway, Start, proxying
from upstream import DeadPort, Exchange, Upstream
from wire import Pairs, Wire, request_bytes, wait_until

OPEN = "application/openmetrics-text"
EVERYTHING = dict.fromkeys(
    [
        "per_consumer",
        "status_code_metrics",
        "ai_metrics",
        "latency_metrics",
        "bandwidth_metrics",
        "upstream_health_metrics",
    ],
    True,
)
NODE = {
    "kong_datastore_reachable": "gauge",
    "kong_memory_workers_lua_vms_bytes": "gauge",
    "kong_nginx_connections_total": "gauge",
    "kong_nginx_metric_errors_total": "counter",
    "kong_nginx_requests_total": "gauge",
    "kong_nginx_timers": "gauge",
    "kong_node_info": "gauge",
}
COUNTED = {
    "kong_bandwidth_bytes": "counter",
    "kong_http_requests_total": "counter",
    "kong_kong_latency_ms": "histogram",
    "kong_request_latency_ms": "histogram",
    "kong_upstream_latency_ms": "histogram",
}
OTHER = "(other)"
KONG_MS = (1, 2, 5, 7, 10, 15, 20, 30, 50, 75, 100, 200, 500, 750, 1000, 3000, 6000)
KONG_BOUNDS = [*map(str, KONG_MS), "+Inf"]
UPSTREAM_MS = (25, 50, 80, 100, 250, 400, 700, 1000, 2000, 5000, 10000, 30000, 60000)
UPSTREAM_BOUNDS = [*map(str, UPSTREAM_MS), "+Inf"]


def plugin(**config: bool) -> dict[str, Any]:
    """The plugin, with everything on but what is said otherwise."""
    return {"name": "prometheus", "config": EVERYTHING | config}


def text(gateway: Gateway, accept: str | None = None) -> str:
    """One scrape."""
    with Wire(gateway.admin_port) as wire:
        reply = wire.ask("/metrics", headers=[("Accept", accept)] if accept else [])
    assert reply.status == 200
    return reply.text


def scrape(gateway: Gateway, accept: str | None = None) -> dict[str, Family]:
    """Kong's families of one scrape."""
    families = parse(text(gateway, accept), is_open=accept is not None)
    return {name: family for name, family in families.items() if name.startswith("kong_")}


def samples(gateway: Gateway, name: str, *labels: str) -> Counter[tuple[str, ...]]:
    """Samples of a metric by the values of these labels, all others summed."""
    family = re.sub("_(bucket|sum|count)$", "", name)
    families = scrape(gateway)
    out: Counter[tuple[str, ...]] = Counter()
    for (found, pairs), value in families[family].samples.items() if family in families else []:
        if found == name:
            out[tuple(dict(pairs)[label] for label in labels)] += int(value)
    return out


def settles(
    gateway: Gateway, expected: dict[tuple[str, ...], int], *labels: str, name: str | None = None
) -> None:
    """Waits until the counts are these: a request counts just after its response, its bytes first,
    then itself, then its times, and at last what there was no room for."""
    name = name or "kong_http_requests_total"
    wait_until(
        lambda: samples(gateway, name, *labels) == Counter(expected),
        f"{name} to be {expected}; it is {samples(gateway, name, *labels)}",
    )


def start(gateway: Start, config: dict[str, Any], **settings: Any) -> Gateway:
    """A gateway whose routes may have series."""
    return gateway(config, **{"metrics_series": 100} | settings)


# What there is


def test_a_request_is_in_every_family_as_kong_has_it(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, proxying(upstream) | {"plugins": [plugin()]})
    request = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
    with running.wire() as wire:
        wire.send(request)
        head = wire.read_until(b"\r\n\r\n")
        length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
        sent = len(head) + 4 + len(wire.read_exactly(length))
    settles(running, {(): 1}, name="kong_upstream_latency_ms_count")
    shown = text(running)
    of = 'service="service",route="route"'
    for line in (
        "# HELP kong_http_requests_total HTTP status codes per consumer/service/route in Kong",
        "# TYPE kong_http_requests_total counter",
        f'kong_http_requests_total{{{of},code="200",source="service",'
        'workspace="default",consumer=""} 1',
        "# HELP kong_bandwidth_bytes Total bandwidth (ingress/egress) throughput in bytes",
        "# TYPE kong_bandwidth_bytes counter",
        f'kong_bandwidth_bytes{{{of},direction="egress",workspace="default",consumer=""}} {sent}',
        f'kong_bandwidth_bytes{{{of},direction="ingress",workspace="default",consumer=""}} '
        f"{len(request)}",
        "# TYPE kong_request_latency_ms histogram",
        f'kong_request_latency_ms_bucket{{{of},workspace="default",le="60000"}} 1',
        f'kong_request_latency_ms_count{{{of},workspace="default"}} 1',
        "# TYPE kong_upstream_latency_ms histogram",
        f'kong_upstream_latency_ms_bucket{{{of},workspace="default",le="+Inf"}} 1',
        "# HELP kong_kong_latency_ms Latency added by Kong and enabled plugins for each "
        "service/route in Kong",
        f'kong_kong_latency_ms_bucket{{{of},workspace="default",le="6000"}} 1',
        'kong_nginx_timers{state="running"} ',
        "kong_datastore_reachable 1",
        "kong_nginx_metric_errors_total 0",
    ):
        assert f"\n{line}" in shown, line
    families = scrape(running)
    assert {name: family.type for name, family in families.items()} == NODE | COUNTED | {
        name: "gauge" for name in families if name.startswith("kong_memory_lua_shared_dict")
    }


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("kong_kong_latency_ms", KONG_BOUNDS),
        ("kong_upstream_latency_ms", UPSTREAM_BOUNDS),
        ("kong_request_latency_ms", UPSTREAM_BOUNDS),
    ],
)
def test_buckets_are_kongs(
    gateway: Start, upstream: Upstream, name: str, bounds: list[str]
) -> None:
    running = start(gateway, proxying(upstream) | {"plugins": [plugin()]})
    assert running.get("/").status_code == 200
    settles(running, {("200",): 1}, "code")
    for accept in (None, OPEN):
        family = scrape(running, accept)[name]
        shown = [dict(labels)["le"] for one, labels in family.samples if one == f"{name}_bucket"]
        assert shown == [b if not accept or b == "+Inf" else f"{b}.0" for b in bounds]


def test_times_are_in_their_buckets(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, proxying(upstream) | {"plugins": [plugin()]})

    def wait(exchange: Exchange) -> None:
        threading.Event().wait(0.3)
        exchange.reply(200)

    upstream.handler = wait
    numbers = itertools.count(1)

    def undisturbed() -> bool:
        number, before = next(numbers), samples(running, "kong_kong_latency_ms_sum")[()]
        assert running.get("/").status_code == 200
        settles(running, {("200",): number}, "code")
        for name in ("kong_request_latency_ms", "kong_upstream_latency_ms"):
            settles(running, {(): number}, name=f"{name}_count")
            buckets = samples(running, f"{name}_bucket", "le")
            assert (buckets["250",], buckets["60000",], buckets["+Inf",]) == (0, number, number)
            assert 280 * number <= samples(running, f"{name}_sum")[()] < 30000 * number
        return samples(running, "kong_kong_latency_ms_sum")[()] - before < 280

    # Whoever takes the worker's CPU away adds to what it does just then.
    wait_until(undisturbed, "the gateway to have none of the upstream's time")


def test_the_node_has_figures(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, proxying(upstream) | {"plugins": [plugin()]})
    node = Client(running).must(200, "GET", "/")
    families = scrape(running)
    info = {"node_id": node["node_id"], "version": node["version"]}
    assert [dict(labels) for _, labels in families["kong_node_info"].samples] == [info]
    states = samples(running, "kong_nginx_connections_total", "node_id", "subsystem", "state")
    assert {key[2] for key in states} == {
        "accepted", "handled", "total", "active", "reading", "writing", "waiting",
    }  # fmt: skip
    assert {key[:2] for key in states} == {(node["node_id"], "http")}
    before = samples(running, "kong_nginx_requests_total")[()]
    assert samples(running, "kong_nginx_requests_total")[()] == before + 1
    assert set(samples(running, "kong_nginx_timers", "state")) == {("running",), ("pending",)}
    vms = samples(running, "kong_memory_workers_lua_vms_bytes", "pid", "kong_subsystem")
    assert list(vms) == [(str(running.control()), "http")]
    assert vms[str(running.control()), "http"] > 100_000


def test_targets_have_the_state_healthchecks_off(gateway: Start, upstream: Upstream) -> None:
    config = proxying("http://some")
    config["upstreams"] = [
        {
            "name": "some",
            "targets": [{"target": upstream.address}, {"target": "nowhere.invalid:80"}],
        }
    ]
    config["plugins"] = [plugin()]
    running = start(gateway, config)
    running.expect_log("nowhere.invalid", range(0, 100))
    labels = ("upstream", "target", "address", "state", "subsystem")
    found = samples(running, "kong_upstream_target_health", *labels)
    assert found == Counter(
        {
            ("some", target, address, state, "http"): int(state == is_in)
            for target, address, is_in in (
                (upstream.address, upstream.address, "healthchecks_off"),
                ("nowhere.invalid:80", "", "dns_error"),
            )
            for state in ("healthchecks_off", "healthy", "unhealthy", "dns_error")
        }
    )
    assert sum(found.values()) == 2
    config["plugins"] = [plugin(upstream_health_metrics=False)]
    running.reload(config)
    assert "kong_upstream_target_health" not in scrape(running)


def test_openmetrics_says_the_same(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, proxying(upstream) | {"plugins": [plugin()]})
    assert running.get("/").status_code == 200
    settles(running, {("200",): 1}, "code")
    plain, strict = scrape(running), scrape(running, OPEN)
    assert strict["kong_bandwidth_bytes"].type == "unknown"
    for name in ("kong_bandwidth_bytes", "kong_http_requests_total"):
        assert plain[name].samples == strict[name.removesuffix("_total")].samples


# Where it is


def test_without_the_plugin_there_is_nothing(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream)
    running = start(gateway, config)
    assert running.get("/").status_code == 200
    assert scrape(running) == {}
    running.reload(config | {"plugins": [plugin() | {"enabled": False}]})
    assert running.get("/").status_code == 200
    assert scrape(running) == {}
    running.reload(config | {"plugins": [plugin()]})
    assert running.get("/").status_code == 200
    settles(running, {("200",): 1}, "code")
    running.reload(config)
    assert scrape(running) == {}
    running.reload(config | {"plugins": [{"name": "prometheus"}]})
    assert running.get("/").status_code == 200
    settles(running, {("200",): 1}, "code")


def test_by_default_the_node_alone_is_shown(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, proxying(upstream) | {"plugins": [{"name": "prometheus"}]})
    assert running.get("/").status_code == 200
    running.get("/")
    families = scrape(running)
    assert not set(families) & (set(COUNTED) | {"kong_upstream_target_health"})
    assert set(families) >= set(NODE)


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("status_code_metrics", {"kong_http_requests_total"}),
        ("bandwidth_metrics", {"kong_bandwidth_bytes"}),
        ("latency_metrics", {name for name in COUNTED if "latency" in name}),
        ("per_consumer", set()),
        ("ai_metrics", set()),
    ],
)
def test_each_field_shows_its_families(
    gateway: Start, upstream: Upstream, field: str, shown: set[str]
) -> None:
    config = {"name": "prometheus", "config": {field: True}}
    running = start(gateway, proxying(upstream) | {"plugins": [config]})
    for _ in range(2):
        assert running.get("/").status_code == 200
    wait_until(lambda: set(scrape(running)) & set(COUNTED) == shown, f"{shown} to be shown")


def test_only_requests_of_its_scope_are_counted(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream)
    config["services"][0]["routes"] = [
        {"name": "counted", "paths": ["/counted"], "plugins": [plugin()]},
        {"name": "other", "paths": ["/other"]},
    ]
    running = start(gateway, config)
    for path in ("/other", "/counted", "/nowhere", "/counted"):
        running.get(path)
    settles(running, {("counted", "200"): 2}, "route", "code")


def test_requests_without_a_route_are_not_counted(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream, paths=["/a"]) | {"plugins": [plugin()]}
    running = start(gateway, config)
    assert running.get("/nowhere").status_code == 404
    with running.wire() as wire:
        wire.send(b"no request\r\n\r\n")
        assert b" 400 " in wire.read_to_end()
    assert running.get("/a").status_code == 200
    settles(running, {("route", "200"): 1}, "route", "code")


# Whose a response is, and who asks


def test_sources_and_codes(gateway: Start, upstream: Upstream) -> None:
    with DeadPort() as dead:
        config = proxying(upstream)
        limit = {"name": "rate-limiting", "config": {"year": 1, "policy": "local"}}
        config["services"][0]["routes"] += [
            {"name": "keyed", "paths": ["/keyed"], "plugins": [{"name": "key-auth"}]},
            {"name": "few", "paths": ["/few"], "plugins": [limit]},
            {"name": "secure", "paths": ["/secure"], "protocols": ["https"]},
        ]
        routes = [{"name": "dead", "paths": ["/dead"]}]
        config["services"].append({"name": "gone", "url": dead.url, "routes": routes, "retries": 0})
        config["plugins"] = [plugin()]
        running = start(gateway, config)
        running.expect_log(r"connect\(\) failed", 1)
        for path in ("/", "/keyed", "/few", "/few", "/secure", "/dead"):
            running.get(path)
        upstream.answer(503)
        assert running.get("/").status_code == 503
        expected = {
            ("service", "route", "200", "service"): 1,
            ("service", "route", "503", "service"): 1,
            ("service", "keyed", "401", "kong"): 1,
            ("service", "few", "200", "service"): 1,
            ("service", "few", "429", "kong"): 1,
            ("service", "secure", "426", "kong"): 1,
            ("gone", "dead", "502", "kong"): 1,
        }
        settles(running, expected, "service", "route", "code", "source")
        upstreams = {("route",): 2, ("few",): 1}
        settles(running, upstreams, "route", name="kong_upstream_latency_ms_count")
        settles(running, {(): 7}, name="kong_kong_latency_ms_count")


def test_http2_and_a_switch_are_counted(gateway: Start, upstream: Upstream) -> None:
    """A tunnel once, when it has ended, with the bytes that it has brought."""
    upstream.handler = where_asked(upstream)
    config = proxying(upstream) | {"plugins": [plugin()]}
    running = start(gateway, config, tls="ssl http2")
    assert by_http2(running) == 200
    settles(running, {("200", "service"): 1}, "code", "source")
    before = samples(running, "kong_bandwidth_bytes", "direction")
    assert before["egress",] > before["ingress",] > 0
    with opened(running) as wire:
        wire.send(SAID)
        assert wire.read_exactly(len(SAID)) == SAID
        assert samples(running, "kong_http_requests_total", "code") == {("200",): 1}
    settles(running, {("200", "service"): 1, ("101", "service"): 1}, "code", "source")
    after = samples(running, "kong_bandwidth_bytes", "direction")
    assert after["ingress",] - before["ingress",] >= len(request_bytes("/", headers=ASKING))
    assert after["egress",] - before["egress",] > len(switched(KEY)) + len(SAID)
    settles(running, {(): 2}, name="kong_upstream_latency_ms_count")


def test_a_client_that_leaves_is_counted(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, proxying(upstream) | {"plugins": [plugin()]})
    release = upstream.hold()
    with running.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        upstream.wait_for(1)
    settles(running, {("499", "kong"): 1}, "code", "source")
    release.set()


def keyed(upstream: Upstream, *usernames: str, **config: bool) -> dict[str, Any]:
    """One route behind key-auth; a key is `k` and the number of its consumer."""
    consumers = [
        {"username": name, "keyauth_credentials": [{"key": f"k{n}"}]}
        for n, name in enumerate(usernames)
    ]
    plugins = [{"name": "key-auth"}, plugin(**config)]
    return proxying(upstream) | {"plugins": plugins, "consumers": consumers}


def key(number: int) -> Pairs:
    """Headers of a consumer's request."""
    return {"apikey": f"k{number}"}


def test_consumers_by_option(gateway: Start, upstream: Upstream) -> None:
    config = keyed(upstream, "ann", "bob")
    running = start(gateway, config)
    for number in (0, 1, 1, 7):
        running.get("/", key(number))
    expected = {("ann", "200"): 1, ("bob", "200"): 2, ("", "401"): 1}
    settles(running, expected, "consumer", "code")
    bandwidth = samples(running, "kong_bandwidth_bytes", "consumer")
    assert set(bandwidth) == {("ann",), ("bob",), ("",)}
    running.reload(keyed(upstream, "ann", "bob", per_consumer=False))
    assert running.get("/", key(0)).status_code == 200
    settles(running, expected | {("", "200"): 1}, "consumer", "code")


def test_a_configuration_of_a_consumer(gateway: Start, upstream: Upstream) -> None:
    """What a consumer has in the place of the others' counts; known behind authentication."""
    config = keyed(upstream, "ann", "bob")
    config["plugins"] = [{"name": "key-auth"}]
    config["consumers"][1]["plugins"] = [plugin()]
    running = start(gateway, config)
    for number in (0, 1, 7):
        running.get("/", key(number))
    settles(running, {("bob", "200"): 1}, "consumer", "code")


# Names


HOSTILE = [
    'quote"quote',
    "back\\slash",
    "brace}{",
    'a",consumer="b',
    "le=\"+Inf\"} 1 # {",
    "caf\u00e9 \u2603 \U0001f600",
    "x" * 1000,
    "line\nfeed",
    "tab\t",
    "\\",
    '"',
    "\\n",
    "=,",
    OTHER,
]  # fmt: skip


def test_hostile_names(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, keyed(upstream, *HOSTILE))
    for number in range(len(HOSTILE)):
        assert running.get("/", key(number)).status_code == 200
    # As X-Consumer-Username has them.
    sent = [name.replace("\n", "%0A").replace("\t", "%09") for name in HOSTILE]
    settles(running, {(name,): 1 for name in sent}, "consumer")
    scrape(running, OPEN)


def test_names_that_are_too_long_are_summed(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, keyed(upstream, "y" * 3000, "z" * 5000))
    for number in (0, 1, 1):
        assert running.get("/", key(number)).status_code == 200
    settles(running, {("y" * 3000,): 1, (OTHER,): 2}, "consumer")
    settles(running, {(): 2}, name="kong_nginx_metric_errors_total")


def test_hosts_and_ids_where_there_are_no_names(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream) | {"plugins": [plugin()]}
    config["services"][0] |= {"name": None, "id": uuid(1)}
    config["services"][0]["routes"][0] |= {"name": None, "id": uuid(2)}
    running = start(gateway, config)
    assert running.get("/").status_code == 200
    host = upstream.address.rsplit(":", 1)[0]
    settles(running, {(host, uuid(2)): 1}, "service", "route")


def test_series_outlive_names(gateway: Start, upstream: Upstream) -> None:
    """As Kong: a renamed entity begins a new series, and the old ones stay until a restart."""
    running = start(gateway, proxying(upstream) | {"plugins": [plugin()]})
    expected: dict[tuple[str, ...], int] = {}
    for service, route in (("s1", "r1"), ("s1", "r2"), ("s2", "r2"), ("s1", "r1")):
        config = proxying(upstream, name=route, service={"name": service})
        running.reload(config | {"plugins": [plugin()]})
        assert running.get("/").status_code == 200
        expected[service, route] = expected.get((service, route), 0) + 1
        settles(running, expected, "service", "route")
    running.reload({"plugins": [plugin()]})
    settles(running, expected, "service", "route")
    running.stop()
    running.start()
    settles(running, {}, "service", "route")


def test_what_changes_during_a_response(gateway: Start, upstream: Upstream) -> None:
    """A long response is counted by the names and the plugin that it began with."""
    config = proxying(upstream, name="old", response_buffering=False) | {"plugins": [plugin()]}
    running = start(gateway, config)
    go_on = threading.Event()

    def slowly(exchange: Exchange) -> None:
        exchange.head(200, {"Content-Length": "2"})
        exchange.sock.sendall(b"a")
        go_on.wait(20)
        exchange.sock.sendall(b"b")

    upstream.handler = slowly
    with running.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wire.read_until(b"\r\n\r\n")
        wire.read_exactly(1)
        upstream.handler = upstream.echo
        for turn in range(3):
            running.reload(proxying(upstream, name=f"new{turn}"))
            assert running.get("/").status_code == 200
        running.reload({"plugins": [plugin()]})
        go_on.set()
        wire.read_exactly(1)
    settles(running, {("old", "200"): 1}, "route", "code")


# Exact counts


def many(upstream: Upstream, routes: int) -> dict[str, Any]:
    """Routes r0, r1 ... at /r0, /r1 ..."""
    made = [{"name": f"r{n}", "paths": [f"/r{n}$", f"/r{n}/"]} for n in range(routes)]
    for route in made:
        route["paths"] = [f"~{path}" if path.endswith("$") else path for path in route["paths"]]
    config = proxying(upstream) | {"plugins": [plugin()]}
    config["services"][0]["routes"] = made
    return config


def test_counts_are_exact_over_workers_kills_and_reloads(
    gateway: Start, upstream: Upstream
) -> None:
    config = many(upstream, 5)
    running = start(gateway, config, workers=4)
    running.expect_log(r"exited on signal 9", 3)
    expected: Counter[tuple[str, ...]] = Counter()

    def ask(number: int) -> tuple[str, ...]:
        return f"r{number % 5}", str(running.get(f"/r{number % 5}").status_code)

    with ThreadPoolExecutor(8) as pool:
        for turn in range(4):
            expected.update(pool.map(ask, range(100)))
            answers = pool.map(ask, range(100))
            running.reload(config)
            running.command("reload", "--new-workers") if turn == 3 else None
            expected.update(answers)
            settles(running, expected, "route", "code")
            if turn == 3:
                break
            victim = random.choice(running.workers())
            os.kill(victim, signal.SIGKILL)
            wait_until(
                lambda gone=victim: gone not in running.workers() and len(running.workers()) == 4,
                "another worker",
            )
    assert sum(expected.values()) == 800
    for name in ("kong_kong_latency_ms_count", "kong_request_latency_ms_count"):
        settles(running, {(f"r{n}",): 160 for n in range(5)}, "route", name=name)
    bandwidth = samples(running, "kong_bandwidth_bytes", "route", "direction")
    assert len({bandwidth[f"r{n}", "ingress"] for n in range(5)}) == 1


def test_new_series_met_by_all_workers_at_once(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, many(upstream, 40), workers=4)
    with ThreadPoolExecutor(16) as pool:
        for route in range(40):
            list(pool.map(running.get, [f"/r{route}"] * 16))
    settles(running, {(f"r{n}",): 16 for n in range(40)}, "route")
    shown = scrape(running)["kong_http_requests_total"].samples
    assert len(shown) == 40
    assert samples(running, "kong_nginx_metric_errors_total")[()] == 0


def test_a_binary_upgrade_keeps_the_counts(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, proxying(upstream) | {"plugins": [plugin()]}, workers=2)
    old, prefix = running.master(), running.settings["prefix"]
    for turn in range(3):
        for _ in range(10):
            assert running.get("/").status_code == 200
        if turn == 0:
            settles(running, {("200",): 10}, "code")
            running.start_new_master()
        elif turn == 1:
            os.kill(old, signal.SIGQUIT)
            wait_until(lambda: not (prefix / "run/nginx.pid.oldbin").exists(), "the old to leave")
    settles(running, {("200",): 30}, "code")


def test_a_scrape_during_traffic_is_whole(gateway: Start, upstream: Upstream) -> None:
    """The reader fails where a histogram's parts do not fit each other; no count falls."""
    running = start(gateway, many(upstream, 20), workers=2)
    with ThreadPoolExecutor(4) as pool:
        asked = pool.map(lambda n: running.get(f"/r{n % 20}").status_code, range(600))
        before = 0
        for _ in range(20):
            now = sum(samples(running, "kong_http_requests_total").values())
            assert now >= before
            before = now
        assert set(asked) == {200}
    settles(running, {("200",): 600}, "code")


# More series than there is room for


def test_beyond_the_bound_all_is_summed_in_one(gateway: Start, upstream: Upstream) -> None:
    """8 series of requests and of bytes for each of metrics_series, one of times."""
    running = start(gateway, many(upstream, 12), metrics_series=1)
    for _ in range(2):
        for route in range(12):
            assert running.get(f"/r{route}").status_code == 200
    named = {(f"r{n}",): 2 for n in range(8)}
    settles(running, named | {(OTHER,): 8}, "route")
    for name in ("kong_request_latency_ms_count", "kong_kong_latency_ms_count"):
        settles(running, {("r0",): 2, (OTHER,): 22}, "route", name=name)
    every = samples(running, "kong_bandwidth_bytes", "route", "direction")
    assert every[OTHER, "ingress"] == 4 * every["r0", "ingress"] + len("1") * 4
    settles(running, {(): 22}, name="kong_nginx_metric_errors_total")
    (other,) = [
        dict(labels)
        for _, labels in scrape(running)["kong_http_requests_total"].samples
        if ("route", OTHER) in labels
    ]
    assert other == {
        "service": OTHER,
        "route": OTHER,
        "code": OTHER,
        "source": OTHER,
        "workspace": "default",
        "consumer": OTHER,
    }


def test_without_series_all_is_in_one(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, many(upstream, 3), metrics_series=0)
    for route in range(3):
        assert running.get(f"/r{route}").status_code == 200
    settles(running, {(OTHER, "default"): 3}, "route", "workspace")


def test_many_consumers_cost_no_more_than_the_bound(gateway: Start, upstream: Upstream) -> None:
    names = [f"consumer-{n}" for n in range(60)]
    running = start(gateway, keyed(upstream, *names), metrics_series=2, workers=2)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: running.get("/", key(n % 60)).status_code, range(240)))
    wait_until(
        lambda: sum(samples(running, "kong_http_requests_total").values()) == 240, "all requests"
    )
    found = samples(running, "kong_http_requests_total", "consumer")
    # A line that a lost race has left is used for the next; one at most is still unused.
    assert 14 <= len(found) - 1 <= 16
    assert sum(count for (name,), count in found.items() if name == OTHER) >= 240 - 16 * 4


def test_the_example_of_the_page(gateway: Start, upstream: Upstream) -> None:
    page = (ROOT / "docs/plugins/prometheus.md").read_text()
    config, _, shown = re.findall(r"```(?:yaml)?\n(.+?)```", page, re.DOTALL)[:3]
    running = start(gateway, config.replace("http://127.0.0.1:9000", upstream.url))
    assert running.get("/orders").status_code == 200
    settles(running, {("200",): 1}, "code")
    assert shown in text(running)
