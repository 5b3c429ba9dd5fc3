"""What the upstream is told of the client, and the client of the gateway."""

import re
import threading
import time

import pytest

from sluice import Start, proxying
from upstream import Exchange, Upstream
from wire import request_bytes

SPOOFED = {
    "X-Forwarded-For": "203.0.113.7",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "public.example.com",
    "X-Forwarded-Port": "8443",
    "X-Forwarded-Path": "/outer/path",
    "X-Forwarded-Prefix": "/outer",
    "X-Real-IP": "203.0.113.9",
}


def seen(upstream: Upstream) -> dict[str, str | None]:
    """The forwarded headers of the latest request; fails where one came twice."""
    headers = upstream.last.headers
    for name in SPOOFED:
        assert len(headers.all(name)) <= 1, name
    return {name: headers.get(name) for name in SPOOFED}


def test_a_client_that_says_nothing(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream, paths=["/api"]))
    assert running.ask("/api/x?y=1", headers={"Host": "My.Example.com:1234"}).status == 200
    assert seen(upstream) == {
        "X-Forwarded-For": "127.0.0.1",
        "X-Forwarded-Proto": "http",
        "X-Forwarded-Host": "my.example.com",
        "X-Forwarded-Port": str(running.proxy_port),
        "X-Forwarded-Path": "/api/x",
        "X-Forwarded-Prefix": "/api",
        "X-Real-IP": "127.0.0.1",
    }


def test_an_untrusted_client_is_not_believed(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream, paths=["/api"]), trusted_ips="10.0.0.0/8")
    assert running.ask("/api/x", headers={"Host": "a"} | SPOOFED).status == 200
    told = seen(upstream)
    assert told.pop("X-Forwarded-For") in ("127.0.0.1", "203.0.113.7, 127.0.0.1")
    assert told == {
        "X-Forwarded-Proto": "http",
        "X-Forwarded-Host": "a",
        "X-Forwarded-Port": str(running.proxy_port),
        "X-Forwarded-Path": "/api/x",
        "X-Forwarded-Prefix": "/api",
        "X-Real-IP": "127.0.0.1",
    }


def test_nobody_is_trusted_by_default(serving: Start, upstream: Upstream) -> None:
    assert serving(proxying(upstream)).ask("/x", headers=SPOOFED).status == 200
    told = seen(upstream)
    assert told["X-Forwarded-Proto"] == "http"
    assert told["X-Real-IP"] == "127.0.0.1"
    assert (told["X-Forwarded-For"] or "").endswith("127.0.0.1")


def test_a_trusted_proxy_is_believed(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream, paths=["/api"]), trusted_ips="10.0.0.0/8, 127.0.0.1")
    assert running.ask("/api/x", headers=SPOOFED).status == 200
    assert seen(upstream) == SPOOFED | {"X-Forwarded-For": "203.0.113.7, 127.0.0.1"}


def test_a_trusted_proxy_that_says_little(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream, paths=["/api"]), trusted_ips="127.0.0.1")
    sent = {"Host": "a", "X-Forwarded-Proto": "https"}
    assert running.ask("/api/x", headers=sent).status == 200
    assert seen(upstream) == {
        "X-Forwarded-For": "127.0.0.1",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "a",
        "X-Forwarded-Port": str(running.proxy_port),
        "X-Forwarded-Path": "/api/x",
        "X-Forwarded-Prefix": "/api",
        "X-Real-IP": "127.0.0.1",
    }


@pytest.mark.parametrize(
    ("recursive", "client"), [(False, "10.9.9.9"), (True, "203.0.113.7")], ids=["last", "recursive"]
)
def test_real_ip_header_and_recursion(
    serving: Start, upstream: Upstream, recursive: bool, client: str
) -> None:
    running = serving(
        proxying(upstream),
        trusted_ips="127.0.0.1,10.0.0.0/8",
        real_ip_header="X-Forwarded-For",
        real_ip_recursive=recursive,
    )
    sent = {"X-Forwarded-For": "198.51.100.1, 203.0.113.7, 10.9.9.9"}
    assert running.ask("/", headers=sent).status == 200
    told = seen(upstream)
    assert told["X-Real-IP"] == client
    assert told["X-Forwarded-For"] == sent["X-Forwarded-For"] + ", 127.0.0.1"


def test_the_client_of_a_trusted_proxy_that_forwards_for_nobody(
    serving: Start, upstream: Upstream
) -> None:
    """As Kong: the address that real_ip_header gave."""
    running = serving(proxying(upstream), trusted_ips="127.0.0.1")
    assert running.ask("/", headers={"X-Real-IP": "203.0.113.7"}).status == 200
    assert seen(upstream)["X-Forwarded-For"] == "203.0.113.7"


def test_repeated_lines_of_a_trusted_proxy_are_joined(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream), trusted_ips="127.0.0.1")
    lines = [("X-Forwarded-For", "203.0.113.7"), ("X-Forwarded-For", "198.51.100.1")]
    assert running.ask("/", headers=lines).status == 200
    assert seen(upstream)["X-Forwarded-For"] == "203.0.113.7, 198.51.100.1, 127.0.0.1"


def test_client_address_in_the_access_log(gateway: Start, upstream: Upstream) -> None:
    running = gateway(
        proxying(upstream), trusted_ips="127.0.0.1", access_log_format="$remote_addr $status"
    )
    running.ask("/", headers={"X-Real-IP": "203.0.113.9"})
    running.stop("quit")
    assert running.access_log().splitlines()[-1] == "203.0.113.9 200"


