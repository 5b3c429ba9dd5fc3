"""Which certificate a handshake shows: by name, by type of key, live."""

import json
import re
import ssl
from pathlib import Path

import pytest
from admin_client import Client, uuid

from certificates import Pair, connect, context, expired, get, make, run, shown
from sluice import Start
from upstream import Upstream

ECDSA = context(version=ssl.TLSVersion.TLSv1_2, ciphers="ECDHE-ECDSA-AES128-GCM-SHA256")
RSA = context(version=ssl.TLSVersion.TLSv1_2, ciphers="ECDHE-RSA-AES128-GCM-SHA256")

# An SNI, and names that show its certificate.
SHOWN = {
    "a.example": ["a.example", "A.EXAMPLE", "a.example."],
    "*.example": ["b.example", "-.example"],
    "b.*": ["b.test", "b.y"],
    "*": ["c.test", "x.a.example", "localhost", "127.0.0.1", "a", None],
}


@pytest.fixture(scope="module")
def pairs() -> dict[str, Pair]:
    """A certificate for each SNI."""
    return {name: make(f"for {name}") for name in SHOWN}


def entity(pair: Pair, *names: str, **more: str) -> dict:
    """A certificate with its SNIs, as a file has it."""
    return {"cert": pair.cert, "key": pair.key, "snis": [{"name": n} for n in names]} | more


def test_a_name_has_the_most_exact_certificate(gateway: Start, pairs: dict[str, Pair]) -> None:
    given = [entity(pair, name) for name, pair in pairs.items()]
    running = gateway({"certificates": given}, tls="ssl")
    for sni, names in SHOWN.items():
        for name in names:
            assert shown(running.tls_port, name) == pairs[sni].der, f"{name}, not that of {sni}"


def test_spellings_of_a_name(gateway: Start, pairs: dict[str, Pair]) -> None:
    """Case and a dot at the end do not count, in the handshake and in the entity."""
    pair = pairs["a.example"]
    running = gateway(None, tls="ssl")
    admin = Client(running)
    body = {"cert": pair.cert, "key": pair.key, "snis": ["A.Example.", "*.Other."]}
    admin.must(200, "PUT", f"/certificates/{uuid(1)}", body)
    for name in ("a.example", "a.EXAMPLE.", "b.other", "B.other."):
        assert shown(running.tls_port, name) == pair.der, name


def test_a_name_without_one_has_the_gateways_own(gateway: Start, pairs: dict[str, Pair]) -> None:
    given = [entity(pairs["a.example"], "a.example")]
    running = gateway({"certificates": given}, tls="ssl")
    own = running.settings["prefix"] / "tls" / "self-signed.pem"
    assert own.stat().st_mode & 0o777 == 0o600
    assert own.parent.stat().st_mode & 0o777 == 0o700
    der = Pair(own.read_text(), "").der
    for name in ("b.example", "x.a.example", None):
        assert shown(running.tls_port, name) == der
    running.reload()
    assert shown(running.tls_port, "b.example") == der


def test_requests_go_to_services(gateway: Start, upstream: Upstream) -> None:
    routes = [{"name": "r", "paths": ["/"], "protocols": ["https"]}]
    services = [{"name": "s", "url": upstream.url, "routes": routes}]
    running = gateway({"services": services}, tls="ssl")
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with connect(running.tls_port, "a.example", context(version=version)) as wrapped:
            assert get(wrapped, host="a.example").startswith(b"HTTP/1.1 200 ")
    assert upstream.last.headers.get("x-forwarded-proto") == "https"
    assert upstream.last.headers.get("x-forwarded-port") == str(running.tls_port)
    assert running.get("/").status_code == 426


def test_issuers_are_sent(gateway: Start) -> None:
    root = make("root", is_ca=True)
    middle = make("middle", is_ca=True, issuer=root)
    leaf = make("leaf", issuer=middle, names=("DNS:a.example",))
    running = gateway({"certificates": [entity(leaf, "a.example")]}, tls="ssl")
    strict = ssl.create_default_context(cadata=root.cert)
    with connect(running.tls_port, "a.example", strict) as wrapped:
        assert wrapped.getpeercert(binary_form=True) == leaf.der
    with pytest.raises(ssl.SSLCertVerificationError), connect(running.tls_port, "b.x", strict):
        pass


