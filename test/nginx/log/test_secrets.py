"""Planted secrets come out nowhere: in no log, no metric, no answer of the gateway's own."""

import json
import socket
from typing import Any

import pytest
from log_server import LogServer, logging_to
from secrets_sent import HEADERS, PARAMETERS, Secrets, basic

from sluice import Gateway, Start
from upstream import DeadPort, Upstream
from wire import ClosedEarly, Wire, wait_until


def config(upstream: Upstream, dead: DeadPort, log: LogServer, key: str) -> dict[str, Any]:
    """Routes that answer, refuse and fail, behind keys of which one is a consumer's."""
    made = logging_to(upstream, log.port, headers={"X-Token": "{vault://env/log-token}"})
    made["services"][0]["routes"] = [{"name": "open", "paths": ["/open"]}]
    made["services"] += [
        {"name": name, "url": url, "retries": 0, "routes": [{"name": name, "paths": [f"/{name}"]}]}
        for name, url in {"away": f"http://{dead.address}", "keyed": upstream.url}.items()
    ]
    names = {"key_names": ["apikey", "x_token"], "key_in_body": True}
    made["plugins"] += [
        {"name": "key-auth", "route": "keyed", "config": names},
        {"name": "rate-limiting", "route": "keyed", "config": {"year": 3, "policy": "local"}},
    ]
    made["consumers"] = [{"username": "ann", "keyauth_credentials": [{"key": key}]}]
    return made


def ask_all(running: Gateway, secrets: Secrets, key: str) -> tuple[set[int], str]:
    """Plants secrets in requests of each kind; the errors that come back: statuses, and texts."""
    out, statuses = [], set()

    def ask(target: str, **request: Any) -> None:
        with running.wire() as wire:
            try:
                reply = wire.ask(target, **request)
            except (ClosedEarly, ConnectionError):
                return
        # What the upstream echoes is its own.
        statuses.add(reply.status)
        if reply.status >= 400:
            out.append(f"{reply.headers}{reply.body.decode(errors='replace')}")

    form = "application/x-www-form-urlencoded"
    for path in ("/none", "/open", "/away", "/keyed"):
        for name in PARAMETERS:
            ask(f"{path}?b=2&{name}={secrets.new(f'{path} {name}')}")
        for name in HEADERS:
            ask(path, headers={name: secrets.new(f"{path} {name}")})
        for name in ("Authorization", "Proxy-Authorization"):
            ask(path, headers={name: basic(secrets.new(f"{path} basic {name}"))})
        ask(path, headers={"Cookie": f"session={secrets.new('cookie')}; other=1"})
        body = f"apikey={secrets.new('form')}".encode()
        ask(path, method="POST", headers={"Content-Type": form}, body=body)
        body = json.dumps({"x_token": secrets.new("json")}).encode()
        ask(path, method="POST", headers={"Content-Type": "application/json"}, body=body)
        ask(f"http://user:{secrets.new('userinfo')}@a.example{path}")
        # Refused before it is routed.
        ask(f"{path}?apikey={secrets.new('bad target')}\x01")
        ask(f"{path}/..%2f..?apikey={secrets.new('traversal')}")
        ask(f"{path}?apikey={secrets.new('long')}{'x' * 9000}")
        ask(path, headers={"Authorization": "x" * 40000 + secrets.new("long header")})
        ask(path, headers={"Host": "a b", "apikey": secrets.new("bad host")})
        # Right, and after some turns over the limit.
        for _ in range(4):
            ask(path, headers={"apikey": key})
    return statuses, "\n".join(out)


def asked_admin(running: Gateway, key: str) -> str:
    """What the admin listener says in errors, and in all that is no entity."""
    out = []
    with Wire(running.admin_port) as wire:
        for target in ("/metrics", "/status", "/", "/events", f"/nowhere?apikey={key}"):
            reply = wire.ask(target)
            out.append(reply.body.decode())
        for target in (f"/key-auths/{key}x", f"/consumers/nobody/key-auth/{key}"):
            out.append(wire.ask(target, "DELETE").body.decode().replace(f"{key}x", ""))
    return "\n".join(out)


@pytest.mark.parametrize("form", ["json", '{"path":"$request_uri","cookie":"$http_cookie"}'])
def test_planted_secrets_come_out_nowhere(gateway: Start, upstream: Upstream, form: str) -> None:
    secrets = Secrets()
    key, token = secrets.new("a consumer's key"), secrets.new("a vault's value")
    with (
        LogServer() as log,
        DeadPort() as dead,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as syslog,
    ):
        syslog.bind(("127.0.0.1", 0))
        syslog.settimeout(0.5)
        running = gateway(
            config(upstream, dead, log, key),
            access_log_format=form,
            workers=1,
            audit_log=f"syslog:server=127.0.0.1:{syslog.getsockname()[1]}",
            log_level="info",
            metrics_series="9",
            env={"LOG_TOKEN": token},
            vault_env="LOG_TOKEN",
        )
        running.expect_log(r"connect\(\) failed", range(1, 100))
        answered, answers = ask_all(running, secrets, key)
        admin = asked_admin(running, key)
        running.ask("/open?n=last")
        wait_until(lambda: "n=last" in running.access_log(), "the last line")
        wait_until(
            lambda: any(e["request"]["querystring"].get("n") == "last" for e in log.entries),
            "the last entry",
        )
        audit = syslog.recv(65536).decode()
        assert log.last.headers.get("x-token") == token
        entries = json.dumps(log.entries)
    running.stop("quit")

    assert {401, 404, 429, 502} <= answered
    logs = running.settings["prefix"] / "logs"
    texts = {path.name: path.read_text(errors="replace") for path in logs.iterdir()}
    texts |= {"answers": answers, "admin": admin, "audit": audit, "entries": entries}
    assert {"access.log", "error.log", "admin_access.log"} <= set(texts)
    for name, text in texts.items():
        assert text, name
        assert not secrets.found(text), name
    assert "REDACTED" in texts["access.log"]
    assert "REDACTED" in texts["error.log"]
