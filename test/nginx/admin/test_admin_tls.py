"""The admin listener with TLS: its certificate, and those of its clients."""

import contextlib
import json
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

import h2.events
import http2
import pytest
from floods import CONNECTIONS

from certificates import Pair, connect, context, get, make, shown
from instance import Instance
from sluice import Gateway, Start
from wire import wait_until

NO_CERTIFICATE = b"400 No required SSL certificate was sent"
WRONG = b"400 The SSL certificate error"


@dataclass
class Clients:
    """A CA's file, and clients: `good` has a certificate of it, `bad` one of another, `deep` one of
    an intermediate of it."""

    ca: Path
    good: Pair
    bad: Pair
    deep: Pair


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Clients:
    authority, other = make("ca", is_ca=True), make("other", is_ca=True)
    middle = make("middle", is_ca=True, issuer=authority)
    file = tmp_path_factory.mktemp("ca") / "ca.pem"
    file.write_text(authority.cert)
    return Clients(
        file, make("good", issuer=authority), make("bad", issuer=other), make("deep", issuer=middle)
    )


def start(gateway: Start, words: str = "ssl", **settings: object) -> Gateway:
    """One whose admin listener has TLS."""
    running = Gateway(None)
    port = running.admin_port
    running.discard()
    return gateway(None, admin_listen=f"127.0.0.1:{port} {words}", **settings)


def port_of(running: Gateway) -> int:
    return int(running.settings["admin_listen"].split()[0].rpartition(":")[2])


def answer(running: Gateway, client: Pair | None = None, target: str = "/services") -> bytes:
    """What a client is answered, with a certificate or without one."""
    with connect(port_of(running), None, context(client=client)) as wrapped:
        return get(wrapped, target)


def test_a_certificate_of_its_own(gateway: Start, tmp_path: Path) -> None:
    """Without one it shows the prefix's."""
    running = start(gateway)
    made = shown(port_of(running), None)
    assert answer(running).startswith(b"HTTP/1.1 200 ")
    pair = make("admin.example")
    (tmp_path / "c.pem").write_text(pair.cert)
    (tmp_path / "k.pem").write_text(pair.key)
    running.settings |= {
        "admin_ssl_cert": tmp_path / "c.pem",
        "admin_ssl_cert_key": tmp_path / "k.pem",
    }
    running.reload()
    assert shown(port_of(running), None) == pair.der != made
    # Who speaks without TLS is told.
    with socket.create_connection(("127.0.0.1", port_of(running))) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert plain.recv(4096).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("target", ["/", "/services", "/status", "/nothing", "/config"])
def test_nothing_without_a_certificate(gateway: Start, clients: Clients, target: str) -> None:
    running = start(gateway, admin_client_ca=clients.ca)
    for client, says in ((None, NO_CERTIFICATE), (clients.bad, WRONG)):
        found = answer(running, client, target)
        assert found.startswith(b"HTTP/1.1 400 ")
        assert says in found
        assert b"json" not in found
    assert answer(running, clients.good).startswith(b"HTTP/1.1 200 ")
    # The command's own socket has no TLS.
    assert running.command("get", "services").returncode == 0


def test_a_write_without_a_certificate_changes_nothing(gateway: Start, clients: Clients) -> None:
    running = start(gateway, admin_client_ca=clients.ca)
    body = b"username=alice"
    head = (
        b"POST /consumers HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n"
    )
    for client, status in ((None, b"400"), (clients.bad, b"400"), (clients.good, b"201")):
        with connect(port_of(running), None, context(client=client)) as wrapped:
            wrapped.sendall(head % len(body) + body)
            assert wrapped.recv(65536).startswith(b"HTTP/1.1 " + status), status
    # Where it was refused, nobody made it before: it could not have been made twice.


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("who", ["", "bad"])
def test_a_session_of_the_proxy_is_none_here(
    gateway: Start, clients: Clients, version: ssl.TLSVersion, who: str
) -> None:
    """Both have the same certificate of their own; the proxy takes any of its clients."""
    running = start(gateway, admin_client_ca=clients.ca, tls="ssl", ask_client_certificate=True)
    using = context(version=version, client=clients.bad if who else None)
    request = b"GET /services HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    sessions, reused = [], []
    for port in (running.tls_port, running.tls_port, port_of(running)):
        with connect(port, None, using, *sessions) as wrapped:
            wrapped.sendall(request)
            found = wrapped.recv(65536)
            sessions = [wrapped.session]
            reused.append(wrapped.session_reused)
    # The proxy itself resumes none of a certificate that it has not verified.
    assert reused == [False, not who, False]
    assert found.startswith(b"HTTP/1.1 400 ")


def test_depth_and_optional(gateway: Start, clients: Clients) -> None:
    running = start(gateway, admin_client_ca=clients.ca, admin_verify_client="optional")
    assert answer(running).startswith(b"HTTP/1.1 200 ")
    assert answer(running, clients.good).startswith(b"HTTP/1.1 200 ")
    assert answer(running, clients.deep).startswith(b"HTTP/1.1 200 ")
    assert WRONG in answer(running, clients.bad)
    running.settings["admin_verify_depth"] = 0
    running.reload()
    assert answer(running, clients.good).startswith(b"HTTP/1.1 200 ")
    assert WRONG in answer(running, clients.deep)
    running.settings["admin_verify_client"] = "off"
    running.reload()
    assert answer(running, clients.bad).startswith(b"HTTP/1.1 200 ")


