"""Kong's dashboard for Grafana (number 7424; kong-official.json of Kong 3.9.3) on our metrics: each
sample that a panel asks for is there, with each label by which it is chosen, summed or named.

The lists are facts of that file, by hand. `instance` is a label of Prometheus's own.
"""

from typing import Any

import pytest
from exposition import parse

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Wire, wait_until

EVERYTHING = dict.fromkeys(
    ["status_code_metrics", "latency_metrics", "bandwidth_metrics", "upstream_health_metrics"],
    True,
)

# A row of the dashboard -> samples, with the labels of their queries.
ASKED = {
    "Request rate": {"kong_http_requests_total": {"service", "route", "code"}},
    "Latencies": {
        "kong_kong_latency_ms_bucket": {"service", "route", "le"},
        "kong_request_latency_ms_bucket": {"service", "route", "le"},
        "kong_upstream_latency_ms_bucket": {"service", "route", "le"},
    },
    "Bandwidth": {"kong_bandwidth_bytes": {"service", "route", "direction"}},
    "Caching": {
        "kong_memory_lua_shared_dict_bytes": {"shared_dict", "kong_subsystem"},
        "kong_memory_lua_shared_dict_total_bytes": {"shared_dict", "kong_subsystem"},
        "kong_memory_workers_lua_vms_bytes": {"pid", "kong_subsystem"},
    },
    "Upstream": {"kong_upstream_target_health": {"upstream", "target", "address", "state"}},
    "Nginx": {"kong_nginx_connections_total": {"state"}},
}

# Values of labels that queries name.
VALUES = {
    ("kong_bandwidth_bytes", "direction"): {"egress", "ingress"},
    ("kong_nginx_connections_total", "state"): {
        *("active", "reading", "writing", "waiting"),
        *("total", "handled", "accepted"),
    },
    ("kong_upstream_target_health", "state"): {
        *("healthy", "unhealthy", "dns_error", "healthchecks_off"),
    },
}

# What is asked for and cannot be.
NOT_THERE = {
    ("kong_bandwidth_bytes", "type"): "no label of Kong's either, since it is named direction",
}

# Families of Kong's that no panel asks for, and that are not here: the beginnings of their names.
ELSEWHERE = {
    "kong_stream_": "of proxying TCP, which is not there",
    "kong_session_": "of proxying TCP, which is not there",
    "kong_data_plane_": "of control planes, which are not there",
    "kong_ai_": "of requests to language models, which no plugin makes",
}

# With a plugin that is somebody else's there are dictionaries (cli/nginx/dictionaries.lua).
MINE = {"handler": "return { PRIORITY = 1, VERSION = '1.0.0' }"}

Labels = dict[str, str]


@pytest.fixture
def running(gateway: Start, upstream: Upstream) -> Gateway:
    """One with all options on, and more."""
    config = proxying("http://some")
    config["upstreams"] = [{"name": "some", "targets": [{"target": upstream.address}]}]
    config["plugins"] = [{"name": "prometheus", "config": EVERYTHING}]
    return gateway(config, metrics_series=100, kong_plugins={"mine": MINE}, plugins=None)


@pytest.fixture
def shown(running: Gateway) -> dict[str, list[tuple[Labels, float]]]:
    """Samples after a request of a service whose host is an upstream, by their name."""
    assert running.get("/").status_code == 200
    found: dict[str, list[tuple[Labels, float]]] = {}

    def is_counted() -> bool:
        found.clear()
        found.update(samples(running))
        return "kong_http_requests_total" in found

    wait_until(is_counted, "the request to be counted")
    return found


def samples(running: Gateway) -> dict[str, list[tuple[Labels, float]]]:
    """Of one scrape."""
    with Wire(running.admin_port) as wire:
        families = parse(wire.ask("/metrics").text, is_open=False)
    out: dict[str, list[tuple[Labels, float]]] = {}
    for family in families.values():
        for (name, labels), value in family.samples.items():
            out.setdefault(name, []).append((dict(labels), value))
    return out


def test_each_panel_finds_what_it_asks_for(shown: dict[str, list[tuple[Labels, float]]]) -> None:
    lacking = [
        f"{row}: {name} {sorted(labels - one.keys())}"
        for row, asked in ASKED.items()
        for name, labels in asked.items()
        for one, _ in shown.get(name) or [({}, 0.0)]
        if not labels <= one.keys()
    ]
    assert not lacking
    for (name, label), values in VALUES.items():
        assert {one[label] for one, _ in shown[name]} >= values, name
    for name, label in NOT_THERE:
        assert not any(label in one for one, _ in shown[name])
    assert not [name for name in shown if name.startswith(tuple(ELSEWHERE))]


def test_what_panels_make_of_two_is_one(shown: dict[str, list[tuple[Labels, float]]]) -> None:
    """Prometheus divides and subtracts samples with the same labels."""

    def by_labels(name: str, *left_out: str, **wanted: str) -> dict[Any, float]:
        return {
            tuple(sorted((k, v) for k, v in one.items() if k not in left_out)): value
            for one, value in shown[name]
            if wanted.items() <= one.items()
        }

    used = by_labels("kong_memory_lua_shared_dict_bytes")
    size = by_labels("kong_memory_lua_shared_dict_total_bytes")
    assert used.keys() == size.keys()
    assert all(0 < used[one] <= size[one] for one in size)
    health = "kong_upstream_target_health"
    healthy = by_labels(health, "state", state="healthy")
    for state in ("unhealthy", "dns_error"):
        assert by_labels(health, "state", state=state).keys() == healthy.keys()


def test_all_workers_have_a_lua_vm_where_there_are_dictionaries(running: Gateway) -> None:
    def pids() -> set[int]:
        found = samples(running)["kong_memory_workers_lua_vms_bytes"]
        assert all(value > 100_000 for _, value in found)
        assert len({one["pid"] for one, _ in found}) == len(found)
        return {int(one["pid"]) for one, _ in found}

    wanted = {running.control(), *running.workers()}
    wait_until(lambda: pids() == wanted, f"the workers {wanted}")
