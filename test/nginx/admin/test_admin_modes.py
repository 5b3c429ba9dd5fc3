"""The store or a file as the truth, the token that only reads, hidden secrets, the audit log."""

import json
import re
from pathlib import Path

import httpx
import pytest
from admin_ask import ask
from admin_tokens import send, with_token
from changes import document, post

from instance import ONE, TWO, Instance
from sluice import NGINX, Gateway, Start
from upstream import Upstream
from wire import DEADLINE, wait_until

TOKEN, READ_TOKEN = "correct-horse-battery", "stable-horse-reading"
KEY = "key-of-a-consumer"
ALICE = {"consumers": [{"username": "alice", "keyauth_credentials": [{"key": KEY}]}]}


# What is the truth ---------------------------------------------------------------


def test_a_file_is_not_written_beside(gateway: Start) -> None:
    running = gateway(ALICE)
    node = send(running, "GET", "/").json()
    assert (node["configuration"]["database"], node["sluice"]["storage"]) == ("off", "file")
    for method, target in (
        ("POST", "/services"),
        ("PUT", "/services/a"),
        ("PATCH", "/consumers/alice"),
        ("DELETE", "/consumers/alice"),
        ("POST", "/consumers/alice/key-auth"),
    ):
        reply = send(running, method, target, json={"host": "a.example"})
        found = reply.json()
        assert (reply.status_code, found["code"]) == (405, 12), target
        assert found["name"] == "operation unsupported"
        assert "sluice reload --no-file" in found["message"]
    assert [each["username"] for each in send(running, "GET", "/consumers").json()["data"]] == [
        "alice"
    ]
    assert post(running, document({})).status_code == 201


def test_without_a_file_the_store_is_the_truth(gateway: Start) -> None:
    running = gateway(None)
    node = send(running, "GET", "/").json()
    assert (node["configuration"]["database"], node["sluice"]["storage"]) == ("postgres", "store")
    assert send(running, "GET", "/services").json()["data"] == []
    assert running.get("/").status_code == 404
    assert post(running, document(ALICE)).status_code == 201
    running.stop()
    running.start()
    assert send(running, "GET", "/consumers/alice").status_code == 200


def bob(instance: Instance, method: str) -> int:
    """Creates or deletes a consumer."""
    url = f"http://127.0.0.1:{instance.admin_port}/consumers/bob"
    body = {} if method == "PUT" else None
    reply = httpx.request(method, url, json=body, trust_env=False, timeout=DEADLINE)
    return reply.status_code


def test_what_no_file_has_is_not_replaced_by_one(instance: Instance) -> None:
    with Upstream() as upstream:
        two = instance.folder / "two.yaml"
        two.write_text(TWO.format(url=upstream.url))
        instance.file.write_text(ONE.format(url=upstream.url))
        instance.succeed("start")
        # What the file had stays, and is written from then on.
        instance.succeed("restart", file="")
        assert "the store is the source of truth" in instance.succeed("status")
        assert bob(instance, "PUT") in (200, 201)
        for verb in ("reload", "restart"):
            said = instance.refuse(verb, file=str(two))
            assert "the store of this prefix has changes that are not in the file" in said[0]
            assert f"sluice import {two}" in said[1]
        # One that has the same takes its place, with the same ids.
        two.write_text(ONE.format(url=upstream.url) + "consumers: [{username: bob}]\n")
        line = "the store of this prefix has the contents of the file under other ids"
        assert line in instance.refuse("restart", file=str(two))[0]
        two.write_text(TWO.format(url=upstream.url))
        same = instance.folder / "same.json"
        instance.succeed("export", str(same))
        instance.succeed("reload", file=str(same))
        instance.succeed("restart", file="")
        assert bob(instance, "DELETE") == 204
        assert f"sluice diff {same}" in instance.refuse("restart", file=str(same))[0]
        instance.succeed("import", str(two))
        instance.succeed("restart", file=str(two))


