"""TLS to upstreams: who is verified and how, and sessions.

Whose connections and sessions are used by whom: test_tls_upstream_identity.py.
"""

import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
from tls_upstreams import VERSIONS, answer

from certificates import Pair, expired, make, server
from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Wire, request_bytes

REJECTED = "upstream SSL certificate|handshake rejected"


class Authority:
    """A CA, and a file with it."""

    def __init__(self, path: Path, name: str = "ca", issuer: Pair | None = None) -> None:
        self.pair = make(name, is_ca=True, issuer=issuer)
        self.file = path / f"{name}.pem"
        self.file.write_text(self.pair.cert)

    def server(self, *names: str, extensions: tuple[str, ...] = ()) -> Pair:
        """For a server of these names and addresses."""
        kinds = [
            "IP" if name.replace(".", "").isdigit() or ":" in name else "DNS" for name in names
        ]
        listed = tuple(f"{kind}:{name}" for kind, name in zip(kinds, names, strict=True))
        return make(names[0], issuer=self.pair, names=listed, extensions=extensions)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """A CA."""
    return Authority(tmp_path_factory.mktemp("authority"))


def verifying(upstream: Upstream, host: str = "", **service: Any) -> dict[str, Any]:
    """One route to an upstream that is verified, by its address or under a name."""
    service = {"tls_verify": True, "retries": 0} | service
    if not host:
        return proxying(upstream, service=service)
    config = proxying(f"https://{host}", service=service)
    config["upstreams"] = [
        {"name": host, "host_header": host, "targets": [{"target": upstream.address}]}
    ]
    return config


def status(start: Start, shown: Pair, trusted: Authority, host: str = "", **service: Any) -> int:
    """Of a request to an upstream with this certificate; who is refused has seen no request."""
    with Upstream(answer, tls=server(shown)) as upstream:
        config = verifying(upstream, host, **service)
        running = start(config, proxy_ssl_trusted_certificate=trusted.file)
        running.expect_log(REJECTED, range(3))
        found = running.ask("/").status
        assert len(upstream.requests) == (1 if found == 200 else 0)
        return found


# Who is verified


def test_an_upstream_of_a_trusted_ca(serving: Start, authority: Authority) -> None:
    assert status(serving, authority.server("127.0.0.1"), authority) == 200


@pytest.mark.parametrize("service", [{}, {"tls_verify": False}, {"tls_verify_depth": 0}])
def test_nobody_is_verified_by_default(
    gateway: Start, authority: Authority, service: dict[str, Any]
) -> None:
    with Upstream(answer, tls=server(authority.server("other.test"))) as upstream:
        running = gateway(proxying(upstream, service=service))
        assert running.ask("/").status == 200
    line = 'services[0] "service".tls_verify: the certificate of the upstream is not verified'
    assert line in running.warned


def test_another_ca_of_the_same_name(serving: Start, authority: Authority, tmp_path: Path) -> None:
    assert status(serving, Authority(tmp_path).server("127.0.0.1"), authority) == 502


