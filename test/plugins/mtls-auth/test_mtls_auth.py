"""Client certificates: the plugin mtls-auth, which it accepts and refuses, depth, revocation,
names, and what a session may not carry."""

import contextlib
import sqlite3
import ssl
import subprocess
from typing import Any

import pytest
from admin_client import Client
from tls_clients import OTHER_ID, ROOT_ID, VERSIONS, World, asked, config, start

import certificates
from certificates import connect, context, get, revoked
from sluice import Start
from upstream import Upstream
from wire import wait_until


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.mark.parametrize("version", VERSIONS)
def test_who_passes(
    serving: Start, upstream: Upstream, world: World, version: ssl.TLSVersion
) -> None:
    running = start(serving, config(world, upstream))
    for client in (world.good, world.deep):
        assert b" 200 " in asked(running, client, version=version)[:20]
    assert upstream.last.headers.get("x-client-cert-dn") == "CN=deep client"
    printed = certificates.run(
        "x509", "-noout", "-fingerprint", "-sha256", text=world.deep.cert
    ).strip()
    fingerprint = printed.partition("=")[2].replace(":", "").lower()
    assert upstream.last.headers.get("x-client-cert-fingerprint") == fingerprint
    for client in (world.foreign, world.own):
        answer = asked(running, client, version=version)
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b"TLS certificate failed verification" in answer
    answer = asked(running, None, version=version)
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"No required TLS certificate was sent" in answer
    for client in (world.foreign, None):
        assert b" 200 " in asked(running, client, version=version, target="/free")[:20]
    assert running.get("/").status_code == 401
    assert len(upstream.requests) == 4


def test_clients_do_not_speak_for_the_gateway(
    serving: Start, upstream: Upstream, world: World
) -> None:
    running = start(serving, config(world, upstream))
    lies = ("X-Client-Cert-DN: CN=root", "x_client_cert_dn: CN=root", "X-Client-Cert-Other: 1")
    assert b" 200 " in asked(running, world.good, headers=lies)[:20]
    said = [(n.lower(), v) for n, v in upstream.last.headers if "cert" in n.lower()]
    assert [n for n, _ in said] == ["x-client-cert-dn", "x-client-cert-fingerprint"]
    assert said[0][1] == "CN=good client"
    assert b" 200 " in asked(running, None, target="/free", headers=lies)[:20]
    assert not [n for n, _ in upstream.last.headers if "cert" in n.lower()]


def test_depth(serving: Start, upstream: Upstream, world: World) -> None:
    running = start(serving, config(world, upstream, depth=0))
    assert b" 200 " in asked(running, world.good)[:20]
    assert b" 401 " in asked(running, world.deep)[:20]


def test_a_host_that_is_another_name(serving: Start, upstream: Upstream, world: World) -> None:
    running = start(serving, config(world, upstream))
    for name, host, status in [
        ("a.example", "a.example", 200),
        ("A.example.", "a.EXAMPLE:8443", 200),
        ("a.example", "b.example", 421),
        ("a.example", "a.exampl", 421),
        ("a.example", "a.example.evil", 421),
        (None, "a.example", 200),
    ]:
        assert f" {status} ".encode() in asked(running, world.good, name, host)[:20], (name, host)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("target", ["/", "/free"])
def test_no_session_carries_a_certificate(
    serving: Start, upstream: Upstream, world: World, version: ssl.TLSVersion, target: str
) -> None:
    """CVE-2025-23419: a session with a certificate is resumed nowhere, under no name."""
    running = start(serving, config(world, upstream))
    using = context(client=world.good, version=version)
    for name in ("localhost", "other", None):
        with connect(running.tls_port, "localhost", using) as wrapped:
            assert b" 200 " in get(wrapped, target=target)[:20]
            session = wrapped.session
        assert session is None or not session.has_ticket
        if session is None:
            continue
        with connect(running.tls_port, name, using, session) as wrapped:
            assert not wrapped.session_reused
    # Without a certificate they are resumed, and have none.
    using = context(version=version)
    with connect(running.tls_port, "localhost", using) as wrapped:
        get(wrapped)
        session = wrapped.session
    with connect(running.tls_port, "localhost", using, session) as wrapped:
        assert b" 401 " in get(wrapped)[:20]
        assert wrapped.session_reused


