"""The ip-restriction plugin: which addresses may pass, and what an address is; 20,000 ranges."""

import socket
from typing import Any

import pytest
from admin_client import Client
from http2 import speaking
from plugin_pages import example
from ports import needs_ipv6

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Pairs, Wire, outcome

JSON = {"Accept": "application/json"}
TRUSTING = {"trusted_ips": ["127.0.0.0/8"], "real_ip_header": "X-Forwarded-For"}


def restricted(upstream: Upstream, **config: Any) -> dict[str, Any]:
    """One route for some addresses."""
    return proxying(upstream) | {"plugins": [{"name": "ip-restriction", "config": config}]}


def refused(address: str) -> tuple[int, str]:
    """The answer to one."""
    return 403, f"IP address not allowed: {address}"


def sent_for(*addresses: str) -> Pairs:
    """Headers of a request that comes through proxies."""
    return JSON | {"X-Forwarded-For": ", ".join(addresses)}


def test_the_example_of_the_page(serving: Start, upstream: Upstream) -> None:
    running = serving(example("ip-restriction", upstream.url), **TRUSTING)
    for address, status in {
        "127.0.0.1": 200,
        "10.1.2.3": 200,
        "fd00::1": 200,
        "10.9.2.3": 403,
        "11.0.0.1": 403,
        "fe00::1": 403,
    }.items():
        assert running.ask("/orders", headers=sent_for(address)).status == status, address


CASES = [
    ({"allow": ["127.0.0.1"]}, True),
    ({"allow": ["127.0.0.0/8"]}, True),
    ({"allow": ["127.0.0.2", "127.0.0.0/31"]}, True),
    ({"allow": ["127.0.0.2"]}, False),
    ({"allow": ["0.0.0.0/0"]}, True),
    ({"allow": ["::/0"]}, False),
    ({"allow": ["::ffff:127.0.0.1"]}, True),
    ({"allow": ["::ffff:0:0/96"]}, True),
    ({"deny": ["127.0.0.1"]}, False),
    ({"deny": ["128.0.0.0/1"]}, True),
    ({"deny": ["0.0.0.0/1"]}, False),
    ({"deny": ["::/0", "2001:db8::/32"]}, True),
    ({"allow": ["127.0.0.1"], "deny": ["127.0.0.0/24"]}, False),
    ({"allow": ["127.0.0.1"], "deny": ["10.0.0.0/8"]}, True),
    ({"allow": [], "deny": ["10.0.0.0/8"]}, True),
]


@pytest.mark.parametrize(("config", "passes"), CASES)
def test_lists(client: Client, upstream: Upstream, config: dict[str, Any], passes: bool) -> None:
    client.must(201, "POST", "/services", {"name": "s", "url": upstream.url})
    client.must(201, "POST", "/services/s/routes", {"name": "r", "paths": ["/"]})
    client.must(201, "POST", "/plugins", {"name": "ip-restriction", "config": config})
    found = outcome(client.running.ask("/", headers=JSON))
    assert found == ((200, None) if passes else refused("127.0.0.1"))
    assert len(upstream.requests) == passes


def test_status_and_message(serving: Start, upstream: Upstream) -> None:
    running = serving(restricted(upstream, deny=["127.0.0.1"], status=451, message="not <here>"))
    assert outcome(running.ask("/", headers=JSON)) == (451, "not <here>")
    assert "not &lt;here&gt;" in running.ask("/", headers={"Accept": "text/html"}).text


SPOOFED = [
    {"X-Forwarded-For": "10.0.0.1"},
    {"X_Forwarded_For": "10.0.0.1"},
    {"X-Real-IP": "10.0.0.1"},
    {"Forwarded": "for=10.0.0.1"},
    {"X-Client-IP": "10.0.0.1", "True-Client-IP": "10.0.0.1"},
]


@pytest.mark.parametrize("headers", SPOOFED)
def test_who_is_not_trusted_has_his_own_address(
    serving: Start, upstream: Upstream, headers: dict[str, str]
) -> None:
    running = serving(restricted(upstream, allow=["10.0.0.0/8"]))
    assert outcome(running.ask("/", headers=JSON | headers)) == refused("127.0.0.1")


def test_who_is_trusted_says_for_whom(serving: Start, upstream: Upstream) -> None:
    """The last one, or the last that is not trusted; what is no address is nobody's."""
    config = restricted(upstream, allow=["10.0.0.0/8", "2001:db8::/33"])
    running = serving(config, **TRUSTING, real_ip_recursive=True)
    for addresses, expected in [
        (["10.0.0.1"], (200, None)),
        (["10.0.0.1", "127.0.0.9"], (200, None)),
        (["10.0.0.1", "11.0.0.1"], refused("11.0.0.1")),
        (["2001:db8::9"], (200, None)),
        (["2001:DB8:8000::"], refused("2001:db8:8000::")),
        (["::ffff:10.0.0.1"], (200, None)),
        (["10.0.0.1 "], (200, None)),
        (["10.0.0.1/8"], refused("127.0.0.1")),
        (["unknown"], refused("127.0.0.1")),
        ([""], refused("127.0.0.1")),
    ]:
        found = outcome(running.ask("/", headers=sent_for(*addresses)))
        assert found == expected, addresses
    twice = [("X-Forwarded-For", "10.0.0.1"), ("X-Forwarded-For", "9.9.9.9"), *JSON.items()]
    assert outcome(running.ask("/", headers=twice)) == refused("9.9.9.9")


