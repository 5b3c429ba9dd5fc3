"""Listen addresses by what they mean: moves by reload and restart, strangers, twins."""

import http.client
import os
import re
import shlex
import socket
from pathlib import Path

import pytest
from ports import needs_ipv6

from instance import SECONDS, Instance
from wire import wait_until

V4, V6 = "127.0.0.1", "::1"

# Each row: addresses before and after, who answers then, whether nginx can reload to it. Without
# IPv6 here those with it are skipped.
MOVES = [
    ("127.0.0.1:P", "0.0.0.0:P", [V4], False),
    ("0.0.0.0:P", "127.0.0.1:P", [V4], False),
    ("*:P", "0.0.0.0:P", [V4], True),
    ("0.0.0.0:P", "*:P", [V4], True),
    ("127.0.0.1:P,0.0.0.0:P", "0.0.0.0:P", [V4], True),
    ("127.0.0.1:P,0.0.0.0:P", "127.0.0.1:P", [V4], False),
    ("127.0.0.1:P reuseport", "0.0.0.0:P reuseport", [V4], True),
    ("127.0.0.1:P", "0.0.0.0:P reuseport", [V4], False),
    ("[::1]:P", "[::]:P", [V6], False),
    ("[::]:P", "[::1]:P", [V6], False),
    ("[::1]:P", "[0:0::1]:P", [V6], True),
    ("[::1]:P", "0.0.0.0:P", [V4], True),
    ("127.0.0.1:P,[::1]:P", "0.0.0.0:P,[::1]:P", [V4, V6], False),
    ("0.0.0.0:P,[::1]:P", "127.0.0.1:P,[::1]:P", [V4, V6], False),
    ("127.0.0.1:P,[::1]:P", "[::1]:P,127.0.0.1:P", [V4, V6], True),
    ("[::]:P", "[::]:P ipv6only=off", [V4, V6], False),
    ("127.0.0.1:P", "[::]:P ipv6only=off", [V4, V6], False),
    ("[::]:P ipv6only=off", "0.0.0.0:P", [V4], False),
]


def row(
    old: str, new: str, hosts: list[str], reloads: bool
) -> "pytest.ParameterSet":  # one of MOVES
    """A case, which says so where this machine cannot have it."""
    marks = [needs_ipv6] if "::" in old + new else []
    return pytest.param(old, new, hosts, reloads, marks=marks, id=f"{old}-{new}".replace(" ", "_"))


def answers(host: str, port: int) -> bool:
    """Whether the gateway is there."""
    connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == 404
    except (ConnectionRefusedError, ConnectionResetError):
        return False
    finally:
        connection.close()


def localhost() -> list[str]:
    """Its addresses, of which nginx opens each."""
    found = socket.getaddrinfo(
        "localhost", None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
    )
    return sorted({str(each[4][0]) for each in found})


def listened(hosts: list[str], port: int) -> str:
    """A setting with addresses."""
    return ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host in hosts)


def state(instance: Instance) -> tuple[int, dict]:
    """Its master and workers."""
    found = instance.status()
    return found["pid"], found["workers"]


def started(instance: Instance, listen: str) -> None:
    """Starts it there."""
    instance.flags["--proxy-listen"] = listen
    instance.succeed("start")


@pytest.mark.parametrize(("old", "new", "hosts", "reloads"), [row(*each) for each in MOVES])
def test_reload_moves_where_nginx_can(
    instance: Instance, old: str, new: str, hosts: list[str], reloads: bool
) -> None:
    port = instance.proxy_port
    old, new = (text.replace("P", str(port)) for text in (old, new))
    started(instance, old)
    before = state(instance)
    if reloads:
        assert "reloaded: 2 new workers" in instance.succeed("reload", proxy_listen=new)
        assert all(answers(host, port) for host in hosts)
        assert instance.status()["pid"] == before[0]
        return
    lines = instance.refuse("reload", proxy_listen=new)
    restart = instance.hint("restart", shlex.join(["--proxy-listen", new]))
    assert re.fullmatch(
        rf"sluice: proxy_listen: \S+:{port} overlaps \S+:{port}, which this gateway has open: only "
        rf"{re.escape(restart)} can change to it",
        lines[0],
    )
    assert lines[1:] == ["sluice: reload refused: the running configuration is kept"]
    assert state(instance) == before
    # What it refused is not remembered.
    assert "nothing has changed" in instance.succeed("reload")


@pytest.mark.parametrize(("old", "new", "hosts", "reloads"), [row(*each) for each in MOVES])
def test_restart_moves_to_its_own_port(
    instance: Instance, old: str, new: str, hosts: list[str], reloads: bool
) -> None:
    port = instance.proxy_port
    old, new = (text.replace("P", str(port)) for text in (old, new))
    started(instance, old)
    pid = instance.status()["pid"]
    assert "started" in instance.succeed("restart", proxy_listen=new)
    assert instance.status()["pid"] != pid
    assert all(answers(host, port) for host in hosts)