def test_the_type_of_key_is_the_clients_choice(gateway: Start) -> None:
    ec, rsa = make("ec"), make("rsa", kind="rsa")
    both = entity(ec, "a.example", cert_alt=rsa.cert, key_alt=rsa.key)
    running = gateway({"certificates": [both, entity(rsa, "only.rsa")]}, tls="ssl")
    assert shown(running.tls_port, "a.example", ECDSA) == ec.der
    assert shown(running.tls_port, "a.example", RSA) == rsa.der
    assert shown(running.tls_port, "only.rsa", RSA) == rsa.der
    # The gateway's own certificate would do: it is not this name's.
    with pytest.raises(ssl.SSLError), connect(running.tls_port, "only.rsa", ECDSA):
        pass


def test_a_key_may_be_a_reference(gateway: Start, pairs: dict[str, Pair]) -> None:
    pair = pairs["*"]
    given = entity(Pair(pair.cert, "{vault://env/tls-key}"), "a.example")
    running = gateway(
        {"certificates": [given]}, tls="ssl", vault_env="TLS_KEY", env={"TLS_KEY": pair.key}
    )
    assert shown(running.tls_port, "a.example") == pair.der


def test_every_text_may_be_a_reference(gateway: Start) -> None:
    """To the environment or a vault, to a member of a JSON object, of both pairs; also live."""
    ec, rsa = make("ec"), make("rsa", kind="rsa")
    env = {
        "APP_TLS": json.dumps({"cert": ec.cert, "key": ec.key, "number": 1}),
        "APP_TLS_ALT_CERT": rsa.cert,
        "APP_TLS_ALT_KEY": rsa.key,
    }
    running = gateway(None, tls="ssl", workers=2, vault_env=list(env), env=env)
    admin = Client(running)
    vault = {"name": "env", "prefix": "my", "config": {"prefix": "APP_"}}
    admin.must(200, "PUT", "/vaults/my", vault)
    given = {
        "cert": "{vault://my/tls/cert}",
        "key": "{vault://my/tls/key}",
        "cert_alt": "{vault://my/tls-alt-cert}",
        "key_alt": "{vault://env/app-tls-alt-key}",
        "snis": ["a.example"],
    }
    made = admin.must(200, "PUT", f"/certificates/{uuid(1)}", given)
    assert made["key"] == given["key"]
    for _ in range(4):
        assert shown(running.tls_port, "a.example", ECDSA) == ec.der
        assert shown(running.tls_port, "a.example", RSA) == rsa.der
    running.command("reload", "--new-workers")
    assert shown(running.tls_port, "a.example", ECDSA) == ec.der
    admin.must(400, "DELETE", "/vaults/my")
    for key in ("{vault://my/tls/number}", "{vault://my/tls/none}", "{vault://no/tls/key}"):
        admin.must(400, "PATCH", f"/certificates/{uuid(1)}", {"key": key})
    part = ec.key.splitlines()[1].encode()
    images = Path(f"/proc/{running.workers()[0]}/map_files")
    for folder in (running.settings["prefix"] / "store", images):
        assert not [file for file in folder.iterdir() if part in file.read_bytes()]


def test_dates_that_are_over_are_warned_of(gateway: Start) -> None:
    """It is served: it may be all that there is."""
    pair, old = make("good"), expired(make("root", is_ca=True))
    running = gateway({"certificates": [entity(old, "a.example")]}, tls="ssl")
    assert "certificates[0].cert: it expired on " in running.warned
    assert shown(running.tls_port, "a.example") == old.der
    checked = running.command("check")
    assert checked.returncode == 0
    assert "warning: certificates[0].cert: it expired on " in checked.stderr
    body = {"cert": old.cert, "key": old.key, "snis": ["a.example"]}
    stored = Client(gateway(None, tls="ssl"))
    stored.must(200, "PUT", f"/certificates/{uuid(1)}", body)
    stored.must(200, "PUT", f"/certificates/{uuid(2)}", {"cert": pair.cert, "key": pair.key})
    lines = [s for s in stored.running.error_log().splitlines() if "cert: it expired on " in s]
    assert len(lines) == 1
    assert f"certificates '{uuid(1)}': " in lines[0]


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
@pytest.mark.parametrize("kind", ["ECDSA", "RSA-PSS"])
def test_openssls_own_client(gateway: Start, version: str, kind: str) -> None:
    ec, rsa = make("ec"), make("rsa", kind="rsa")
    both = entity(ec, "a.example", cert_alt=rsa.cert, key_alt=rsa.key)
    running = gateway({"certificates": [both]}, tls="ssl")
    algorithm = {"ECDSA": "ecdsa_secp256r1_sha256", "RSA-PSS": "rsa_pss_rsae_sha256"}[kind]
    printed = run(
        *("s_client", version, "-sigalgs", algorithm, "-servername", "a.example"),
        *("-connect", f"127.0.0.1:{running.tls_port}"),
        text="Q",
    )
    # By its kind, and by its name since OpenSSL 3.5.
    assert re.search(f"^Peer signature type: ({kind}|{algorithm})$", printed, re.M), printed
    expected = ec if kind == "ECDSA" else rsa
    assert expected.cert.strip() in printed


