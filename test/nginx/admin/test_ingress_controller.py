"""Kong's ingress controller drives gateways: the exchange told again (support/controller.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from admin_tokens import send
from controller import (
    NO_CONFIGURATION,
    Controller,
    Object,
    certificate,
    consumer,
    id_of,
    ingress,
    plugin,
    service,
)
from ports import Ports

from certificates import context, make, shown
from sluice import Gateway
from upstream import Upstream

KEY = "key-of-a-consumer"

Start = Callable[..., Gateway]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts gateways without a database; each ends with the test."""
    stack = ExitStack()

    def one(**settings: Any) -> Gateway:
        return stack.enter_context(Gateway(None, database="off", **settings))

    with stack:
        yield one


def shop(upstream: Upstream, count: int = 3) -> list[Object]:
    """A service and so many rules that lead to it."""
    behind = service("shop", f"127.0.0.1:{upstream.port}")
    return [behind, *(ingress(f"rule-{n}", behind, f"/rule-{n}/") for n in range(count))]


def status(running: Gateway) -> dict[str, Any]:
    """What `/status` says."""
    return send(running, "GET", "/status").json()


def test_the_first_push_and_the_next(start: Start, upstream: Upstream) -> None:
    running = start()
    assert status(running)["configuration_hash"] == NO_CONFIGURATION
    objects = shop(upstream)
    with Controller(running.admin) as controller:
        assert controller.update(objects) == [201]
        assert running.get("/rule-2/").status_code == 200
        served = status(running)
        assert len(served["configuration_hash"]) == 32
        assert served["configuration_hash"] != NO_CONFIGURATION
        # It is not pushed again.
        assert controller.update(objects) == []
        changed = replace(objects[1], made=ingress("rule-0", objects[0], "/new/").made)
        assert controller.update([objects[0], changed, *objects[2:]]) == [201]
        assert [running.get(path).status_code for path in ("/new/", "/rule-0/")] == [200, 404]
        assert status(running)["configuration_hash"] != served["configuration_hash"]
        assert controller.update(objects) == [201]
    before = status(running)["configuration_version"]
    with Controller(running.admin) as controller:
        # Of one that was started anew, which knows no hash.
        assert controller.update(objects) == [304]
    assert status(running)["configuration_version"] == before


def test_nothing_in_the_cluster_is_a_configuration(start: Start) -> None:
    running = start()
    with Controller(running.admin) as controller:
        assert controller.update([]) == [201]
        assert status(running)["configuration_hash"] != NO_CONFIGURATION
        assert controller.update([]) == []
    assert running.get("/").status_code == 404


def test_an_empty_file_is_one(start: Start, ports: Ports) -> None:
    """The hash and the probe agree on whether there was a push."""
    port = ports.take()
    running = start(status_listen=f"127.0.0.1:{port}")
    empty = {"_format_version": "3.0"}
    for wanted in (503, 200):
        is_first = status(running)["configuration_hash"] == NO_CONFIGURATION
        assert is_first == (wanted == 503)
        ready = httpx.get(f"http://127.0.0.1:{port}/status/ready", trust_env=False)
        assert ready.status_code == wanted
        assert send(running, "POST", "/config", json=empty).status_code == 201


