"""Sessions: resumed by any worker, over reloads and upgrades, and under the same name alone."""

import contextlib
import os
import signal
import socket
import ssl
from pathlib import Path

import pytest

from certificates import connect, context, get, make, run
from sluice import Gateway, Start, wait_until

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


class Client:
    """A client of one version, who keeps its last session."""

    def __init__(self, port: int, version: ssl.TLSVersion, *, tickets: bool = True) -> None:
        self.port, self.context = port, context(version=version)
        self.session: ssl.SSLSession | None = None
        if not tickets:
            self.context.options |= ssl.OP_NO_TICKET

    def visit(self, name: str | None, host: str = "localhost") -> bool:
        """Makes a request under a name, and tells whether the session was resumed."""
        with connect(self.port, name, self.context, self.session) as wrapped:
            # In TLS 1.3 tickets come behind the handshake.
            assert get(wrapped, host=host).startswith(b"HTTP/1.1 404 ")
            self.session = wrapped.session
            return bool(wrapped.session_reused)


def client(running: Gateway, version: ssl.TLSVersion, **how: bool) -> Client:
    return Client(running.tls_port, version, **how)


@pytest.mark.parametrize("version", VERSIONS)
def test_any_worker_resumes(gateway: Start, version: ssl.TLSVersion) -> None:
    running = gateway({}, tls="ssl reuseport", workers=3)
    visitor = client(running, version)
    assert not visitor.visit("a.example")
    assert all(visitor.visit("a.example") for _ in range(20))
    running.reload()
    assert all(visitor.visit("A.example.") for _ in range(10))


def test_a_ticket_of_tls_13_is_followed_by_another(gateway: Start) -> None:
    """Browsers use one once: without the next they would resume every other time."""
    running = gateway({}, tls="ssl")
    visitor = client(running, ssl.TLSVersion.TLSv1_3)
    visitor.visit("a.example")
    seen = set()
    for _ in range(3):
        assert visitor.session
        seen.add(visitor.session.id)
        assert visitor.visit("a.example")
    assert len(seen) == 3


@pytest.mark.parametrize("version", VERSIONS)
def test_a_restart_forgets(gateway: Start, version: ssl.TLSVersion) -> None:
    running = gateway({}, tls="ssl")
    visitor = client(running, version)
    visitor.visit("a.example")
    assert running.command("restart").returncode == 0
    assert not visitor.visit("a.example")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_upgrade_keeps_sessions(gateway: Start, version: ssl.TLSVersion) -> None:
    running = gateway({}, tls="ssl")
    visitor = client(running, version)
    visitor.visit("a.example")
    old = running.master()
    running.start_new_master()
    wait_until(running.workers, "its workers")
    os.kill(old, signal.SIGQUIT)
    wait_until(lambda: not os.path.exists(f"/proc/{old}"), "the old master to go")
    assert visitor.visit("a.example")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("tickets", [True, False])
def test_another_name_is_another_session(
    gateway: Start, version: ssl.TLSVersion, tickets: bool
) -> None:
    """CVE-2025-23419: what was agreed under one name is nothing under another."""
    pair = make("a")
    given = [{"cert": pair.cert, "key": pair.key, "snis": [{"name": "*.example"}]}]
    running = gateway({"certificates": given}, tls="ssl")
    # There is no cache of sessions. TLS 1.3 has no other way than tickets, and no option of them.
    has_tickets = tickets or version is ssl.TLSVersion.TLSv1_3
    names = ["a.example", "b.example", "other", None, "a.exampl", "aa.example", "sluice proxy 1"]
    for first in names:
        for second in names:
            visitor = client(running, version, tickets=tickets)
            assert not visitor.visit(first)
            assert visitor.visit(second) == (has_tickets and first == second), (first, second)


def test_a_session_is_not_of_another_version(gateway: Start) -> None:
    running = gateway({}, tls="ssl")
    old = client(running, ssl.TLSVersion.TLSv1_2)
    new = client(running, ssl.TLSVersion.TLSv1_3)
    old.visit("a")
    new.session, new.context = old.session, context()
    with contextlib.suppress(ValueError):  # Python refuses the session of another context
        assert not new.visit("a")


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_another_name_after_a_second_hello(gateway: Start, version: str, tmp_path: Path) -> None:
    """A client that begins with a group which the gateway does not take says hello twice."""
    running = gateway({}, tls="ssl")
    session = tmp_path / "session"

    def visit(name: str, *options: str) -> bool:
        printed = run(
            *("s_client", version, "-groups", "ffdhe2048:P-256", "-servername", name, "-ign_eof"),
            *("-connect", f"127.0.0.1:{running.tls_port}", *options),
            text="GET / HTTP/1.0\r\n\r\n",
        )
        assert "HTTP/1.1 404" in printed
        return "Reused, " in printed

    assert not visit("a.example", "-sess_out", str(session))
    assert not visit("b.example", "-sess_in", str(session))
    assert visit("a.example", "-sess_in", str(session))