def test_several_files_of_cas(serving: Start, authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    with Upstream(answer, tls=server(authority.server("127.0.0.1"))) as upstream:
        files = [other.file, authority.file]
        running = serving(verifying(upstream), proxy_ssl_trusted_certificate=files)
        assert running.ask("/").status == 200


def test_where_nobody_is_trusted(serving: Start, authority: Authority) -> None:
    with Upstream(answer, tls=server(authority.server("127.0.0.1"))) as upstream:
        running = serving(verifying(upstream), proxy_ssl_trusted_certificate="")
        running.expect_log(r"verify error: \(19:self-signed certificate in certificate chain\)")
        running.expect_log("handshake rejected")
        assert running.ask("/").status == 502
        assert upstream.requests == []


def test_a_certificate_that_has_expired(serving: Start, authority: Authority) -> None:
    with Upstream(answer, tls=server(expired(authority.pair))) as upstream:
        running = serving(verifying(upstream), proxy_ssl_trusted_certificate=authority.file)
        running.expect_log(r"verify error: \(10:certificate has expired\)")
        running.expect_log("handshake rejected")
        assert running.ask("/").status == 502


@pytest.mark.parametrize(
    ("purpose", "expected"), [("serverAuth", 200), ("clientAuth", 502), ("codeSigning", 502)]
)
def test_a_certificate_that_is_for_something_else(
    serving: Start, authority: Authority, purpose: str, expected: int
) -> None:
    shown = authority.server("127.0.0.1", extensions=(f"extendedKeyUsage={purpose}",))
    assert status(serving, shown, authority) == expected


def test_a_leaf_is_no_ca(serving: Start, authority: Authority) -> None:
    """A certificate that vouches for another, without the right to."""
    leaf = authority.server("leaf.test")
    shown = make("127.0.0.1", issuer=leaf, names=("IP:127.0.0.1",))
    assert status(serving, shown, authority, tls_verify_depth=64) == 502


@pytest.mark.parametrize(
    ("between", "depth", "expected"),
    [
        (0, 0, 200),
        (1, 0, 502),
        (1, None, 200),
        (2, None, 502),
        (1, 1, 200),
        (2, 2, 200),
        (3, 64, 200),
    ],
)
def test_cas_between(
    serving: Start, tmp_path: Path, between: int, depth: int | None, expected: int
) -> None:
    root = issuer = Authority(tmp_path)
    for number in range(between):
        issuer = Authority(tmp_path, f"ca{number}", issuer.pair)
    limits = {} if depth is None else {"tls_verify_depth": depth}
    assert status(serving, issuer.server("127.0.0.1"), root, **limits) == expected


# By which name


@pytest.mark.parametrize(
    ("host", "name", "expected"),
    [
        ("a.test", "a.test", 200),
        ("a.test", "A.TEST", 200),
        ("a.test", "b.test", 502),
        ("a.test", "aa.test", 502),
        ("a.test", "x.a.test", 502),
        ("a.test", "test", 502),
        ("a.test", "*.test", 502),
        ("x.a.test", "*.test", 502),
        ("x.a.test", "*.a.test", 200),
        ("a.test", "*.a.test", 502),
        ("ab.test", "a*.test", 502),
        ("a.test", "127.0.0.1", 502),
    ],
)
def test_the_name_of_the_certificate(
    serving: Start, authority: Authority, host: str, name: str, expected: int
) -> None:
    assert status(serving, authority.server(name), authority, host) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("127.0.0.1", 200), ("127.0.0.2", 502), ("localhost", 502)]
)
def test_an_address_is_verified_as_one(
    serving: Start, authority: Authority, name: str, expected: int
) -> None:
    assert status(serving, authority.server(name), authority) == expected


def test_a_common_name_that_looks_like_the_address(serving: Start, authority: Authority) -> None:
    shown = make("127.0.0.1", issuer=authority.pair, names=("DNS:127.0.0.1",))
    assert status(serving, shown, authority) == 502


@pytest.mark.parametrize(("name", "expected"), [("::1", 200), ("::2", 502)])
def test_an_ipv6_address(serving: Start, authority: Authority, name: str, expected: int) -> None:
    issued = authority.server(name)
    with Upstream(answer, host="::1", tls=server(issued)) as upstream:
        running = serving(verifying(upstream), proxy_ssl_trusted_certificate=authority.file)
        running.expect_log(REJECTED, range(3))
        assert running.ask("/").status == expected


def test_the_clients_host_is_verified_where_it_is_kept(
    serving: Start, authority: Authority
) -> None:
    issued = authority.server("a.test", "*.b.test")
    with Upstream(answer, tls=server(issued)) as upstream:
        config = verifying(upstream)
        config["services"][0]["routes"][0]["preserve_host"] = True
        running = serving(config, proxy_ssl_trusted_certificate=authority.file)
        running.expect_log(REJECTED, range(100))
        for host, expected in (
            ("a.test", 200),
            ("a.test:8443", 200),
            ("a.test.", 200),
            ("A.test", 200),
            ("x.b.test", 200),
            ("c.test", 502),
            ("b.test", 502),
            ("127.0.0.1", 502),
            ("[::1]", 502),
            ("[::1]:443", 502),
            ("xa.test", 502),
        ):
            assert running.ask("/", headers={"Host": host}).status == expected, host


@pytest.mark.parametrize(("name", "statuses"), [("127.0.0.1", [200]), ("a.test", [500, 502])])
def test_without_a_host_the_target_is_verified(
    serving: Start, authority: Authority, name: str, statuses: list[int]
) -> None:
    with Upstream(answer, tls=server(authority.server(name))) as upstream:
        config = verifying(upstream)
        config["services"][0]["routes"][0]["preserve_host"] = True
        running = serving(config, proxy_ssl_trusted_certificate=authority.file)
        running.expect_log(REJECTED, range(9))
        with Wire(running.proxy_port) as wire:
            wire.send(b"GET / HTTP/1.0\r\n\r\n")
            assert wire.read_reply().status in statuses
        assert len(upstream.requests) == statuses.count(200)


