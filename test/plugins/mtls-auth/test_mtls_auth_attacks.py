"""Attacks on mtls-auth: lists of revocation, weak keys, chains, subjects, hosts and headers that
mean harm, old sessions."""

import contextlib
import ssl

import pytest
from ports import Ports
from tls_clients import OTHER_ID, ROOT_ID, VERSIONS, World, asked, config, start

from certificates import Pair, connect, context, expired, make, revoked
from sluice import Gateway, Start
from upstream import Upstream


@pytest.fixture(scope="module")
def world() -> World:
    """Made once: keys take time."""
    return World()


def status(running: Gateway, client: Pair, target: str = "/") -> int:
    """What a client is answered, with whatever key it has."""
    using = context(ciphers="DEFAULT:@SECLEVEL=0", client=client)
    return int(talked(running, using, f"GET {target} HTTP/1.1\r\nHost: localhost\r\n")[9:12])


def talked(
    running: Gateway, using: ssl.SSLContext, head: str, name: str | None = "localhost"
) -> bytes:
    """All that comes back for the lines of a head."""
    parts = []
    with connect(running.tls_port, name, using) as wrapped:
        wrapped.sendall(f"{head}Connection: close\r\n\r\n".encode("latin-1"))
        with contextlib.suppress(ssl.SSLEOFError, ConnectionError):
            while part := wrapped.recv(65536):
                parts.append(part)
    return b"".join(parts)


def behind(pair: Pair, *others: Pair) -> Pair:
    """A client that sends others' certificates behind its own."""
    first = pair.cert[: pair.cert.index("-----END") + 26]
    return Pair(first + "".join(other.cert for other in others), pair.key)


def test_lists_of_revocation(serving: Start, upstream: Upstream, world: World) -> None:
    """Who has no list that counts is nobody, and a list of a CA above counts, too."""
    root, middle = world.root, world.middle
    of_root, of_middle = revoked(root), revoked(middle)
    garbage = "-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n"
    # list -> what a client of the root, and one of the CA between, is answered
    lists = {
        "of-root": (of_root, 200, 401),
        "of-both": (of_root + of_middle, 200, 200),
        "of-middle": (of_middle, 401, 200),
        "of-another": (revoked(world.other), 401, 401),
        "of-another-root": (revoked(make("root", is_ca=True)), 401, 401),
        "over": (revoked(root, is_over=True) + of_middle, 401, 401),
        "over-and-new": (revoked(root, is_over=True) + of_root + of_middle, 200, 200),
        "good": (revoked(root, world.good) + of_middle, 401, 200),
        "middle": (revoked(root, middle) + of_middle, 200, 401),
        "deep": (of_root + revoked(middle, world.deep), 200, 401),
        "of-another-number": (revoked(root, world.deep) + revoked(middle, world.good), 200, 200),
        "hidden": (of_root + garbage + of_middle, 500, 500),
    }
    given = config(world, upstream)
    given["services"][0]["routes"] = [
        {"name": name, "paths": [f"/{name}"]}
        | {
            "plugins": [
                {"name": "mtls-auth", "config": {"ca_certificates": [ROOT_ID], "crl": text}}
            ]
        }
        for name, (text, _, _) in lists.items()
    ]
    running = start(serving, given)
    running.expect_log("the revocation list cannot be read", range(1, 9))
    for name, (_, good, deep) in lists.items():
        answers = (status(running, world.good, f"/{name}"), status(running, world.deep, f"/{name}"))
        assert answers == (good, deep), name


