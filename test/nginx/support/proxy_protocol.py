"""The PROXY protocol: headers, and a gateway whose listeners take it."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
from ports import Ports

from sluice import Gateway, proxying
from upstream import Upstream
from wire import DEADLINE, request_bytes

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
REASONS = ("missing", "malformed", "cut", "oversized")
MOST = 4096
"""Bytes of a header."""


def v1(client: str, family: str = "TCP4", own: str = "127.0.0.1") -> bytes:
    return f"PROXY {family} {client} {own} 56324 443\r\n".encode()


def v2(
    client: str = "", *, command: int = 1, family: int | None = None, tlvs: bytes = b""
) -> bytes:
    """A header of version 2; without a client it has no addresses."""
    addresses, kind = b"", 0x00
    if client:
        af, kind = (socket.AF_INET6, 0x21) if ":" in client else (socket.AF_INET, 0x11)
        own = "::1" if ":" in client else "127.0.0.1"
        addresses = socket.inet_pton(af, client) + socket.inet_pton(af, own)
        addresses += struct.pack(">HH", 56324, 443)
    head = bytes([0x20 | command, kind if family is None else family])
    return SIGNATURE + head + struct.pack(">H", len(addresses + tlvs)) + addresses + tlvs


def tlv(size: int) -> bytes:
    """One of so many bytes, of a type that is for private use."""
    return b"\xe0" + struct.pack(">H", size - 3) + b"x" * (size - 3)


LONGEST_LINE = (
    b"PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe "
    b"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"
)

OWN = "127.0.0.1"
RIGHT = {
    "v1": (v1("192.0.2.1"), "192.0.2.1"),
    "v1-6": (v1("2001:db8::1", "TCP6", "::1"), "2001:db8::1"),
    "v1-longest": (LONGEST_LINE, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"),
    "v1-unknown": (b"PROXY UNKNOWN\r\n", OWN),
    "v1-unknown-more": (b"PROXY UNKNOWN ffff::1 what ever 1 2 \x80\r\n", OWN),
    "v1-unknown-longest": (b"PROXY UNKNOWN " + b"x" * 91 + b"\r\n", OWN),
    "v2": (v2("192.0.2.1"), "192.0.2.1"),
    "v2-6": (v2("2001:db8::1"), "2001:db8::1"),
    "v2-local": (v2(command=0), OWN),
    "v2-local-addresses": (v2("192.0.2.1", command=0), OWN),
    "v2-unspecified": (v2(), OWN),
    "v2-datagram": (v2("192.0.2.1", family=0x12), OWN),
    "v2-unix": (v2(family=0x31, tlvs=b"/" * 216), OWN),
    "v2-tlv": (v2("192.0.2.1", tlvs=tlv(200)), "192.0.2.1"),
    "v2-largest": (v2("192.0.2.1", tlvs=tlv(MOST - 28)), "192.0.2.1"),
}

GET = request_bytes("/", headers={"Authorization": "Bearer hidden-token"})


@dataclass
class Listeners:
    """A gateway whose listeners take the PROXY protocol, and one for metrics that does not."""

    gateway: Gateway
    plain: int
    tls: int
    clear_h2: int
    admin: int
    status: int
    metrics: int
    ports: Ports = field(repr=False)

    def counts(self) -> dict[str, int]:
        """The closed connections so far, by reason."""
        text = httpx.get(f"http://127.0.0.1:{self.metrics}/metrics", trust_env=False).text
        name = "sluice_proxy_protocol_closed_connections_total"
        return {
            reason: int(text.partition(f'{name}{{reason="{reason}"}} ')[2].split("\n")[0])
            for reason in REASONS
        }


@contextlib.contextmanager
def started(upstream: Upstream, config: dict | None = None, **more: object) -> Iterator[Listeners]:
    """Listeners of every kind; this machine is trusted unless `more` says another."""
    ports = Ports()
    plain, tls, clear_h2, admin, status, metrics = (ports.take() for _ in range(6))
    proxy_port = more.pop("proxy_port", plain)
    settings: dict[str, object] = {
        "proxy_listen": [
            f"127.0.0.1:{plain} proxy_protocol",
            f"127.0.0.1:{tls} ssl http2 proxy_protocol",
            f"127.0.0.1:{clear_h2} http2 proxy_protocol",
        ],
        "admin_listen": f"127.0.0.1:{admin} ssl proxy_protocol",
        "status_listen": f"127.0.0.1:{status} proxy_protocol, 127.0.0.1:{metrics}",
        "trusted_ips": "127.0.0.1",
        "real_ip_header": "proxy_protocol",
        "log_level": "info",
        "access_log_format": "from $remote_addr $remote_port at $realip_remote_addr",
    }
    running = Gateway(config or proxying(upstream), **settings | more)
    running.proxy_port = int(str(proxy_port))
    with running:
        yield Listeners(running, plain, tls, clear_h2, admin, status, metrics, ports)
    ports.release()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)


def ended(client: socket.socket) -> bool:
    """Whether the gateway closes, without a word."""
    try:
        return client.recv(4096) == b""
    except ConnectionResetError:
        return True