@pytest.mark.parametrize("verb", ["reload", "restart"])
def test_a_file_that_was_imported_keeps_the_ids_of_the_import(
    instance: Instance, verb: str
) -> None:
    instance.succeed("start", file=None)
    assert bob(instance, "PUT") in (200, 201)
    ids = instance.succeed("get", "consumers", "--json")
    instance.file.write_text('_format_version: "3.0"\nconsumers: [{username: bob}]\n')
    instance.succeed("import", str(instance.file))
    instance.succeed(verb, file=str(instance.file))
    assert instance.succeed("get", "consumers", "--json") == ids
    for more in ([], ["--new-workers"]):
        instance.succeed("reload", *more)
        assert instance.status()["file_changed"] is False
        assert instance.succeed("get", "consumers", "--json") == ids
    instance.file.write_text('_format_version: "3.0"\nconsumers: [{username: eve}]\n')
    said = instance.succeed("reload", "--yes").splitlines()
    assert {"- consumer bob", "+ consumer eve"} <= set(said)


WRITES_MEANWHILE = """\
#!/bin/sh
case " $* " in *" -t "*) curl -s -X PUT -d '' {url}/consumers/late >/dev/null ;; esac
exec {nginx} "$@"
"""


@pytest.fixture
def written_late(instance: Instance) -> Path:
    """The file of a store that gets a consumer after a restart or reload has compared them."""
    same, nginx = instance.folder / "same.json", instance.folder / "nginx"
    url = f"http://127.0.0.1:{instance.admin_port}"
    nginx.write_text(WRITES_MEANWHILE.format(url=url, nginx=NGINX))
    nginx.chmod(0o755)
    instance.succeed("start", file=None, nginx_binary=str(nginx))
    assert bob(instance, "PUT") in (200, 201)
    instance.succeed("export", str(same))
    return same


def test_a_change_during_a_restart_is_kept(instance: Instance, written_late: Path) -> None:
    done = instance.run("restart", file=str(written_late))
    assert done.returncode == 0, done.stderr
    line = "warning: the store was changed after it was compared with the file; it is recreated "
    path = r"from \S+, and the previous store is in (\S+)\n"
    said = re.search(re.escape(line) + path, done.stderr)
    assert said, done.stderr
    instance.succeed("stop")
    instance.run("restore", f"{said[1]}/store.db")
    assert '"late"' in instance.succeed("export")


@pytest.mark.parametrize("made_by", ["export", "import"])
def test_a_change_during_a_reload_is_kept(
    instance: Instance, written_late: Path, made_by: str
) -> None:
    if made_by == "import":  # which leaves nothing to be loaded
        instance.succeed("import", str(written_late))
    done = instance.run("reload", file=str(written_late))
    line = "the declarative file is not: the store was changed after it was compared with the file"
    assert (done.returncode, line in done.stderr) == (1, True), done.stderr
    assert instance.hint("reload --no-file") in done.stderr
    instance.succeed("reload", "--no-file")
    assert '"late"' in instance.succeed("get", "consumers", "--json")


# Who asks ------------------------------------------------------------------------


def test_a_token_that_only_reads(gateway: Start) -> None:
    running = gateway(ALICE, admin_token=TOKEN, admin_read_token=READ_TOKEN)
    reads, writes = with_token(READ_TOKEN), with_token(TOKEN)
    for target in ("/", "/status", "/consumers/alice", "/metrics", "/plugins/enabled"):
        assert send(running, "GET", target, headers=reads).status_code == 200
    for method, target in (("POST", "/config"), ("PUT", "/services/a"), ("DELETE", "/services/a")):
        reply = send(running, method, target, headers=reads, content="{}")
        assert (reply.status_code, reply.json()["message"]) == (403, "this token is read-only")
    assert send(running, "GET", "/key-auths", headers=writes).json()["data"][0]["key"] == KEY
    for target in ("/key-auths", "/consumers/alice/key-auth", f"/key-auths/{KEY}"):
        assert KEY not in send(running, "GET", target, headers=reads).text
        shown = send(running, "GET", target + "?reveal=1", headers=reads)
        assert (shown.status_code, KEY in shown.text) == (403, False)
    assert ask(running, "/", headers={"Kong-Admin-Token": "x"}).status == 401
    assert READ_TOKEN not in send(running, "GET", "/", headers=writes).text