MAPPED = [
    ({"allow": ["10.0.0.0/8"]}, True),
    ({"deny": ["10.0.0.0/8"]}, False),
    ({"allow": ["11.0.0.0/8"]}, False),
    ({"allow": ["::/0"]}, True),
    ({"deny": ["::/0"]}, False),
    ({"allow": ["::/80"]}, True),
    ({"deny": ["::fffe:0:0/95"]}, False),
    ({"allow": ["::/96"]}, False),
    ({"allow": ["2000::/3"]}, False),
]


@pytest.mark.parametrize(("config", "passes"), MAPPED)
def test_ipv4_that_comes_as_ipv6_is_both(
    serving: Start, upstream: Upstream, config: dict[str, Any], passes: bool
) -> None:
    running = serving(restricted(upstream, **config), **TRUSTING)
    found = outcome(running.ask("/", headers=sent_for("::ffff:10.0.0.1")))
    assert found == ((200, None) if passes else refused("::ffff:10.0.0.1"))


@needs_ipv6
def test_ipv6_connections(upstream: Upstream) -> None:
    running = Gateway(restricted(upstream, allow=["::/127"]))
    port = running.ports.take()
    running.settings["proxy_listen"] += f", [::1]:{port}"
    with running:
        for host, expected in (("::1", (200, None)), ("127.0.0.1", refused("127.0.0.1"))):
            with Wire(port if host == "::1" else running.proxy_port, host) as wire:
                assert outcome(wire.ask("/", headers=JSON)) == expected


def ranges(count: int) -> list[str]:
    """Some of both families, the last of which has 198.51.100.7 and 2001:db8::7."""
    ipv4 = [f"{10 + n // 65536}.{n // 256 % 256}.{n % 256}.0/25" for n in range(count)]
    ipv6 = [f"2001:{n:x}::/48" for n in range(0x1000, 0x1000 + count)]
    return [*ipv4, *ipv6, "198.51.100.0/24", "2001:db8::/64"]


def test_thousands_of_ranges(serving: Start, upstream: Upstream) -> None:
    running = serving(restricted(upstream, deny=ranges(10000)), **TRUSTING)
    for address, status in {
        "198.51.100.7": 403,
        "198.51.101.7": 200,
        "10.3.9.127": 403,
        "10.3.9.128": 200,
        "2001:db8::7": 403,
        "2001:db8:0:1::7": 200,
        "2001:1234:0:1::7": 403,
        "2001:1234:1::7": 200,
    }.items():
        assert running.ask("/", headers=sent_for(address)).status == status, address


def test_too_many_ranges(client: Client) -> None:
    many = [f"2001:{n // 65536:x}:{n % 65536:x}::1" for n in range(60000)]
    reply = client.ask("POST", "/plugins", {"name": "ip-restriction", "config": {"allow": many}})
    assert reply.status == 400
    assert "config.allow: these are too many ranges" in reply.text


REFUSED = [
    ({}, "config.allow"),
    ({"allow": ["10.0.0.0/33"]}, "invalid ip or cidr range: '10.0.0.0/33'"),
    ({"deny": ["10.0.0"]}, "invalid ip or cidr range: '10.0.0'"),
    ({"deny": ["::1/129"]}, "invalid ip or cidr range"),
    ({"deny": ["example.com"]}, "invalid ip or cidr range"),
    ({"deny": ["::1"], "status": 200}, "status must be a whole number from 400 to 599"),
    ({"deny": ["::1"], "status": 403.5}, "status must be a whole number from 400 to 599"),
]


@pytest.mark.parametrize(("config", "words"), REFUSED)
def test_what_is_refused(client: Client, config: dict[str, Any], words: str) -> None:
    reply = client.ask("POST", "/plugins", {"name": "ip-restriction", "config": config})
    assert reply.status == 400
    assert words in reply.json()["message"]


@pytest.mark.parametrize("line", [b"GET /\r\n", b"GET / HTTP/1.0\r\n\r\n"])
def test_old_requests(serving: Start, upstream: Upstream, line: bytes) -> None:
    running = serving(restricted(upstream, deny=["127.0.0.1"]))
    with running.wire() as wire:
        wire.send(line)
        wire.sock.shutdown(socket.SHUT_WR)
        assert b"IP address not allowed: 127.0.0.1" in wire.read_to_end()
    assert upstream.requests == []


def test_upgrades_and_http2(upstream: Upstream) -> None:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "MDEyMzQ1Njc4OTAxMjM0NQ==",
    }
    config = restricted(upstream, deny=["127.0.0.1"])
    with Gateway(config, tls="ssl http2") as running, speaking(running) as client:
        assert running.ask("/", headers=headers).status == 403
        stream = client.ask("/")
        assert client.answers([stream])[stream][0] == 403
    assert upstream.requests == []


def test_a_consumers_addresses(serving: Start, upstream: Upstream) -> None:
    plugins = [
        {"name": "key-auth"},
        {"name": "ip-restriction", "consumer": "away", "config": {"deny": ["127.0.0.0/8"]}},
    ]
    consumers = [
        {"username": name, "keyauth_credentials": [{"key": name}]} for name in ("away", "here")
    ]
    running = serving(proxying(upstream) | {"plugins": plugins, "consumers": consumers})
    assert running.ask("/", headers={"apikey": "here"}).status == 200
    assert running.ask("/", headers={"apikey": "away"}).status == 403


def test_its_schema(client: Client) -> None:
    fields = client.must(200, "GET", "/schemas/plugins/ip-restriction")["fields"]
    found = {name: field for entry in fields for name, field in entry.items()}
    assert found["protocols"]["default"] == ["http", "https", "tcp", "tls", "grpc", "grpcs"]
    names = [name for entry in found["config"]["fields"] for name in entry]
    assert names == ["allow", "deny", "status", "message"]