def test_three_of_ten_are_broken(start: Start, upstream: Upstream) -> None:
    """They are named as Kong names them, their objects are told why, and the others are served."""
    running = start()
    objects = shop(upstream, 6)
    behind = objects[0]
    limits = plugin("limits", "rate-limiting", minute=-1, policy="local")
    secret = Object("Secret", "key", (), {"keyauth_credentials": {"key": KEY}})
    (of_service,) = ingress("retries", behind, "/retries/").made["services"]
    objects += [
        ingress("path", behind, "no-slash", "/good/", "worse"),
        ingress("limited", behind, "/limited/", with_=(limits,)),
        replace(
            ingress("retries", behind, "/retries/"),
            made={"services": [of_service | {"retries": 99999, "protocol": "smtp"}]},
        ),
        consumer("ann", secret),
    ]
    with Controller(running.admin) as controller:
        assert controller.update(objects) == [400, 201]
        refusal, _ = controller.posts
        assert KEY not in refusal.text
        found = refusal.json()
        assert (found["code"], found["name"]) == (14, "invalid declarative configuration")
        assert found["message"].startswith("declarative config is invalid: ")
        assert found["fields"] == {}
        by_type = {each["entity_type"]: each for each in found["flattened_errors"]}
        assert len(found["flattened_errors"]) == len(by_type) == 3
        path = {"type": "field", "message": "should start with: / (fixed path) or ~/ (regex path)"}
        assert by_type["route"] == {
            "entity_type": "route",
            "entity_id": id_of("route", "path"),
            "entity_name": "default.path",
            "entity_tags": objects[7].tags,
            "errors": [path | {"field": "paths.1"}, path | {"field": "paths.3"}],
        }
        assert by_type["plugin"] == {
            "entity_type": "plugin",
            "entity_name": "rate-limiting",
            "entity_tags": limits.tags,
            "errors": [
                {
                    "type": "field",
                    "field": "config.minute",
                    "message": "value must be greater than 0",
                }
            ],
        }
        wrong = by_type["service"].pop("errors")
        assert by_type["service"] == {
            "entity_type": "service",
            "entity_id": id_of("service", "retries"),
            "entity_name": "default.retries.80",
            "entity_tags": objects[9].tags,
        }
        assert {each["field"]: each["type"] for each in wrong} == {
            "retries": "field",
            "protocol": "field",
        }
        assert controller.events.keys() == {
            ("Ingress", "path"),
            ("KongPlugin", "limits"),
            ("Ingress", "retries"),
        }
        assert running.get("/rule-5/").status_code == 200
        for gone in ("/good/", "/limited/", "/retries/"):
            assert running.get(gone).status_code == 404
        assert send(running, "GET", "/consumers/ann/key-auth").json()["data"][0]["key"] == KEY
        # The next time they are refused again, and the others are served already.
        assert controller.update(objects) == [400]


def test_all_broken_ones_are_named(start: Start, upstream: Upstream) -> None:
    """A controller leaves out those that it is told of, once: a second refusal would be the end."""
    running = start()
    objects = shop(upstream, 300)
    bad = [ingress(f"bad-{n}", objects[0], f"bad-{n}") for n in range(250)]
    with Controller(running.admin) as controller:
        assert controller.update(objects + bad) == [400, 201]
        assert controller.events.keys() == {each.key for each in bad}
        found = controller.posts[0].json()
        assert len(found["errors"]) == 100
        assert found["message"].endswith(" (and 249 more)")
    assert running.get("/rule-299/").status_code == 200


def test_certificates_of_its_secrets(start: Start, upstream: Upstream) -> None:
    running = start(tls="ssl")
    pair = make("a.example", names=("DNS:a.example",))
    objects = [*shop(upstream), certificate("tls", pair.cert, pair.key, "a.example", "b.example")]
    with Controller(running.admin) as controller:
        assert controller.update(objects) == [201]
        assert shown(running.tls_port, "b.example") == pair.der
        entity = objects[-1].made["certificates"][0]
        entity["snis"][1] = {"name": "b.example", "certificate": {"id": id_of("another")}}
        # An SNI has no tags, so nobody is told, and what is served stays.
        assert controller.update(objects) == [400]
        assert controller.events == {}
        assert shown(running.tls_port, "b.example") == pair.der


def test_many_routes(start: Start, upstream: Upstream) -> None:
    running = start()
    objects = shop(upstream, 5000)
    with Controller(running.admin) as controller:
        assert controller.update(objects) == [201]
        assert running.get("/rule-4999/").status_code == 200
    with Controller(running.admin) as controller:
        assert controller.update(objects) == [304]
        assert controller.update([*objects[:-1], ingress("last", objects[0], "/last/")]) == [201]
    assert running.get("/last/").status_code == 200
    assert running.get("/rule-4999/").status_code == 404


def test_a_gateway_that_restarts_keeps_the_last_push(start: Start, upstream: Upstream) -> None:
    running = start()
    objects = shop(upstream)
    with Controller(running.admin) as controller:
        assert controller.update(objects) == [201]
        before = status(running)["configuration_hash"]
        running.stop()
        running.start()
        assert running.get("/rule-0/").status_code == 200
        assert status(running)["configuration_hash"] == before
        assert controller.update(objects) == []


