"""The memory of the rate-limiting plugin: full, flooded, shared with rules that are gone."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest
from rate_limits import PERIODS, early_in_the_window, limited, told

from sluice import Gateway
from upstream import Upstream
from wire import wait_until

Start = Callable[..., Gateway]

JSON = {"Accept": "application/json"}

# Fills the shared memory with entries of twice a counter's size, 16 to a page, and then uses them
# in such an order that the oldest ones lie on different pages. nginx drops up to 30 of the oldest
# to make room, but no page comes free.
HOG = """
local filled = false
return {
    name = "hog",
    version = "1.0.0",
    priority = 5000,
    schema = { name = "hog", fields = { { config = { type = "record", fields = {} } } } },
    access = function()
        if filled or ngx.var.http_x_hog == nil then
            return
        end
        filled = true
        local dict = ngx.shared.sluice_rate_limiting
        local value, count = ("x"):rep(120), 0
        while dict:safe_set(("%08d"):format(count), value) do
            count = count + 1
        end
        for place = 0, 15 do
            for i = place, count - 1, 16 do
                dict:get(("%08d"):format(i))
            end
        end
        -- What is left on pages of a counter's size.
        while dict:safe_set(("%08d"):format(count), 1) do
            count = count + 1
        end
    end,
}
"""


@pytest.mark.parametrize("fault_tolerant", [True, False])
def test_a_full_memory(gateway: Start, upstream: Upstream, fault_tolerant: bool) -> None:
    config = limited(upstream, hour=1, fault_tolerant=fault_tolerant)
    config["plugins"].append({"name": "hog"})
    options = {"plugins": {"hog": HOG}, "rate_limiting_memory": "128k"}
    running = gateway(config, env={"SLUICE_PLUGINS": "bundled,hog"}, **options)
    # Said once, not for every request.
    running.expect_log("a request was not counted: no memory, raise rate_limiting_memory")
    running.expect_log("ngx_slab_alloc.. failed: no memory", range(0, 1000))
    for _ in range(3):
        reply = running.ask("/api", headers=JSON | {"X-Hog": "yes"})
        assert told(reply) == {}
        assert reply.status == (200 if fault_tolerant else 500)
        if not fault_tolerant:
            assert reply.json()["message"] == "An unexpected error occurred"
    assert len(upstream.requests) == (3 if fault_tolerant else 0)


FLOOD = 3000

# Invented identifiers, and the settings under which a client can invent them.
INVENTED: dict[str, tuple[dict[str, str], Callable[[int], dict[str, str]]]] = {
    "header": (
        {"limit_by": "header", "header_name": "X-Tenant"},
        lambda i: {"X-Tenant": f"flood-{i}"},
    ),
    "long header": (
        {"limit_by": "header", "header_name": "X-Tenant"},
        lambda i: {"X-Tenant": f"flood-{i}" + "x" * 200},
    ),
    "IPv4": ({"limit_by": "ip"}, lambda i: {"X-Real-IP": f"10.0.{i // 256}.{i % 256}"}),
    "IPv6": ({"limit_by": "ip"}, lambda i: {"X-Real-IP": f"2001:db8::{i:x}"}),
}


@pytest.mark.parametrize("kind", INVENTED)
@pytest.mark.parametrize("fault_tolerant", [True, False])
def test_invented_identifiers_reset_no_limit(
    gateway: Start, upstream: Upstream, kind: str, fault_tolerant: bool
) -> None:
    upstream.answer(200)
    by, invent = INVENTED[kind]
    common = {"hour": 2, "day": 2, "fault_tolerant": fault_tolerant}
    rule = {"name": "rate-limiting", "config": common | by}
    config = limited(upstream, **common)
    config["services"][0]["routes"].append({"name": "b", "paths": ["/b"], "plugins": [rule]})
    running = gateway(config, rate_limiting_memory="128k", trusted_ips="127.0.0.0/8")
    running.expect_log("identifiers than its share of memory holds", range(1, 20))
    early_in_the_window(3600, 60)
    one, other = {"X-Real-IP": "192.0.2.1"}, {"X-Real-IP": "192.0.2.2"}
    own = invent(FLOOD)
    with running.wire() as wire:

        def ask_as(path: str, headers: dict[str, str]) -> list[int]:
            return [wire.ask(path, headers=headers).status for _ in range(3)]

        assert ask_as("/api", one) == ask_as("/b", own) == [200, 200, 429]
        flood = [wire.ask("/b", headers=invent(i)).status for i in range(FLOOD)]
        # No limit that was reached, neither of this rule nor of the other, begins again ...
        assert ask_as("/api", one) == [429] * 3
        assert ask_as("/b", own) == [429] * 3
        # ... and the other rule counts on, for those it has not seen yet.
        assert ask_as("/api", other) == [200, 200, 429]
    # Those that found no room share one counter: two pass, then none.
    assert set(flood) == {200, 429}
    first = flood.index(429)
    assert flood[first:] == [429] * (FLOOD - first)
    # Two rules with two windows each: a rule's share is an eighth, and half is for who needs it.
    assert FLOOD > first > 128 * 1024 // 128 // 8 / 2


def test_that_nothing_is_counted_is_told_after_a_flood(gateway: Start, upstream: Upstream) -> None:
    upstream.answer(200)
    by = {"limit_by": "header", "header_name": "X-Tenant"}
    config = limited(upstream, **by, hour=1)
    rule = {"name": "rate-limiting", "config": by | {"day": 1}}
    config["services"][0]["routes"].append({"name": "b", "paths": ["/b"], "plugins": [rule]})
    config["plugins"].append({"name": "hog"})
    options = {"plugins": {"hog": HOG}, "rate_limiting_memory": "128k"}
    running = gateway(config, env={"SLUICE_PLUGINS": "bundled,hog"}, **options)
    running.expect_log("identifiers than its share of memory holds", range(1, 20))
    running.expect_log("a request was not counted: no memory, raise rate_limiting_memory")
    running.expect_log("ngx_slab_alloc.. failed: no memory", range(0, 1000))
    with running.wire() as wire:
        flood = [wire.ask("/api", headers={"X-Tenant": str(i)}).status for i in range(FLOOD)]
        assert set(flood) == {200, 429}
        assert told(wire.ask("/b", headers={"X-Tenant": "0", "X-Hog": "yes"})) == {}


def test_rules_that_are_gone_leave_room_to_count(gateway: Start, upstream: Upstream) -> None:
    upstream.answer(200)
    by = {"limit_by": "header", "header_name": "X-Tenant"}

    def rule(number: int) -> dict[str, Any]:
        config = limited(upstream, **by, day=2)
        config["plugins"][0]["id"] = f"00000000-0000-4000-8000-{number:012}"
        return config

    running = gateway(rule(0), rate_limiting_memory="128k")
    running.expect_log("identifiers than its share of memory holds", range(1, 20))
    early_in_the_window(86400, 60)
    for number in range(12):
        if number > 0:
            running.reload(rule(number))
        with running.wire() as wire:
            flood = [wire.ask("/api", headers={"X-Tenant": str(i)}) for i in range(700)]
        assert all(told(reply) for reply in flood)
        assert flood[-1].status == 429


# Leaves a third of the memory free, and takes that for two seconds.
LODGER = """
local filled = false
return {
    name = "lodger",
    version = "1.0.0",
    priority = 5000,
    schema = { name = "lodger", fields = { { config = { type = "record", fields = {} } } } },
    access = function()
        local dict, count = ngx.shared.sluice_rate_limiting, 0
        local function fill(part, seconds)
            while dict:free_space() > dict:capacity() * part do
                count = count + 1
                dict:safe_add(ngx.md5_bin(tostring(count)), 1, seconds)
            end
        end
        if not filled then
            fill(1 / 3, 3600)
            fill(1 / 20, 2)
        end
        filled = true
    end,
}
"""


def test_a_share_outlives_a_shortage(gateway: Start, upstream: Upstream) -> None:
    upstream.answer(200)
    config = limited(upstream, limit_by="header", header_name="X-Tenant", day=1)
    config["plugins"].append({"name": "lodger"})
    options = {"plugins": {"lodger": LODGER}, "rate_limiting_memory": "128k"}
    running = gateway(config, env={"SLUICE_PLUGINS": "bundled,lodger"}, **options)
    running.expect_log("identifiers than its share of memory holds", range(1, 20))
    early_in_the_window(86400, 60)
    number = itertools.count()

    def ask() -> int:
        return running.ask("/api", headers={"X-Tenant": f"tenant-{next(number)}"}).status

    assert {ask() for _ in range(300)} == {200, 429}
    wait_until(lambda: ask() == 200, "room for a tenant's own counter")
    assert {ask() for _ in range(50)} == {200}


# Leaves less free than half of the memory, none of it expired, and tells what looking for expired
# counters takes of the processor's time, the last look aside.
FILLER = """
local dict, took, last
return {
    name = "filler",
    version = "1.0.0",
    priority = 5000,
    schema = { name = "filler", fields = { { config = { type = "record", fields = {} } } } },
    access = function()
        if not dict then
            dict, took, last = ngx.shared.sluice_rate_limiting, 0, 0
            local count = dict:capacity() / 2 / 128
            for i = 1, count do
                dict:safe_add(ngx.md5_bin(tostring(i)), 1, 3600)
            end
            -- Used in another order than they lie in memory.
            for i = 1, count do
                dict:incr(ngx.md5_bin(tostring(i * 7919 % count)), 1)
            end
            local methods = getmetatable(dict).__index
            local flush_expired = methods.flush_expired
            methods.flush_expired = function(...)
                local before = os.clock()
                flush_expired(...)
                took, last = took + last, os.clock() - before
            end
        end
        ngx.header["X-Took"] = took
    end,
}
"""


def test_looking_for_what_has_ended_costs_little(gateway: Start, upstream: Upstream) -> None:
    upstream.answer(200)
    by = {"limit_by": "header", "header_name": "X-Tenant"}
    config = limited(upstream, **by, hour=1)
    # Other rules, so that the share of one is soon used.
    rule = {"name": "rate-limiting", "config": by | dict.fromkeys(PERIODS, 1)}
    config["services"][0]["routes"] += [
        {"name": f"r{number}", "paths": [f"/{number}"], "plugins": [rule]} for number in range(200)
    ]
    config["plugins"].append({"name": "filler"})
    options = {"plugins": {"filler": FILLER}, "rate_limiting_memory": "128m"}
    running = gateway(config, env={"SLUICE_PLUGINS": "bundled,filler"}, **options)
    running.expect_log("identifiers than its share of memory holds", range(1, 20))
    early_in_the_window(3600, 60)
    with running.wire() as wire:
        for number in range(200):
            wire.ask(f"/{number}", headers={"X-Tenant": "first"})
    running.ask("/api", headers={"X-Tenant": "first"})
    begun, number = time.monotonic(), 0
    while time.monotonic() < begun + 4:
        number += 1
        reply = running.ask("/api", headers={"X-Tenant": str(number)})
    passed = time.monotonic() - begun
    assert reply.status == 429
    assert float(reply.headers.get("x-took") or 0) <= 0.02 * passed


def test_more_windows_than_there_is_memory_for_are_told(gateway: Start, upstream: Upstream) -> None:
    config = limited(upstream, **dict.fromkeys(PERIODS, 5))
    rules = config["plugins"] * 20
    config["plugins"] = []
    config["services"][0]["routes"] = [
        {"name": f"r{number}", "paths": [f"/{number}"], "plugins": [rule]}
        for number, rule in enumerate(rules)
    ]
    running = gateway(config, rate_limiting_memory="128k")
    # By a worker that has met as many.
    running.expect_log("has no share for each window of all rules, raise it")
    with running.wire() as wire:
        for number in range(20):
            wire.ask(f"/{number}")


def test_what_has_ended_makes_room(gateway: Start, upstream: Upstream) -> None:
    upstream.answer(200)
    by = {"limit_by": "header", "header_name": "X-Tenant"}
    config = limited(upstream, **by, second=1)
    rule = {"name": "rate-limiting", "config": by | {"day": 1}}
    config["services"][0]["routes"].append({"name": "b", "paths": ["/b"], "plugins": [rule]})
    running = gateway(config, rate_limiting_memory="128k")
    with running.wire() as wire:
        # Lives on, and so stands before all that ends later.
        assert wire.ask("/b", headers={"X-Tenant": "0"}).status == 200
        # Many more than memory holds, but few in a second.
        for i in range(1200):
            if i % 200 == 0:
                early_in_the_window(1, 1)
            assert wire.ask("/api", headers={"X-Tenant": str(i)}).status == 200
        assert wire.ask("/b", headers={"X-Tenant": "0"}).status == 429
