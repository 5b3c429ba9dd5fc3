"""The rate-limiting plugin, field by field, with Kong's messages and headers: exact counts, whose
they are, and what clients are told."""

import calendar
import concurrent.futures
import datetime
import time
from typing import Any

import pytest
from rate_limits import LIMIT_HEADERS, PERIODS, early_in_the_window, limited, told

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import wait_until

JSON = {"Accept": "application/json"}


def with_consumers(config: dict[str, Any]) -> dict[str, Any]:
    """The same behind key-auth, with keys a1 and a2 of alice and b1 of bob."""
    config["consumers"] = [
        {"username": "alice", "keyauth_credentials": [{"key": "a1"}, {"key": "a2"}]},
        {"username": "bob", "keyauth_credentials": [{"key": "b1"}]},
        {"username": "nobody"},
    ]
    config["plugins"].append({"name": "key-auth", "config": {"anonymous": "nobody"}})
    return config


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


def check_reset(seconds: int, period: str, begun: float) -> None:
    """So many from a moment since `begun` on are the rest of the window, which may have turned."""
    ended = time.time()
    windows = {window_end(period, moment) for moment in (begun, ended)}
    assert any(end - ended - 1 <= seconds <= end - begun + 1 for end in windows), (seconds, windows)


def test_a_limit_holds_and_is_told(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, day=3))
    early_in_the_window(86400, 10)
    for left in (2, 1, 0):
        begun = time.time()
        reply = running.ask("/api")
        assert reply.status == 200
        headers = told(reply)
        check_reset(int(headers.pop("RateLimit-Reset")), "day", begun)
        assert headers == {
            "RateLimit-Limit": "3",
            "RateLimit-Remaining": str(left),
            "X-RateLimit-Limit-Day": "3",
            "X-RateLimit-Remaining-Day": str(left),
        }
    for _ in range(2):
        reply = running.ask("/api", headers=JSON)
        assert (reply.status, reply.json()["message"]) == (429, "API rate limit exceeded")
        headers = told(reply)
        assert headers["Retry-After"] == headers["RateLimit-Reset"]
        assert headers["RateLimit-Remaining"] == headers["X-RateLimit-Remaining-Day"] == "0"
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
    begun = time.time()
    headers = told(running.ask("/api"))
    assert headers[f"X-RateLimit-Limit-{period.title()}"] == "5"
    assert headers[f"X-RateLimit-Remaining-{period.title()}"] == "4"
    check_reset(int(headers["RateLimit-Reset"]), period, begun)


def test_several_windows(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, day=2, month=5, year=5))
    early_in_the_window(86400, 10)
    headers = told(running.ask("/api"))
    assert headers["X-RateLimit-Remaining-Day"] == headers["RateLimit-Remaining"] == "1"
    assert headers["X-RateLimit-Remaining-Month"] == headers["X-RateLimit-Remaining-Year"] == "4"
    assert headers["RateLimit-Limit"] == "2"
    assert int(headers["RateLimit-Reset"]) <= 86400
    assert running.ask("/api").status == 200
    for _ in range(10):
        refused = running.ask("/api")
        assert refused.status == 429
        # A refused request takes nothing from the other windows.
        assert told(refused)["X-RateLimit-Remaining-Month"] == "3"
        assert told(refused)["RateLimit-Limit"] == "2"


def test_a_limit_that_is_no_whole_number(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, month=1.5, year=1e15))
    found = []
    for _ in range(3):
        reply = running.ask("/api")
        headers = told(reply)
        assert headers["X-RateLimit-Limit-Month"] == headers["RateLimit-Limit"] == "1.5"
        assert headers["X-RateLimit-Limit-Year"] == headers["X-RateLimit-Remaining-Year"] == "1e+15"
        found.append((reply.status, headers["RateLimit-Remaining"]))
    assert found == [(200, "0.5"), (200, "0"), (429, "0")]


def test_headers_replace_those_of_the_service(gateway: Start, upstream: Upstream) -> None:
    theirs = [("X-RateLimit-Limit-Hour", "7"), ("ratelimit-reset", "1"), ("X-RateLimit-Other", "8")]
    upstream.answer(200, theirs)
    running = gateway(limited(upstream, hour=5))
    reply = running.ask("/api")
    assert reply.headers.all("X-RateLimit-Limit-Hour") == ["5"]
    assert len(reply.headers.all("RateLimit-Reset")) == 1
    assert reply.headers.get("RateLimit-Reset") != "1"
    assert reply.headers.get("X-RateLimit-Other") == "8"


def test_the_longest_full_window_says_when_to_come_back(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, day=1, year=1))
    assert running.ask("/api").status == 200
    begun = time.time()
    refused = running.ask("/api")
    assert refused.status == 429
    check_reset(int(told(refused)["Retry-After"]), "year", begun)


def test_a_full_long_window_spares_the_short_one(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, month=5, year=5))
    assert [running.ask("/api").status for _ in range(5)] == [200] * 5
    for _ in range(3):
        assert told(running.ask("/api"))["X-RateLimit-Remaining-Month"] == "0"


def test_exactly_as_many_pass_as_the_limit_says(gateway: Start, upstream: Upstream) -> None:
    limit, clients, each = 137, 16, 40
    upstream.answer(200)
    running = gateway(limited(upstream, month=limit, year=1000), workers=2)

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
    # The year's window holds those that passed, and none that were refused.
    assert told(running.ask("/api"))["X-RateLimit-Remaining-Year"] == str(1000 - limit)


