"""Who has changed something, as the history and the audit log name it."""

import json
import os
import pwd
import subprocess
from pathlib import Path

import httpx
from admin_tokens import send

from sluice import COMMAND, COMMAND_SECONDS, Start
from wire import DEADLINE, wait_until


def test_who_types_a_command_is_named_and_nobody_by_others(gateway: Start) -> None:
    running = gateway(None, audit_log="logs/audit.log")
    own = pwd.getpwuid(os.geteuid()).pw_name
    for i, name in enumerate(("alice", own, "a\r\nX-Evil: 1", "b" * 200)):
        subprocess.run(
            [str(COMMAND), "apply", "-", "--json"],
            env=running.environment() | {"SUDO_USER": name},
            input=f'_format_version: "3.0"\nconsumers: [{{username: "u{i}"}}]\n',
            check=True,
            text=True,
            capture_output=True,
            timeout=COMMAND_SECONDS,
        )
    headers = {"Sluice-User": "mallory", "Sluice-Source": "file /x"}
    assert send(running, "PUT", "/consumers/bob", json={}, headers=headers).is_success
    expected = [
        "anyone from 127.0.0.1",
        "control socket",
        f"control socket ({own})",
        f"control socket ({own})",
        f"control socket (alice as {own})",
    ]
    entries = send(running, "GET", "/history").json()["data"]
    assert [entry["by"] for entry in entries] == expected
    audit = Path(running.settings["prefix"]) / "logs" / "audit.log"
    wait_until(lambda: len(audit.read_text().splitlines()) == len(expected), "the entries")
    lines = [json.loads(line)["by"] for line in audit.read_text().splitlines()]
    assert lines == ["anyone", *expected[1:]][::-1]


def test_what_the_control_socket_says_reads_as_no_token(gateway: Start) -> None:
    running = gateway(None)
    path = str(Path(running.settings["prefix"]) / "run" / "control" / "socket")
    said = {
        "admin_token": "control socket",
        "ci from 127.0.0.1": "control socket",
        "file relative.yaml": "control socket",
        "file /etc/\xff.yaml": "control socket",
        "file /etc/j\xc3\xbcrgen.yaml": "file /etc/j\u00fcrgen.yaml (alice)",
        "environment SLUICE_DECLARATIVE_CONFIG_STRING": (
            "environment SLUICE_DECLARATIVE_CONFIG_STRING (alice)"
        ),
    }
    with httpx.Client(transport=httpx.HTTPTransport(uds=path), timeout=DEADLINE) as client:
        for i, source in enumerate(said):
            headers = {b"Sluice-Source": source.encode("latin-1")}
            if "(alice)" in said[source]:
                headers[b"Sluice-User"] = b"alice"
            url = f"http://control/consumers/u{i}"
            assert client.put(url, json={}, headers=headers).status_code == 200
    entries = send(running, "GET", "/history").json()["data"]
    assert [entry["by"] for entry in entries][::-1] == list(said.values())