@pytest.mark.parametrize("version", VERSIONS)
def test_wrong_tickets_are_no_error(gateway: Start, version: ssl.TLSVersion) -> None:
    """Tickets of another gateway, with keys that this one never had."""
    mine, other = gateway({}, tls="ssl"), gateway({}, tls="ssl")
    visitor = client(other, version)
    visitor.visit("a")
    visitor.port = mine.tls_port
    assert not visitor.visit("a")
    assert visitor.visit("a")


def client_hello(name: bytes | None, extension: bytes | None = None) -> bytes:
    """A ClientHello of TLS 1.2, with a server name or these bytes of the extension."""
    if extension is None and name is not None:
        entry = b"\0" + len(name).to_bytes(2, "big") + name
        extension = len(entry).to_bytes(2, "big") + entry
    extensions = b""
    if extension is not None:
        extensions += b"\0\0" + len(extension).to_bytes(2, "big") + extension
    extensions += bytes.fromhex("000a00060004001d0017 000d0006000404030804".replace(" ", ""))
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x04\xc0\x2b\xc0\x2f" + b"\x01\0"
    body += len(extensions).to_bytes(2, "big") + extensions
    return b"\x01" + len(body).to_bytes(3, "big") + body


def records(handshake: bytes, size: int = 16384) -> bytes:
    """The same in records."""
    parts = [handshake[i : i + size] for i in range(0, len(handshake), size)]
    return b"".join(b"\x16\x03\x01" + len(p).to_bytes(2, "big") + p for p in parts)


def answer(port: int, data: bytes, *, end: bool = True) -> bytes:
    """What comes back, until the gateway closes or has answered."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
        # Some are cut off while they still send.
        with contextlib.suppress(OSError):
            plain.sendall(data)
            if end:
                plain.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            return plain.recv(65536)
    return b""


def test_hostile_hellos(gateway: Start) -> None:
    """No hello ends a worker, and one that is wrong gets an alert, no certificate."""
    running = gateway({}, tls="ssl")
    port, (worker,) = running.tls_port, running.workers()
    running.expect_log(r"packet length too long", range(9))
    fine = records(client_hello(b"a.example"))
    assert answer(port, fine, end=False)[:1] == b"\x16"
    assert answer(port, records(client_hello(None)), end=False)[:1] == b"\x16"
    for cut in range(1, len(fine)):
        assert answer(port, fine[:cut])[:1] != b"\x16"
    for name in (b"127.0.0.1", b"::1", b"*", b"*.example", b"a..b", b".", b"\xff\xfe", b"x" * 255):
        assert answer(port, records(client_hello(name)), end=False)[:1] == b"\x16", name
    wrong = [
        b"",
        b"\0",
        b"\0\0",
        b"\0\3\0\0\0",
        b"\0\4\1\0\1a",
        b"\xff\xff\0\0\1a",
        b"\0\4\0\0\2a",
        b"\0\4\0\0\1a\0",
        b"\0\x05\0\0\2a\0",
        b"\0\x08\0\0\1a\0\0\1b",
        b"\1\3\0\1\0" + b"x" * 256,
    ]
    for extension in wrong:
        reply = answer(port, records(client_hello(None, extension)), end=False)
        assert reply[:1] == b"\x15", extension
    for name in (b"a\nb", b"\x1b[2J", b"a\r", b"\x7f", b"\0", b"a\0.example", b"\t.a"):
        assert answer(port, records(client_hello(name)), end=False)[:1] == b"\x15", name
    long = records(client_hello(None, (64998).to_bytes(2, "big") + bytes(64998)))
    assert answer(port, long, end=False)[:1] in (b"\x15", b"")
    for size in (1, 7):
        assert answer(port, records(client_hello(b"a.example"), size), end=False)[:1] == b"\x16"
    for garbage in (b"\x16\x03\x01\xff\xff" + bytes(70000), b"\x80\x2e\x01\0\2" + bytes(80)):
        assert answer(port, garbage)[:1] != b"\x16"
    assert running.workers() == [worker]
