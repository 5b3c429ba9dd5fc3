"""Upstreams that refuse, hang, lie or die: timeouts, retries on the next target, what is said."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sluice import Start, proxying
from upstream import Blackhole, DeadPort, Exchange, Upstream, saying, self_signed
from wire import DEADLINE, Reply, chunk

INVALID = "An invalid response was received from the upstream server"
TIMING_OUT = "The upstream server is timing out"
REFUSED = r"connect\(\) failed \(111: "
TIMED_OUT = r"upstream timed out \(110: "
CLOSED = r"upstream prematurely closed connection while reading response header"
RESET = r"(recv\(\) failed \(104: |prematurely closed connection)"

JSON = {"Accept": "application/json"}


def balanced(
    *targets: str | tuple[str, int], service: dict | None = None, **upstream: object
) -> dict[str, Any]:
    """A configuration with an upstream of these targets (an address, or a pair with a weight)."""
    pairs = [target if isinstance(target, tuple) else (target, 100) for target in targets]
    entity = {"name": "balanced", "targets": [{"target": t, "weight": w} for t, w in pairs]}
    return proxying("http://balanced", service=service) | {"upstreams": [entity | upstream]}


def expect_message(reply: Reply, status: int, message: str) -> None:
    """Fails unless the reply is the gateway's own error of this status and message."""
    assert (reply.status, reply.json()["message"]) == (status, message)


# Timeouts


def test_connect_timeout(serving: Start) -> None:
    with Blackhole() as hole:
        service = {"connect_timeout": 100, "retries": 0}
        running = serving(proxying(hole, service=service))
        running.expect_log(TIMED_OUT, 1)
        begun = time.monotonic()
        expect_message(running.ask("/", headers=JSON), 504, TIMING_OUT)
        assert time.monotonic() - begun < DEADLINE


def test_read_timeout(serving: Start, upstream: Upstream) -> None:
    def hang(exchange: Exchange) -> None:
        exchange.ended()
        exchange.keep = False

    upstream.handler = hang
    running = serving(proxying(upstream, service={"read_timeout": 100, "retries": 0}))
    running.expect_log(TIMED_OUT, 1)
    expect_message(running.ask("/", headers=JSON), 504, TIMING_OUT)


def test_read_timeout_within_the_body_cuts_the_answer(serving: Start, upstream: Upstream) -> None:
    def stall(exchange: Exchange) -> None:
        exchange.head(200, {"Content-Length": "10"})
        exchange.send(b"12345")
        exchange.ended()
        exchange.keep = False

    upstream.handler = stall
    # Enough for the head, however late the upstream's thread runs.
    running = serving(proxying(upstream, service={"read_timeout": 2000}))
    running.expect_log(TIMED_OUT, 1)
    with running.wire() as wire, pytest.raises(ConnectionError):
        wire.ask("/")
    assert len(upstream.requests) == 1


def test_write_timeout(serving: Start, upstream: Upstream) -> None:
    answered = threading.Event()

    def read_nothing(exchange: Exchange) -> None:
        answered.wait(DEADLINE)
        exchange.abort()

    upstream.handler = read_nothing
    running = serving(proxying(upstream, service={"write_timeout": 100, "retries": 0}))
    running.expect_log(TIMED_OUT, 1)
    reply = running.ask("/", "POST", body=b"x" * 20_000_000, headers=JSON)
    answered.set()
    expect_message(reply, 504, TIMING_OUT)


def test_answer_within_the_timeout_passes(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream, service={"read_timeout": 60000}))

    def late(exchange: Exchange) -> None:
        running.get("/other")
        exchange.reply(200, body=b"late")

    with Upstream() as other:
        config = proxying(upstream)
        config["services"].append(
            {"name": "other", "url": other.url, "routes": [{"paths": ["/other"]}]}
        )
        running.reload(config)
        upstream.handler = late
        assert running.ask("/").body == b"late"


# One target that fails


@pytest.mark.parametrize(("service", "tries"), [({"retries": 0}, 1), ({"retries": 3}, 4), ({}, 6)])
def test_refused_connection_is_tried_retries_more_times(
    serving: Start, service: dict[str, int], tries: int
) -> None:
    """Five by default."""
    with DeadPort() as dead:
        running = serving(proxying(dead, service=service))
        running.expect_log(REFUSED, tries)
        expect_message(running.ask("/", headers=JSON), 502, INVALID)


