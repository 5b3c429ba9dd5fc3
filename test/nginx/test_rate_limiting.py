"""The rate-limiting plugin: exact counts, whose they are, and what clients are told."""

from __future__ import annotations

import calendar
import concurrent.futures
import datetime
import time
from collections.abc import Callable
from typing import Any

import pytest

from sluice import Gateway, proxying
from upstream import Upstream
from wire import Reply, wait_until

Start = Callable[..., Gateway]

JSON = {"Accept": "application/json"}
PERIODS = ("second", "minute", "hour", "day", "month", "year")
LIMIT_HEADERS = ("ratelimit-", "x-ratelimit-", "retry-after")


def limited(upstream: Upstream, **config: Any) -> dict[str, Any]:
    """One route with a limit by address, unless told otherwise."""
    config.setdefault("limit_by", "ip")
    plugin = {"name": "rate-limiting", "config": config}
    return proxying(upstream, paths=["/api"]) | {"plugins": [plugin]}


def with_consumers(config: dict[str, Any]) -> dict[str, Any]:
    """The same behind key-auth, with keys a1 and a2 of alice and b1 of bob."""
    config["consumers"] = [
        {"username": "alice", "keyauth_credentials": [{"key": "a1"}, {"key": "a2"}]},
        {"username": "bob", "keyauth_credentials": [{"key": "b1"}]},
        {"username": "nobody"},
    ]
    config["plugins"].append({"name": "key-auth", "config": {"anonymous": "nobody"}})
    return config


def early_in_the_window(seconds: int, room: float) -> None:
    """Waits, if need be, until a window of so many seconds has room seconds left."""
    left = seconds - time.time() % seconds
    if left < room:
        time.sleep(left + 0.05)


def told(reply: Reply) -> dict[str, str]:
    """The rate limit headers, each at most once."""
    found = {n: v for n, v in reply.headers if n.lower().startswith(LIMIT_HEADERS)}
    assert len(found) == sum(n.lower().startswith(LIMIT_HEADERS) for n, _ in reply.headers)
    return found


def window_end(period: str, now: float) -> float:
    """When the calendar's window ends, in UTC."""
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    if period == "month":
        days = calendar.monthrange(moment.year, moment.month)[1] - moment.day + 1
    elif period == "year":
        days = (datetime.date(moment.year + 1, 1, 1) - moment.date()).days
    else:
        length = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}[period]
        return now - now % length + length
    return now - now % 86400 + days * 86400


def test_a_limit_holds_and_is_told(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, minute=3))
    early_in_the_window(60, 10)
    for left in (2, 1, 0):
        reply = running.ask("/api")
        assert reply.status == 200
        headers = told(reply)
        reset = int(headers.pop("RateLimit-Reset"))
        assert abs(time.time() + reset - window_end("minute", time.time())) < 2
        assert headers == {
            "RateLimit-Limit": "3",
            "RateLimit-Remaining": str(left),
            "X-RateLimit-Limit-Minute": "3",
            "X-RateLimit-Remaining-Minute": str(left),
        }
    for _ in range(2):
        reply = running.ask("/api", headers=JSON)
        assert (reply.status, reply.json()["message"]) == (429, "API rate limit exceeded")
        headers = told(reply)
        assert headers["Retry-After"] == headers["RateLimit-Reset"]
        assert headers["RateLimit-Remaining"] == headers["X-RateLimit-Remaining-Minute"] == "0"
    assert len(upstream.requests) == 3


def test_a_window_ends(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, second=2))

    def within_a_second() -> bool:
        early_in_the_window(1, 1)
        begun = int(time.time())
        statuses = [running.ask("/api").status for _ in range(3)]
        if int(time.time()) != begun:
            return False
        assert statuses == [200, 200, 429]
        return True

    for _ in range(2):
        wait_until(within_a_second, "three requests within a second")


@pytest.mark.parametrize("period", PERIODS[1:])
def test_windows_follow_the_calendar(gateway: Start, upstream: Upstream, period: str) -> None:
    running = gateway(limited(upstream, **{period: 5}))
    headers = told(running.ask("/api"))
    assert headers[f"X-RateLimit-Limit-{period.title()}"] == "5"
    assert headers[f"X-RateLimit-Remaining-{period.title()}"] == "4"
    now = time.time()
    ends = (window_end(period, now), window_end(period, now - 2))
    assert min(abs(now + int(headers["RateLimit-Reset"]) - end) for end in ends) < 3


