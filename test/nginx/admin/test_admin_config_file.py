"""GET /config: the configuration as a declarative file, as Kong answers it without a database."""

import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from admin_ask import ask
from admin_kinds import JWK, Pair, config
from admin_tokens import with_token

from processes import TRIES
from sluice import Gateway, Start
from wire import Wire, request_bytes, wait_until

NEEDS_NO_DATABASE = (
    "this endpoint is only available when Kong is configured to not use a database; "
    "here POST replaces all entities of the store"
)
KEY = "key-of-a-consumer"
TOKEN, READ_TOKEN = "correct-horse-battery", "stable-horse-reading"


def whole(folder: Path) -> dict[str, Any]:
    """A file with every kind, and lists of lists, texts with lines, and values that look like
    others."""
    found = config(Pair(folder))
    found["consumers"][0] |= {
        "custom_id": "007",
        "tags": ["yes", "1.0", "~", "null", "a b", "\u00fc", "# no"],
        "keyauth_credentials": [{"key": KEY}],
        "basicauth_credentials": [{"username": "alice", "password": KEY}],
        "acls": [{"group": "on"}],
    }
    found["services"][0]["routes"] = [
        {"name": "r", "paths": ["/a", "~/b\\d+: x$"], "headers": {"x-a": ["1", "- 2"]}}
    ]
    found["plugins"] = [
        {"name": "rate-limiting", "config": {"minute": 5}, "service": {"name": "tls"}},
        {"name": "request-termination", "enabled": False, "config": {"body": "a: b\n\n- 'c'\n"}},
    ]
    found["key_sets"] = [{"name": "issuer"}]
    jwk = json.dumps(JWK | {"kid": "1"})
    found["keys"] = [{"kid": "1", "set": {"name": "issuer"}, "jwk": jwk}]
    found["upstreams"][0]["targets"] = [{"target": "127.0.0.1:1"}]
    return found


def file_of(running: Gateway, token: str = "", target: str = "/config") -> dict[str, Any]:
    """The file as a client of Kong reads it."""
    reply = ask(running, target, headers=with_token(token) if token else None)
    assert reply.status == 200, reply.text
    assert reply.headers.get("content-type") == "application/json; charset=utf-8"
    assert list(reply.json()) == ["config"]
    return yaml.safe_load(reply.json()["config"])


def shown(running: Gateway) -> dict[str, list]:
    """All entities as lists show them, by kind, each by id."""
    out = {}
    for path in ask(running, "/endpoints").json()["data"]:
        if path.count("/") == 1 and "{" not in path:
            reply = ask(running, f"{path}?size=1000")
            found = reply.json() if reply.status == 200 and path != "/metrics" else None
            if (
                isinstance(found, dict)
                and found.get("data")
                and path not in ("/tags", "/endpoints")
            ):
                out[path] = sorted(found["data"], key=lambda each: each["id"])
    return out


def test_it_is_the_configuration_and_brings_it_back(gateway: Start, tmp_path: Path) -> None:
    running = gateway(whole(tmp_path), workers=2)
    found = file_of(running)
    assert (found.pop("_format_version"), found.pop("_transform")) == ("3.0", False)
    before = shown(running)
    assert len(before) == len(found) - 2, "targets and members have no list of their own"
    (service,) = found["services"]
    (sent,) = before["/services"]
    assert service == sent | {"client_certificate": sent["client_certificate"]["id"]}
    (route,) = found["routes"]
    assert route["service"] == service["id"]
    assert (route["snis"], route["paths"]) == (None, ["/a", "~/b\\d+: x$"])
    alice = next(each for each in found["consumers"] if each["username"] == "alice")
    assert alice == next(each for each in before["/consumers"] if each["username"] == "alice")
    (limit, answer) = sorted(found["plugins"], key=lambda each: each["name"])
    assert (limit["service"], limit["route"]) == (service["id"], None)
    assert answer["config"]["body"] == "a: b\n\n- 'c'\n"
    # Former names of fields are for answers.
    assert "redis_host" not in limit["config"]
    assert limit["config"]["redis"]["host"] is None
    assert "snis" not in found["certificates"][0]
    assert found["basicauth_credentials"][0]["password"] != KEY

    text = ask(running, "/config").json()["config"]
    reply = ask(running, "/config", "POST", body=b"_format_version: '3.0'")
    assert reply.status == 201
    assert set(file_of(running)) == {"_format_version", "_transform"}
    reply = ask(running, "/config", "POST", body=text.encode())
    assert reply.status == 201, reply.text
    assert shown(running) == before
    assert ask(running, "/config").json()["config"] == text
    copy = tmp_path / "copy.yaml"
    copy.write_text(text)
    assert running.command("diff", str(copy)).returncode == 0


