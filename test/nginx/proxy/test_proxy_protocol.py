"""The PROXY protocol, from whom the address is believed, and headers that are none."""

import json
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import h2.events
import http2
import pytest
from ports import Ports
from proxy_protocol import GET, OWN, RIGHT, Listeners, connected, ended, started, v1, v2

from certificates import context
from instance import Instance
from sluice import proxying
from upstream import Upstream
from wire import Stream, Wire, request_bytes, wait_until


@pytest.fixture(scope="module")
def listeners() -> Iterator[Listeners]:
    with Upstream() as server, started(server) as made:
        yield made


def over_plain(listeners: Listeners, send: Callable[[socket.socket], None]) -> dict:
    with connected(listeners.plain) as client:
        send(client)
        stream = Wired(client)
        return stream.headers_seen()


class Wired(Stream):
    """What an upstream has seen, told in its answer."""

    def headers_seen(self, request: bytes | None = None) -> dict:
        self.sock.sendall(request or request_bytes("/", headers={"Connection": "close"}))
        head, _, body = self.read_to_end().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        return {name.lower(): value for name, value in json.loads(body)["headers"]}


def over_tls(listeners: Listeners, send: Callable[[socket.socket], None]) -> dict:
    with connected(listeners.tls) as client:
        send(client)
        with context().wrap_socket(client) as wrapped:
            return Wired(wrapped).headers_seen()


def seen_over(client: http2.Client) -> dict:
    client.ask("/", "localhost")
    client.flush()
    data = b""
    for event in client.events():
        if isinstance(event, h2.events.DataReceived):
            data += event.data
        elif isinstance(event, h2.events.StreamEnded):
            break
    return {name.lower(): value for name, value in json.loads(data)["headers"]}


def over_http2(listeners: Listeners, send: Callable[[socket.socket], None]) -> dict:
    with connected(listeners.tls) as client:
        send(client)
        with context(alpn=http2.HTTP2).wrap_socket(client) as wrapped:
            return seen_over(http2.Client(wrapped))


def over_clear_http2(listeners: Listeners, send: Callable[[socket.socket], None]) -> dict:
    with connected(listeners.clear_h2) as client:
        send(client)
        return seen_over(http2.Client(client))


WAYS = [over_plain, over_tls, over_http2, over_clear_http2]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RIGHT)
def test_the_address_of_a_header(
    listeners: Listeners, name: str, way: Callable[[Listeners, Callable], dict]
) -> None:
    header, client = RIGHT[name]
    seen = way(listeners, lambda plain: plain.sendall(header))
    assert seen["x-real-ip"] == client
    assert seen["x-forwarded-for"] == client
    port = {over_plain: listeners.plain, over_clear_http2: listeners.clear_h2}
    assert seen["x-forwarded-port"] == str(port.get(way, listeners.tls))
    proto = "https" if way in (over_tls, over_http2) else "http"
    assert seen["x-forwarded-proto"] == proto


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["v1", "v1-unknown", "v2-6", "v2-tlv"])
def test_a_header_in_many_packets(
    listeners: Listeners, name: str, way: Callable[[Listeners, Callable], dict]
) -> None:
    header, client = RIGHT[name]

    def send(plain: socket.socket) -> None:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(header)):
            plain.sendall(header[at : at + 1])

    assert way(listeners, send)["x-real-ip"] == client


def test_a_header_and_a_request_in_one_packet(listeners: Listeners) -> None:
    with connected(listeners.plain) as client:
        request = request_bytes("/", headers={"Connection": "close"})
        seen = Wired(client).headers_seen(v1("192.0.2.9") + request)
    assert seen["x-real-ip"] == "192.0.2.9"


def test_only_one_header_is_read(listeners: Listeners) -> None:
    """A second one is a request line that is none; nobody puts another address behind the first."""
    before = listeners.counts()
    with connected(listeners.plain) as client:
        client.sendall(v1("192.0.2.1") + v1("192.0.2.2") + request_bytes("/"))
        assert client.recv(4096).startswith(b"HTTP/1.1 400 ")
    with connected(listeners.plain) as client:
        client.sendall(v2("192.0.2.1") + v2("192.0.2.2") + request_bytes("/"))
        assert client.recv(4096).startswith(b"HTTP/1.1 400 ")
    assert listeners.counts() == before


def test_all_requests_of_a_connection_have_it(listeners: Listeners) -> None:
    with Wire(listeners.plain) as wire:
        wire.send(v2("192.0.2.77"))
        for _ in range(3):
            assert wire.ask("/").status == 200
    log = listeners.gateway.access_log
    line = "from 192.0.2.77 56324 at 127.0.0.1"
    wait_until(lambda: log().count(line) == 3, "three lines of the access log")


def test_forwarded_headers_are_kongs(listeners: Listeners) -> None:
    """The balancer that is trusted passes on what its client wrote, which is believed as in Kong;
    whose connection it is says X-Real-IP."""
    sent = {"X-Forwarded-For": "198.51.100.1", "X-Real-IP": "1.1.1.1", "X-Forwarded-Proto": "https"}
    with connected(listeners.plain) as client:
        request = request_bytes("/", headers=sent | {"Connection": "close"})
        seen = Wired(client).headers_seen(v1("192.0.2.1") + request)
    assert seen["x-forwarded-for"] == "198.51.100.1, 127.0.0.1"
    assert seen["x-real-ip"] == "192.0.2.1"
    assert seen["x-forwarded-proto"] == "https"