def test_several_windows(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, minute=2, hour=5, day=5))
    early_in_the_window(3600, 10)
    early_in_the_window(60, 10)
    headers = told(running.ask("/api"))
    assert headers["X-RateLimit-Remaining-Minute"] == headers["RateLimit-Remaining"] == "1"
    assert headers["X-RateLimit-Remaining-Hour"] == headers["X-RateLimit-Remaining-Day"] == "4"
    assert headers["RateLimit-Limit"] == "2"
    assert int(headers["RateLimit-Reset"]) <= 60
    assert running.ask("/api").status == 200
    for _ in range(10):
        refused = running.ask("/api")
        assert refused.status == 429
        # A refused request takes nothing from the other windows.
        assert told(refused)["X-RateLimit-Remaining-Hour"] == "3"
        assert told(refused)["RateLimit-Limit"] == "2"


def test_the_longest_full_window_says_when_to_come_back(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, minute=1, hour=1))
    early_in_the_window(3600, 10)
    early_in_the_window(60, 10)
    assert running.ask("/api").status == 200
    refused = running.ask("/api")
    assert refused.status == 429
    end = window_end("hour", time.time())
    assert abs(time.time() + int(told(refused)["Retry-After"]) - end) < 2


def test_a_full_long_window_spares_the_short_one(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, minute=5, hour=5))
    early_in_the_window(60, 10)
    assert [running.ask("/api").status for _ in range(5)] == [200] * 5
    for _ in range(3):
        assert told(running.ask("/api"))["X-RateLimit-Remaining-Minute"] == "0"


def test_exactly_as_many_pass_as_the_limit_says(gateway: Start, upstream: Upstream) -> None:
    limit, clients, each = 137, 16, 40
    upstream.answer(200)
    running = gateway(limited(upstream, hour=limit, day=1000), workers=2)
    early_in_the_window(3600, 60)

    def client(_: int) -> list[int]:
        statuses = []
        for _ in range(each // 10):
            with running.wire() as wire:
                statuses += [wire.ask("/api").status for _ in range(10)]
        return statuses

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        statuses = [s for part in pool.map(client, range(clients)) for s in part]
    assert sorted(set(statuses)) == [200, 429]
    assert statuses.count(200) == limit
    assert len(statuses) == clients * each
    assert len(upstream.requests) == limit
    # The day's window holds those that passed, and none that were refused.
    assert told(running.ask("/api"))["X-RateLimit-Remaining-Day"] == str(1000 - limit)


def test_workers_share_the_counters_over_a_reload(gateway: Start, upstream: Upstream) -> None:
    config = limited(upstream, hour=4)
    running = gateway(config, workers=2)
    early_in_the_window(3600, 15)
    assert [running.ask("/api").status for _ in range(3)] == [200] * 3
    running.reload(config)
    assert [running.ask("/api").status for _ in range(2)] == [200, 429]


def ask_all(running: Gateway, *requests: dict[str, str]) -> list[int]:
    """The statuses of requests with these headers, in order."""
    return [running.ask("/api", headers=headers).status for headers in requests]


A1, A2, B1 = {"apikey": "a1"}, {"apikey": "a2"}, {"apikey": "b1"}


def test_by_consumer(gateway: Start, upstream: Upstream) -> None:
    running = gateway(with_consumers(limited(upstream, limit_by="consumer", hour=2)))
    early_in_the_window(3600, 10)
    assert ask_all(running, A1, A2, A1, B1, B1, B1) == [200, 200, 429, 200, 200, 429]
    # The anonymous consumer is one as well.
    assert ask_all(running, {}, {}, {}) == [200, 200, 429]


def test_by_consumer_is_by_default(gateway: Start, upstream: Upstream) -> None:
    config = with_consumers(limited(upstream, hour=1))
    del config["plugins"][0]["config"]["limit_by"]
    running = gateway(config)
    early_in_the_window(3600, 10)
    assert ask_all(running, A1, B1, A1) == [200, 200, 429]


def test_by_credential(gateway: Start, upstream: Upstream) -> None:
    running = gateway(with_consumers(limited(upstream, limit_by="credential", hour=1)))
    early_in_the_window(3600, 10)
    assert ask_all(running, A1, A2, A1, B1, A2) == [200, 200, 429, 200, 429]
    # Nobody has no credential: the address counts.
    assert ask_all(running, {}, {}) == [200, 429]


def test_by_address(gateway: Start, upstream: Upstream) -> None:
    config = limited(upstream, hour=2)
    running = gateway(config, trusted_ips="127.0.0.0/8", real_ip_header="X-Forwarded-For")
    early_in_the_window(3600, 10)
    one, other = {"X-Forwarded-For": "192.0.2.1"}, {"X-Forwarded-For": "192.0.2.2"}
    assert ask_all(running, one, one, one, other) == [200, 200, 429, 200]


def test_by_service(gateway: Start, upstream: Upstream) -> None:
    config = limited(upstream, limit_by="service", hour=2)
    config["services"].append(
        {"name": "b", "url": upstream.url, "routes": [{"name": "b", "paths": ["/b"]}]}
    )
    config["services"][0]["routes"].append({"name": "a2", "paths": ["/a2"]})
    running = gateway(config)
    early_in_the_window(3600, 10)
    statuses = [running.ask(path).status for path in ("/api", "/a2", "/api", "/b", "/b", "/b")]
    assert statuses == [200, 200, 429, 200, 200, 429]


def test_by_header(gateway: Start, upstream: Upstream) -> None:
    config = limited(upstream, limit_by="header", header_name="X-Tenant", hour=1)
    running = gateway(config)
    early_in_the_window(3600, 10)
    red, blue = {"x-tenant": "red"}, {"X-TENANT": "blue"}
    assert ask_all(running, red, blue, red, blue) == [200, 200, 429, 429]
    # Without it the address counts, and nobody can use that up by naming it.
    spoofed = {"X-Tenant": "127.0.0.1"}
    assert ask_all(running, spoofed, {}, {}, spoofed) == [200, 200, 429, 429]
    long_1, long_2 = {"X-Tenant": "x" * 2000 + "1"}, {"X-Tenant": "x" * 2000 + "2"}
    assert ask_all(running, long_1, long_2, long_1) == [200, 200, 429]


def test_by_path(gateway: Start, upstream: Upstream) -> None:
    config = limited(upstream, limit_by="path", path="/hot", hour=1)
    config["services"][0]["routes"][0]["paths"] = ["/hot", "/cold"]
    running = gateway(config)
    early_in_the_window(3600, 10)
    paths = ("/hot", "/hot?x=1", "/%68ot", "/cold", "/hot/")
    assert [running.ask(path).status for path in paths] == [200, 429, 429, 200, 429]


def test_each_configuration_counts_for_itself(gateway: Start, upstream: Upstream) -> None:
    config = limited(upstream, hour=3)
    config["services"][0]["routes"].append(
        {
            "name": "own",
            "paths": ["/own"],
            "plugins": [{"name": "rate-limiting", "config": {"hour": 1, "limit_by": "ip"}}],
        }
    )
    running = gateway(config)
    early_in_the_window(3600, 10)
    paths = ("/own", "/own", "/api", "/api", "/api", "/api")
    assert [running.ask(path).status for path in paths] == [200, 429, 200, 200, 200, 429]


def test_headers_can_be_hidden(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, hour=1, hide_client_headers=True))
    early_in_the_window(3600, 10)
    passed, refused = running.ask("/api"), running.ask("/api")
    assert (passed.status, refused.status) == (200, 429)
    assert told(passed) == told(refused) == {}


