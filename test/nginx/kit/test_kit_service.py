"""`kong.service`: whom a request goes to, by which scheme, for how long and how often."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit_cases import PLUGINS, cases
from ports import Ports
from tls_upstreams import answer

from certificates import Pair, make
from sluice import Gateway
from upstream import Upstream

SERVICE = "local service = kong.service\n"

WRONG = {
    "set_upstream(1)": "host must be a string",
    "set_target(1, 1)": "host must be a string",
    "set_target('a')": "port must be an integer",
    "set_target('a', 1.5)": "port must be an integer",
    "set_target('a', 65536)": "port must be an integer between 0 and 65535: given 65536",
    "set_retries('1')": "retries must be an integer",
    "set_retries(-1)": "retries must be an integer between 0 and 32767: given -1",
    "set_timeouts(1.5, 1, 1)": "connect_timeout must be an integer",
    "set_timeouts(1, 0, 1)": "write_timeout must be an integer between 1 and 2147483646: given 0",
    "set_timeouts(1, 1)": "read_timeout must be an integer",
    "set_tls_verify(1)": "argument must be a boolean",
    "set_tls_verify_depth('1')": "argument must be a number",
    "set_tls_verify_store(1)": "argument must be a resty.openssl.x509.store object",
    "set_tls_cert_key(1, 1)": "chain must be a parsed cdata object",
}


@pytest.fixture(scope="module")
def own() -> Iterator[Upstream]:
    """The service's."""
    with Upstream(name="own") as upstream:
        yield upstream


@pytest.fixture(scope="module")
def other() -> Iterator[Upstream]:
    with Upstream(name="other") as upstream:
        yield upstream


@pytest.fixture(scope="module")
def dead() -> Iterator[int]:
    """A port that nobody listens on."""
    ports = Ports()
    yield ports.take()
    ports.release()


@pytest.fixture(scope="module")
def sending(own: Upstream, other: Upstream, dead: int) -> Iterator[Gateway]:
    checks = "\n".join(
        f"try(function() kong.service.{call} end, {json.dumps(words)})"
        for call, words in WRONG.items()
    )
    codes = {
        "address": f"service.set_target('127.0.0.1', {other.port})",
        "name": f"service.set_target('localhost', {other.port})",
        "unknown": "service.set_target('no-such-host.invalid', 80)",
        "of-upstream": "service.set_target('both', 1)",
        "upstream": "assert(service.set_upstream('both'))",
        "no-upstream": """
            local ok, err = service.set_upstream("none")
            kong.service.request.set_header("X-Error", tostring(ok) .. " " .. err)
        """,
        "empty-upstream": "assert(service.set_upstream('empty'))",
        "once": "service.set_upstream('half') service.set_retries(0)",
        "again": "service.set_upstream('half') service.set_retries(5)",
        "host-after": f"""
            service.set_target('127.0.0.1', {other.port})
            kong.service.request.set_header("Host", "mine.example")
        """,
        "quick": "service.set_timeouts(60000, 60000, 100)",
        "variable": "ngx.var.upstream_host = 'by.variable'",
        "wrong": f"""
            local bad = {{}}
            local function try(fn, words)
                local ok, err = pcall(fn)
                if ok or not tostring(err):find(words, 1, true) then
                    bad[#bad + 1] = tostring(err)
                end
            end
            {checks}
            kong.response.exit(200, {{ bad = #bad > 0 and bad or nil }})
        """,
    }
    config = cases(own, {name: {"access": SERVICE + code} for name, code in codes.items()})
    both = [{"target": other.address, "weight": 100}, {"target": own.address, "weight": 0}]
    half = [{"target": f"127.0.0.1:{dead}", "weight": 100}, {"target": other.address, "weight": 1}]
    config["upstreams"] = [
        {"name": "both", "targets": both},
        {"name": "half", "targets": half},
        {"name": "empty"},
    ]
    with Gateway(config, kong_plugins=PLUGINS) as running:
        running.expect_log(r"connect\(\) failed|upstream timed out", range(50))
        yield running


def asked(running: Gateway, case: str) -> tuple[str, str]:
    """Which upstream has answered, and by which Host."""
    reply = running.ask(f"/{case}")
    assert reply.status == 200, reply.body
    told = reply.json()
    return told["upstream"], {n.lower(): v for n, v in told["headers"]}["host"]


def test_a_target(sending: Gateway, other: Upstream) -> None:
    """The host that is set is also what Host says, without the port, as in Kong."""
    for case, host in {
        "address": "127.0.0.1",
        "name": "localhost",
        "host-after": "mine.example",
    }.items():
        for _ in range(2):
            assert asked(sending, case) == ("other", host)


def test_a_target_that_is_an_upstream(sending: Gateway, other: Upstream) -> None:
    assert asked(sending, "of-upstream") == ("other", "both")
    assert asked(sending, "upstream") == ("other", other.address)


