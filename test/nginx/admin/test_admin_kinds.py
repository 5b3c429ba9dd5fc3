"""Certificates, SNIs, CAs, groups of consumers and vaults: from a file into the store, and shown.

Nothing of a private key is in a log, a metric or an error.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from admin_client import Client
from admin_kinds import CA_ID, CERTIFICATE_ID, Pair, config
from admin_starts import Admin

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Wire


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A certificate and its key."""
    return Pair(tmp_path_factory.mktemp("pair"))


def check_views(admin: Admin, pair: Pair) -> None:
    """What a file of `config` shows."""
    certificate = admin.get(f"/certificates/{CERTIFICATE_ID}")
    dates = {name: certificate.pop(name) for name in ("created_at", "updated_at")}
    assert all(isinstance(date, int) for date in dates.values())
    assert certificate == {
        "id": CERTIFICATE_ID,
        "cert": pair.cert,
        "key": pair.key,
        "cert_alt": None,
        "key_alt": None,
        "tags": ["edge"],
        "snis": ["*.a.example", "b.example"],
    }
    (listed,) = admin.get("/certificates?tags=edge")["data"]
    assert listed["snis"] == certificate["snis"]
    assert admin.names(f"/certificates/{CERTIFICATE_ID}/snis") == ["b.example", "*.a.example"]
    assert admin.names(f"/certificates/{CERTIFICATE_ID}/services") == ["tls"]
    assert admin.names(f"/certificates/{CERTIFICATE_ID}/upstreams") == ["mutual"]
    sni = admin.get("/snis/%2A.a.example")
    assert (sni["certificate"], sni["tags"]) == ({"id": CERTIFICATE_ID}, ["edge"])
    (ca,) = admin.get("/ca_certificates")["data"]
    command = "openssl x509 -noout -fingerprint -sha256"
    told = subprocess.run(command.split(), input=pair.cert, capture_output=True, text=True)
    digest = told.stdout.strip().split("=")[1].replace(":", "").lower()
    assert (ca["id"], ca["cert_digest"]) == (CA_ID, digest)
    service = admin.get("/services/tls")
    assert service["client_certificate"] == {"id": CERTIFICATE_ID}
    assert service["ca_certificates"] == [CA_ID]
    assert admin.names("/consumer_groups") == ["gold"]
    vault = admin.get("/vaults/my-env")
    assert (vault["name"], vault["config"]) == ("env", {"prefix": "APP_"})
    for target in ("/consumer_group_consumers", "/consumers/bob/consumer_group_consumers"):
        assert admin.ask(target).status == 404


def test_all_are_stored_and_shown(gateway: Start, pair: Pair, upstream: Upstream) -> None:
    whole = config(pair)
    proxied = proxying(upstream.url)
    for kind, entities in proxied.items():
        whole[kind] = whole.get(kind, []) + entities
    running = gateway(whole, workers=2)
    admin = Admin(running)
    check_views(admin, pair)
    assert running.get("/").status_code == 200
    running.command("restart")
    check_views(admin, pair)
    # A change that no image has is a revision all the same, and nothing else.
    before = admin.get("/")["sluice"]["configuration_version"]
    whole["vaults"][0]["description"] = "for the application"
    document = json.dumps({"_format_version": "3.0"} | whole).encode()
    reply = admin.ask("/config", "POST", body=document)
    assert (reply.status, reply.json()["version"]) == (201, before + 1)
    assert running.get("/").status_code == 200
    for secret in pair.secrets():
        assert secret not in running.error_log() + running.access_log()
        assert secret not in admin_text(running, "/metrics") + admin_text(running, "/status")


def admin_text(running: Gateway, target: str) -> str:
    """A page as a text."""
    with Wire(running.admin_port) as wire:
        return wire.ask(target).text


def test_an_export_is_a_file(gateway: Start, pair: Pair, tmp_path: Path) -> None:
    running = gateway(config(pair))
    exported = tmp_path / "export.json"
    assert running.command("export", str(exported)).returncode == 0
    assert running.command("check", str(exported)).returncode == 0
    admin = Admin(running)
    before = admin.get("/")["sluice"]["configuration_version"]
    reply = admin.ask("/config", "POST", body=exported.read_bytes())
    assert (reply.status, reply.json()["version"]) == (201, before)
    check_views(admin, pair)


def test_no_error_has_a_key(gateway: Start, pair: Pair, tmp_path: Path) -> None:
    running = gateway({})
    admin = Admin(running)
    other = Pair(tmp_path, "rsa")
    for changes, message in (
        ({"key": other.key}, "certificate does not match key"),
        ({"key": "x" + pair.key[30:]}, "invalid key: expected a private key in PEM"),
        ({"cert": pair.key}, "invalid certificate: this is a private key, not a certificate"),
        ({"key": [pair.key]}, "expected a string"),
        ({pair.key: 1}, "unknown field"),
        ({"tags": [pair.key]}, "invalid tag"),
    ):
        entity = {"cert": pair.cert, "key": pair.key} | changes
        document = json.dumps({"_format_version": "3.0", "certificates": [entity]}).encode()
        reply = admin.ask("/config", "POST", body=document)
        assert (reply.status, message in reply.text) == (400, True), reply.text
        if pair.key not in changes and "tags" not in changes:
            for secret in pair.secrets() + other.secrets():
                assert secret not in reply.text
    for secret in pair.secrets() + other.secrets():
        assert secret not in running.error_log()