@pytest.mark.parametrize(
    ("answer", "log"),
    [
        (b"", CLOSED),
        (b"HTTP/1.1 200", CLOSED),
        (b"HTTP/1.1 200 OK\r\nBad Header\x00: x\r\n\r\n", "sent invalid header"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000, "sent too big header"),
        # nginx alone takes it for HTTP/0.9, and passes it on without a status line.
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "no valid HTTP/1.0 header"),
    ],
    ids=["nothing", "half a line", "bad header", "huge header", "no HTTP"],
)
def test_nonsense_from_the_upstream(
    serving: Start, upstream: Upstream, answer: bytes, log: str
) -> None:
    upstream.handler = saying(answer)
    running = serving(proxying(upstream, service={"retries": 0}))
    running.expect_log(log, 1)
    expect_message(running.ask("/", headers=JSON), 502, INVALID)


def test_response_framed_in_two_ways_leaves_with_one(serving: Start, upstream: Upstream) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
    upstream.handler = saying(head + chunk(b"12345") + chunk(b""))
    running = serving(proxying(upstream, service={"retries": 0}))
    running.expect_log(r"sent .*Content-Length", range(0, 2))
    with running.wire() as wire:
        reply = wire.ask("/", headers=JSON)
        if reply.status == 200:
            assert not (reply.chunked and "content-length" in reply.headers)
            assert reply.body == b"12345"
        else:
            expect_message(reply, 502, INVALID)


# Retries


def test_retry_goes_to_the_next_target(serving: Start, upstream: Upstream) -> None:
    with DeadPort() as dead:
        running = serving(balanced(dead.address, upstream.address))
        running.expect_log(REFUSED, range(1, 11))
        for number in range(10):
            reply = running.ask(f"/{number}", "POST", body=b"kept")
            assert (reply.status, reply.json()["length"]) == (200, 4)
    assert len(upstream.requests) == 10


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.000.000.001", "[::1]", "[0:0:0:0:0:0:0:1]", "[::FFFF:127.0.0.1]"]
)
def test_no_target_is_tried_twice_while_others_were_not(
    serving: Start, upstream: Upstream, host: str
) -> None:
    """However its address is written, and however heavy it is."""
    with DeadPort("::1" if host in ("[::1]", "[0:0:0:0:0:0:0:1]") else "127.0.0.1") as dead:
        weighted = (f"{host}:{dead.port}", 1000), (upstream.address, 1)
        running = serving(balanced(*weighted, service={"retries": 1}))
        running.expect_log(REFUSED, range(9, 11))
        assert [running.ask("/").status for _ in range(10)] == [200] * 10


def test_all_targets_dead(serving: Start) -> None:
    with DeadPort() as one, DeadPort() as two:
        running = serving(balanced(one.address, two.address, service={"retries": 1}))
        running.expect_log(REFUSED, 2)
        expect_message(running.ask("/", headers=JSON), 502, INVALID)


def test_retries_zero_asks_one_target_only(serving: Start, upstream: Upstream) -> None:
    with DeadPort() as dead:
        running = serving(balanced(dead.address, upstream.address, service={"retries": 0}))
        running.expect_log(REFUSED, 5)
        statuses = [running.ask("/").status for _ in range(10)]
    assert sorted(statuses) == [200] * 5 + [502] * 5


def test_retry_after_a_connect_timeout(serving: Start, upstream: Upstream) -> None:
    with Blackhole() as hole:
        config = balanced(hole.address, upstream.address, service={"connect_timeout": 100})
        running = serving(config)
        running.expect_log(TIMED_OUT, range(1, 3))
        assert [running.ask("/").status for _ in range(2)] == [200, 200]


@pytest.mark.parametrize(
    ("method", "tried"),
    [
        ("GET", 2),
        ("PUT", 2),
        ("DELETE", 2),
        ("OPTIONS", 2),
        ("POST", 1),
        ("PATCH", 1),
        ("LOCK", 1),
    ],
)
def test_only_idempotent_requests_are_sent_again(
    serving: Start, upstream: Upstream, method: str, tried: int
) -> None:
    def hang_up(exchange: Exchange) -> None:
        exchange.read_body()
        exchange.keep = False
        exchange.request.headers.append(("Connection", "close"))

    upstream.handler = hang_up
    with Upstream(hang_up) as other:
        running = serving(balanced(upstream.address, other.address, service={"retries": 1}))
        running.expect_log(CLOSED, tried)
        reply = running.ask("/", method, body=b"x", headers=JSON)
        expect_message(reply, 502, INVALID)
        seen = len(upstream.requests), len(other.requests)
    assert sum(seen) == tried
    assert max(seen) == 1, "the retry goes to the other target"


def test_read_timeout_is_retried_elsewhere(serving: Start, upstream: Upstream) -> None:
    def hang(exchange: Exchange) -> None:
        exchange.ended()
        exchange.keep = False

    with Upstream(hang) as stuck:
        config = balanced(stuck.address, upstream.address, service={"read_timeout": 2000})
        running = serving(config)
        running.expect_log(TIMED_OUT, range(1, 3))
        assert [running.ask("/").status for _ in range(2)] == [200, 200]
        assert len(stuck.requests) in (1, 2), "the rotation begins anywhere"