def test_a_name_without_address(sending: Gateway) -> None:
    sending.expect_log("a plugin's target 'no-such-host.invalid' has no address", 1)
    reply = sending.ask("/unknown", headers={"Accept": "application/json"})
    assert (reply.status, reply.json()["message"]) == (503, "name resolution failed")


def test_an_upstream_that_there_is_not(sending: Gateway, own: Upstream) -> None:
    own.handler = own.echo
    assert asked(sending, "no-upstream")[0] == "own"
    assert own.last.headers.get("x-error") == "nil could not find an Upstream named 'none'"
    assert sending.ask("/empty-upstream").status == 503


def test_retries(sending: Gateway) -> None:
    """Of two targets one is dead, which most turns are of."""
    statuses = {sending.ask("/once").status for _ in range(5)}
    assert 502 in statuses
    assert [sending.ask("/again").status for _ in range(5)] == [200] * 5


def test_timeouts(sending: Gateway, own: Upstream) -> None:
    go_on = own.hold()
    assert sending.ask("/quick").status == 504
    go_on.set()
    own.handler = own.echo


def test_the_variable_of_the_host(sending: Gateway, own: Upstream) -> None:
    own.handler = own.echo
    assert asked(sending, "variable") == ("own", "by.variable")


def test_misuse_is_told_in_kongs_words(sending: Gateway) -> None:
    assert sending.ask("/wrong").json() == {}


# TLS


@pytest.fixture(scope="module")
def authority() -> Pair:
    return make("authority", is_ca=True)


@pytest.fixture(scope="module")
def secured(authority: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upstream]:
    """Proves to be 127.0.0.1, and asks who comes."""
    folder: Path = tmp_path_factory.mktemp("tls")
    pair = make("upstream", issuer=authority, names=("IP:127.0.0.1",))
    (folder / "cert").write_text(pair.cert)
    (folder / "key").write_text(pair.key)
    (folder / "ca").write_text(authority.cert)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert", folder / "key")
    context.load_verify_locations(folder / "ca")
    context.verify_mode = ssl.CERT_OPTIONAL
    with Upstream(answer, tls=context) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def speaking_tls(secured: Upstream, authority: Pair) -> Iterator[Gateway]:
    client = make("plugin", issuer=authority)
    trusting = f"""
        local store = package.loaded["test.store"]
        if not store then
            store = require("resty.openssl.x509.store").new()
            store:add(require("resty.openssl.x509").new([[{authority.cert}]]))
            package.loaded["test.store"] = store
        end
        assert(service.set_tls_verify_store(store))
    """
    shown = f"""
        local ssl = require("ngx.ssl")
        local chain = assert(ssl.parse_pem_cert([[{client.cert}]]))
        local key = assert(ssl.parse_pem_priv_key([[{client.key}]]))
        assert(service.set_tls_cert_key(chain, key))
    """
    https = "kong.service.request.set_scheme('https')\n"
    verify = "assert(service.set_tls_verify(true))\n"
    codes = {
        "plain": "",
        "https": https,
        "by-variable": "ngx.var.upstream_scheme = 'https'",
        "no-scheme": "ngx.var.upstream_scheme = 'ftp' ngx.var.upstream_scheme = 'https'",
        "strangers": https + verify,
        "trusted": https + verify + trusting,
        "shallow": https + verify + trusting + "assert(service.set_tls_verify_depth(0))",
        "another-name": https
        + verify
        + trusting
        + "kong.service.request.set_header('Host', 'another.example')",
        "shown": https + shown,
    }
    plain = {"url": f"http://{secured.address}"}
    config = cases(secured, {n: {"access": SERVICE + c} for n, c in codes.items()}, service=plain)
    with Gateway(config, kong_plugins=PLUGINS) as running:
        running.expect_log("prematurely closed|reset by peer", range(50))
        running.expect_log("verify error|does not match|handshake rejected", range(99))
        yield running


def test_the_scheme(speaking_tls: Gateway) -> None:
    speaking_tls.expect_log('can be http or https, not "ftp"', 1)
    for case in ("https", "by-variable", "no-scheme"):
        assert speaking_tls.ask(f"/{case}").json()["version"].startswith("TLS")
    assert speaking_tls.ask("/plain").status == 502


def test_who_the_upstream_is(speaking_tls: Gateway) -> None:
    """A connection of a request that asked for no proof is none for one that does."""
    assert speaking_tls.ask("/https").status == 200
    assert speaking_tls.ask("/strangers").status == 502
    first = speaking_tls.ask("/trusted").json()
    again = speaking_tls.ask("/trusted").json()
    assert (again["connection"], again["nth"]) == (first["connection"], 1)
    for case in ("strangers", "another-name"):
        assert speaking_tls.ask(f"/{case}").status == 502
    assert speaking_tls.ask("/shallow").status == 200


def test_who_comes(speaking_tls: Gateway) -> None:
    assert speaking_tls.ask("/https").json()["client"] is None
    assert speaking_tls.ask("/shown").json()["client"] == "plugin"
    assert speaking_tls.ask("/https").json()["client"] is None