def test_another_ca_takes_the_place_at_a_reload(
    gateway: Start, clients: Clients, tmp_path: Path
) -> None:
    """Also for a client that would resume its session."""
    file = tmp_path / "ca.pem"
    file.write_text(clients.ca.read_text())
    running = start(gateway, admin_client_ca=file)
    using = context(client=clients.good)
    with connect(port_of(running), None, using) as wrapped:
        assert get(wrapped, "/services").startswith(b"HTTP/1.1 200 ")
        session = wrapped.session
    file.write_text(make("new", is_ca=True).cert)
    done = running.command("reload")
    assert done.stdout.startswith("reloaded"), done.stdout + done.stderr
    with connect(port_of(running), None, using, session) as wrapped:
        assert WRONG in get(wrapped, "/services")


def test_http2_with_a_body_and_without_a_length(gateway: Start, clients: Clients) -> None:
    """As the clients of Go speak it: the chart's listeners have http2."""
    running = start(gateway, "http2 ssl", admin_client_ca=clients.ca)
    using = context(client=clients.good, alpn=http2.HTTP2)
    config = {"_format_version": "3.0", "consumers": [{"username": "alice"}]}
    with connect(port_of(running), "localhost", using) as wrapped:
        client = http2.Client(wrapped)
        kind = [("content-type", "application/json")]
        stream = client.ask("/config?wait=1", "localhost", "POST", headers=kind, end=False)
        client.h2.send_data(stream, json.dumps(config).encode(), end_stream=True)
        client.flush()
        targets, statuses = ["/consumers/alice", "/status"], []
        for event in client.events():
            if isinstance(event, h2.events.ResponseReceived):
                statuses.append(dict(event.headers)[":status"])
            elif isinstance(event, h2.events.StreamEnded):
                if not targets:
                    break
                client.ask(targets.pop(), "localhost")
                client.flush()
    assert statuses == ["201", "200", "200"]
    bare = context(alpn=http2.HTTP2)
    with connect(port_of(running), "localhost", bare) as wrapped:
        client = http2.Client(wrapped)
        client.ask("/services", "localhost")
        client.flush()
        data = b""
        for event in client.events():
            if isinstance(event, h2.events.DataReceived):
                data += event.data
            elif isinstance(event, h2.events.StreamEnded):
                break
    assert NO_CERTIFICATE in data


HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
"""The beginning of a handshake that is never ended."""


@pytest.mark.parametrize("sent", [HELLO, b"\x16", b""])
def test_stalled_handshakes_shut_nobody_out(gateway: Start, clients: Clients, sent: bytes) -> None:
    """The oldest of them gives way to who comes, so that nobody waits for their time to end."""
    running = start(gateway, admin_client_ca=clients.ca, worker_connections=CONNECTIONS)
    stalled: list[socket.socket] = []
    try:
        for _ in range(4):
            for _ in range(CONNECTIONS):
                stalled.append(socket.create_connection(("127.0.0.1", port_of(running))))
                stalled[-1].sendall(sent)
            assert answer(running, clients.good).startswith(b"HTTP/1.1 200 ")
            assert running.command("get", "services").returncode == 0
            for client in stalled[: -CONNECTIONS // 2]:
                client.close()
            del stalled[: -CONNECTIONS // 2]
    finally:
        for client in stalled:
            client.close()
    assert "connections refused" not in running.error_log()


def test_requests_in_work_do_not_give_way(gateway: Start) -> None:
    """Those whose handshake is done and who have begun to ask; who comes then is closed."""
    running = start(gateway, worker_connections=CONNECTIONS)
    running.expect_log("connections refused: the admin listener has 128 open", range(1, 1000))
    head = b"POST /consumers HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    with contextlib.ExitStack() as slow:
        for _ in range(CONNECTIONS // 2):
            slow.enter_context(connect(port_of(running), None)).sendall(head)

        def is_refused() -> bool:
            try:
                slow.enter_context(connect(port_of(running), None)).sendall(head)
            except (ssl.SSLError, ConnectionError):
                return True
            return False

        wait_until(is_refused, "one too many")
        assert running.command("get", "services").returncode == 0


def test_beyond_loopback_a_ca_is_as_good_as_a_token(instance: Instance, clients: Clients) -> None:
    listen = f"0.0.0.0:{instance.admin_port}"
    refused = instance.refuse("start", code=2, admin_listen=f"{listen} ssl")
    assert refused[0].startswith(f"sluice: admin_listen: {listen} is not on loopback")
    for more in ({"admin_verify_client": "optional"}, {"admin_listen": listen}):
        flags = {"admin_listen": f"{listen} ssl", "admin_client_ca": str(clients.ca)} | more
        assert instance.run("start", **flags).returncode == 2
    instance.succeed("start", admin_listen=f"{listen} ssl", admin_client_ca=str(clients.ca))


def test_a_ca_that_is_none(instance: Instance, clients: Clients) -> None:
    listen = f"127.0.0.1:{instance.admin_port}"
    (line,) = instance.refuse("start", code=2, admin_client_ca=str(clients.ca))
    assert line.startswith("sluice: admin_client_ca: no address of admin_listen has ssl")
    wrong = instance.folder / "wrong.pem"
    wrong.write_text("nothing")
    none = instance.folder / "none"
    for file, says in ((wrong, "is no certificate in PEM"), (none, "cannot read")):
        (line,) = instance.refuse("start", admin_listen=f"{listen} ssl", admin_client_ca=str(file))
        assert line.startswith("sluice: admin_client_ca: ")
        assert says in line
    other = f"127.0.0.1:{instance.proxy_port}"
    done = instance.run(
        "start",
        proxy_listen="off",
        admin_listen=f"{listen} ssl, {other}",
        admin_client_ca=str(clients.ca),
    )
    assert done.stderr == (
        f"sluice: warning: admin_client_ca: clients of {other}, which is without ssl, need no "
        "certificate\n"
    )
