"""Turns that all workers take together, and retries: what the balancer in C owes its targets."""

import itertools
import os
import random
import signal
import threading
from collections import Counter
from contextlib import ExitStack
from functools import partial
from typing import Any

import httpx
import pytest
from changes import change
from seeds import seed_of
from threads import beside

from sluice import Gateway, Start, proxying
from upstream import Blackhole, DeadPort, Exchange, Upstream
from wire import DEADLINE, wait_until

REFUSED = r"connect\(\) failed \(111: "
TIMED_OUT = r"upstream timed out \(110: "

LOG = {"access_log_format": "$upstream_addr"}

WORKER_DIGITS = 24
"""Of a request id, those that each worker has drawn when it started."""


def balanced(*targets: tuple[str, int], name: str = "balanced", **service: object) -> dict:
    """One service at an upstream entity with these targets."""
    entity = {"name": name, "targets": [{"target": t, "weight": w} for t, w in targets]}
    return proxying(f"http://{name}", service=service) | {"upstreams": [entity]}


def shares(running: Gateway, count: int, clients: int = 10) -> tuple[Counter[str], set[str]]:
    """Who has answered so many requests of several clients at a time, and by which workers."""
    who: Counter[str] = Counter()
    workers: set[str] = set()
    barrier = threading.Barrier(clients)

    def ask() -> None:
        with running.wire() as wire:
            # So that connections wait together, and each worker accepts some.
            barrier.wait(DEADLINE)
            for _ in range(count // clients):
                reply = wire.ask("/")
                who[reply.json()["upstream"]] += 1
                workers.add((reply.headers.get("x-kong-request-id") or "")[:WORKER_DIGITS])

    with beside(*[ask] * clients):
        pass
    assert who.total() == count
    return who, workers


# Turns


def test_weights_are_exact_over_all_workers(gateway: Start, servers: list[Upstream]) -> None:
    config = balanced((servers[0].address, 3), (servers[1].address, 1))
    running = gateway(config, workers=4)
    seen: set[str] = set()

    def several_have_answered() -> bool:
        who, workers = shares(running, 400)
        assert who == {"a": 300, "b": 100}
        seen.update(workers)
        return len(seen) > 1

    # A busy machine may wake one worker for all connections.
    wait_until(several_have_answered, "requests of more than one worker")


def test_a_reload_keeps_the_position(gateway: Start, servers: list[Upstream]) -> None:
    """Ten turns are a cycle, whoever takes them."""
    running = gateway(balanced((servers[0].address, 7), (servers[1].address, 3)))
    for before in (3, 5, 8):
        who = [running.ask("/").json()["upstream"] for _ in range(before)]
        running.reload()
        who += [running.ask("/").json()["upstream"] for _ in range(10 - before)]
        assert Counter(who) == {"a": 7, "b": 3}


def test_a_binary_upgrade_keeps_the_position(gateway: Start, servers: list[Upstream]) -> None:
    running = gateway(balanced((servers[0].address, 7), (servers[1].address, 3)), workers=2)
    who = [running.ask("/").json()["upstream"] for _ in range(3)]
    old, prefix = running.master(), running.settings["prefix"]
    running.start_new_master()
    # Both masters' workers take turns.
    who += [running.ask("/").json()["upstream"] for _ in range(4)]
    os.kill(old, signal.SIGQUIT)
    wait_until(lambda: not (prefix / "run/nginx.pid.oldbin").exists(), "the old one to leave")
    who += [running.ask("/").json()["upstream"] for _ in range(3)]
    assert Counter(who) == {"a": 7, "b": 3}


def test_weights_change_without_a_dropped_connection(
    gateway: Start, servers: list[Upstream]
) -> None:
    """Clients keep theirs over many changes; after the last one its weights are exact."""
    running = gateway(balanced((servers[0].address, 1), (servers[1].address, 1)), workers=2)
    stop = threading.Event()
    problems: list[object] = []
    answered = [0, 0, 0]

    def ask(number: int) -> None:
        try:
            with running.wire() as wire:
                while not stop.is_set():
                    reply = wire.ask("/")
                    assert (reply.status, reply.headers.get("connection")) == (200, "keep-alive")
                    answered[number] += 1
        except Exception as problem:
            problems.append(problem)

    with beside(*[partial(ask, number) for number in range(3)], until=stop):
        for weight in range(2, 12):
            before = sum(answered)
            change(running, balanced((servers[0].address, weight), (servers[1].address, 1)))
            wait_until(lambda before=before: problems or sum(answered) > before, "requests between")
    assert not problems
    assert shares(running, 120)[0] == {"a": 110, "b": 10}


def test_upstreams_without_a_shared_position_take_turns_in_each_worker(
    gateway: Start, servers: list[Upstream]
) -> None:
    """16,384 upstreams have one."""
    config = balanced((servers[0].address, 3), (servers[1].address, 1))
    others = [{"name": f"other-{number}"} for number in range(16_384)]
    config["upstreams"] = [*others, *config["upstreams"]]
    running = gateway(config)
    assert Counter(running.ask("/").json()["upstream"] for _ in range(40)) == {"a": 30, "b": 10}


# Retries


def tried(running: Gateway, count: int) -> list[list[str]]:
    """The addresses that each of so many requests has tried, of the access log."""
    lines = wait_until(
        lambda: (log := running.access_log().splitlines()) and len(log) >= count and log,
        "the access log",
    )
    return [line.split(", ") for line in lines[-count:]]


def test_no_target_is_tried_twice_while_one_is_left(gateway: Start, upstream: Upstream) -> None:
    """Twenty of them are dead, and have nearly all the weight."""
    with ExitStack() as stack:
        dead = [stack.enter_context(DeadPort()) for _ in range(20)]
        targets = [(port.address, 1000) for port in dead]
        running = gateway(balanced(*targets, (upstream.address, 1), retries=20), **LOG)
        running.expect_log(REFUSED, range(20, 401))
        for number in range(20):
            assert running.ask(f"/{number}", "PUT", body=b"kept").json()["length"] == 4
        requests = tried(running, 20)
    for addresses in requests:
        assert addresses[-1] == upstream.address
        assert len(set(addresses)) == len(addresses)
    assert max(len(addresses) for addresses in requests) > 16


def test_two_targets_of_one_address_are_one_to_a_retry(gateway: Start, upstream: Upstream) -> None:
    """A name and its address, each with its own Host header."""
    with DeadPort() as dead:
        names = [(f"localhost:{dead.port}", 500), (dead.address, 500)]
        running = gateway(balanced(*names, (upstream.address, 1), retries=2), **LOG)
        running.expect_log(REFUSED, range(9, 21))
        assert [running.ask("/").status for _ in range(10)] == [200] * 10
        for addresses in tried(running, 10):
            assert len(set(addresses)) == len(addresses)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("weight", [1, 7])
def test_when_all_were_tried_they_are_tried_again(gateway: Start, count: int, weight: int) -> None:
    """In rounds: each once, then each again, and none twice in a row."""
    tries = 4 * count + 1
    with ExitStack() as stack:
        dead = [stack.enter_context(DeadPort()).address for _ in range(count)]
        targets = [(dead[0], weight), *((address, 1) for address in dead[1:])]
        running = gateway(balanced(*targets, retries=tries - 1), **LOG)
        running.expect_log(REFUSED, 3 * tries)
        assert [running.ask("/").status for _ in range(3)] == [502] * 3
        requests = tried(running, 3)
    for addresses in requests:
        assert len(addresses) == tries
        for at in range(0, tries - 1, count):
            assert set(addresses[at : at + count]) == set(dead), addresses
        if count > 1:
            assert all(one != two for one, two in itertools.pairwise(addresses)), addresses


def test_tries_with_other_hosts_take_bounded_memory(gateway: Start) -> None:
    """A try that goes to another name writes the request anew."""
    with DeadPort() as dead:
        names = [(f"localhost:{dead.port}", 2), (dead.address, 1)]
        running = gateway(balanced(*names, retries=2000), log_level="error", **LOG)
        running.expect_log(REFUSED, range(256, 1000))
        running.expect_log("no live upstreams", 1)
        big = [(f"X-{number}", "x" * 7000) for number in range(4)]
        assert running.ask("/", headers=big).status == 502
        (addresses,) = tried(running, 1)
    assert len(addresses) < 1000


def test_tries_are_bounded_whatever_a_service_wants(gateway: Start) -> None:
    """Those that are refused at once hold the worker up."""
    with DeadPort() as dead:
        running = gateway(balanced((dead.address, 1), retries=32767), log_level="error", **LOG)
        running.expect_log(REFUSED, range(900, 1100))
        assert running.ask("/").status == 502
        (addresses,) = tried(running, 1)
    assert len(addresses) == 1000


def test_a_target_that_is_removed_during_a_retry(gateway: Start, servers: list[Upstream]) -> None:
    """The request goes on with the targets it began with; the next one has those that are live."""
    with Blackhole() as hole:
        everybody = [(hole.address, 1000), *((server.address, 1) for server in servers[:2])]
        timeout = {"connect_timeout": 2000, "retries": 2}
        running = gateway(balanced(*everybody, **timeout), workers=1)
        running.expect_log(TIMED_OUT, 1)
        replies: list[Any] = []
        waiting = threading.Thread(target=lambda: replies.append(running.ask("/")))
        waiting.start()
        wait_until(lambda: "SYN" in states_of(hole.port), "the first try")
        change(running, balanced((servers[2].address, 1), **timeout))
        assert {running.ask("/").json()["upstream"] for _ in range(5)} == {"c"}
        waiting.join(DEADLINE)
    assert replies[0].status == 200
    assert replies[0].json()["upstream"] in "ab"


def states_of(port: int) -> str:
    """ "SYN" where somebody waits to be connected to a port."""
    with open("/proc/net/tcp") as table:
        for line in table:
            fields = line.split()
            if fields[2].endswith(f":{port:04X}") and fields[3] == "02":
                return "SYN"
    return ""


# Changes


def test_random_changes_under_load(gateway: Start, servers: list[Upstream]) -> None:
    """Upstreams, targets and services come and go while requests run and are tried again."""
    seed = seed_of("balancer")
    chance = random.Random(seed)
    stop = threading.Event()
    problems: list[object] = []

    def slow(exchange: Exchange) -> None:
        exchange.read_body()
        exchange.reply(200, {}, b"slow")

    servers[2].handler = slow
    with DeadPort() as dead:

        def some() -> dict[str, Any]:
            places = [(server.address, chance.choice([1, 2, 100])) for server in servers]
            targets = chance.sample(places, chance.randint(1, 3))
            if chance.random() < 0.5:
                targets.append((dead.address, chance.choice([1, 3])))
            config = balanced(*targets, name=chance.choice(["balanced", "other"]), retries=3)
            if chance.random() < 0.3:
                config["upstreams"][0]["host_header"] = "inner.example"
            for number in range(chance.randint(0, 5)):
                more = {"name": f"more-{number}", "url": servers[0].url, "path": f"/{number}"}
                del more["url"]
                host, _, port = servers[0].address.rpartition(":")
                more |= {"host": host, "port": int(port)}
                config["services"].append(more)
            return config

        running = gateway(some(), workers=2)
        running.expect_log(REFUSED, range(0, 100_000))

        def ask() -> None:
            try:
                with httpx.Client(base_url=running.proxy, trust_env=False) as client:
                    while not stop.is_set():
                        answer = client.put("/", content=b"body", timeout=DEADLINE)
                        assert answer.status_code == 200, answer.text
            except Exception as problem:
                problems.append(problem)

        with beside(*[ask] * 4, until=stop):
            for _ in range(40):
                change(running, some())
    assert not problems, f"seed {seed}: {problems}"