def test_pem_that_cannot_be_read_is_refused_in_our_words(gateway: Start, pair: Pair) -> None:
    client = Client(gateway(None))
    torn = {"cert": pair.cert.replace("\nMII", "\n"), "key": pair.key.replace("\nMI", "\n")}
    said = client.must(400, "POST", "/certificates", torn)["fields"]
    assert said == {
        "cert": "invalid certificate: certificate 1 is damaged: it cannot be decoded",
        "key": "invalid key: it is damaged: it cannot be decoded",
    }


def test_check_says_what_has_no_effect(gateway: Start, pair: Pair, tmp_path: Path) -> None:
    running = gateway({})
    path = tmp_path / "sluice.json"
    path.write_text(json.dumps({"_format_version": "3.0"} | config(pair)))
    checked = running.command("check", str(path))
    assert checked.returncode == 0
    assert "certificates: checked and stored" not in checked.stdout + checked.stderr


def test_a_certificate_brings_its_names(gateway: Start, pair: Pair) -> None:
    admin = Admin(gateway(None))
    json_type = [("Content-Type", "application/json")]

    def write(method: str, target: str, **value: Any) -> tuple[int, Any]:
        reply = admin.ask(target, method, headers=json_type, body=json.dumps(value).encode())
        return reply.status, reply.json()

    one = f"/certificates/{CERTIFICATE_ID}"
    pem = {"cert": pair.cert, "key": pair.key}
    status, made = write("PUT", one, **pem, snis=["b.example", "a.example"])
    assert (status, made["snis"]) == (200, ["a.example", "b.example"])
    kept = admin.get("/snis/b.example")["id"]
    assert write("PATCH", one, tags=["x"])[1]["snis"] == ["a.example", "b.example"]
    assert write("PUT", one, **pem)[1]["snis"] == ["a.example", "b.example"]
    assert write("PATCH", one, snis=["b.example", "*.c"])[1]["snis"] == ["*.c", "b.example"]
    assert admin.get("/snis/b.example")["id"] == kept
    status, refused = write("POST", "/certificates", **pem, snis=["*.c"])
    assert (status, refused["fields"]) == (409, {"name": "*.c"})
    assert len(admin.get("/certificates")["data"]) == 1
    status, refused = write("PATCH", one, snis=["a", "a"])
    assert (status, refused["fields"]) == (400, {"snis": "a is duplicated"})
    assert write("PATCH", one, snis=[])[1]["snis"] is None
    assert admin.names("/snis") == []
    write("PATCH", one, snis=["a"])
    assert write("PUT", one, **pem, snis=None)[1]["snis"] is None
    assert admin.names("/snis") == []
    write("PATCH", one, snis=["a"])
    assert admin.ask(one, "DELETE").status == 204
    assert admin.names("/snis") == []


def test_a_certificate_goes_by_its_names(gateway: Start, pair: Pair) -> None:
    client = Client(gateway(None))
    pem = {"cert": pair.cert, "key": pair.key}
    made = client.must(200, "PUT", "/certificates/a.example", pem | {"snis": ["b.example"]})
    assert made["snis"] == ["a.example", "b.example"]
    assert client.must(200, "GET", "/certificates/b.example") == made
    again = client.must(200, "PUT", "/certificates/a.example", pem | {"tags": ["x"]})
    assert (again["id"], again["snis"]) == (made["id"], made["snis"])
    both = [
        {"method": "PATCH", "path": "/certificates/b.example", "body": {"tags": ["y"]}},
        {
            "method": "POST",
            "path": "/certificates/b.example/snis",
            "body": {"name": "c.example"},
        },
        {"method": "PATCH", "path": "/certificates/c.example", "body": {"tags": ["z"]}},
    ]
    client.must(200, "POST", "/batch", both)
    kept = client.must(200, "GET", "/certificates/c.example")
    assert (kept["id"], kept["tags"], len(kept["snis"])) == (made["id"], ["z"], 3)
    for method in ("PATCH", "PUT"):
        target = f"/certificates/{'d.example' if method == 'PATCH' else 'no name'}"
        status = client.ask(method, target.replace(" ", "%20"), pem).status
        assert status == (404 if method == "PATCH" else 400)
    assert client.ask("DELETE", "/certificates/d.example").status == 204
    assert len(client.must(200, "GET", "/certificates")["data"]) == 1
    client.must(204, "DELETE", "/certificates/a.example")
    assert client.must(200, "GET", "/snis")["data"] == []