def test_revocation_is_live(gateway: Start, upstream: Upstream, world: World) -> None:
    """A list that comes while a connection is open ends what that may do."""
    running = start(gateway, None)
    admin = running.client

    def put(path: str, value: dict) -> None:
        done = admin.put(f"{running.admin}/{path}", json=value)
        assert done.status_code == 200, done.text

    put(f"ca_certificates/{ROOT_ID}", {"cert": world.root.cert})
    put("services/s", {"url": upstream.url})
    put("routes/r", {"paths": ["/"], "service": {"name": "s"}})
    plugin = {"name": "mtls-auth", "config": {"ca_certificates": [ROOT_ID]}}
    at = f"plugins/{OTHER_ID}"
    put(at, plugin)

    def status(wrapped: ssl.SSLSocket) -> bytes:
        wrapped.sendall(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return wrapped.recv(65536)[9:12]

    with connect(running.tls_port, "localhost", context(client=world.good)) as wrapped:
        assert [status(wrapped) for _ in range(3)] == [b"200"] * 3
        plugin["config"]["crl"] = revoked(world.root)
        put(at, plugin)
        assert status(wrapped) == b"200"
        plugin["config"]["crl"] = revoked(world.root, world.good)
        put(at, plugin)
        assert status(wrapped) == b"401"
        del plugin["config"]["crl"]
        put(at, plugin)
        assert status(wrapped) == b"200"
        put(f"ca_certificates/{ROOT_ID}", {"cert": world.other.cert})
        assert status(wrapped) == b"401"


def test_what_is_wrong_is_said(gateway: Start, upstream: Upstream, world: World) -> None:
    """Where nobody is asked, or a CA is missing, it fails closed."""
    running = start(gateway, config(world, upstream), ask_client_certificate=False)
    running.expect_log(r"see the setting ask_client_certificate", range(1, 9))
    for _ in range(3):
        assert b" 500 " in asked(running, world.good)[:20]
    assert b" 200 " in asked(running, world.good, target="/free")[:20]

    def failures() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = Client(running).must(200, "GET", "/status")["plugins_failed"]
        return found

    (failure,) = wait_until(failures, "the failure to be reported")
    assert failure["plugin"] == "mtls-auth"
    assert "see the setting ask_client_certificate" in failure["message"]
    # Known before a request comes.
    changed = config(world, upstream)
    changed["services"][0]["retries"] = 1
    running.write_config(changed)
    for command in ("check", "reload"):
        done = running.command(command)
        assert done.returncode == 0
        assert '"mtls-auth": no client is asked for a certificate' in done.stderr
    listen = running.settings["proxy_listen"]
    running.settings["proxy_listen"] = f"127.0.0.1:{running.proxy_port}"
    done = running.command("check")
    running.settings["proxy_listen"] = listen
    assert '"mtls-auth": no address of proxy_listen has ssl, so' in done.stderr
    # No file and no write leaves one that is named; a store of an earlier version may.
    other = start(gateway, config(world, upstream))
    other.stop()
    store = other.settings["prefix"] / "store"
    with contextlib.closing(sqlite3.connect(store / "store.db")) as db:
        db.execute("DELETE FROM e_ca_certificates")
        db.commit()
    for name in ("base", "store.db.witness"):  # which would have it made anew
        (store / name).unlink(missing_ok=True)
    other.start()
    other.expect_log(r"a CA certificate is not there", range(1, 9))
    assert b" 500 " in asked(other, world.good)[:20]


def test_a_bad_list_is_refused(gateway: Start, upstream: Upstream, world: World) -> None:
    running = start(gateway, config(world, upstream))
    running.write_config(config(world, upstream, crl="x"))
    done: subprocess.CompletedProcess[str] = running.command("check")
    assert done.returncode != 0
    assert "config.crl: " in done.stderr
