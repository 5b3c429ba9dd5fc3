"""Each plugin's page: its example, typed, and what a page has to have."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_pages import example, page, typed
from ports import Ports
from supervisor import Foreground
from tls_clients import World

from sluice import ROOT, Start
from upstream import Upstream
from wire import wait_until

# How many requests come to the service, a header of the last one, and what the client sees.
EXAMPLES = {
    "access-log": (1, "", ""),
    "acl": (1, "X-Consumer-Groups", ""),
    "basic-auth": (1, "X-Consumer-Username", ""),
    "bot-detection": (0, "", "Forbidden"),
    "correlation-id": (1, "X-Correlation-ID", "X-Correlation-ID: "),
    "cors": (1, "Origin", "Access-Control-Max-Age: 3600"),
    "hmac-auth": (1, "X-Consumer-Username", ""),
    "ip-restriction": (1, "", ""),
    "jwt": (1, "X-Consumer-Username", ""),
    "key-auth": (1, "X-Consumer-Username", ""),
    "post-function": (1, "X-Tenant", ""),
    "pre-function": (1, "X-Version", "X-Checked: yes"),
    "prometheus": (1, "", 'kong_http_requests_total{service="orders"'),
    "rate-limiting": (1, "", "X-RateLimit-Remaining-Minute: 59"),
    "redirect": (0, "", "Location: https://shop.example.com/orders/1?full=1"),
    "request-size-limiting": (0, "", "Request size limit exceeded"),
    "request-termination": (0, "", '{"message":"Back at noon"}'),
}
# What needs certificates, a log server, or a gateway in the foreground: tests of their own below.
OTHERS = {"mtls-auth", "http-log", "file-log", "forward-auth"}
PLUGINS = sorted(path.parent.name for path in (ROOT / "plugins").glob("*/handler.lua"))


@pytest.mark.parametrize("plugin", EXAMPLES)
def test_the_example_does_what_the_page_says(
    gateway: Start, upstream: Upstream, plugin: str
) -> None:
    running = gateway(example(plugin, upstream.url))
    count, header, text = EXAMPLES[plugin]
    assert text in typed(plugin, running)
    assert len(upstream.requests) == count
    assert not header or header in upstream.requests[-1].headers


def test_the_example_of_mtls_auth(gateway: Start, upstream: Upstream, tmp_path: Path) -> None:
    world = World()
    (tmp_path / "client.pem").write_text(world.good.cert)
    (tmp_path / "client.key").write_text(world.good.key)
    text = example("mtls-auth", upstream.url)
    place = "'-----BEGIN CERTIFICATE----- ...'"
    assert place in text
    text = text.replace(place, json.dumps(world.root.cert))
    running = gateway(text, tls="ssl", ask_client_certificate=True)
    typed("mtls-auth", running, "sluice start --ask-client-certificate on", tmp_path)
    assert upstream.last.headers.get("X-Client-Cert-DN") == "CN=good client"


def test_the_example_of_http_log(gateway: Start, upstream: Upstream, tmp_path: Path) -> None:
    ports = Ports()
    port = ports.take()
    text = example("http-log", upstream.url).replace("127.0.0.1:9001", f"127.0.0.1:{port}")
    script = re.search(r"```python\n(.*?)```", page("http-log"), re.DOTALL)
    assert script
    server = tmp_path / "log-server.py"
    server.write_text(script[1].replace("9001", str(port)))
    running = gateway(text)
    command = [sys.executable, str(server)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout
        try:
            typed("http-log", running, "python3 log-server.py &")
            (entry,) = json.loads(started.stdout.readline())
        finally:
            started.kill()
            ports.release()
    assert entry["route"]["name"] == "orders"
    assert entry["request"]["uri"] == "/orders"


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def test_the_example_of_forward_auth(gateway: Start, upstream: Upstream, tmp_path: Path) -> None:
    ports = Ports()
    port = ports.take()
    text = example("forward-auth", upstream.url).replace("127.0.0.1:9002", f"127.0.0.1:{port}")
    script = re.search(r"```python\n(.*?)```", page("forward-auth"), re.DOTALL)
    assert script
    server = tmp_path / "auth-server.py"
    server.write_text(script[1].replace("9002", str(port)))
    running = gateway(text)
    with subprocess.Popen([sys.executable, str(server)], stderr=subprocess.PIPE) as started:
        try:
            wait_until(lambda: listens(port), "the server to listen")
            said = typed("forward-auth", running, "python3 auth-server.py &")
        finally:
            started.kill()
            ports.release()
    assert said.startswith("HTTP/1.1 401 ")
    assert upstream.last.headers.get("X-User") == "ann"
    assert len(upstream.requests) == 1


def test_the_example_of_file_log(upstream: Upstream) -> None:
    with Foreground(example("file-log", upstream.url)) as running:
        typed("file-log", running, "sluice start --foreground --file sluice.yaml &")
        text = b""
        while not (found := re.search(rb"^({.*)\n", text, re.MULTILINE)):
            text += os.read(running.out, 1 << 16)
        assert json.loads(found[1])["route"]["name"] == "orders"
    os.close(running.out)


def test_each_plugin_has_an_example() -> None:
    assert {*EXAMPLES} | OTHERS == {*PLUGINS}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_page_has_what_people_look_for(plugin: str) -> None:
    text = page(plugin)
    assert text.startswith(f"# {plugin}\n\n")
    assert "```yaml\n" in text
    assert "<!-- fields -->" in text
    assert "priority" in text
    assert "## Cost\n\n<!-- cost -->\n" in text
    assert "## Differences from Kong\n" in text or plugin == "access-log"  # ours alone