def test_who_is_nobody(gateway: Start, upstream: Upstream, world: World) -> None:
    """Chains that a verifier may take for others."""
    root, middle, deep = world.root, world.middle, world.deep
    namesake = make("root", is_ca=True)
    under_leaf = make("under a leaf", issuer=world.good)
    server = make("server", issuer=root, extensions=("extendedKeyUsage=serverAuth",))
    weak = make("weak ca", kind="short", is_ca=True, issuer=root)
    wrong = {
        "no issuers": behind(deep),
        "another's issuers": behind(deep, world.other),
        "a CA of the same name": make("x", issuer=namesake),
        "a CA of the same name, and the right one": behind(make("x", issuer=namesake), root),
        "a leaf is no CA": under_leaf,
        "for servers": server,
        "expired": expired(root),
        "signed by a CA with a short key": make("x", issuer=weak),
        "a short key": make("x", kind="short", issuer=root),
        "signed with SHA-1": make("x", issuer=root, digest="sha1"),
        "the CA of another route": world.foreign,
    }
    right = {
        "issuers in another order": behind(deep, world.other, root, middle),
        "more than are wanted": behind(deep, middle, *[world.other] * 30),
        "for clients": make("x", issuer=root, extensions=("extendedKeyUsage=clientAuth",)),
        "the CA itself": root,
    }
    running = start(gateway, config(world, upstream))
    (worker,) = running.workers()
    for name, pair in wrong.items():
        assert status(running, pair) == 401, name
    assert not upstream.requests
    for name, pair in right.items():
        assert status(running, pair) == 200, name
    # OpenSSL takes chains of 100 kilobytes.
    with contextlib.suppress(ssl.SSLError, ConnectionError, ValueError):
        assert status(running, behind(world.good, *[world.other] * 400)) != 200
    assert running.workers() == [worker]


def test_a_ca_that_is_no_root_is_not_enough(
    serving: Start, upstream: Upstream, world: World
) -> None:
    given = config(world, upstream, ca_certificates=[OTHER_ID])
    middle = world.middle.cert[: world.middle.cert.index("-----END") + 26]
    given["ca_certificates"][1]["cert"] = middle
    running = start(serving, given)
    for client in (world.deep, behind(world.deep, world.middle), behind(world.deep)):
        assert status(running, client) == 401


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("/CN=a\r\nX-Evil: 1\r\n\r\nGET \\/free", "CN=a\\0D\\0AX-Evil: 1\\0D\\0A\\0D\\0AGET /free"),
        ('/O=a,b/CN= c\\/"\\+;<>#', 'CN=\\ c/\\"\\+\\;\\<\\>#,O=a\\,b'),
        ("/CN=\xe9\udcff\x7f\x01", "CN=\\C3\\83\\C2\\A9\\C3\\BF\\7F\\01"),
        ("/", ""),
        ("/O=" + "/O=".join(f"{'x' * 60}{n}" for n in range(70)), None),
    ],
)
def test_odd_subjects(
    serving: Start, upstream: Upstream, world: World, subject: str, expected: str | None
) -> None:
    """A subject is one line of ASCII whatever stands in it; a longer one is nobody's."""
    running = start(serving, config(world, upstream))
    answer = status(running, make(subject, issuer=world.root))
    if expected is None:
        assert answer == 401
        return
    assert answer == 200
    said = upstream.last.headers.get("x-client-cert-dn")
    assert said is not None
    assert said.startswith(expected)
    assert said.isascii()
    assert said.isprintable()
    assert upstream.last.headers.get("x-evil") is None


LIES = [
    *("X-Client-Cert-DN", "X-CLIENT-CERT-DN", "x-client-cert-dn", "x_client_cert_dn"),
    *("X-Client_Cert-DN", "X_Client-Cert_Dn", "X-Client-Cert-DN ", "X-Client-Cert-DN\t"),
    *("X-Client-Cert-Fingerprint", "x-client-cert_fingerprint", " X-Client-Cert-DN"),
]


@pytest.mark.parametrize("identity", ["drop", "pass"])
def test_headers_are_the_gateways(
    serving: Start, upstream: Upstream, world: World, identity: str
) -> None:
    """However a client spells them, however often, and whatever it says of its connection."""
    running = start(serving, config(world, upstream), client_identity_headers=identity)
    using = context(client=world.good)
    heads = [[f"{lie}: CN=root"] for lie in LIES]
    heads += [[f"{lie}: CN=root"] * 3 for lie in LIES]
    heads.append([f"{lie}: CN=root" for lie in LIES[:6]])
    heads.append(["Connection: X-Client-Cert-DN, X-Client-Cert-Fingerprint", *heads[0]])
    heads.append(["A: b", " X-Client-Cert-DN: CN=root"])
    passed = 0
    for version in ("1.1", "1.0"):
        for head in heads:
            lines = [f"GET / HTTP/{version}", "Host: localhost", *head, ""]
            answer = talked(running, using, "\r\n".join(lines))
            if not answer.startswith(b"HTTP/1.1 200 "):
                assert answer[9:12] == b"400", head
                continue
            passed += 1
            said = [(n.lower(), v) for n, v in upstream.last.headers if "cert" in n.lower()]
            assert [n for n, _ in said] == ["x-client-cert-dn", "x-client-cert-fingerprint"], head
            assert said[0][1] == "CN=good client"
            assert "root" not in said[1][1]
    assert passed >= 2 * (len(heads) - 10)