# Another target


def test_a_target_that_is_not_verified_costs_a_try(
    serving: Start, authority: Authority, tmp_path: Path
) -> None:
    wrong, right = Authority(tmp_path).server("a.test"), authority.server("a.test")
    with (
        Upstream(answer, tls=server(wrong)) as one,
        Upstream(answer, tls=server(right)) as two,
    ):
        config = verifying(two, "a.test", retries=1)
        config["upstreams"][0]["targets"].append({"target": one.address})
        running = serving(config, proxy_ssl_trusted_certificate=authority.file)
        running.expect_log(REJECTED, range(2, 40))
        for _ in range(6):
            assert running.ask("/").status == 200
        assert one.requests == []


def test_a_slow_handshake_has_the_connect_timeout(serving: Start, authority: Authority) -> None:
    done = threading.Event()

    class Silent(Upstream):
        def _secured(self, sock: socket.socket) -> socket.socket:
            done.wait(10)
            raise OSError

    with Silent(answer, tls=server(authority.server("127.0.0.1"))) as upstream:
        config = verifying(upstream, connect_timeout=200)
        running = serving(config, proxy_ssl_trusted_certificate=authority.file)
        running.expect_log("upstream timed out")
        assert running.ask("/").status == 504
        done.set()


# Settings


def test_a_file_that_is_not_there_is_refused(gateway: Start) -> None:
    running = Gateway({}, proxy_ssl_trusted_certificate="/nowhere.pem")
    done = running.command("start")
    running.discard()
    assert done.returncode == 1
    assert "proxy_ssl_trusted_certificate: cannot read /nowhere.pem" in done.stderr


def test_a_file_without_certificates_is_refused(gateway: Start, tmp_path: Path) -> None:
    path = tmp_path / "none.pem"
    path.write_text("nothing\n")
    running = Gateway({}, proxy_ssl_trusted_certificate=path)
    done = running.command("start")
    running.discard()
    assert done.returncode == 1
    assert "cannot load CA certificates" in done.stderr


# Sessions


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("verify", [True, False])
def test_new_connections_resume_sessions(
    serving: Start, authority: Authority, version: ssl.TLSVersion, verify: bool
) -> None:
    context = server(authority.server("127.0.0.1"), version=version)
    with Upstream(answer, tls=context) as upstream:
        running = serving(
            verifying(upstream, tls_verify=verify),
            proxy_ssl_trusted_certificate=authority.file,
            upstream_keepalive_pool_size=0,
        )
        seen = [running.ask("/").json() for _ in range(4)]
        assert [said["resumed"] for said in seen] == [False, True, True, True]
        assert {said["version"] for said in seen} == {
            "TLSv1.2" if version == ssl.TLSVersion.TLSv1_2 else "TLSv1.3"
        }


@pytest.mark.parametrize("version", VERSIONS)
def test_an_upstream_that_forgets_sessions(
    serving: Start, authority: Authority, version: ssl.TLSVersion
) -> None:
    """As after its restart: other keys of tickets."""
    issued = authority.server("127.0.0.1")
    with Upstream(answer, tls=server(issued, version=version)) as upstream:
        running = serving(
            verifying(upstream),
            proxy_ssl_trusted_certificate=authority.file,
            upstream_keepalive_pool_size=0,
        )
        for _ in range(3):
            assert not running.ask("/").json()["resumed"]
            assert running.ask("/").json()["resumed"]
            upstream.tls = server(issued, version=version)


def test_bodies_and_tunnels_of_verified_upstreams(serving: Start, authority: Authority) -> None:
    with Upstream(tls=server(authority.server("127.0.0.1"))) as upstream:
        running = serving(verifying(upstream), proxy_ssl_trusted_certificate=authority.file)
        for number in range(3):
            said = running.ask("/", "POST", body=b"b" * 300_000).json()
            assert (said["length"], said["nth"]) == (300_000, number)
        with Wire(running.proxy_port) as wire:
            wire.send(request_bytes("/") * 2)
            assert [wire.read_reply().json()["connection"] for _ in range(2)] == [0, 0]