def test_secrets_are_shown_where_a_request_says_so(gateway: Start) -> None:
    running = gateway(ALICE, admin_secrets="hide")
    assert send(running, "GET", "/key-auths").json()["data"][0]["key"] is None
    assert send(running, "GET", "/key-auths?reveal=0").json()["data"][0]["key"] is None
    assert send(running, "GET", "/key-auths?reveal=1").json()["data"][0]["key"] == KEY
    for wrong in ("reveal=2", "reveal", "reveal=1&reveal=1"):
        assert send(running, "GET", "/key-auths?" + wrong).status_code == 400


@pytest.mark.parametrize(
    ("tokens", "why"),
    [
        ({"admin_read_token": READ_TOKEN}, "there is no admin_token"),
        ({"admin_token": TOKEN, "admin_read_token": TOKEN}, "it is the same as admin_token"),
    ],
)
def test_a_reading_token_is_one(instance: Instance, tokens: dict[str, str], why: str) -> None:
    for name, token in tokens.items():
        instance.environment["SLUICE_" + name.upper()] = token
    (line,) = instance.refuse("start", code=2)
    assert f"admin_read_token: {why}" in line
    assert TOKEN not in line


# The audit log -------------------------------------------------------------------


def audited(running: Gateway) -> list[dict]:
    """The lines of the audit log."""
    path = Path(running.settings["prefix"]) / "logs" / "audit.log"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_who_writes_is_noted(gateway: Start) -> None:
    running = gateway(
        ALICE, admin_token=TOKEN, admin_read_token=READ_TOKEN, audit_log="logs/audit.log"
    )
    send(running, "GET", "/consumers", headers=with_token(TOKEN))
    send(running, "POST", "/config", headers=with_token(TOKEN), content=document(ALICE))
    send(running, "DELETE", f"/key-auths/{KEY}?apikey={KEY}", headers=with_token(READ_TOKEN))
    send(running, "PATCH", '/services/a"b', headers=with_token("wrong"))
    running.command("reload", "--new-workers")
    wait_until(lambda: len(audited(running)) >= 3, "three lines")
    first, second, third = audited(running)[:3]
    assert (first["by"], first["from"]) == ("admin_token", "127.0.0.1")
    assert (first["method"], first["path"], first["status"]) == ("POST", "/config", 201)
    assert (second["by"], second["status"]) == ("admin_read_token", 403)
    assert second["path"] == "/key-auths/REDACTED?apikey=REDACTED"
    assert (third["by"], third["path"], third["status"]) == ("-", "/services/a%22b", 401)
    assert (Path(running.settings["prefix"]) / "logs" / "audit.log").stat().st_mode & 0o007 == 0


def test_a_key_in_the_path_is_in_no_log(gateway: Start) -> None:
    for form in ("combined", "json", "$request|$request_uri|$uri|${document_uri}"):
        running = gateway(ALICE, access_log_format=form)
        assert send(running, "GET", f"/key-auths/{KEY}").status_code == 200
        assert send(running, "GET", f"/consumers/alice/key-auth/{KEY}?size=1").status_code == 200
        log = Path(running.settings["prefix"]) / "logs" / "admin_access.log"
        wait_until(lambda: "/consumers/alice" in log.read_text(), "the line")  # noqa: B023
        assert KEY not in log.read_text()
        assert "/key-auths/REDACTED" in log.read_text()
        running.stop()