HOSTS = [
    "a.example.evil", "evil.a.example", "a.example..", "a.example:b.example", "a.example b.example",
    "b.example:a.example", "a.example@b.example", "[a.example]", "b.example#a.example", "", ".",
    "a.example,b.example", "a.example/", "*.example", "b.example:443",
]  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_another_host_is_misdirected(
    serving: Start, upstream: Upstream, world: World, version: ssl.TLSVersion
) -> None:
    running = start(serving, config(world, upstream))
    using = context(client=world.good, version=version)

    def answered(name: str, *lines: str) -> int:
        return int(talked(running, using, "\r\n".join([*lines, ""]), name=name)[9:12])

    for host in HOSTS:
        assert answered("a.example", "GET / HTTP/1.1", f"Host: {host}") in (400, 421), host
    wrong = [
        ("GET / HTTP/1.0",),
        ("GET / HTTP/1.0", "Host: b.example"),
        ("GET https://b.example/ HTTP/1.1", "Host: a.example"),
        ("GET https://b.example/ HTTP/1.0",),
        ("GET / HTTP/1.1", "Host: a.example", "Host: b.example"),
        ("GET / HTTP/1.1", "Host: b.example", "Host: a.example"),
    ]
    for lines in wrong:
        assert answered("a.example", *lines) in (400, 421), lines
    assert not upstream.requests
    for name in ("a.example", "A.EXAMPLE", "a.example."):
        for host in ("a.example", "A.example.", "a.example:8443", "a.EXAMPLE.:1"):
            assert answered(name, "GET / HTTP/1.1", f"Host: {host}") == 200, (name, host)


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_from_before_certificates_were_asked_for(
    gateway: Start, upstream: Upstream, world: World, version: ssl.TLSVersion
) -> None:
    """One of a listener that asked nobody is not resumed, and the next handshake asks."""
    running = start(gateway, config(world, upstream), ask_client_certificate=False)
    using = context(client=world.good, version=version)
    with connect(running.tls_port, "localhost", using) as wrapped:
        wrapped.sendall(b"GET /free HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert wrapped.recv(65536)[9:12] == b"200"
        session = wrapped.session
    assert session
    assert session.has_ticket
    running.settings["ask_client_certificate"] = True
    running.reload()
    with connect(running.tls_port, "localhost", using, session) as wrapped:
        assert not wrapped.session_reused
        wrapped.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert wrapped.recv(65536)[9:12] == b"200"
    assert asked(running, None).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_address_may_ask(
    serving: Start, upstream: Upstream, world: World, version: ssl.TLSVersion
) -> None:
    """And a session of another address, which does not, is not resumed there."""
    ports = Ports()
    asking = ports.take()
    try:
        tls = f"ssl, 127.0.0.1:{asking} ssl ask_client_certificate"
        running = serving(config(world, upstream), tls=tls)
        using = context(client=world.good, version=version)

        def visit(port: int, session: ssl.SSLSession | None = None) -> ssl.SSLSession | None:
            with connect(port, "localhost", using, session) as wrapped:
                wrapped.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                expected = b"200" if port == asking else b"401"
                assert wrapped.recv(65536)[9:12] == expected
                assert wrapped.session_reused == (session is not None and port != asking)
                return wrapped.session

        session = visit(running.tls_port)
        assert session
        visit(asking, session)
        visit(running.tls_port, session)
        visit(asking)
    finally:
        ports.release()
