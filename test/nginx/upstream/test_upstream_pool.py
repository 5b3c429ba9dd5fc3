"""Kept connections to upstreams: which are, for how long, and what ends them (`sluice_upstream`).

Who may use which: test_upstream_identity.py.
"""

import json
import os
import random
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from changes import document, post
from threads import beside

from nginx import Nginx
from pools import Either, List, answer, ask, named, pooled, used, walk
from sluice import Start, proxying
from upstream import Exchange, Upstream, self_signed
from wire import DEADLINE, Wire, request_bytes, wait_until

EVIL = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"


@pytest.fixture(params=["http", "https"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Upstream]:
    """An upstream without TLS, and one with."""
    tls = named(tmp_path) if request.param == "https" else None
    with Upstream(answer, tls=tls) as running:
        yield running


# Which are kept


def test_https_upstreams_are_pooled(gateway: Start, tmp_path: Path) -> None:
    with Upstream(tls=self_signed(tmp_path)) as upstream:
        running = gateway(proxying(upstream), workers=1)
        for number in range(20):
            assert running.ask(f"/{number}").json()["nth"] == number
        assert upstream.connections == 1


@pytest.mark.parametrize("setting", ["request_buffering", "response_buffering"])
def test_unbuffered_requests_are_pooled(gateway: Start, tmp_path: Path, setting: str) -> None:
    with Upstream(tls=self_signed(tmp_path)) as upstream:
        running = gateway(proxying(upstream, **{setting: False}), workers=1)
        for number in range(5):
            assert running.ask("/", "POST", body=b"b" * 100_000).json()["nth"] == number


def test_every_request_uses_the_connection_that_a_list_would_give_it(tmp_path: Path) -> None:
    with ExitStack() as stack:
        context = named(tmp_path)
        servers = [stack.enter_context(Either(answer, tls=context)) for _ in range(4)]
        running = stack.enter_context(pooled("6"))
        assert walk(running, servers, List(6), random.Random(14)) > 30


def test_each_of_500_targets_keeps_its_connection(gateway: Start) -> None:
    with Upstream(host="0.0.0.0") as upstream:
        addresses = [f"127.0.{n // 250}.{n % 250 + 1}:{upstream.port}" for n in range(500)]
        config = proxying("http://balanced.test")
        targets = [{"target": address} for address in addresses]
        config["upstreams"] = [{"name": "balanced.test", "targets": targets}]
        with gateway(config, workers=1).wire() as wire:
            for nth in range(2):
                assert {wire.ask("/").json()["nth"] for _ in addresses} == {nth}
        assert upstream.connections == 500


def test_the_connection_that_was_idle_for_longest_makes_room() -> None:
    with ExitStack() as stack:
        one, two, three = (stack.enter_context(Upstream(answer)) for _ in range(3))
        running = stack.enter_context(pooled("2"))
        for server in (one, two, one, three):
            ask(running, server)
        assert used(ask(running, one)).nth == 2
        assert used(ask(running, three)).nth == 1
        assert used(ask(running, two)).connection == 1


def test_connections_of_concurrent_requests_are_kept_up_to_the_size(server: Upstream) -> None:
    together = threading.Barrier(6)

    def answer_together(exchange: Exchange) -> None:
        together.wait(DEADLINE)
        answer(exchange)

    with pooled("4") as running:
        server.handler = answer_together
        for connections in (6, 8):
            with beside(*[partial(ask, running, server)] * 6):
                pass
            assert server.connections == connections


@pytest.mark.parametrize(
    "head",
    [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2",
        "HTTP/1.0 200 OK\r\nContent-Length: 2",
        "HTTP/1.1 200 OK\r\nConnection: keep-alive, Close\r\nContent-Length: 2",
    ],
)
def test_what_the_upstream_will_close_is_not_kept(server: Upstream, head: str) -> None:
    server.handler = lambda exchange: exchange.send(f"{head}\r\n\r\nok".encode())
    with pooled("4") as running:
        for number in range(3):
            assert ask(running, server).body == b"ok"
            assert server.last.connection == number


def test_a_response_that_ends_with_its_connection_is_not_kept(server: Upstream) -> None:
    def until_the_end(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 200 OK\r\n\r\nall")
        exchange.keep = False

    server.handler = until_the_end
    with pooled("4") as running:
        for number in range(3):
            assert ask(running, server).body == b"all"
            assert server.last.connection == number


def test_an_upstream_that_answers_before_the_body_has_come_is_not_kept(server: Upstream) -> None:
    server.handler = lambda exchange: exchange.send(b"HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n")
    more = "location /early { proxy_request_buffering off; proxy_pass @scheme@://pooled; }"
    scheme = "https" if server.tls else "http"
    with pooled("4", more=more.replace("@scheme@", scheme)) as running:
        for number in range(2):
            with Wire(running.proxy_port) as wire:
                target = f"/early?to={server.address}&as="
                wire.send(request_bytes(target, "POST", {"Content-Length": "1000"}) + b"some")
                assert wire.read_reply().status == 413
            assert server.last.connection == number


def test_a_response_that_its_client_left_is_not_kept(server: Upstream) -> None:
    ended = threading.Event()

    def begin(exchange: Exchange) -> None:
        exchange.keep = False
        try:
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n" + b"some" * 9000)
            has_ended = exchange.ended()
        except OSError:
            # The client may leave after the first record of several.
            has_ended = True
        if has_ended:
            ended.set()

    server.handler = begin
    with pooled("4") as running:
        with Wire(running.proxy_port) as wire:
            path = "/https" if server.tls else "/http"
            wire.send(request_bytes(f"{path}?to={server.address}&as="))
            wire.read_head()
        assert ended.wait(DEADLINE)
        server.handler = answer
        assert used(ask(running, server)).connection == 1


# For how long


def test_requests_of_a_connection_are_limited(server: Upstream) -> None:
    with pooled("4 requests=3") as running:
        uses = [used(ask(running, server)) for _ in range(7)]
    assert [(use.connection, use.nth) for use in uses] == [
        (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0),
    ]  # fmt: skip


def end_of(server: Upstream) -> threading.Event:
    """Set when an idle connection of this server is closed by nginx."""
    ended = threading.Event()

    def answer_and_wait(exchange: Exchange) -> None:
        answer(exchange)
        if exchange.ended():
            ended.set()
        exchange.keep = False

    server.handler = answer_and_wait
    return ended


def test_an_idle_connection_is_closed_in_time(server: Upstream) -> None:
    ended = end_of(server)
    with pooled("4 timeout=400ms") as running:
        ask(running, server)
        assert ended.wait(DEADLINE)
        assert used(ask(running, server)).connection == 1


def test_connections_to_a_removed_target_age_out(gateway: Start) -> None:
    """Not at once: the target may come back. Those to who stays go on."""
    with Upstream(name="goes") as goes, Upstream(name="stays") as stays:
        config = proxying("http://some")
        targets = [{"target": server.address} for server in (goes, stays)]
        config["upstreams"] = [{"name": "some", "targets": targets}]
        running = gateway(config, upstream_keepalive_idle_timeout="2s")
        for _ in range(4):
            assert running.ask("/").status == 200
        config["upstreams"][0]["targets"] = targets[1:]
        assert post(running, document(config)).status_code == 201
        assert running.ask("/").json()["upstream"] == "stays"
        assert goes.open() == 1
        wait_until(lambda: running.ask("/").status == 200 and not goes.open(), "the connection")
        assert (goes.connections, stays.connections) == (1, 1)


def test_a_connection_has_a_time_in_which_it_takes_requests(server: Upstream) -> None:
    with pooled("4 time=50ms") as running:
        first = used(ask(running, server))
        wait_until(lambda: used(ask(running, server)).connection > first.connection, "a new one")


def test_idle_connections_end_with_their_worker(server: Upstream) -> None:
    ended = end_of(server)
    with pooled("4 timeout=1h") as running:
        ask(running, server)
        running.restart_workers()
        assert ended.wait(DEADLINE)
        assert used(ask(running, server)).connection == 1


def test_a_reload_ends_idle_connections_and_no_request(gateway: Start, tmp_path: Path) -> None:
    with Upstream(tls=named(tmp_path)) as upstream:
        running = gateway(proxying(upstream), workers=1, upstream_keepalive_idle_timeout="1h")
        assert running.ask("/").status == 200
        running.reload()
        assert running.ask("/").json()["nth"] == 0


# What ends them


def test_an_idle_connection_that_the_upstream_closes_is_forgotten(server: Upstream) -> None:
    with pooled("4") as running:
        for number in range(5):
            assert used(ask(running, server, method="POST")).connection == number
            server.drop_connections()
            wait_until(lambda: not server._open, "the connection to be gone")
            # nginx hears of it in its next turn at the latest, so before this request.
            assert ask(running, server, path="/alive").status == 204


@pytest.mark.parametrize("more", [EVIL, b"x", b"HTTP/1.1 408 Late\r\nConnection: close\r\n\r\n"])
def test_what_comes_on_an_idle_connection_ends_it(server: Upstream, more: bytes) -> None:
    ended = threading.Event()

    def answer_and_send(exchange: Exchange) -> None:
        answer(exchange)
        if exchange.request.connection == 0:
            ended.wait(0.05)
            exchange.send(more)
            if exchange.ended():
                ended.set()
            exchange.keep = False

    server.handler = answer_and_send
    with pooled("4") as running:
        assert used(ask(running, server)).connection == 0
        assert ended.wait(DEADLINE)
        assert used(ask(running, server)).connection == 1


@pytest.mark.parametrize("buffering", ["on", "off"])
def test_what_comes_with_a_response_is_not_the_next_one(server: Upstream, buffering: str) -> None:
    """The response ends where nginx's buffer does: it reads no further, but TLS has."""

    def answer_twice(exchange: Exchange) -> None:
        exchange.read_body()
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\nX-Fill: "
        rest = 4096 - 3000 - len(head) - 4
        exchange.send(head + b"x" * rest + b"\r\n\r\n" + b"y" * 3000 + EVIL)

    server.handler = answer_twice
    scheme = "https" if server.tls else "http"
    more = f"location /some {{ proxy_buffering {buffering}; proxy_pass {scheme}://pooled; }}"
    with pooled("4", more=more) as running:
        for number in range(5):
            assert ask(running, server, path="/some").body == b"y" * 3000
            assert server.last.connection == number


def test_a_response_that_fills_the_buffer_leaves_its_connection(server: Upstream) -> None:
    def fill(exchange: Exchange) -> None:
        exchange.read_body()
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\nX-Fill: "
        rest = 4096 - 3000 - len(head) - 4
        exchange.send(head + b"x" * rest + b"\r\n\r\n" + b"y" * 3000)

    server.handler = fill
    with pooled("4") as running:
        for number in range(3):
            assert ask(running, server).body == b"y" * 3000
            assert (server.last.connection, server.last.nth) == (0, number)


@pytest.mark.parametrize("buffering", ["on", "off"])
def test_an_upstream_that_says_goodbye_with_its_response_is_believed(
    tmp_path: Path, buffering: str
) -> None:
    """TLS's own end comes with the response, the connection's does not."""

    def answer_and_part(exchange: Exchange) -> None:
        sock = exchange.sock
        assert isinstance(sock, ssl.SSLSocket)
        parted.append(os.dup(sock.fileno()))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        answer(exchange)
        sock.setblocking(False)
        with pytest.raises(ssl.SSLWantReadError):
            sock.unwrap()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
        exchange.keep = False

    parted: list[int] = []
    more = f"location /some {{ proxy_buffering {buffering}; proxy_pass https://pooled; }}"
    with (
        Upstream(answer_and_part, tls=named(tmp_path)) as server,
        pooled("4", more=more) as running,
    ):
        for number in range(3):
            assert used(ask(running, server, "", "/some", "POST")).connection == number
    for descriptor in parted:
        os.close(descriptor)


# A kept connection that is dead


def dies_when_used_again(exchange: Exchange) -> None:
    """Reads the second request of a connection and closes."""
    if exchange.request.nth == 0:
        answer(exchange)
    else:
        exchange.keep = False


def test_a_dead_connection_costs_no_try(server: Upstream) -> None:
    server.handler = dies_when_used_again
    with pooled("4", second=server.address) as running:
        running.expect_log("upstream prematurely closed connection|reset by peer", 3)
        for number in range(4):
            assert used(ask(running, server)).connection == number


def test_a_request_that_may_not_be_sent_twice_is_not(server: Upstream) -> None:
    server.handler = dies_when_used_again
    with pooled("4", second=server.address) as running:
        running.expect_log("upstream prematurely closed connection|reset by peer", 1)
        assert ask(running, server, method="POST").status == 200
        assert ask(running, server, method="POST").status == 502
        assert len(server.requests) == 2
        assert used(ask(running, server, method="POST")).connection == 1


def test_a_gateway_sends_again_what_a_dead_connection_has_lost(
    gateway: Start, tmp_path: Path
) -> None:
    def die(exchange: Exchange) -> None:
        if exchange.request.nth:
            exchange.keep = False
        else:
            exchange.reply(200, body=json.dumps(exchange.request.connection).encode())

    with Upstream(die, tls=self_signed(tmp_path)) as upstream:
        running = gateway(proxying(upstream, service={"retries": 0}), workers=1)
        running.expect_log("upstream prematurely closed connection|reset by peer", 3)
        assert [running.ask("/").json() for _ in range(4)] == [0, 1, 2, 3]


# The directive


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        ("0", 'invalid parameter "keepalive=0" in "sluice_upstream"'),
        ("many", 'invalid parameter "keepalive=many"'),
        ("1 requests=x", 'invalid parameter "requests=x"'),
        ("1 timeout=", 'invalid parameter "timeout="'),
        ("1 time=1y1y", 'invalid parameter "time=1y1y"'),
        ("1 local", 'invalid parameter "local"'),
        ("1; sluice_upstream", '"sluice_upstream" directive is duplicate'),
    ],
)
def test_directives_that_are_refused(pool: str, said: str) -> None:
    assert said in pooled(pool).refuses()


def test_what_wraps_our_balancer_does_not_call_it_for_ever(server: Upstream) -> None:
    """nginx's keepalive keeps the balancer before it as its own."""
    nginx = Nginx(
        f"""
        upstream up {{ server {server.address}; sluice_upstream; keepalive 4; }}
        server {{ listen 127.0.0.1:@port@; location / {{ proxy_pass http://up; }} }}
        """,
        workers=1,
    )
    with nginx as running:
        # Ours asks the gateway for a peer, and this is none.
        running.expect_log("before the request had a peer")
        assert running.ask("/").status == 500


@pytest.mark.parametrize("block", ["sluice_upstream; least_conn;", "least_conn; sluice_upstream;"])
def test_another_balancer_chooses_wherever_it_stands(server: Upstream, block: str) -> None:
    scheme = "https" if server.tls else "http"
    nginx = Nginx(
        f"""
        upstream up {{ server {server.address}; {block} }}
        server {{
            listen 127.0.0.1:@port@;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            location / {{ proxy_pass {scheme}://up; }}
        }}
        """,
        workers=1,
    )
    with nginx as running:
        # No keepalive= keeps none.
        assert [used(running.ask("/")).connection for _ in range(2)] == [0, 1]