def test_own_status_and_message(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, hour=1, error_code=503, error_message="too fast"))
    early_in_the_window(3600, 10)
    assert running.ask("/api").status == 200
    reply = running.ask("/api", headers=JSON)
    assert (reply.status, reply.json()["message"]) == (503, "too fast")
    assert "Retry-After" in told(reply)


def test_the_upstream_sees_nothing_of_it(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, hour=5))
    assert running.ask("/api").status == 200
    assert not [n for n in upstream.last.headers.names() if n.startswith(LIMIT_HEADERS)]


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
    running.expect_log("no share for each of the 120 windows of all rules, raise it")
    running.settings["rate_limiting_memory"] = "1m"
    running.reload()


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


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({}, "at least one of these fields must be non-empty: 'config.second'"),
        ({"minute": 0}, ".config.minute: value must be greater than 0"),
        ({"minute": 10, "hour": 5}, "The limit for hour(5.0) cannot be lower than the limit for"),
        ({"second": 10, "day": 5}, "The limit for day(5.0) cannot be lower than the limit for"),
        ({"minute": 1, "limit_by": "header"}, ".config.header_name: required"),
        ({"minute": 1, "limit_by": "path"}, ".config.path: required"),
        ({"minute": 1, "limit_by": "colour"}, ".config.limit_by: expected one of"),
        ({"minute": 1, "policy": "redis"}, "policy 'redis' is not supported by this version"),
        ({"minute": 1, "policy": "cluster"}, "policy 'cluster' is not supported by this version"),
        ({"minute": 1, "sync_rate": 5}, "sync_rate can only be used with the redis policy"),
        ({"minute": 1, "minutes": 1}, ".config.minutes: unknown field"),
    ],
)
def test_bad_settings_are_refused(
    upstream: Upstream, config: dict[str, Any], complaint: str
) -> None:
    plugin = {"name": "rate-limiting", "config": config}
    broken = Gateway(proxying(upstream) | {"plugins": [plugin]})
    done = broken.command("check")
    broken.close()
    assert done.returncode != 0
    assert complaint in done.stdout + done.stderr