def test_workers_share_the_counters_over_a_reload(gateway: Start, upstream: Upstream) -> None:
    config = limited(upstream, year=4)
    running = gateway(config, workers=2)
    assert [running.ask("/api").status for _ in range(3)] == [200] * 3
    running.reload(config)
    assert [running.ask("/api").status for _ in range(2)] == [200, 429]


def ask_all(running: Gateway, *requests: dict[str, str]) -> list[int]:
    """The statuses of requests with these headers, in order."""
    return [running.ask("/api", headers=headers).status for headers in requests]


A1, A2, B1 = {"apikey": "a1"}, {"apikey": "a2"}, {"apikey": "b1"}


def test_by_consumer(gateway: Start, upstream: Upstream) -> None:
    running = gateway(with_consumers(limited(upstream, limit_by="consumer", year=2)))
    assert ask_all(running, A1, A2, A1, B1, B1, B1) == [200, 200, 429, 200, 200, 429]
    # The anonymous consumer is one as well.
    assert ask_all(running, {}, {}, {}) == [200, 200, 429]


def test_by_consumer_is_by_default(gateway: Start, upstream: Upstream) -> None:
    config = with_consumers(limited(upstream, year=1))
    del config["plugins"][0]["config"]["limit_by"]
    running = gateway(config)
    assert ask_all(running, A1, B1, A1) == [200, 200, 429]


def test_by_credential(gateway: Start, upstream: Upstream) -> None:
    running = gateway(with_consumers(limited(upstream, limit_by="credential", year=1)))
    assert ask_all(running, A1, A2, A1, B1, A2) == [200, 200, 429, 200, 429]
    # Nobody has no credential: the address counts.
    assert ask_all(running, {}, {}) == [200, 429]


def test_by_address(gateway: Start, upstream: Upstream) -> None:
    config = limited(upstream, year=2)
    running = gateway(config, trusted_ips="127.0.0.0/8", real_ip_header="X-Forwarded-For")
    one, other = {"X-Forwarded-For": "192.0.2.1"}, {"X-Forwarded-For": "192.0.2.2"}
    assert ask_all(running, one, one, one, other) == [200, 200, 429, 200]


def test_by_service(gateway: Start, upstream: Upstream) -> None:
    config = limited(upstream, limit_by="service", year=2)
    config["services"].append(
        {"name": "b", "url": upstream.url, "routes": [{"name": "b", "paths": ["/b"]}]}
    )
    config["services"][0]["routes"].append({"name": "a2", "paths": ["/a2"]})
    running = gateway(config)
    statuses = [running.ask(path).status for path in ("/api", "/a2", "/api", "/b", "/b", "/b")]
    assert statuses == [200, 200, 429, 200, 200, 429]


def test_by_header(gateway: Start, upstream: Upstream) -> None:
    config = limited(upstream, limit_by="header", header_name="X-Tenant", year=1)
    running = gateway(config)
    red, blue = {"x-tenant": "red"}, {"X-TENANT": "blue"}
    assert ask_all(running, red, blue, red, blue) == [200, 200, 429, 429]
    # Without it the address counts, and nobody can use that up by naming it.
    spoofed = {"X-Tenant": "127.0.0.1"}
    assert ask_all(running, spoofed, {}, {}, spoofed) == [200, 200, 429, 429]
    long_1, long_2 = {"X-Tenant": "x" * 2000 + "1"}, {"X-Tenant": "x" * 2000 + "2"}
    assert ask_all(running, long_1, long_2, long_1) == [200, 200, 429]


def test_by_path(gateway: Start, upstream: Upstream) -> None:
    config = limited(upstream, limit_by="path", path="/hot", year=1)
    config["services"][0]["routes"][0]["paths"] = ["/hot", "/cold"]
    running = gateway(config)
    paths = ("/hot", "/hot?x=1", "/%68ot", "/cold", "/hot/")
    assert [running.ask(path).status for path in paths] == [200, 429, 429, 200, 429]


def test_each_configuration_counts_for_itself(gateway: Start, upstream: Upstream) -> None:
    config = limited(upstream, year=3)
    config["services"][0]["routes"].append(
        {
            "name": "own",
            "paths": ["/own"],
            "plugins": [{"name": "rate-limiting", "config": {"year": 1, "limit_by": "ip"}}],
        }
    )
    running = gateway(config)
    paths = ("/own", "/own", "/api", "/api", "/api", "/api")
    assert [running.ask(path).status for path in paths] == [200, 429, 200, 200, 200, 429]


def test_headers_can_be_hidden(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, year=1, hide_client_headers=True))
    passed, refused = running.ask("/api"), running.ask("/api")
    assert (passed.status, refused.status) == (200, 429)
    assert told(passed) == told(refused) == {}


def test_own_status_and_message(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, year=1, error_code=503, error_message="too fast"))
    assert running.ask("/api").status == 200
    reply = running.ask("/api", headers=JSON)
    assert (reply.status, reply.json()["message"]) == (503, "too fast")
    assert "Retry-After" in told(reply)


def test_the_upstream_sees_nothing_of_it(gateway: Start, upstream: Upstream) -> None:
    running = gateway(limited(upstream, year=5))
    assert running.ask("/api").status == 200
    assert not [n for n in upstream.last.headers.names() if n.startswith(LIMIT_HEADERS)]


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