def test_two_gateways(start: Start, upstream: Upstream) -> None:
    """Each has what was pushed, with the same ids; one that has lost it gets it again."""
    one, two = start(), start()
    objects = shop(upstream)
    with Controller(one.admin, two.admin) as controller:
        assert controller.update(objects) == [201, 201]
        ids = [
            [each["id"] for each in send(running, "GET", "/upstreams").json()["data"]]
            for running in (one, two)
        ]
        assert ids[0] == ids[1]
        # A history that one alone has had changes no ids either.
        apart = Controller(one.admin)
        assert apart.update([]) == [201]
        assert apart.update(objects) == [201]
        assert ids[0] == [each["id"] for each in send(one, "GET", "/upstreams").json()["data"]]
        hashes = {status(running)["configuration_hash"] for running in (one, two)}
        assert len(hashes) == 1
        # A new pod in the place of one: the same address, and nothing kept.
        two.stop()
        forget(two)
        two.start()
        assert status(two)["configuration_hash"] == NO_CONFIGURATION
        assert two.get("/rule-0/").status_code == 404
        assert controller.update(objects) == [201]
        assert two.get("/rule-0/").status_code == 200
        assert {status(running)["configuration_hash"] for running in (one, two)} == hashes


def forget(running: Gateway) -> None:
    """Its store goes."""
    for path in (running.settings["prefix"] / "store").iterdir():
        path.unlink()


def test_entities_are_not_written(start: Start) -> None:
    running = start()
    for method, path, said in (
        ("POST", "/services", "cannot create 'services'"),
        ("PUT", "/routes/a", "cannot create or update 'routes'"),
        ("PATCH", "/consumers/a", "cannot update 'consumers'"),
        ("DELETE", "/upstreams/a/targets/b", "cannot remove 'targets'"),
    ):
        answer = httpx.request(method, running.admin + path, json={}, trust_env=False)
        found = answer.json()
        assert (answer.status_code, found["code"]) == (405, 12)
        assert found["name"] == "operation unsupported"
        assert found["message"].startswith(said + " entities when not using a database; ")
    assert send(running, "GET", "/history").json()["data"] == []


def test_no_history_is_kept_of_pushes(start: Start, upstream: Upstream) -> None:
    """Nobody could go back in it."""
    running = start()
    with Controller(running.admin) as controller:
        for count in (1, 2):
            assert controller.update(shop(upstream, count)) == [201]
    assert send(running, "GET", "/history").json()["data"] == []
    assert "database = off" in running.command("history").stdout
    said = "file     none: the last POST /config is the configuration (database = off)\n"
    assert said in running.command("status").stdout


@pytest.fixture
def ports() -> Iterator[Ports]:
    """For listeners beside the usual ones."""
    found = Ports()
    yield found
    found.release()


def test_over_tls_with_a_certificate(
    start: Start, upstream: Upstream, ports: Ports, tmp_path: Path
) -> None:
    """As the chart sets both up, over HTTP/2; the probe's listener beside it."""
    authority = make("ca", is_ca=True)
    (tmp_path / "ca.pem").write_text(authority.cert)
    admin, probe = ports.take(), ports.take()
    running = start(
        admin_listen=f"127.0.0.1:{admin} http2 ssl",
        admin_client_ca=tmp_path / "ca.pem",
        status_listen=f"127.0.0.1:{probe}",
        workers=2,
    )

    def ready() -> int:
        return httpx.get(f"http://127.0.0.1:{probe}/status/ready", trust_env=False).status_code

    url = f"https://127.0.0.1:{admin}"
    with httpx.Client(base_url=url, verify=context(), trust_env=False) as stranger:
        assert stranger.get("/status").status_code == 400
        assert stranger.post("/config", json={"_format_version": "3.0"}).status_code == 400
    assert ready() == 503
    mine = context(client=make("controller", issuer=authority))
    mine.set_alpn_protocols(["h2"])
    objects = shop(upstream, 5000)
    with Controller(url, verify=mine, http2=True) as controller:
        assert controller.peers[0].client.get("/status").http_version == "HTTP/2"
        assert controller.update(objects) == [201]
        assert ready() == 200
        assert running.get("/rule-4999/").status_code == 200
        assert controller.update(objects) == []
    with Controller(url, verify=mine, http2=True) as controller:
        assert controller.update(objects) == [304]
        broken = ingress("bad", objects[0], "bad")
        assert controller.update([*objects, broken]) == [400]
        assert controller.events.keys() == {broken.key}