@pytest.mark.parametrize("way", WAYS)
def test_an_untrusted_balancer_is_not_believed(
    upstream: Upstream, way: Callable[[Listeners, Callable], dict]
) -> None:
    """Its header is read, and has to be right."""
    with started(upstream, trusted_ips="10.0.0.0/8") as made:
        seen = way(made, lambda plain: plain.sendall(v2("192.0.2.1")))
        assert (seen["x-real-ip"], seen["x-forwarded-for"]) == (OWN, OWN)
        with connected(made.plain) as client:
            client.sendall(GET)
            assert ended(client)
        assert made.counts()["missing"] == 1


def test_what_goes_by_the_address(upstream: Upstream) -> None:
    """Restrictions and limits see the client, of either family."""
    restriction = {"name": "ip-restriction", "config": {"deny": ["192.0.2.66", "2001:db8:66::/48"]}}
    limit = {
        "name": "rate-limiting",
        "config": {"year": 2, "limit_by": "ip", "policy": "local"},
    }
    config = proxying(upstream) | {"plugins": [restriction, limit]}
    with started(upstream, config) as made:

        def status(client: str) -> bytes:
            with connected(made.plain) as plain:
                plain.sendall(v2(client) + request_bytes("/", headers={"Connection": "close"}))
                return Stream(plain).read_to_end().split()[1]

        assert status("192.0.2.66") == status("2001:db8:66::1") == b"403"
        for client in ("192.0.2.1", "2001:db8::1"):
            assert [status(client) for _ in range(3)] == [b"200", b"200", b"429"]
        assert status("192.0.2.2") == b"200"


def test_admin_and_status(upstream: Upstream) -> None:
    """They take it as the proxy does; the audit log names the client."""
    with started(upstream, audit_log="logs/audit.log") as made:
        with connected(made.admin) as client:
            client.sendall(v1("192.0.2.5"))
            with context().wrap_socket(client) as wrapped:
                wrapped.sendall(request_bytes("/services", "POST", {"Connection": "close"}, b""))
                assert Stream(wrapped).read_to_end().startswith(b"HTTP/1.1 405 ")
        with connected(made.status) as client:
            client.sendall(v2("192.0.2.5") + request_bytes("/status/ready"))
            assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
        log: Path = made.gateway.settings["prefix"] / "logs" / "audit.log"
        wait_until(lambda: "192.0.2.5" in log.read_text(), "its line in the audit log")


def test_stalled_headers_do_not_hold_the_admin_listener(upstream: Upstream) -> None:
    """Who has begun one gives way, as who sends nothing."""
    with started(upstream, worker_connections=256, log_level="notice") as made:
        stalled = []
        try:
            for _ in range(400):
                stalled.append(connected(made.admin))
                stalled[-1].sendall(b"PROXY TCP4 ")
                if len(stalled) > 200:
                    stalled.pop(0).close()
            with connected(made.admin) as client:
                client.sendall(v1("192.0.2.5"))
                with context().wrap_socket(client) as wrapped:
                    wrapped.sendall(request_bytes("/services", headers={"Connection": "close"}))
                    assert Stream(wrapped).read_to_end().startswith(b"HTTP/1.1 200 ")
        finally:
            for client in stalled:
                client.close()
        assert "connections refused" not in made.gateway.error_log()


def test_deferred_and_reuseport(upstream: Upstream) -> None:
    """nginx would read at once of a connection that the kernel has deferred."""
    words = "proxy_protocol deferred reuseport backlog=64"
    ports = Ports()
    port = ports.take()
    listen = f"127.0.0.1:{port} {words}"
    with started(upstream, proxy_listen=listen, proxy_port=port, workers=2):
        for number in range(20):
            with connected(port) as client:
                client.sendall(v1(f"192.0.2.{number}"))
                assert Wired(client).headers_seen()["x-real-ip"] == f"192.0.2.{number}"
    ports.release()


def test_settings_that_go_together(instance: Instance) -> None:
    """Addresses that nobody uses are warned of, and so is what has nothing to use."""
    listen = f"127.0.0.1:{instance.proxy_port} proxy_protocol"
    right = {"trusted_ips": "10.0.0.0/8", "real_ip_header": "proxy_protocol"}
    unused = "sluice: warning: proxy_listen: the addresses in headers of the PROXY protocol are not"
    for flags, says in (
        ({"proxy_listen": listen}, unused),
        ({"proxy_listen": listen, "trusted_ips": "10.0.0.0/8"}, unused),
        ({"proxy_listen": listen, "real_ip_header": "proxy_protocol"}, unused),
        (right, "sluice: warning: real_ip_header: no address has proxy_protocol"),
        ({"proxy_listen": listen} | right, ""),
    ):
        done = instance.run("start", **flags)
        assert done.returncode == 0
        told = [line for line in done.stderr.splitlines() if "from the last start" not in line]
        assert len(told) == (1 if says else 0)
        assert "".join(told).startswith(says)
        instance.succeed("stop")


def test_no_tls_before_the_header(listeners: Listeners) -> None:
    with connected(listeners.tls) as client, pytest.raises((ssl.SSLError, OSError)):
        context().wrap_socket(client)
