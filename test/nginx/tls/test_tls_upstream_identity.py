"""Attacks: no connection to an upstream, and no TLS session, serves another identity.

An identity is the address, the name, whether and by whom it is verified, and who the gateway is.
"""

import random
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
from admin_client import Client, uuid
from threads import beside
from tls_upstreams import VERSIONS, answer

from certificates import Pair, make, server
from sluice import Start
from upstream import Upstream

SERVICE = "/services/service"
ADDRESS = ("IP:127.0.0.1", "DNS:a.test", "DNS:b.test")


class World:
    """CAs, and what they have issued."""

    def __init__(self) -> None:
        self.one, self.two = make("one", is_ca=True), make("two", is_ca=True)
        self.upstream = make("upstream", issuer=self.one, names=ADDRESS)
        self.clients = [make(f"client{number}", issuer=self.one) for number in range(3)]

    def context(self, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        """The upstream's, which looks at a client's certificate if it has one."""
        made = server(self.upstream, self.one, version=version)
        made.verify_mode = ssl.CERT_OPTIONAL
        return made

    def entities(self) -> dict[str, Any]:
        """CAs 1 and 2 and certificates 10 to 12, of a declarative file."""
        return {
            "ca_certificates": [
                {"id": uuid(1), "cert": self.one.cert},
                {"id": uuid(2), "cert": self.two.cert},
            ],
            "certificates": [
                {"id": uuid(10 + number), "cert": pair.cert, "key": pair.key}
                for number, pair in enumerate(self.clients)
            ],
        }


@pytest.fixture(scope="module")
def world() -> World:
    """Made once: keys take time."""
    return World()


@pytest.fixture(scope="module")
def trusted(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the upstream's CA."""
    path = tmp_path_factory.mktemp("trusted") / "one.pem"
    path.write_text(world.one.cert)
    return path


def verified(*authorities: int, **more: Any) -> dict[str, Any]:
    """Of a service that is verified by these CAs; none: by those of the settings."""
    listed = {"ca_certificates": [uuid(number) for number in authorities]} if authorities else {}
    return {"tls_verify": True} | listed | more


def shows(number: int) -> dict[str, Any]:
    """Of a service that has a client certificate."""
    return {"client_certificate": {"id": uuid(10 + number)}}


# name -> fields of a service, host, client that the upstream sees; each is another identity.
IDENTITIES: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "plain": ({}, "a.test", None),
    "other-name": ({}, "b.test", None),
    "verified": (verified(), "a.test", None),
    "verified-other-name": (verified(), "b.test", None),
    "deeper": (verified(tls_verify_depth=5), "a.test", None),
    "by-one": (verified(1), "a.test", None),
    "by-both": (verified(1, 2), "a.test", None),
    "by-one-deeper": (verified(1, tls_verify_depth=5), "a.test", None),
    "first": (shows(0), "a.test", "client0"),
    "second": (shows(1), "a.test", "client1"),
    "second-verified": (verified(**shows(1)), "a.test", "client1"),
    "second-by-one": (verified(1, **shows(1)), "a.test", "client1"),
    "upstreams-own": ({}, "c.test", "client2"),
    "over-upstreams-own": (verified(**shows(0)), "c.test", "client0"),
}

# By a CA that has not signed the upstream's certificate.
REFUSED = {"by-two": verified(2), "by-two-second": verified(2, **shows(1))}


def config(world: World, upstream: Upstream) -> dict[str, Any]:
    """A service an identity, all of them at one address."""
    services = {name: (fields, host) for name, (fields, host, _) in IDENTITIES.items()}
    services |= {name: (fields, "a.test") for name, fields in REFUSED.items()}
    target = [{"target": upstream.address}]
    return world.entities() | {
        "upstreams": [
            {"name": "a.test", "host_header": "a.test", "targets": target},
            {"name": "b.test", "host_header": "b.test", "targets": target},
            {"name": "c.test", "host_header": "a.test", "targets": target}
            | {"client_certificate": {"id": uuid(12)}},
        ],
        "services": [
            {"name": name, "url": f"https://{host}", "retries": 0}
            | fields
            | {"routes": [{"paths": [f"/{name}"]}]}
            for name, (fields, host) in services.items()
        ],
    }


def test_identities_share_no_connection(gateway: Start, world: World, trusted: Path) -> None:
    chosen = random.Random(16)
    with Upstream(answer, tls=world.context()) as upstream:
        running = gateway(config(world, upstream), proxy_ssl_trusted_certificate=trusted)
        running.expect_log("upstream SSL certificate|handshake rejected", range(400))
        whose: dict[int, str] = {}
        for _ in range(200):
            name = chosen.choice([*IDENTITIES, *REFUSED])
            reply = running.ask(f"/{name}")
            if name in REFUSED:
                assert reply.status == 502
                continue
            said = reply.json()
            assert whose.setdefault(said["connection"], name) == name
            assert said["client"] == IDENTITIES[name][2]
        assert len(whose) == len(IDENTITIES), "each was pooled, once"


@pytest.mark.parametrize("version", VERSIONS)
def test_identities_share_no_session(
    gateway: Start, world: World, trusted: Path, version: ssl.TLSVersion
) -> None:
    chosen = random.Random(17)
    with Upstream(answer, tls=world.context(version)) as upstream:
        running = gateway(
            config(world, upstream),
            proxy_ssl_trusted_certificate=trusted,
            upstream_keepalive_pool_size=0,
        )
        running.expect_log("upstream SSL certificate|handshake rejected", range(400))
        seen = set()
        for _ in range(150):
            name = chosen.choice([*IDENTITIES, *REFUSED])
            reply = running.ask(f"/{name}")
            if name in REFUSED:
                assert reply.status == 502
                continue
            said = reply.json()
            assert said["resumed"] == (name in seen), name
            assert said["client"] == IDENTITIES[name][2]
            seen.add(name)
        assert len(seen) == len(IDENTITIES)


@pytest.mark.parametrize("version", VERSIONS)
def test_targets_share_no_session(
    gateway: Start, world: World, trusted: Path, version: ssl.TLSVersion
) -> None:
    """Another address may be another machine, though both have the same keys of tickets."""
    context = world.context(version)
    with Upstream(answer, tls=context) as one, Upstream(answer, tls=context) as two:
        document = config(world, one)
        document["upstreams"][0]["targets"].append({"target": two.address})
        running = gateway(
            document, proxy_ssl_trusted_certificate=trusted, upstream_keepalive_pool_size=0
        )
        assert [running.ask("/verified").json()["resumed"] for _ in range(4)] == [
            False,
            False,
            True,
            True,
        ]


# Changes


class Live:
    """A gateway whose one service is changed while it runs."""

    def __init__(self, start: Start, world: World, upstream: Upstream, **settings: Any) -> None:
        self.running = start(None, **settings)
        self.running.expect_log("upstream SSL certificate|handshake rejected", range(5000))
        self.admin = Client(self.running)
        for kind, entities in world.entities().items():
            for entity in entities:
                self.admin.must(200, "PUT", f"/{kind}/{entity['id']}", entity)
        service = {"url": f"https://{upstream.address}", "retries": 0}
        self.admin.must(200, "PUT", SERVICE, service)
        self.admin.must(201, "POST", f"{SERVICE}/routes", {"paths": ["/"]})

    def change(self, **fields: Any) -> None:
        """Changes fields of the service."""
        self.admin.must(200, "PATCH", SERVICE, fields)

    def rotate(self, number: int, pair: Pair) -> None:
        """Puts another certificate in place of one."""
        value = {"cert": pair.cert, "key": pair.key}
        self.admin.must(200, "PATCH", f"/certificates/{uuid(10 + number)}", value)

    def trust(self, number: int, authority: Pair) -> None:
        """Puts another CA in place of one."""
        path = f"/ca_certificates/{uuid(number)}"
        self.admin.must(200, "PATCH", path, {"cert": authority.cert})


@pytest.mark.parametrize("pool", [512, 0])
@pytest.mark.parametrize("version", VERSIONS)
def test_changes_are_seen_by_the_next_request(
    gateway: Start, world: World, trusted: Path, pool: int, version: ssl.TLSVersion
) -> None:
    settings = {
        "proxy_ssl_trusted_certificate": trusted,
        "upstream_keepalive_pool_size": pool,
    }
    with Upstream(answer, tls=world.context(version)) as upstream:
        live = Live(gateway, world, upstream, **settings)

        def ask() -> dict[str, Any] | int:
            reply = live.running.ask("/")
            return reply.json() if reply.status == 200 else reply.status

        def fresh(client: str | None) -> None:
            said = ask()
            assert isinstance(said, dict), said
            assert (said["nth"], said["resumed"], said["client"]) == (0, False, client)

        fresh(None)
        live.change(tls_verify=True)
        fresh(None)
        live.change(ca_certificates=[uuid(2)])
        assert [ask(), ask()] == [502, 502]
        live.change(ca_certificates=[uuid(1)])
        fresh(None)
        live.change(**shows(0))
        fresh("client0")
        live.rotate(0, world.clients[1])
        fresh("client1")
        live.rotate(0, make("client3", issuer=world.one))
        fresh("client3")
        live.change(client_certificate=None)
        said = ask()
        assert isinstance(said, dict)
        assert said["client"] is None
        assert pool == 0 or said["nth"] == 1, "the one from before the certificate"
        again = make("three", is_ca=True)
        live.trust(1, again)
        assert [ask(), ask()] == [502, 502]
        live.trust(1, make("one", is_ca=True))
        assert [ask(), ask()] == [502, 502], "a CA of the same name"
        live.change(tls_verify=False)
        assert isinstance(ask(), dict)
        live.change(tls_verify=True)
        assert ask() == 502


def test_what_does_not_touch_it_keeps_the_connection(
    gateway: Start, world: World, trusted: Path
) -> None:
    with Upstream(answer, tls=world.context()) as upstream:
        live = Live(gateway, world, upstream, proxy_ssl_trusted_certificate=trusted)
        live.change(tls_verify=True, ca_certificates=[uuid(1)], **shows(0))
        for number in range(5):
            said = live.running.ask("/").json()
            assert (said["connection"], said["nth"], said["client"]) == (0, number, "client0")
            live.change(read_timeout=1000 * (number + 5))
            live.rotate(1, world.clients[2])


def test_rotation_under_load(gateway: Start, world: World, trusted: Path) -> None:
    """Who asks after a rotation was answered is nobody of before; nobody is lost."""
    rounds = 40
    with Upstream(answer, tls=world.context()) as upstream:
        live = Live(gateway, world, upstream, workers=2, proxy_ssl_trusted_certificate=trusted)
        live.rotate(0, world.clients[0])
        live.change(tls_verify=True, ca_certificates=[uuid(1)], **shows(0))
        done = threading.Event()
        wrong: list[object] = []
        now = [0]

        def ask() -> None:
            while not done.is_set():
                before = now[0]
                reply = live.running.ask("/")
                after = now[0]
                if reply.status != 200:
                    wrong.append(reply.status)
                    continue
                allowed = {f"client{turn % 3}" for turn in range(before, after + 2)}
                if reply.json()["client"] not in allowed:
                    wrong.append((before, after, reply.json()))

        with beside(*[ask] * 4, until=done):
            for turn in range(1, rounds):
                live.rotate(0, world.clients[turn % 3])
                now[0] = turn
        assert wrong == []


def test_a_certificate_that_goes_is_refused_while_it_is_used(gateway: Start, world: World) -> None:
    with Upstream(answer, tls=world.context()) as upstream:
        live = Live(gateway, world, upstream)
        live.change(tls_verify=True, ca_certificates=[uuid(1)], **shows(0))
        assert live.running.ask("/").status == 200
        assert live.admin.ask("DELETE", f"/certificates/{uuid(10)}").status == 400