def test_what_was_got_can_be_applied(gateway: Start, pair: Pair) -> None:
    """Names of SNIs, as the Admin API shows them, stand for the SNIs."""
    running = gateway(None)
    client = Client(running)
    client.must(200, "PUT", f"/certificates/{CERTIFICATE_ID}", {"cert": pair.cert, "key": pair.key})

    def apply(text: str) -> dict[str, Any]:
        return client.must(200, "POST", "/apply?kind=certificates", text.encode())

    def got(*more: str) -> str:
        done = running.command("get", "certificates", "--json", *more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    hidden = client.ask("POST", "/apply?kind=certificates", got().encode()).json()
    assert hidden["fields"] == {"certificates[0].key": "required field missing"}
    assert apply(got("--reveal"))["unchanged"] == 1  # no names: null
    for name in ("b.example", "a.example"):
        client.must(201, "POST", f"/certificates/{CERTIFICATE_ID}/snis", {"name": name})
    before = client.must(200, "GET", "/snis")["data"]
    text = got("--reveal")
    assert apply(text)["unchanged"] == 3
    client.must(204, "DELETE", f"/certificates/{CERTIFICATE_ID}")
    assert apply(text)["created"] == 3
    assert apply(text)["unchanged"] == 3
    after = client.must(200, "GET", "/snis")["data"]
    assert {sni["name"] for sni in after} == {sni["name"] for sni in before}
    wrong = text.replace('["a.example","b.example"]', '{"a":"b"}')
    assert client.ask("POST", "/apply?kind=certificates", wrong.encode()).status == 400


def test_a_ca_certificate_that_a_service_names(gateway: Start, pair: Pair) -> None:
    """It goes together with the last service that names it, not before."""
    client = Client(gateway(None))
    target = f"/ca_certificates/{CA_ID}"
    service = {"name": "tls", "protocol": "https", "host": "127.0.0.1", "ca_certificates": [CA_ID]}
    refused = client.must(400, "POST", "/services", service)
    assert refused["fields"] == {"ca_certificates": {"id": CA_ID}}
    client.must(201, "POST", "/ca_certificates", {"id": CA_ID, "cert": pair.cert})
    made = client.must(201, "POST", "/services", service)
    refused = client.must(400, "DELETE", target)
    assert refused == {
        "message": f"ca certificate {CA_ID} is still referenced by services (id = {made['id']})",
        "name": "referenced by others",
        "code": 19,
    }
    gone = {"method": "DELETE", "path": target}
    client.must(400, "POST", "/batch", [gone, {"method": "POST", "path": "/services", "body": {}}])
    client.must(200, "PATCH", "/services/tls", {"ca_certificates": None})
    client.must(204, "DELETE", target)
    client.must(201, "POST", "/ca_certificates", {"id": CA_ID, "cert": pair.cert})
    client.must(200, "PATCH", "/services/tls", {"ca_certificates": [CA_ID]})
    client.must(200, "POST", "/batch", [{"method": "DELETE", "path": "/services/tls"}, gone])
    client.must(404, "GET", target)


def test_a_ca_certificate_that_a_plugin_names(gateway: Start, pair: Pair) -> None:
    """The same for lists in configurations, also by a file and on the way back."""
    running = gateway(None)
    client, target = Client(running), f"/ca_certificates/{CA_ID}"
    plugin = {"name": "mtls-auth", "config": {"ca_certificates": [CA_ID]}}
    refused = client.must(400, "POST", "/plugins", plugin)
    assert refused["name"] == "foreign key violation"
    assert refused["fields"] == {"config": {"ca_certificates": {"id": CA_ID}}}
    file = {"_format_version": "3.0", "plugins": [plugin]}
    assert client.must(400, "POST", "/config", file)["errors"] == [
        {
            "path": "plugins[0].config.ca_certificates[0]",
            "entity": "mtls-auth",
            "message": f"invalid reference '{CA_ID}' (no such entry in 'ca_certificates')",
        }
    ]
    client.must(400, "POST", "/apply", file)
    client.must(201, "POST", "/ca_certificates", {"id": CA_ID, "cert": pair.cert})
    made = client.must(201, "POST", "/plugins", plugin)
    refused = client.must(400, "DELETE", target)
    message = f"ca certificate {CA_ID} is still referenced by plugins (id = {made['id']})"
    assert (refused["message"], refused["code"]) == (message, 19)
    # An id elsewhere in a plugin is no reference.
    other = {"name": "key-auth", "config": {"key_names": [CA_ID]}, "tags": [CA_ID]}
    client.must(201, "POST", "/plugins", other)
    gone = [{"method": "DELETE", "path": path} for path in (f"/plugins/{made['id']}", target)]
    revision = client.must(200, "POST", "/rollback", {"revision": 1})["revision"]
    client.must(200, "POST", "/rollback", {"revision": revision - 1})
    client.must(200, "POST", "/batch", gone)