def test_where_the_store_is_written_it_is_not_there(gateway: Start) -> None:
    running = gateway(None)
    for method in ("GET", "HEAD"):
        reply = ask(running, "/config", method)
        assert reply.status == 400
        if method == "GET":
            assert reply.json() == {"message": NEEDS_NO_DATABASE}
    assert ask(running, "/config", "OPTIONS").headers.get("allow") == "GET, HEAD, OPTIONS, POST"
    assert ask(running, "/config", "PUT").status == 405


def test_without_a_database_and_a_file_it_is_what_was_posted(gateway: Start) -> None:
    running = gateway(None, database="off")
    assert set(file_of(running)) == {"_format_version", "_transform"}
    body = json.dumps({"_format_version": "3.0", "consumers": [{"username": "a"}]}).encode()
    assert ask(running, "/config", "POST", body=body).status == 201
    assert [each["username"] for each in file_of(running)["consumers"]] == ["a"]
    reply = ask(running, "/config", "HEAD")
    assert (reply.status, reply.body) == (200, b"")


@pytest.mark.parametrize("way", ["read token", "hide", "reveal=0"])
def test_who_may_not_see_secrets_sees_none(gateway: Start, tmp_path: Path, way: str) -> None:
    tokens = {"admin_token": TOKEN, "admin_read_token": READ_TOKEN}
    running = gateway(whole(tmp_path), admin_secrets="hide" if way == "hide" else "show", **tokens)
    token = READ_TOKEN if way == "read token" else TOKEN
    target = "/config?reveal=0" if way == "reveal=0" else "/config"
    found = file_of(running, token, target)
    assert found["keyauth_credentials"][0]["key"] is None
    assert found["basicauth_credentials"][0]["password"] is None
    assert found["certificates"][0]["key"] is None
    assert found["keys"][0]["jwk"] is None
    text = json.dumps(found)
    for secret in (KEY, JWK["d"], "PRIVATE KEY"):
        assert secret not in text
    reply = ask(running, "/config?reveal=1", headers=with_token(READ_TOKEN))
    assert (reply.status, KEY in reply.text) == (403, False)
    revealed = file_of(running, TOKEN, "/config?reveal=1")
    assert revealed["keyauth_credentials"][0]["key"] == KEY


def asked_for(running: Gateway) -> list[str]:
    """The statuses of the answers that were files, or would have been."""
    log = Path(running.settings["prefix"]) / "logs" / "admin_access.log"
    return re.findall(r'"GET /config HTTP/1.1" (\d+) ', log.read_text())


def leave(running: Gateway) -> str:
    """Asks for the file, and leaves before all of it is read: the status of that."""
    before = len(asked_for(running))
    with Wire(running.admin_port) as wire:
        wire.send(request_bytes("/config"))
        ask(running, "/status")
    return wait_until(lambda: asked_for(running)[before:], "its end")[0]


def test_nothing_is_read_for_a_client_that_has_left(gateway: Start) -> None:
    consumers = [{"username": f"c{n}"} for n in range(6000)]
    running = gateway({"consumers": consumers}, access_log_format="combined")
    # All of it is read, where this process gets no processor before it closes its connection.
    assert any(leave(running) == "499" for _ in range(TRIES)), asked_for(running)
    assert len(file_of(running)["consumers"]) == len(consumers)


def test_it_is_of_one_revision(gateway: Start) -> None:
    def document(version: int) -> dict[str, Any]:
        names = [f"{version}-{n}" for n in range(400)]
        return {
            "_format_version": "3.0",
            "services": [{"name": name, "host": "127.0.0.1"} for name in names],
            "consumers": [{"username": name} for name in names],
        }

    running = gateway(document(0))
    done, answers = threading.Event(), []

    def read() -> None:
        while not done.is_set():
            answers.append(ask(running, "/config"))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    for version in range(1, 8):
        body = json.dumps(document(version)).encode()
        assert ask(running, "/config", "POST", body=body).status == 201
    done.set()
    reader.join()
    answers.append(ask(running, "/config"))
    versions = set()
    for reply in answers:
        assert reply.status in (200, 503)
        if reply.status == 200:
            found = yaml.safe_load(reply.json()["config"])
            names = [each["name"] for each in found["services"]]
            names += [each["username"] for each in found["consumers"]]
            assert len(names) == 800
            assert len({name.split("-")[0] for name in names}) == 1
            versions.add(names[0].split("-")[0])
    assert "7" in versions
