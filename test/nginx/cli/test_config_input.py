"""What a declarative file may cost and refer to, and how its errors are told."""

import json
import re
import select
from pathlib import Path
from typing import Any

import httpx
from changes import document, post
from log_server import LogServer, logging_to

from sluice import Gateway, Start
from upstream import Upstream
from wire import DEADLINE, Wire, request_bytes, wait_until

YAML = {"Content-Type": "application/yaml"}
TOKEN, SECRET = "t0ken-of-the-log", "s3cret-of-nobody"


def shown(running: Gateway) -> str:
    """The plugins as the admin listener shows them."""
    return httpx.get(f"{running.admin}/plugins", trust_env=False, timeout=DEADLINE).text


# Cost


def test_errors_that_aliases_multiply_are_a_hundred(gateway: Start) -> None:
    running = gateway({})
    wrong = "{" + ", ".join(f"x{number}: 1" for number in range(100)) + "}"
    body = f'_format_version: "3.0"\n_ignore:\n- &a {wrong}\nservices: [{", ".join(["*a"] * 90)}]\n'
    answer = post(running, body, headers=YAML)
    assert answer.status_code == 400
    errors = answer.json()["errors"]
    assert len(errors) == 101
    assert errors[-1] == {"path": "", "message": "stopped after 100 errors"}
    assert len(answer.content) < 100_000


def test_requests_are_answered_while_a_file_is_checked(gateway: Start) -> None:
    # More than the connection carries where the check is slow, and the requests are not.
    running = gateway({}, workers=1, keepalive_requests=10_000_000)
    # The last one is wrong: what follows the check is not what this is about.
    services = ", ".join(["{host: a}"] * 9_000)
    body = f'_format_version: "3.0"\nservices: [{services}, 1]\n'
    answered = 0
    with running.wire() as wire, Wire(running.admin_port) as admin:
        wire.ask("/")
        admin.send(request_bytes("/config", "POST", YAML, body.encode()))
        while not select.select([admin.sock], [], [], 0)[0]:
            wire.ask("/")
            answered += 1
        assert admin.read_reply("POST").status == 400
    # One every few turns of the check; without turns those before it.
    assert answered >= 5, answered


def test_files_that_come_together_are_checked_one_by_one(gateway: Start) -> None:
    running = gateway({}, workers=1)
    body = f'_format_version: "3.0"\nservices: [{"a," * 45_000}]\n'.encode()
    clients = [Wire(running.admin_port) for _ in range(24)]
    for client in clients:
        client.send(request_bytes("/config", "POST", YAML, body))
    statuses = {client.read_reply("POST").status for client in clients}
    for client in clients:
        client.close()
    # 503: not its turn in ten seconds, on a busy machine.
    assert 400 in statuses <= {400, 503}
    status = Path(f"/proc/{running.control()}/status").read_text()
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])  # type: ignore[index]
    # One takes 160 MB, the garbage of the one before as much; all together 2 GB.
    assert peak < 800_000, f"{peak} KB"


# Errors


def test_an_error_names_its_entity_and_line(gateway: Start) -> None:
    running = gateway({})
    body = '_format_version: "3.0"\nservices:\n- name: orders\n  host: a\n  port: x\n'
    found = post(running, body, headers=YAML).json()
    where = {"path": "services[0].port", "message": "expected an integer"}
    assert found["errors"] == [where | {"entity": "orders", "line": 5}]
    assert found["fields"] == {"services[0].port": "expected an integer"}
    assert found["message"] == (
        'declarative config is invalid: line 5: services[0] "orders".port: expected an integer'
    )
    found = post(running, document({"services": [{"name": "a"}]})).json()
    assert found["errors"] == [
        {"path": "services[0].host", "message": "required field missing", "entity": "a"}
    ]


def test_errors_by_entity(gateway: Start) -> None:
    """As Kong's ingress controller reads them; what is about no entity stays in `fields`."""
    running = gateway({})
    # One that is no text does not hide the others.
    route = {"name": "r", "tags": [1, "k8s-name:r", None], "paths": ["a", "/b", "c"]}
    keys = {"username": "ann", "keyauth_credentials": [{"key": SECRET, "bogus": 1}]}
    service = {"id": "6f2c1a30-0000-4000-8000-000000000001", "name": "s", "routes": [route]}
    text = document({"services": [service], "consumers": [keys, {}, 1], "bogus": []})
    assert "flattened_errors" not in post(running, text).json()
    reply = post(running, text, "?check_hash=1&flatten_errors=1")
    assert SECRET not in reply.text
    found = reply.json()
    assert found["fields"] == {"bogus": "unknown field"}
    assert len(found["errors"]) == 9
    path = {"type": "field", "message": "should start with: / (fixed path) or ~/ (regex path)"}
    by_type = {entry.pop("entity_type"): entry for entry in found["flattened_errors"][:3]}
    assert by_type == {
        "service": {
            "entity_id": "6f2c1a30-0000-4000-8000-000000000001",
            "entity_name": "s",
            "errors": [{"type": "field", "field": "host", "message": "required field missing"}],
        },
        "route": {
            "entity_name": "r",
            "entity_tags": ["k8s-name:r"],
            "errors": [
                {"type": "field", "field": "tags.1", "message": "expected a string"},
                {"type": "field", "field": "tags.3", "message": "required field missing"},
                path | {"field": "paths.1"},
                path | {"field": "paths.3"},
            ],
        },
        "keyauth_credential": {
            "errors": [{"type": "field", "field": "bogus", "message": "unknown field"}],
        },
    }


def test_check_names_entity_and_line(gateway: Start) -> None:
    running = gateway('_format_version: "3.0"\n')
    running.write_config('_format_version: "3.0"\nservices:\n- {name: orders, host: a, port: x}\n')
    done = running.command("check")
    assert done.returncode == 1
    assert 'line 3: services[0] "orders".port: expected an integer' in done.stderr


# References


def referring(upstream: Upstream, log: LogServer, reference: str) -> dict[str, Any]:
    """A configuration whose log plugin has a reference."""
    return logging_to(upstream, log.port, headers={"X-Token": reference})


def test_a_reference_reaches_the_plugin_and_nobody_else(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    running = gateway(
        referring(upstream, log, "{vault://env/log-token}"),
        env={"LOG_TOKEN": TOKEN, "LOG_JSON": json.dumps({"a": TOKEN}), "OTHER": SECRET},
        vault_env="LOG_TOKEN, LOG_JSON, LOG_UNSET",
        workers=2,
    )
    for number in range(3):
        running.ask("/")
        wait_until(lambda n=number: len(log.entries) == n + 1, "an entry")
        assert log.last.headers.get("x-token") == TOKEN
        assert "{vault://env/log-token}" in shown(running)
        assert TOKEN not in shown(running)
        if number == 0:  # from the master's environment to that of a worker, and back
            body = document(referring(upstream, log, "{vault://env/LOG_JSON/a}"))
            assert post(running, body).status_code == 201
            assert "{vault://env/LOG_JSON/a}" in shown(running)
            again = document(referring(upstream, log, "{vault://env/log-token}"))
            assert post(running, again).status_code == 201
        elif number == 1:
            running.command("reload", "--new-workers")

    for reference, message in {
        "{vault://env/LOG_UNSET}": "the environment variable 'LOG_UNSET' is not set",
        "{vault://env/other}": "the environment variable 'OTHER' is not allowed; add it to the "
        "setting vault_env",
    }.items():
        answer = post(running, document(referring(upstream, log, reference)))
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["message"] == message
        assert SECRET not in answer.text
    assert TOKEN not in running.error_log()
