"""A kept connection is used only by who asks for the same upstream by the same TLS identity."""

import random
import threading
from collections import defaultdict
from functools import partial
from pathlib import Path

import pytest
from threads import beside

from pools import Either, answer, ask, named, pooled, used
from sluice import Start, proxying
from upstream import Exchange, Upstream
from wire import Wire

HOSTS = [
    "a.test",
    "A.test",
    "a.test:8443",
    "a.test:1",
    "b.test",
    "b.test.",
    "aa.test",
    "a" * 60 + ".test",
    "127.0.0.1",
    "127.0.0.1:443",
    "[::1]",
    "[::1]:8443",
    "xn--a-ecp.test",
]


def test_clients_that_choose_the_name_share_no_connection(gateway: Start, tmp_path: Path) -> None:
    """preserve_host: the client's Host is the name in the handshake."""
    names = defaultdict(set)
    lock = threading.Lock()

    def note(exchange: Exchange) -> None:
        sni = exchange.sock.name  # type: ignore[attr-defined]
        with lock:
            names[exchange.request.connection].add((exchange.request.headers.get("host"), sni))
        exchange.reply(200, body=(sni or "").encode())

    def attack(seed: int) -> None:
        chosen = random.Random(seed)
        with Wire(running.proxy_port) as wire:
            for _ in range(60):
                host = chosen.choice(HOSTS)
                body = wire.ask("/", headers={"Host": host}).body.decode()
                is_address = host.startswith(("[", "127."))
                expected = "" if is_address else host.partition(":")[0].rstrip(".").lower()
                if body.rstrip(".").lower() != expected:
                    wrong.append((host, body))

    wrong: list[tuple[str, str]] = []
    with Upstream(note, tls=named(tmp_path)) as upstream:
        running = gateway(proxying(upstream, preserve_host=True), workers=1)
        with beside(*[partial(attack, seed) for seed in range(6)]):
            pass
        assert wrong == []
        for said in names.values():
            assert len({sni for _, sni in said}) == 1, said
            assert (
                len({str(host).rpartition("]")[0] or host.split(":")[0] for host, _ in said}) == 1
            )
        assert upstream.connections < 6 * 60 / 2, "most were pooled"


def test_services_at_one_address_share_no_connection(gateway: Start, tmp_path: Path) -> None:
    with Upstream(answer, tls=named(tmp_path)) as upstream:
        config = {
            "upstreams": [
                {
                    "name": f"{name}.test",
                    "host_header": f"{name}.test",
                    "targets": [{"target": upstream.address}],
                }
                for name in ("one", "two")
            ],
            "services": [
                {"name": name, "url": f"https://{name}.test", "routes": [{"paths": [f"/{name}"]}]}
                for name in ("one", "two")
            ],
        }
        running = gateway(config, workers=1)
        for number in range(6):
            for connection, name in enumerate(("one", "two")):
                use = used(running.ask(f"/{name}"))
                assert (use.connection, use.nth, use.name) == (connection, number, f"{name}.test")


CONTEXTS = """
    location /plain { proxy_pass http://pooled; }
    location /unverified { proxy_pass https://pooled; }
    location /verified {
        proxy_ssl_verify on;
        proxy_ssl_trusted_certificate @folder@/cert.pem;
        proxy_pass https://pooled;
    }
    location /trusting_more {
        proxy_ssl_verify on;
        proxy_ssl_trusted_certificate @folder@/more.pem;
        proxy_pass https://pooled;
    }
    location /mine_too {
        proxy_ssl_certificate @folder@/more.pem;
        proxy_ssl_certificate_key @folder@/key.pem;
        proxy_pass https://pooled;
    }
    location /mine {
        proxy_ssl_certificate @folder@/cert.pem;
        proxy_ssl_certificate_key @folder@/key.pem;
        proxy_pass https://pooled;
    }
    location /nameless { proxy_ssl_server_name off; proxy_pass https://pooled; }
    location /verified_nameless {
        proxy_ssl_server_name off;
        proxy_ssl_verify on;
        proxy_ssl_trusted_certificate @folder@/cert.pem;
        proxy_pass https://pooled;
    }
"""


def contexts(folder: Path) -> str:
    """The locations, by the server's certificate and by a file that has it twice."""
    (folder / "more.pem").write_bytes((folder / "cert.pem").read_bytes() * 2)
    return CONTEXTS.replace("@folder@", str(folder))


def test_contexts_and_schemes_share_no_connection(tmp_path: Path) -> None:
    """Each pair of them differs in little: verification, CAs, certificate, name or scheme."""
    chosen = random.Random(3)
    paths = [line.split()[1] for line in CONTEXTS.splitlines() if "location" in line]
    with (
        Either(answer, tls=named(tmp_path)) as upstream,
        pooled("20", more=contexts(tmp_path)) as running,
    ):
        whose: dict[int, str] = {}
        for _ in range(120):
            path = chosen.choice(paths)
            use = used(ask(running, upstream, "test", path))
            assert whose.setdefault(use.connection, path) == path
            assert use.name == (None if "nameless" in path or path == "/plain" else "test")
            assert use.certificate == path.startswith("/mine")
        assert len(whose) == len(paths), "each of them was pooled"


def test_a_wrong_certificate_is_found_whoever_has_connected_before(tmp_path: Path) -> None:
    """The same address by another name, without verification first."""
    with (
        Upstream(answer, tls=named(tmp_path)) as upstream,
        pooled("20", more=contexts(tmp_path)) as running,
    ):
        running.expect_log('certificate does not match "other"', 2)
        for _ in range(2):
            assert ask(running, upstream, "test", "/verified").status == 200
            assert ask(running, upstream, "other", "/unverified").status == 200
            assert ask(running, upstream, "other", "/verified").status == 502


VARYING = """
    location /varying {
        proxy_ssl_certificate $arg_cert;
        proxy_ssl_certificate_key $arg_key;
        proxy_pass https://pooled;
    }
"""


def test_a_client_certificate_by_variable_is_not_pooled(tmp_path: Path) -> None:
    with Upstream(answer, tls=named(tmp_path)) as upstream, pooled("20", more=VARYING) as running:
        for number in range(3):
            files = f"&cert={tmp_path}/cert.pem&key={tmp_path}/key.pem"
            use = used(ask(running, upstream, f"test{files}", "/varying"))
            assert (use.connection, use.certificate) == (number, True)


CHANGING = """
    location /changing {
        proxy_ssl_name $changing;
        proxy_pass https://pooled;
    }
"""


@pytest.mark.parametrize("location", ["/https", "/changing"])
def test_a_name_that_changes_before_the_handshake_is_not_pooled(
    tmp_path: Path, location: str
) -> None:
    """A variable may have another value each time it is looked at."""
    more = CHANGING.replace("$changing", "$connection-$msec.test")
    with Upstream(answer, tls=named(tmp_path)) as upstream, pooled("20", more=more) as running:
        for number in range(4):
            use = used(ask(running, upstream, "a.test", location))
            assert use.nth == (0 if location == "/changing" else number)