def test_error_statuses_of_the_upstream_are_not_retried(serving: Start, upstream: Upstream) -> None:
    with Upstream() as other:
        for server in (upstream, other):
            server.answer(503, body=b"mine")
        running = serving(balanced(upstream.address, other.address))
        reply = running.ask("/", headers=JSON)
        assert (reply.status, reply.body) == (503, b"mine")
        assert len(upstream.requests) + len(other.requests) == 1


@pytest.mark.parametrize(
    ("answer", "log"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "no valid HTTP/1.0 header"),
        (b"HTTP/1.1 200 OK\r\nBad Header\x00: x\r\n\r\n", "sent invalid header"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000, "sent too big header"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20, "more than 16 interim responses"),
    ],
    ids=["no HTTP", "bad header", "huge header", "interim"],
)
def test_nonsense_is_not_asked_for_again(
    serving: Start, upstream: Upstream, answer: bytes, log: str
) -> None:
    """As docs/answers.md says of failures that are tried again."""
    upstream.handler = saying(answer)
    with Upstream(saying(answer)) as other:
        running = serving(balanced(upstream.address, other.address))
        running.expect_log(log, 1)
        expect_message(running.ask("/", headers=JSON), 502, INVALID)
        assert len(upstream.requests) + len(other.requests) == 1


def test_large_body_is_sent_whole_to_the_next_target(serving: Start, upstream: Upstream) -> None:
    body = bytes(range(256)) * 4000
    with DeadPort() as dead:
        running = serving(balanced(dead.address, upstream.address))
        running.expect_log(REFUSED, range(1, 3))
        for _ in range(2):
            assert running.ask("/", "POST", body=body).json()["length"] == len(body)


def test_host_header_is_the_targets_own_on_a_retry(serving: Start, upstream: Upstream) -> None:
    with DeadPort() as dead:
        running = serving(balanced(dead.address, upstream.address))
        running.expect_log(REFUSED, range(1, 3))
        for _ in range(2):
            assert running.ask("/").status == 200
    assert {r.headers.get("host") for r in upstream.requests} == {upstream.address}


def test_a_preserved_host_header_stays_on_a_retry(serving: Start, upstream: Upstream) -> None:
    with DeadPort() as dead:
        config = balanced(dead.address, upstream.address)
        config["services"][0]["routes"][0]["preserve_host"] = True
        running = serving(config)
        running.expect_log(REFUSED, range(1, 3))
        for _ in range(2):
            assert running.ask("/", headers={"Host": "kept.example"}).status == 200
    assert {r.headers.get("host") for r in upstream.requests} == {"kept.example"}


def test_retries_of_an_upstream_with_tls(serving: Start, tmp_path: Path) -> None:
    with Upstream(tls=self_signed(tmp_path)) as upstream, DeadPort() as dead:
        config = balanced(dead.address, upstream.address)
        config["services"][0]["url"] = "https://balanced"
        running = serving(config)
        running.expect_log(REFUSED, range(1, 3))
        for number in range(2):
            assert running.ask(f"/{number}").json()["target"] == f"/{number}"


def test_timeouts_of_a_service_hold_for_each_try(serving: Start) -> None:
    with Blackhole() as one, Blackhole() as two:
        service = {"connect_timeout": 100, "retries": 2}
        running = serving(balanced(one.address, two.address, service=service))
        running.expect_log(TIMED_OUT, 3)
        begun = time.monotonic()
        assert running.ask("/").status == 504
        assert time.monotonic() - begun < 30, "not nginx's own timeout of a minute each"


# No target at all


def test_upstream_without_targets(serving: Start) -> None:
    reply = serving(balanced()).ask("/", headers=JSON)
    expect_message(reply, 503, "failure to get a peer from the ring-balancer")


def test_all_weights_zero(serving: Start, upstream: Upstream) -> None:
    reply = serving(balanced((upstream.address, 0))).ask("/", headers=JSON)
    expect_message(reply, 503, "failure to get a peer from the ring-balancer")
    assert upstream.requests == []


def test_name_that_does_not_resolve(gateway: Start, upstream: Upstream) -> None:
    config = proxying("http://no-such-host.invalid")
    config["services"].append(
        {"name": "fine", "url": upstream.url, "routes": [{"paths": ["/fine"]}]}
    )
    running = gateway(config)
    assert "no-such-host.invalid: cannot be resolved" in running.warned
    expect_message(running.ask("/", headers=JSON), 503, "name resolution failed")
    assert running.ask("/fine").status == 200
