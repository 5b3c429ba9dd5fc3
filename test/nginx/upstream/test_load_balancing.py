"""Upstreams with several targets: who gets how much, names with several addresses, IPv6."""

import os
import socket
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ports import needs_ipv6

import guard
from sluice import Gateway, Start, preloaded, proxying, sanitizers
from upstream import Upstream

NSS_WRAPPER = [
    path
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
    if (path := Path(folder) / "libnss_wrapper.so").exists()
]


def balanced(*targets: tuple[str, int], **upstream: object) -> dict[str, Any]:
    """One service at an upstream entity with these targets."""
    entity = {"name": "balanced", "targets": [{"target": t, "weight": w} for t, w in targets]}
    return proxying("http://balanced") | {"upstreams": [entity | upstream]}


def picks(running: Gateway, count: int) -> list[str]:
    """Who answered count requests, in order."""
    with running.wire() as wire:
        return [wire.ask("/").json()["upstream"] for _ in range(count)]


@pytest.mark.parametrize(
    "weights", [(100, 100, 100), (3, 1, 1), (50, 100, 25), (7, 0, 3), (1, 1000, 1), (0, 0, 5)]
)
def test_weights_are_exact_over_a_cycle(
    gateway: Start, servers: list[Upstream], weights: tuple[int, ...]
) -> None:
    targets = [(s.address, w) for s, w in zip(servers, weights, strict=True)]
    running = gateway(balanced(*targets))
    divisor = min(w for w in weights if w)
    cycle = [w // divisor for w in weights]
    if weights == (7, 0, 3):
        cycle = [7, 0, 3]
    wanted = {s.name: turns for s, turns in zip(servers, cycle, strict=True) if turns}
    for _ in range(2):
        assert Counter(picks(running, sum(cycle))) == wanted


def test_turns_are_spread_evenly(gateway: Start, servers: list[Upstream]) -> None:
    running = gateway(balanced((servers[0].address, 4), (servers[1].address, 2)))
    order = "".join(picks(running, 30))
    assert "bb" not in order
    assert "aaa" not in order


def test_two_services_share_the_rotation_of_an_upstream(
    gateway: Start, servers: list[Upstream]
) -> None:
    config = balanced((servers[0].address, 1), (servers[1].address, 1))
    config["services"].append(
        {"name": "second", "url": "http://balanced", "routes": [{"paths": ["/2"]}]}
    )
    running = gateway(config)
    order = [running.ask(target).json()["upstream"] for target in ("/1", "/2") * 5]
    assert Counter(order) == {"a": 5, "b": 5}


def test_workers_together_give_each_target_its_share(
    gateway: Start, servers: list[Upstream]
) -> None:
    targets = [(server.address, 1) for server in servers]
    running = gateway(balanced(*targets), workers=3)
    counted = Counter(running.ask("/").json()["upstream"] for _ in range(90))
    assert counted == {"a": 30, "b": 30, "c": 30}


def test_upstream_connections_are_pooled_for_each_target(
    gateway: Start, servers: list[Upstream]
) -> None:
    running = gateway(balanced(*[(server.address, 1) for server in servers]))
    assert Counter(picks(running, 60)) == {"a": 20, "b": 20, "c": 20}
    assert [server.connections for server in servers] == [1, 1, 1]


def test_host_header_is_the_targets(gateway: Start, servers: list[Upstream]) -> None:
    running = gateway(balanced(*[(server.address, 1) for server in servers]))
    picks(running, 3)
    assert [s.last.headers.get("host") for s in servers] == [s.address for s in servers]


def test_host_header_of_the_upstream_entity(gateway: Start, servers: list[Upstream]) -> None:
    targets = [(server.address, 1) for server in servers]
    running = gateway(balanced(*targets, host_header="inner.example.com"))
    picks(running, 3)
    assert {s.last.headers.get("host") for s in servers} == {"inner.example.com"}


def test_preserved_host_beats_both(gateway: Start, servers: list[Upstream]) -> None:
    config = balanced((servers[0].address, 1), host_header="inner.example.com")
    config["services"][0]["routes"][0]["preserve_host"] = True
    assert gateway(config).ask("/", headers={"Host": "outer"}).status == 200
    assert servers[0].last.headers.get("host") == "outer"


def test_reload_changes_the_targets(gateway: Start, servers: list[Upstream]) -> None:
    running = gateway(balanced((servers[0].address, 1)))
    assert set(picks(running, 4)) == {"a"}
    running.reload(balanced((servers[1].address, 1), (servers[2].address, 1)))
    assert set(picks(running, 4)) == {"b", "c"}


# Names and IPv6


def test_name_of_the_system_resolver(gateway: Start) -> None:
    infos = socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
    with ExitStack() as stack:
        first = stack.enter_context(Upstream(name=addresses[0], host=addresses[0]))
        for address in addresses[1:]:
            stack.enter_context(Upstream(name=address, host=address, port=first.port))
        running = gateway(proxying(f"http://localhost:{first.port}"))
        assert set(picks(running, 2 * len(addresses))) == set(addresses)
        assert first.last.headers.get("host") == f"localhost:{first.port}"


@pytest.mark.skipif(not NSS_WRAPPER, reason="needs libnss-wrapper (apt)")
def test_every_address_of_a_name_is_used(gateway: Start) -> None:
    hosts = guard.folder("sluice-hosts-") / "hosts"
    addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    hosts.write_text("".join(f"{address} many.test\n" for address in addresses))
    env = {"LD_PRELOAD": preloaded(NSS_WRAPPER[0]), "NSS_WRAPPER_HOSTS": str(hosts)}
    with ExitStack() as stack:
        first = stack.enter_context(Upstream(name=addresses[0], host=addresses[0]))
        for address in addresses[1:]:
            stack.enter_context(Upstream(name=address, host=address, port=first.port))
        # nginx keeps of the environment what it is named; the control worker asks, too.
        kept = [*sanitizers(), "NSS_WRAPPER_HOSTS"]
        running = gateway(proxying(f"http://many.test:{first.port}"), env=env, vault_env=kept)
        assert Counter(picks(running, 9)) == dict.fromkeys(addresses, 3)
        assert first.last.headers.get("host") == f"many.test:{first.port}"

        both = balanced((f"many.test:{first.port}", 2), (f"127.0.0.1:{first.port}", 3))
        running.reload(both)
        assert Counter(picks(running, 9)) == {"127.0.0.1": 5, "127.0.0.2": 2, "127.0.0.3": 2}


@needs_ipv6
@pytest.mark.parametrize("how", ["url", "host", "target"])
def test_ipv6_upstream(gateway: Start, how: str) -> None:
    with Upstream(host="::1") as upstream:
        if how == "url":
            config = proxying(upstream)
        elif how == "host":
            config = proxying("http://x", service={"host": "::1", "port": upstream.port})
            del config["services"][0]["url"]
        else:
            config = balanced((upstream.address, 1))
        assert gateway(config).ask("/").status == 200
        assert upstream.last.headers.get("host") == upstream.address


@needs_ipv6
def test_ipv6_listener(gateway: Start, upstream: Upstream) -> None:
    running = Gateway(proxying(upstream))
    port = running.ports.take()
    running.settings["proxy_listen"] += f", [::1]:{port}"
    with running:
        from wire import Wire

        with Wire(port, host="::1") as wire:
            assert wire.ask("/").status == 200
        assert upstream.last.headers.get("x-forwarded-for") == "::1"
        assert upstream.last.headers.get("x-forwarded-port") == str(port)


def test_workers_setting(gateway: Start, upstream: Upstream) -> None:
    assert len(gateway(proxying(upstream), workers=3).workers()) == 3
    running = gateway(proxying(upstream), workers="auto")
    assert 1 <= len(running.workers()) <= len(os.sched_getaffinity(0))