def test_no_prefix_header_without_a_prefix(serving: Start, upstream: Upstream) -> None:
    assert serving(proxying(upstream)).ask("/x").status == 200
    assert "x-forwarded-prefix" not in upstream.last.headers


def test_prefix_of_a_regex_is_what_it_matched(serving: Start, upstream: Upstream) -> None:
    assert serving(proxying(upstream, paths=["~/v\\d+/"])).ask("/v12/x").status == 200
    assert upstream.last.headers.get("x-forwarded-prefix") == "/v12/"
    assert upstream.last.target == "/x"


@pytest.mark.parametrize("trusted", ["", "127.0.0.1"])
@pytest.mark.parametrize("preserve", [False, True])
def test_without_a_host_none_is_made_up(
    serving: Start, upstream: Upstream, preserve: bool, trusted: str
) -> None:
    config = proxying(upstream, paths=["/api"], preserve_host=preserve)
    running = serving(config, trusted_ips=trusted)
    for line in (b"GET /api/x HTTP/1.0\r\n\r\n", b"GET /api/x\r\n"):
        with running.wire() as wire:
            wire.send(line)
            assert wire.read_to_end()
        headers = upstream.last.headers
        assert "x-forwarded-host" not in headers
        assert headers.get("host") == upstream.address
        assert headers.get("x-forwarded-port") == str(running.proxy_port)
    # One that is said goes up as before.
    with running.wire() as wire:
        wire.send(b"GET http://a.example/api/x HTTP/1.0\r\n\r\n")
        assert wire.read_head().status == 200
    assert upstream.last.headers.get("x-forwarded-host") == "a.example"
    assert upstream.last.headers.get("host") == ("a.example" if preserve else upstream.address)


# Via, latencies, request id


def test_via(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream))
    reply = running.ask("/")
    assert re.fullmatch(r"1\.1 sluice/\S+", upstream.last.headers.get("via") or "")
    assert re.fullmatch(r"1\.1 sluice/\S+", reply.headers.get("via") or "")
    running.ask("/", headers={"Via": "1.0 first"})
    assert re.fullmatch(r"1\.0 first, 1\.1 sluice/\S+", upstream.last.headers.get("via") or "")
    running.ask("/", headers=[("Via", "1.0 first"), ("via", "1.1 second, 1.1 third")])
    (said,) = upstream.last.headers.all("via")
    assert re.fullmatch(r"1\.0 first, 1\.1 second, 1\.1 third, 1\.1 sluice/\S+", said)


def test_server_header_is_the_upstreams(serving: Start, upstream: Upstream) -> None:
    upstream.answer(200, {"Server": "theirs"}, b"x")
    assert serving(proxying(upstream)).ask("/").headers.all("server") == ["theirs"]


def test_latency_headers(serving: Start, upstream: Upstream) -> None:
    headers = serving(proxying(upstream)).ask("/").headers
    for name in ("x-kong-upstream-latency", "x-kong-proxy-latency"):
        assert re.fullmatch(r"\d+", headers.get(name) or ""), name
    assert "x-kong-response-latency" not in headers


def test_upstream_latency_is_that_of_the_upstream(serving: Start, upstream: Upstream) -> None:
    never = threading.Event()

    def slow(exchange: Exchange) -> None:
        never.wait(0.25)
        exchange.reply(200)

    upstream.handler = slow
    running = serving(proxying(upstream))
    begun = time.monotonic()
    headers = running.ask("/").headers
    took = 1000 * (time.monotonic() - begun)
    theirs = int(headers.get("x-kong-upstream-latency") or 0)
    assert 200 <= theirs <= took + 50
    # The rest at most: nginx's clock is that of its turn of the loop.
    assert int(headers.get("x-kong-proxy-latency") or 0) <= took - theirs + 50


def test_header_prefix(serving: Start, upstream: Upstream) -> None:
    headers = serving(proxying(upstream), header_prefix="X-Sluice").ask("/").headers
    assert {"x-sluice-request-id", "x-sluice-proxy-latency"} <= headers.names()
    assert not [name for name in headers.names() if name.startswith("x-kong")]
    assert "x-sluice-request-id" in upstream.last.headers


def test_request_id_is_unique_and_the_same_on_both_sides(
    gateway: Start, upstream: Upstream
) -> None:
    running = gateway(proxying(upstream), access_log_format="$sluice_request_id")
    ids = []
    with running.wire() as wire:
        for _ in range(50):
            reply = wire.ask("/")
            ids.append(reply.headers.get("x-kong-request-id"))
            assert upstream.last.headers.all("x-kong-request-id") == [ids[-1]]
    assert len(set(ids)) == 50
    assert all(re.fullmatch(r"[0-9a-f]{32}", value or "") for value in ids)
    running.stop("quit")
    assert running.access_log().split()[-50:] == ids


def test_request_id_of_the_client_is_not_taken(serving: Start, upstream: Upstream) -> None:
    reply = serving(proxying(upstream)).ask("/", headers={"X-Kong-Request-Id": "mine"})
    assert reply.headers.get("x-kong-request-id") != "mine"
    assert upstream.last.headers.all("x-kong-request-id") == [
        reply.headers.get("x-kong-request-id")
    ]


def test_upstreams_own_latency_headers_do_not_double(serving: Start, upstream: Upstream) -> None:
    upstream.answer(200, {"Via": "1.1 inner"}, b"x")
    with serving(proxying(upstream)).wire() as wire:
        wire.send(request_bytes("/"))
        reply = wire.read_reply()
    assert "1.1 inner" in ", ".join(reply.headers.all("via"))
    assert "sluice" in ", ".join(reply.headers.all("via"))
