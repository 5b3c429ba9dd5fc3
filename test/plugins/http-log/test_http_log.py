"""http-log: what an entry says, and how entries travel."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from changes import document, post, stopped
from log_entries import check_http2_entry, check_switch_entry
from log_server import LogServer, ask, logging_to
from tunnels import by_http2, by_upgrade, where_asked

from sluice import Start, proxying
from upstream import DeadPort, Exchange, Upstream, self_signed
from wire import wait_until

# What an entry says


def test_the_entry_of_a_proxied_request(gateway: Start, upstream: Upstream, log: LogServer) -> None:
    running = gateway(logging_to(upstream, log.port))
    sent = [("X-Two", "a"), ("X-Two", "b"), ("Authorization", "secret"), ("Host", "example.com")]
    before = time.time()
    reply = running.ask("/path?n=1&flag&r=a&r=b", headers=sent)
    log.wait_for_marks({"1"})
    entry = log.entries[0]

    request = entry["request"]
    assert request["method"] == "GET"
    assert request["uri"] == "/path?n=1&flag&r=a&r=b"
    assert request["url"] == f"http://example.com:{running.proxy_port}/path?n=1&flag&r=a&r=b"
    assert request["querystring"] == {"n": "1", "flag": True, "r": ["a", "b"]}
    assert request["headers"]["x-two"] == ["a", "b"]
    assert request["headers"]["authorization"] == "REDACTED"
    assert request["id"] == reply.headers.get("x-kong-request-id")
    assert request["size"] > 100
    assert "tls" not in request

    response = entry["response"]
    assert response["status"] == 200
    assert response["headers"]["content-type"] == "application/json"
    assert response["size"] > len(reply.body)

    assert entry["client_ip"] == "127.0.0.1"
    assert before - 1 < entry["started_at"] / 1000 < time.time() + 1
    assert entry["source"] == "upstream"
    assert entry["upstream_uri"] == "/path?n=1&flag&r=a&r=b"
    assert entry["upstream_status"] == "200"
    assert entry["tries"] == [{"ip": "127.0.0.1", "port": upstream.port}]
    assert set(entry["latencies"]) == {"kong", "proxy", "request", "receive"}
    assert all(0 <= entry["latencies"][name] < 20_000 for name in entry["latencies"])
    assert entry["service"]["name"] == "service"
    assert entry["service"]["port"] == upstream.port
    assert entry["route"]["name"] == "route"
    assert entry["route"]["service"] == {"id": entry["service"]["id"]}
    assert "consumer" not in entry


def test_entries_of_http2_and_of_a_switch(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    upstream.handler = where_asked(upstream)
    running = gateway(logging_to(upstream, log.port), tls="ssl http2")
    assert by_http2(running, "/?n=h2") == 200
    log.wait_for_marks({"h2"})
    assert by_upgrade(running, "/?n=ws") == 101
    log.wait_for_marks({"ws"})
    check_http2_entry(running, log.entries[0])
    check_switch_entry(running, log.entries[1])


def test_latencies_tell_whose_time_it_was(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    def slow(exchange: Exchange) -> None:
        threading.Event().wait(0.1)
        exchange.head(200, {"Content-Length": "4"})
        threading.Event().wait(0.2)
        exchange.send(b"body")

    upstream.handler = slow
    running = gateway(logging_to(upstream, log.port))

    def undisturbed() -> bool:
        log.wait_for_marks(ask(running, len(log.entries)))
        latencies = log.entries[-1]["latencies"]
        assert latencies["proxy"] >= 95
        assert latencies["request"] >= latencies["proxy"] + latencies["receive"] - 5
        return latencies["kong"] < 95 and latencies["receive"] >= 150

    # Whoever takes the worker's CPU away adds to what it does just then, and a head that it
    # handles late takes from what the body takes.
    wait_until(undisturbed, "the gateway to have none of the upstream's time")


def test_the_entry_of_a_request_with_a_consumer_and_failed_tries(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    with DeadPort() as dead:
        config = logging_to(upstream, log.port)
        config["services"][0]["url"] = "http://two"
        config["upstreams"] = [
            {
                "name": "two",
                "targets": [
                    {"target": dead.address, "weight": 1000},
                    {"target": upstream.address, "weight": 1},
                ],
            }
        ]
        config["plugins"].append({"name": "key-auth"})
        config["consumers"] = [
            {"username": "ann", "custom_id": "7", "keyauth_credentials": [{"key": "k"}]}
        ]
        running = gateway(config)
        running.expect_log(r"connect\(\) failed", range(1, 100))
        assert running.ask("/?n=1", headers={"apikey": "k"}).status == 200
        log.wait_for_marks({"1"})
        entry = log.entries[0]
        assert entry["consumer"]["username"] == "ann"
        assert entry["consumer"]["custom_id"] == "7"
        assert entry["authenticated_entity"]["consumer_id"] == entry["consumer"]["id"]
        failed = {"ip": "127.0.0.1", "port": dead.port, "state": "failed", "code": 502}
        *first, last = entry["tries"]
        assert first
        assert all(attempt == failed for attempt in first)
        assert last == {"ip": "127.0.0.1", "port": upstream.port}


def lines_of(headers: dict) -> int:
    """How many header lines an entry has."""
    return sum(len(value) if isinstance(value, list) else 1 for value in headers.values())


@pytest.mark.parametrize("count", [50, 300])
def test_of_many_headers_the_gateways_own_are_kept(
    gateway: Start, upstream: Upstream, log: LogServer, count: int
) -> None:
    """Whatever a client and an upstream send; and the entry says how many it has left out."""
    many = [(f"X-Many-{i}", "v") for i in range(count)]
    upstream.answer(200, many, b"x")
    config = logging_to(upstream, log.port)
    config["plugins"] += [
        {"name": "key-auth"},
        {"name": "rate-limiting", "config": {"minute": 1000, "hour": 1000, "limit_by": "ip"}},
    ]
    config["consumers"] = [{"username": "ann", "keyauth_credentials": [{"key": "k"}]}]
    running = gateway(config, large_client_header_buffers="4 64k")
    sent = [*many[: count // 2], ("Host", "a.example"), *many[count // 2 :], ("apikey", "k")]
    query = "n=1" + "&p=v" * count
    reply = running.ask(f"/?{query}", headers=sent)
    assert reply.status == 200
    log.wait_for_marks({"1"})
    (entry,) = log.entries
    request, response = entry["request"], entry["response"]
    assert request["headers"]["host"] == "a.example"
    assert request["headers"]["x-consumer-username"] == "ann"
    assert request["headers"]["x-credential-identifier"]
    own = ("ratelimit-limit", "x-ratelimit-remaining-hour", "via", "x-kong-proxy-latency")
    for name in (*own, "x-kong-request-id"):
        assert response["headers"][name] == ", ".join(reply.headers.all(name)), name
    went_up = len(upstream.last.headers)
    # Date and Server are nginx's, and in no list.
    lines = lines_of(response["headers"]) + response.get("headers_omitted", 0)
    assert lines == len(reply.headers) - sum(
        n.lower() in ("date", "server") for n, _ in reply.headers
    )
    assert lines_of(request["querystring"]) <= 100
    if count == 50:
        assert not [name for name in (*request, *response) if "omitted" in name]
        return
    # Of those that went up some are the head's own: Via, X-Real-IP, X-Forwarded-*.
    assert lines_of(request["headers"]) == 100
    assert 0 < went_up - 100 - request["headers_omitted"] < 12
    shown = lines_of(request["querystring"])
    assert shown + request["querystring_omitted"] == 1 + count


def test_entries_of_what_the_gateway_answers_itself(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    config = logging_to(upstream, log.port)
    config["services"][0]["routes"][0]["paths"] = ["/known"]
    running = gateway(config)
    assert running.ask("/unknown?n=1").status == 404
    with DeadPort() as dead:
        broken = logging_to(upstream, log.port)
        broken["services"][0] |= {"url": dead.url, "retries": 0}
        assert post(running, document(broken)).status_code == 201
        running.expect_log(r"connect\(\) failed")
        assert running.ask("/?n=2").status == 502
        log.wait_for_marks({"1", "2"})
    unknown, refused = log.entries
    assert unknown["response"]["status"] == 404
    assert unknown["source"] == "kong"
    assert unknown["latencies"]["proxy"] == -1
    assert not {"route", "service", "tries"} & set(unknown)
    assert unknown["upstream_uri"] == ""
    assert refused["response"]["status"] == 502
    assert refused["source"] == "kong"
    assert refused["tries"] == [{"ip": "127.0.0.1", "port": dead.port}]


def test_an_entry_is_utf8_whatever_the_client_sends(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    """A log server would refuse anything else, and the batch would never get through."""
    running = gateway(logging_to(upstream, log.port))
    assert running.ask("/?n=1&x=%ff", headers={"X-Raw": "\xff\x01"}).status in (200, 400)
    assert running.ask("/?n=2&x=%c3%a4").status == 200
    log.wait_for_marks({"2"})
    assert log.entries[-1]["request"]["querystring"]["x"] == "\u00e4"


# How entries travel


def test_an_entry_alone_is_an_object_and_a_batch_an_array(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    running = gateway(logging_to(upstream, log.port))
    log.wait_for_marks(ask(running, 1, 2, 3))
    assert log.batches == [1, 1, 1]
    assert log.last.method == "POST"
    assert log.last.target == "/in"
    assert log.last.headers.get("content-type") == "application/json"
    assert isinstance(json.loads(log.last.body), dict)
    batching = logging_to(upstream, log.port, {"max_batch_size": 3, "max_coalescing_delay": 3})
    assert post(running, document(batching)).status_code == 201
    log.wait_for_marks(ask(running, *range(4, 11)))
    assert log.batches == [1, 1, 1, 3, 3, 1]
    assert log.marks() == [str(number) for number in range(1, 11)]
    assert len(json.loads(log.last.body)) == 1


def test_a_batch_waits_no_longer_than_told(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    queue = {"max_batch_size": 1000, "max_coalescing_delay": 3}
    running = gateway(logging_to(upstream, log.port, queue))
    begun = time.monotonic()
    ask(running, 1)
    assert not log.entries
    log.wait_for_marks(ask(running, 2))
    assert time.monotonic() - begun > 2.9
    assert log.batches == [2]


def test_what_is_sent_is_as_configured(gateway: Start, upstream: Upstream, log: LogServer) -> None:
    config = logging_to(
        upstream,
        log.port,
        http_endpoint=f"http://user:p%40ss@127.0.0.1:{log.port}/in?token=1",
        method="PUT",
        content_type="application/json; charset=utf-8",
        headers={"X-Api-Key": "k", "X-Other": "o"},
    )
    running = gateway(config)
    log.wait_for_marks(ask(running, 1))
    request = log.last
    assert (request.method, request.target) == ("PUT", "/in?token=1")
    assert request.headers.get("host") == f"127.0.0.1:{log.port}"
    assert request.headers.get("authorization") == "Basic dXNlcjpwQHNz"
    assert request.headers.get("content-type") == "application/json; charset=utf-8"
    assert request.headers.get("x-api-key") == "k"
    assert request.headers.get("x-other") == "o"


def test_former_names_come_before_the_queues_own(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    config = logging_to(
        upstream, log.port, {"max_batch_size": 7}, queue_size=2, flush_timeout=20, retry_count=3
    )
    running = gateway(config)
    log.wait_for_marks(ask(running, 1, 2))
    assert log.batches == [2]


@pytest.mark.parametrize("keepalive", [0, 60000])
def test_connections_are_kept_as_long_as_told(
    gateway: Start, upstream: Upstream, log: LogServer, keepalive: int
) -> None:
    running = gateway(logging_to(upstream, log.port, keepalive=keepalive))
    for mark in range(5):
        log.wait_for_marks(ask(running, mark))
    assert log.connections == (1 if keepalive else 5)


@pytest.mark.parametrize("how", ["chunked", "bodiless", "close", "long"])
def test_any_answer_of_the_log_server_will_do(
    gateway: Start, upstream: Upstream, log: LogServer, how: str
) -> None:
    seen: list[str] = []

    def answer(exchange: Exchange) -> None:
        mark = json.loads(exchange.read_body())["request"]["querystring"]["n"]
        if how == "chunked":
            exchange.reply(200, body=b"x" * 5000, chunked=True)
        elif how == "bodiless":
            exchange.reply(204)
        elif how == "close":
            exchange.head(200, {"Connection": "close"})
            exchange.send(b"to the end")
            exchange.keep = False
        else:
            exchange.reply(200, body=b"x" * 100_000)
        # After the answer: a server closed before it makes a failed delivery.
        seen.append(mark)

    log.handler = answer
    running = gateway(logging_to(upstream, log.port))
    for mark in range(4):
        ask(running, mark)
        wait_until(lambda mark=mark: str(mark) in seen, "the entry")
    assert seen == ["0", "1", "2", "3"]
    assert log.connections == (1 if how in ("chunked", "bodiless") else 4)


@pytest.mark.parametrize("when", ["after its answer", "at the next request"])
def test_a_kept_connection_that_the_server_closed_costs_nothing(
    gateway: Start, upstream: Upstream, log: LogServer, when: str
) -> None:
    def answer_one(exchange: Exchange) -> None:
        exchange.read_body()
        is_first = exchange.request.nth == 0
        if is_first:
            log.take(exchange)
        exchange.keep = is_first and when == "at the next request"

    log.handler = answer_one
    running = gateway(logging_to(upstream, log.port, {"max_retry_time": -1}))
    # On a busy machine it may close when the next request is under way.
    running.expect_log(r"recv\(\) failed \(104: ", range(5))
    for mark in range(5):
        log.wait_for_marks(ask(running, mark))
    assert log.connections == 5
    assert "not delivered" not in running.error_log()


def test_a_log_server_with_tls_and_a_name(
    gateway: Start, upstream: Upstream, tmp_path: Path
) -> None:
    context = self_signed(tmp_path)
    names: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    with LogServer(tls=context) as log:
        url = f"https://localhost:{log.port}/in"
        running = gateway(logging_to(upstream, log.port, http_endpoint=url))
        log.wait_for_marks(ask(running, *range(5)))
        assert log.connections == 1
    assert names == ["localhost"]


def test_a_name_is_asked_for_by_the_next_control_worker(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    url = f"http://localhost:{log.port}/in"
    running = gateway(logging_to(upstream, log.port, http_endpoint=url))
    running.expect_log("exited on signal 9")
    control = running.control()
    # One that still reads takes entries with it.
    with stopped(control):
        marks = ask(running, *range(5))
        os.kill(control, signal.SIGKILL)
    log.wait_for_marks(marks)


def test_a_name_without_addresses(gateway: Start, upstream: Upstream) -> None:
    queue = {"max_retry_time": -1}
    config = logging_to(upstream, 0, queue, http_endpoint="http://no-such-name.invalid/in")
    running = gateway(config)
    reason = "no-such-name.invalid cannot be resolved: "
    running.expect_log(f"dropped, not delivered in time: {reason}", range(1, 6))
    ask(running, *range(5))
    wait_until(lambda: reason in running.error_log(), "the resolver's answer")
    assert "the resolver did not answer" not in running.error_log()


def test_a_route_without_it_pays_nothing(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    config = logging_to(upstream, log.port)
    plugin = config.pop("plugins")[0]
    config["services"][0]["routes"] = [
        {"name": "logged", "paths": ["/logged"], "plugins": [plugin]},
        {"name": "quiet", "paths": ["/quiet"]},
    ]
    running = gateway(config)
    assert running.ask("/quiet?n=1").status == 200
    assert running.ask("/logged?n=2").status == 200
    log.wait_for_marks({"2"})
    assert log.marks() == ["2"]
    assert proxying(upstream)["services"][0]["name"] == log.entries[0]["service"]["name"]