def test_changes_are_live(gateway: Start, pairs: dict[str, Pair]) -> None:
    running = gateway(None, tls="ssl", workers=2)
    client = running.client

    def put(kind: str, key: str, value: dict) -> str:
        done = client.put(f"{running.admin}/{kind}/{key}", json=value)
        assert done.status_code == 200, done.text
        return done.json()["id"]

    def certificate(pair: Pair) -> dict:
        return {"cert": pair.cert, "key": pair.key}

    own = shown(running.tls_port, "a.example")
    key = "00000000-0000-4000-8000-000000000001"
    put("certificates", key, certificate(pairs["*"]))
    assert shown(running.tls_port, "a.example") == own
    sni = put("snis", "a.example", {"certificate": {"id": key}})
    for _ in range(4):
        assert shown(running.tls_port, "a.example") == pairs["*"].der
    put("certificates", key, certificate(pairs["b.*"]))
    for _ in range(4):
        assert shown(running.tls_port, "a.example") == pairs["b.*"].der
    assert client.delete(f"{running.admin}/snis/{sni}").status_code == 204
    for _ in range(4):
        assert shown(running.tls_port, "a.example") == own


@pytest.mark.parametrize("flags", ["ssl", "ssl http2", "ssl reuseport", "ssl backlog=64"])
def test_forms_of_listeners(gateway: Start, flags: str) -> None:
    running = gateway({}, tls=flags)
    with connect(running.tls_port, None, context(alpn=("h2", "http/1.1"))) as wrapped:
        assert wrapped.selected_alpn_protocol() == ("h2" if "http2" in flags else "http/1.1")
    listeners = running.client.get(running.admin).json()["configuration"]["proxy_listeners"]
    assert listeners[1]["ssl"] is True
    assert listeners[1]["http2"] is ("http2" in flags)


def test_versions_that_are_too_old_are_refused(gateway: Start) -> None:
    running = gateway({}, tls="ssl", ssl_cipher_suite="modern")
    with pytest.raises(ssl.SSLError):
        shown(running.tls_port, "a", context(version=ssl.TLSVersion.TLSv1_2))
    assert shown(running.tls_port, "a", context(version=ssl.TLSVersion.TLSv1_3))


def test_keys_in_their_old_forms(gateway: Start) -> None:
    """SEC 1 and PKCS #1, which tools wrote before PKCS #8; as they are, and in a vault's object."""
    given, env = [], {}
    for name, pair in (("ec", make("ec")), ("rsa", make("rsa", kind="rsa"))):
        key = run("pkey", "-traditional", text=pair.key)
        assert f"BEGIN {name.upper()} PRIVATE KEY" in key
        env[f"OLD_{name.upper()}"] = json.dumps({"cert": pair.cert, "key": key})
        kept = Pair(f"{{vault://env/old-{name}/cert}}", f"{{vault://env/old-{name}/key}}")
        given += [(f"{name}.example", pair, Pair(pair.cert, key)), (f"{name}.vault", pair, kept)]
    entities = [entity(each, name) for name, _, each in given]
    running = gateway({"certificates": entities}, tls="ssl", vault_env=list(env), env=env)
    for name, pair, _ in given:
        assert shown(running.tls_port, name) == pair.der, name
