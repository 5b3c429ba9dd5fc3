"""get snis, get certificates: what a certificate says of itself; and how an SNI names one."""

import json
import re

from admin_client import Client

import certificates
from sluice import Gateway, Start


def table(running: Gateway, *words: str) -> dict[str, dict[str, str]]:
    """The rows of `sluice get`, each by what is in its first column."""
    done = running.command("get", *words)
    assert (done.returncode, done.stderr) == (0, "")
    titles, *rows = [re.split(r"  +", line) for line in done.stdout.splitlines()]
    return {row[0]: dict(zip(titles, row, strict=True)) for row in rows}


def add(client: Client, pair: certificates.Pair, *snis: str) -> str:
    """A certificate with these names; its id."""
    body = {"cert": pair.cert, "key": pair.key, "snis": [*snis]}
    return str(client.must(201, "POST", "/certificates", body)["id"])


def test_names_and_expiry(gateway: Start) -> None:
    running = gateway(None)
    client = Client(running)
    both = ("DNS:shop.example", "DNS:*.shop.example", "IP:10.0.0.1", "email:a@b.example")
    shop = add(client, certificates.make("no", names=both), "shop.example", "other.example")
    authority = certificates.make("ca", is_ca=True)
    old = add(client, certificates.expired(authority), "old.example")
    bare = add(client, certificates.make("bare.example"), "bare.example")
    snis = table(running, "snis")
    assert list(snis["shop.example"]) == ["name", "certificate", "names", "expires", "id"]
    for name in ("shop.example", "other.example"):
        assert snis[name]["certificate"] == shop
        assert snis[name]["names"] == "shop.example,*.shop.example,10.0.0.1"
        assert re.fullmatch(r"20\d\d-\d\d-\d\d \((29|30) days\)", snis[name]["expires"])
    assert snis["old.example"]["certificate"] == old
    assert snis["old.example"]["expires"] == "EXPIRED 2024-01-31"
    # Without alternative names the common one.
    assert snis["bare.example"]["names"] == "bare.example"
    found = table(running, "certificates")
    assert found["bare.example"]["id"] == bare
    for name, row in found.items():
        like = snis[name.split(",")[0]]
        # A second later there may be a day less.
        same = [row["names"], row["expires"].partition(" (")[0]]
        assert same == [like["names"], like["expires"].partition(" (")[0]]
    (one,) = table(running, "snis/shop.example").values()
    assert one["names"] == snis["shop.example"]["names"]


def test_status_says_what_a_certificate_does_not_cover(gateway: Start) -> None:
    """As after PUT /certificates/SNI with the certificate of another name."""
    running = gateway(None, tls="ssl")
    client = Client(running)
    pair = certificates.make("no", names=("DNS:shop.example", "DNS:*.shop.example"))
    add(client, pair, "shop.example", "a.shop.example", "b.a.shop.example", "other.example")
    done = running.command("status")
    assert done.returncode == 0
    line = next(line for line in done.stdout.splitlines() if line.startswith("tls "))
    assert line.endswith("; does not cover b.a.shop.example, other.example"), line
    (found,) = json.loads(running.command("status", "--json").stdout)["certificates"]["list"]
    assert found["uncovered"] == ["b.a.shop.example", "other.example"]


def test_a_table_shows_which_service_is_disabled(gateway: Start) -> None:
    running = gateway(None)
    client = Client(running)
    for name, enabled in (("on", True), ("off", False)):
        client.must(200, "PUT", f"/services/{name}", {"host": "x", "enabled": enabled})
        client.must(200, "PUT", f"/services/{name}/routes/{name}", {"paths": [f"/{name}"]})
    routes = table(running, "routes")
    assert {name: row["service"] for name, row in routes.items()} == {
        "on": "on",
        "off": "off (disabled)",
    }


def test_a_certificate_of_a_vault_says_nothing(gateway: Start) -> None:
    pair = certificates.make("vault.example")
    variables = {"VAULT_CERT": pair.cert, "VAULT_KEY": pair.key}
    running = gateway(None, vault_env=",".join(variables), env=variables)
    client = Client(running)
    body = {
        "cert": "{vault://env/VAULT_CERT}",
        "key": "{vault://env/VAULT_KEY}",
        "snis": ["vault.example"],
    }
    client.must(201, "POST", "/certificates", body)
    assert list(table(running, "snis")["vault.example"]) == ["name", "certificate", "id"]


def test_an_sni_names_its_certificate_by_id_or_in_the_path(gateway: Start) -> None:
    client = Client(gateway(None))
    certificate = add(client, certificates.make("shop.example"), "shop.example")
    for reference in ("shop.example", {"name": "shop.example"}):
        body = {"name": "a.example", "certificate": reference}
        answer = client.must(400, "POST", "/snis", body)
        wanted = f"expected an id; that of 'shop.example' is {certificate}"
        assert (answer["code"], answer["fields"]) == (2, {"certificate": wanted})
    body = {"name": "a.example", "certificate": "nobody.example"}
    unknown = "expected the id of an entity of 'certificates'"
    assert client.must(400, "POST", "/snis", body)["fields"] == {"certificate": unknown}
    # Kong's ways.
    client.must(201, "POST", "/snis", {"name": "a.example", "certificate": {"id": certificate}})
    made = client.must(201, "POST", "/certificates/shop.example/snis", {"name": "b.example"})
    assert made["certificate"] == {"id": certificate}