@pytest.mark.parametrize("verb", ["reload", "restart"])
def test_a_name_and_its_addresses_are_one(instance: Instance, verb: str) -> None:
    """Which localhost has is this machine's choice."""
    port, hosts = instance.proxy_port, localhost()
    started(instance, f"localhost:{port}")
    for new in (listened(hosts, port), f"localhost:{port}"):
        instance.succeed(verb, proxy_listen=new)
        assert all(answers(host, port) for host in hosts)


def test_a_name_beside_a_wildcard(instance: Instance) -> None:
    """A reload is told of the address, not of the name."""
    port = instance.proxy_port
    name = f"localhost:{port}"
    started(instance, name)
    for host in localhost():
        new = listened(["::" if ":" in host else "0.0.0.0"], port)
        assert instance.refuse("reload", proxy_listen=new)[0].startswith(
            f"sluice: proxy_listen: {new} overlaps {listened([host], port)}, which this gateway "
        )
        instance.succeed("restart", proxy_listen=new)
        assert answers(host, port)
        assert instance.refuse("reload", proxy_listen=name)[0].startswith(
            f"sluice: proxy_listen: {name} ({listened([host], port)}) overlaps {new}, which this "
        )
        instance.succeed("restart", proxy_listen=name)
        assert answers(host, port)


def test_the_listeners_change_their_addresses(instance: Instance) -> None:
    """The same sockets, of other servers: nginx hands them on."""
    proxy, admin = f"127.0.0.1:{instance.proxy_port}", f"127.0.0.1:{instance.admin_port}"
    instance.succeed("start")
    instance.succeed("reload", proxy_listen=admin, admin_listen=proxy)
    wait_until(
        lambda: answers(V4, instance.admin_port) and not answers(V4, instance.proxy_port),
        "the listeners to change",
    )


STRANGERS = [
    pytest.param(socket.AF_INET, V4, ["127.0.0.1", "0.0.0.0", "*"], id="ipv4"),
    pytest.param(socket.AF_INET, "0.0.0.0", ["127.0.0.1", "*"], id="all-ipv4"),
    pytest.param(socket.AF_INET6, V6, ["[::1]", "[::]"], id="ipv6", marks=needs_ipv6),
    pytest.param(socket.AF_INET6, "::", ["[::1]", "127.0.0.1"], id="both", marks=needs_ipv6),
]


@pytest.mark.parametrize(("family", "host", "wanted"), STRANGERS)
def test_a_strangers_port_is_told_with_its_program(
    instance: Instance, family: int, host: str, wanted: list[str]
) -> None:
    """This test is the stranger."""
    instance.succeed("start")
    before = state(instance)
    name = Path("/proc/self/comm").read_text().strip()
    with socket.socket(family) as stranger:
        if family == socket.AF_INET6:
            stranger.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        stranger.bind((host, 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        for each in wanted:
            line = (
                f"sluice: proxy_listen: {each}:{port} is in use by another program "
                f"({name}, pid {os.getpid()}); stop it, or set --proxy-listen to another port"
            )
            for verb in ("reload", "restart"):
                assert instance.refuse(verb, proxy_listen=f"{each}:{port}")[0] == line
    assert state(instance) == before
    assert answers(V4, instance.proxy_port)


@needs_ipv6
def test_a_stranger_of_ipv6_alone_is_in_nobodys_way(instance: Instance) -> None:
    """Beside the gateway's IPv4 socket, with the same port."""
    port = instance.proxy_port
    instance.succeed("start")
    with socket.socket(socket.AF_INET6) as stranger:
        stranger.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        stranger.bind(("::", port))
        stranger.listen()
        assert "overlaps" in instance.refuse("reload", proxy_listen=f"0.0.0.0:{port}")[0]
        instance.succeed("restart", proxy_listen=f"0.0.0.0:{port}")
        assert answers(V4, port)


def test_one_address_by_two_texts(instance: Instance) -> None:
    """nginx would refuse it, or give all connections to one of the two."""
    port = instance.proxy_port
    name = f"localhost:{port}"
    for address in (listened([host], port) for host in localhost()):
        for one, other in ((name, address), (address, name)):
            assert instance.refuse("start", code=2, proxy_listen=f"{one},{other}")[0] == (
                f"sluice: proxy_listen: {one} and {other} are one address; leave one out"
            )
            assert instance.refuse("start", code=2, proxy_listen=one, admin_listen=other)[0] == (
                f"sluice: admin_listen: {other} is also the proxy_listen address {one}; "
                "use another port"
            )
    assert not instance.prefix.exists()
